"""The errors one can live with: which publications meet them, and the least ε or weight that would.

In:   a plan with its network, whose study says within(Name, HalfWidth).
Out:  Aimed: met or not, and what it would take, each found by planning again. No data are read.
Not here: planning (run/planning.py), the line itself (lang/declare.py).

An answer is never a guess: what is named was planned and met the aim. It is at most 1 % above the least.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from sfumato.core.pufferfish import Pufferfish
from sfumato.errors import InputError, PlanError, SfumatoError
from sfumato.lang.spec import PrivacyRequirement, Spec, Weight
from sfumato.lang.term import show
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.told import digits
from sfumato.run.planning import make_plan

__all__ = ["Aimed", "aims_of", "half_width_of", "planned_with"]

#: What a promise is stated in, by its kind: the field that grows as more may be learned, and its sign.
_AMOUNT: Mapping[type[Guarantee], tuple[str, str]] = {
    PureDP: ("eps", "ε"),
    ApproxDP: ("eps", "ε"),
    GaussianDP: ("mu", "μ"),
    ZCDP: ("rho", "ρ"),
    Pufferfish: ("eps", "ε"),
}
_CLOSE = 1.01
_MOST_TRIES = 24
_LARGEST_AMOUNT, _LARGEST_WEIGHT = 100.0, 1e6


@dataclass(frozen=True)
class Aimed:
    """One publication towards one observer beside its aim. None stands for what was not found or not looked for."""

    publication: str
    observer: str
    wanted: float
    half_width: float
    sign: str  # ε, μ or ρ
    least_amount: float | None
    least_weight: float | None
    others_wider: float | None

    @property
    def met(self) -> bool:
        return self.half_width <= self.wanted

    @property
    def sentence(self) -> str:
        """What a plan says of it."""
        head = f"{self.publication} for {self.observer}: ±{digits(self.half_width)}"
        if self.met:
            least = f"; {self.sign} {digits(self.least_amount)} would do" if self.least_amount is not None else ""
            return f"{head} is within the ±{digits(self.wanted)} one can live with{least}."
        ways = []
        if self.least_amount is not None:
            ways.append(f"{self.sign} {digits(self.least_amount)} towards {self.observer}")
        if self.least_weight is not None:
            wider = f", which makes the others up to {digits(self.others_wider or 1)} times wider"
            ways.append(f"weight {digits(self.least_weight)}{wider}")
        what = f"It needs {', or '.join(ways)}." if ways else "No ε or weight that was tried would do; ask for less."
        return f"{head} is wider than the ±{digits(self.wanted)} one can live with. {what}"


def half_width_of(planned: Planned) -> float:
    """Of the widest 95 % interval of its numbers."""
    return max((seen.half_width for seen in planned.seen), default=math.inf)


def planned_with(
    plan: Plan,
    sizes: Mapping[str, float],
    *,
    amounts: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Plan:
    """The plan again with another ε (μ, ρ) towards some observers, or other weights of some publications."""
    network = plan.network
    if network is None:
        raise InputError("A plan read from a file cannot be made again: make it from its study. Nothing was planned.")
    spec = _weighted(_promising(network.spec, amounts or {}), weights or {})
    return make_plan(dataclasses.replace(network, spec=spec), sizes=sizes)


def _promising(spec: Spec, amounts: Mapping[str, float]) -> Spec:
    known = {one.observer for one in spec.requirements}
    for observer in amounts:
        if observer not in known:
            raise InputError(
                f"There is no promise towards {observer!r}. There are: {', '.join(sorted(known))}. Nothing was planned."
            )
    return dataclasses.replace(
        spec,
        requirements=tuple(
            _with_amount(one, amounts[one.observer]) if one.observer in amounts else one for one in spec.requirements
        ),
    )


def _with_amount(requirement: PrivacyRequirement, amount: float) -> PrivacyRequirement:
    promised = requirement.guarantee
    if type(promised) not in _AMOUNT:
        raise InputError(f"{promised.describe()} has no ε, μ or ρ that could be another. Nothing was planned.")
    if isinstance(promised, Pufferfish):
        return dataclasses.replace(requirement, guarantee=promised.at(amount))
    delta = (promised.delta_,) if isinstance(promised, ApproxDP) else ()
    changed = type(promised)(amount, *delta).under(promised.adjacency)  # type: ignore[call-arg]  # one of the four
    return dataclasses.replace(requirement, guarantee=changed)


def _weighted(spec: Spec, weights: Mapping[str, float]) -> Spec:
    kept = tuple(one for one in spec.weights if one.publication not in weights)
    return dataclasses.replace(spec, weights=(*kept, *(Weight(name, value) for name, value in weights.items())))


def aims_of(plan: Plan, sizes: Mapping[str, float]) -> tuple[Aimed, ...]:
    """Every publication that has an aim, beside it, in the order of the plan."""
    if plan.network is None or not plan.network.spec.aims:
        return ()
    aims = {one.publication: one.half_width for one in plan.network.spec.aims}
    return tuple(_aimed(plan, sizes, one, aims[one.name]) for one in plan.publications if one.name in aims)


def _aimed(plan: Plan, sizes: Mapping[str, float], planned: Planned, wanted: float) -> Aimed:
    assert plan.network is not None  # its aims were read from it
    now = half_width_of(planned)
    requirement = next(one for one in plan.network.spec.requirements if show(one.name) == planned.requirement)
    name, sign = _AMOUNT.get(type(requirement.guarantee), ("", "ε"))

    def at_amount(value: float) -> float:
        return _width(planned_with(plan, sizes, amounts={planned.observer: value}), planned)

    def at_weight(value: float) -> float:
        return _width(planned_with(plan, sizes, weights={planned.name: value}), planned)

    amount = _least(at_amount, getattr(requirement.guarantee, name), now, wanted, _LARGEST_AMOUNT) if name else None
    shared = len(plan.publications) > 1
    weight = _least(at_weight, planned.weight, now, wanted, _LARGEST_WEIGHT) if now > wanted and shared else None
    wider = None if weight is None else _wider(plan, planned_with(plan, sizes, weights={planned.name: weight}), planned)
    return Aimed(planned.name, planned.observer, wanted, now, sign, amount, weight, wider)


def _width(plan: Plan, planned: Planned) -> float:
    return half_width_of(plan.publication(planned.name, planned.observer))


def _wider(before: Plan, after: Plan, planned: Planned) -> float:
    others = [one for one in before.publications if one.name != planned.name and half_width_of(one) > 0]
    return max((_width(after, one) / half_width_of(one) for one in others), default=1.0)


def _least(width: Callable[[float], float], start: float, now: float, wanted: float, largest: float) -> float | None:
    """The least number, up to 1 %, at which the interval is narrow enough; every one that is named was tried."""

    def tried(value: float) -> float:
        try:
            return width(value)
        except (PlanError, SfumatoError):
            return math.inf

    low, high = (0.0, start) if now <= wanted else (start, math.inf)  # too wide at `low`, narrow enough at `high`
    value = start * min(max(now / wanted, 0.01), 100.0) if math.isfinite(now) else start * 4
    for _ in range(_MOST_TRIES):
        if low > 0 and high / low <= _CLOSE:
            break
        value = min(value, largest)
        if tried(value) <= wanted:
            high = min(high, value)
        elif value >= largest:
            return None
        else:
            low = max(low, value)
        value = _between(low, high)
        if value < 1e-6:
            return high
    return None if math.isinf(high) else _rounded_up(high, tried, wanted)


def _between(low: float, high: float) -> float:
    if low == 0:
        return high / 2
    return low * 2 if math.isinf(high) else math.sqrt(low * high)


def _rounded_up(value: float, tried: Callable[[float], float], wanted: float) -> float:
    """Three digits if these meet the aim as well."""
    scale = 10.0 ** (math.floor(math.log10(value)) - 2)
    short = math.ceil(value / scale - 1e-9) * scale
    short = float(f"{short:.3g}")
    return short if short >= value and tried(short) <= wanted else value
