"""How much must be granted for a cost, and what to do where a grant does not hold it.

In:   what is counted in an account, what is asked for beside it.
Out:  the least grant of the same kind, or of another, that holds both; ways out in sentences.
Not here: whether it fits (ledger/balance.py), commands (ledger/commands.py), whether a person agrees (run/accounts.py).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context
from pathlib import Path

from sfumato.core import (
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    GaussianDP,
    Guarantee,
    Pufferfish,
    PureDP,
    RenyiDP,
    compose,
)
from sfumato.errors import LedgerError
from sfumato.ledger.balance import GRANTABLE, Charge, Cost, charge, fits, recharged, total
from sfumato.ledger.commands import grant_command, raise_command, show_command
from sfumato.ledger.windows import check_one_class, raised_window

__all__ = ["class_way_out", "held_by", "is_higher", "more_way_out", "raised", "unknown_text", "window_grant"]

#: What is granted beyond the sum, so that rounding never refuses the last release.
_UP = 1 + 1e-9
#: Currencies of one number, in which an ε-DP act or a δ is dear or has no amount.
_ONE_NUMBER = (GaussianDP, ZCDP, RenyiDP)
_ANEW = "grant in another currency, which weighs anew what is counted already"
#: Another currency is worth a decision only where it is this much less.
_CLEARLY = 1.1
#: The least ε that is tried, how often it is doubled, and how often what lies between is halved.
_SMALLEST, _DOUBLINGS, _HALVINGS = 0.01, 10, 10
#: Accounts that are named where the one that was asked for is not there.
_MOST_NAMED = 8
#: The δ that is left at this ε is left at every ε.
_FAR = 700.0


def _no_less(found: Guarantee | None, granted: ApproxDP) -> Guarantee | None:
    """ε and δ, neither below what was granted."""
    if not isinstance(found, PureDP | ApproxDP) or not math.isfinite(found.eps):
        return found
    epsilon, delta = map(max, found.stated, granted.stated)
    return ApproxDP(epsilon, delta)


def raised(charges: Sequence[Charge], granted: Guarantee) -> Guarantee | None:
    """The least grant like `granted` that holds all charges; None where no finite one does.

    >>> raised([PureDP(0.5), PureDP(0.75)], PureDP(1.0))
    PureDP(adjacency=None, eps=1.25)
    """
    found = None if None in charges else total(charges, granted)
    if isinstance(granted, Pufferfish) and found is not None:
        found = raised_window(found, granted)
    if isinstance(granted, ApproxDP):
        found = _no_less(found, granted)
    if found is None or not math.isfinite(found.epsilon(0.5)) or not fits(charges, found):
        return None
    return found.under(granted.adjacency) if granted.adjacency else found


def is_higher(total: Guarantee, granted: Guarantee) -> bool:
    """Whether `total` is a raise of `granted`: of the same kind, and promising less.

    >>> [is_higher(total, PureDP(1.0)) for total in (PureDP(2.0), PureDP(1.0), GaussianDP(2.0))]
    [True, False, False]
    """
    return type(total) is type(granted) and total.implies(granted) is not True and granted.implies(total) is True


def held_by(acts: Sequence[Sequence[Cost]], charges: Sequence[Charge], old: Guarantee, wanted: Guarantee) -> Guarantee:
    """`wanted`, or the least grant of its kind that holds what is counted under the old one; `old` where none does."""
    wanted = wanted.under(old.adjacency)
    weighed = recharged(acts, charges, old, wanted)
    return wanted if fits(weighed, wanted) else raised(weighed, wanted) or old


def more_way_out(
    dataset: str,
    acts: Sequence[Sequence[Cost]],
    charges: Sequence[Charge],
    granted: Guarantee,
    ledger: Path,
    promised: Guarantee | None = None,
) -> str:
    """What to do where a cost does not fit: `acts` and `charges` are all that is counted, and the cost at the end."""
    enough = raised(charges, granted)
    # What an act is charged depends on the grant: where windows are larger it may take more of them.
    if enough is not None and not fits(_weighed(acts, charges, granted, enough, promised), enough):
        enough = None
    if enough is not None and not isinstance(granted, _ONE_NUMBER):
        return f"Lower ε, drop a publication, or raise the grant with `{_raise(dataset, enough, granted, ledger)}`."
    pair = _least_pair(acts, charges, granted, promised, enough)
    if enough is not None:
        return _dearer(dataset, enough, pair, granted, ledger)
    # Never out of a class of dependences: what was promised to families would no longer be counted for them.
    in_mu = None if isinstance(granted, Pufferfish) else _in_mu(acts, charges, granted, promised)
    if pair is not None and type(pair) is type(granted):
        return _dearer(dataset, pair, in_mu, granted, ledger)
    other = _less(pair, in_mu)
    if other is None:
        return "No grant holds it. Ask for something with a finite cost."
    return (
        f"No grant of this kind holds it. Ask for less, or {_ANEW}: "
        f"`{grant_command(dataset, other, ledger, granted.adjacency)}`."
    )


def _dearer(dataset: str, enough: Guarantee, other: Guarantee | None, granted: Guarantee, ledger: Path) -> str:
    """The raise, and beside it the other currency that is clearly less: an ε-DP act is dear in μ, a curve in (ε, δ)."""
    again = f"raise the grant with `{_raise(dataset, enough, granted, ledger)}`"
    delta = next((one.delta_ for one in (other, enough) if isinstance(one, ApproxDP)), 1e-6)
    if other is None or other.epsilon(delta) * _CLEARLY >= enough.epsilon(delta):
        return f"Lower ε, drop a publication, or {again}."
    return (
        f"Lower ε, drop a publication, or {_ANEW}: `{grant_command(dataset, other, ledger, granted.adjacency)}`. "
        f"Dearer for the people: {again}, which is ε = {enough.epsilon(delta):.3g} at δ = {delta:g}."
    )


def _weighed(
    acts: Sequence[Sequence[Cost]],
    charges: Sequence[Charge],
    granted: Guarantee,
    wanted: Guarantee,
    promised: Guarantee | None,
) -> list[Charge]:
    """The charges as a new grant and then the refused reservation will make them."""
    counted = recharged(acts[:-1], charges[:-1], granted, wanted)
    return [*counted, charge(acts[-1], wanted, counted, promised)]


def _in_mu(
    acts: Sequence[Sequence[Cost]], charges: Sequence[Charge], granted: Guarantee, promised: Guarantee | None
) -> Guarantee | None:
    wanted = GaussianDP(0.01).under(granted.adjacency)
    return raised(_weighed(acts, charges, granted, wanted, promised), wanted)


def _least_pair(
    acts: Sequence[Sequence[Cost]],
    charges: Sequence[Charge],
    granted: Guarantee,
    promised: Guarantee | None,
    enough: Guarantee | None,
) -> ApproxDP | Pufferfish | None:
    """An (ε, δ) that holds everything, ε the least to three digits; None where there is none, or none below `enough`.

    Of an account of dependences one for the same windows.

    What an act is charged depends on the grant, so that the sum is not known before: it is tried.
    """
    costs = [compose(items) for items in acts]
    delta = _delta_for([known or cost for known, cost in zip(charges, costs, strict=True)], granted, promised)
    least = math.fsum(cost.epsilon(delta) for cost in costs) if delta < 1 else math.inf  # no act has more δ than all
    if least * _CLEARLY >= (math.inf if enough is None else enough.epsilon(delta)):
        return None

    def holds(epsilon: float) -> ApproxDP | Pufferfish | None:
        pair = ApproxDP(epsilon, delta, adjacency=granted.adjacency)
        wanted = raised_window(pair, granted) if isinstance(granted, Pufferfish) else pair
        return wanted if fits(_weighed(acts, charges, granted, wanted, promised), wanted) else None

    first = granted.eps if isinstance(granted, PureDP | ApproxDP) else _SMALLEST
    return _least_that(holds, max(least, first))


def _least_that(holds: Callable[[float], ApproxDP | Pufferfish | None], first: float) -> ApproxDP | Pufferfish | None:
    """What holds at about the least number from `first` on: doubled until it does, then halved, as a ratio."""
    high = next((one for one in (first * 2**power for power in range(_DOUBLINGS)) if holds(one)), None)
    if high is None:
        return None
    low = max(first, high / 2)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return holds(_round_up(high, 3)) or holds(high)


def _delta_for(costs: Sequence[Guarantee], granted: Guarantee, promised: Guarantee | None) -> float:
    """That of the account or of the promise, or what no ε spares where that is more: twice, if other acts need some."""
    stated = [one.delta_ for one in (granted, promised) if isinstance(one, ApproxDP) and one.delta_ > 0]
    usual = stated[0] if stated else 1e-6
    shares = 1 if all(isinstance(cost, PureDP | ApproxDP) for cost in costs) else 2
    spent = shares * math.fsum(cost.delta(_FAR) for cost in costs)
    return usual if spent <= usual else _round_up(spent, 1)


def _round_up(value: float, digits: int) -> float:
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(value)))


def _less(pair: ApproxDP | Pufferfish | None, other: Guarantee | None) -> Guarantee | None:
    """The one with the smaller ε at the δ of the pair."""
    if pair is None or other is None:
        return pair or other
    return pair if pair.eps <= other.epsilon(pair.delta_) else other


def _raise(dataset: str, enough: Guarantee, granted: Guarantee, ledger: Path) -> str:
    assert granted.adjacency is not None
    same = isinstance(enough, type(granted)) and getattr(enough, "dependence", 0) == getattr(granted, "dependence", 0)
    if not same:  # a pure budget that needs a δ
        return grant_command(dataset, enough, ledger, granted.adjacency)
    return raise_command(dataset, enough, ledger, granted.adjacency.unit)


def _first(items: Sequence[Cost]) -> Guarantee:
    """What a first grant for this cost may be; without a cost ε = 1, as an example."""
    cost = compose(items) if items else PureDP(1.0)
    if isinstance(cost, GRANTABLE) and not (isinstance(cost, Pufferfish) and cost.dependence.single):
        return cost
    epsilon = cost.epsilon(1e-6)
    return ApproxDP(epsilon * _UP, 1e-6, adjacency=cost.adjacency) if math.isfinite(epsilon) else PureDP(1.0)


def unknown_text(
    dataset: str, unit: str, accounts: Sequence[tuple[str, str]], items: Sequence[Cost], ledger: Path
) -> str:
    """That nothing was granted: the nearest account there is, and a first grant, for this cost where there is one."""
    units = [granted for name, granted in accounts if name == dataset]
    close = difflib.get_close_matches(str(dataset), [name for name, _ in accounts], n=1)
    hint = f" Did you mean {close[0]!r}? `{show_command(close[0], ledger)}`" if close else ""
    if accounts and not close:
        known = list(dict.fromkeys(name for name, _ in accounts))
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        named = ", ".join(map(repr, known[:_MOST_NAMED]))
        hint = f" There are grants for {named}{more}: `{show_command(None, ledger)}`."
    if units:
        hint = f" It has a grant for the unit {', '.join(units)}: `{show_command(dataset, ledger)}`."
    total = _first(items)
    who = total.adjacency or Adjacency(unit, REPLACE_ONE.relation)
    command = grant_command(str(dataset), total, ledger, who)
    return (
        f"Nothing was ever granted for {dataset!r} (unit: {unit}) in {ledger.name}.{hint} Nothing was run and nothing "
        f"was spent. Grant a budget first{'' if items else ', for example'}: `{command}`."
    )


def class_way_out(
    dataset: str, acts: Sequence[Sequence[Cost]], asked: Pufferfish, granted: Guarantee, ledger: Path
) -> str:
    """What to do where an account was not opened for the dependences that a promise is about."""
    if asked.dependence.single:
        return (
            "A known law needs an account that was opened with it, for this release alone: use data that has no "
            "account yet, and run with --grant (from Python: grant=True)."
        )
    wanted = asked.under(granted.adjacency)
    whole = raised(recharged(acts, (), granted, wanted), wanted) or wanted
    return (
        "Grant the account for that class first, which weighs anew what is counted already: "
        f"`{grant_command(dataset, whole, ledger)}`. Or use data that has no account yet, and run with --grant "
        "(from Python: grant=True)."
    )


def window_grant(promises: Sequence[Guarantee], acts: Sequence[Sequence[Cost]]) -> Pufferfish:
    """The grant that holds all these reservations, made under these promises, for their one class of dependences."""
    depending = [one for one in promises if isinstance(one, Pufferfish)]
    check_one_class(depending)
    first = depending[0]
    if first.dependence.single:
        raise LedgerError(
            "A promise that rests on a known joint law is for one release to one observer, and nothing adds to it. "
            "Publish to one observer and without steps, or declare a group instead of the law. Nothing was run and "
            "nothing was spent."
        )
    epsilon = first.dependence.flat + math.fsum(one.left for one in depending) * _UP
    delta = min(math.fsum(one.delta_ for one in depending) * _UP, math.nextafter(1.0, 0.0))
    whole = Pufferfish(epsilon, delta, first.dependence, adjacency=first.adjacency)
    charges = recharged(acts, (), PureDP(1.0), whole)
    found = whole if fits(charges, whole) else raised(charges, whole)
    if found is None or not isinstance(found, Pufferfish):
        raise LedgerError(
            f"What a grant for {first.dependence.words} must be for all of this is not known. Nothing was run and "
            "nothing was spent. Publish to fewer observers or in fewer steps."
        )
    return found
