"""A history of releases is one account: which steps were released, and in which order they may be.

In:   a Plan of one step, the ledger.
Out:  the words by which a step is recorded; the steps released so far; a refusal of steps out of order.
Not here: what fits into a grant (ledger/balance.py), steps to come (run/steps.py).

Going back is refused: what is forgotten at a later step would be read again. The order is that of the reservations in
the ledger: `check_order` looks before anything is read, so that nobody waits for a refusal, and `check_turn` decides,
once the step has its own place among them and before noise is drawn. Of two processes at once the second is refused.
Proof: docs/proofs/time_steps.md, docs/proofs/ledger_filter.md
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sfumato.errors import LedgerError
from sfumato.lang.spec import Spec
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.plan.plan import Plan

__all__ = ["Released", "check_order", "check_turn", "publishing_steps", "purpose_of", "released_steps"]

#: A study may be called anything, also in two lines.
_STEP = re.compile(
    r"plan (?P<plan>[0-9a-f]+) of (?P<study>.*), step (?P<step>\d+) \((?P<shares>[0-9a-f:]*)\)", re.DOTALL
)


_MARK = 8


@dataclass(frozen=True)
class Released:
    """A release of one step, as an account has it."""

    step: int
    plan: str
    #: Mark of a requirement -> over how many steps its promise was shared out.
    shares: Mapping[str, int]
    reservation: Reservation


def purpose_of(plan: Plan) -> str:
    """What a reservation is for, in the ledger's own words."""
    step = plan.extras.get("step")
    words = f"plan {plan.hash[:12]} of {plan.study}"
    if step is None:
        return words
    return f"{words}, step {step} ({':'.join(f'{mark}{number:x}' for mark, number in _shares(plan).items())})"


def _shares(plan: Plan) -> dict[str, int]:
    """Mark of each requirement that this step publishes under -> the number of its shares."""
    used = {planned.requirement for planned in plan.publications}
    shares = {name: number for name, (number, _) in plan.extras["shares"].items() if name in used}
    return {hashlib.sha256(name.encode()).hexdigest()[:_MARK]: number for name, number in sorted(shares.items())}


def released_steps(ledger: Ledger, dataset: str, study: str) -> Iterator[Released]:
    """The steps of a study on one account: whatever was reserved and not given back."""
    for record in ledger.history(dataset):
        found = _STEP.fullmatch(record.text) if record.action == "reserve" else None
        if found is None or found["study"] != study or record.reservation is None:
            continue
        if ledger.state(record.reservation) != "released":
            marks = [one for one in found["shares"].split(":") if one]
            shares = {one[:_MARK]: int(one[_MARK:], 16) for one in marks}
            yield Released(int(found["step"]), found["plan"], shares, ledger.reservation(record.reservation))


def publishing_steps(spec: Spec) -> tuple[int, ...]:
    """The steps that publish something, in order."""
    return tuple(sorted({step.number for step in spec.steps if step.publishes is not None}))


def check_order(
    plan: Plan, ledger: Ledger, sources: Mapping[str, tuple[str, ...]], tell: Callable[[str], None] = lambda text: None
) -> None:
    """Refuse a step that was released already or comes before one, and a promise shared out in another way since.

    `tell` hears of steps that this one leaves behind: they can never be run afterwards.
    """
    step = plan.extras.get("step")
    if step is None:
        return
    accounts = dict.fromkeys(name for dataset in plan.datasets for name, _ in ledger.owners(sources[dataset]))
    earlier = [one for name in accounts for one in released_steps(ledger, name, plan.study)]
    _refuse(plan, step, earlier, ledger)
    _tell_skipped(plan, max((one.step for one in earlier), default=0), step, tell)


def check_turn(plan: Plan, ledger: Ledger, reservations: Sequence[Reservation]) -> None:
    """The same against what was reserved before these `reservations` of the step itself: nobody comes in between."""
    step = plan.extras.get("step")
    if step is None:
        return
    for own in reservations:
        others = takewhile(
            lambda one, own=own: one.reservation.id != own.id, released_steps(ledger, own.dataset, plan.study)
        )
        _refuse(plan, step, list(others), ledger)


def _refuse(plan: Plan, step: int, earlier: Sequence[Released], ledger: Ledger) -> None:
    latest = max(earlier, key=lambda one: one.step, default=None)
    if latest is not None and latest.step >= step:
        open_yet = ledger.state(latest.reservation.id) == "reserved"
        done = "is being released, or was stopped while noise was drawn" if open_yet else "was released already"
        why = (
            "that would be a second release" if latest.step == step else "what was forgotten since would be read again"
        )
        raise LedgerError(
            f"Step {latest.step} of {plan.study} {done}, and step {step} is asked for: {why}. For the same release use "
            "--resume with its folder; for a new one write a study of its own, whose promise adds to this one: the "
            "ledger counts both. Nothing was drawn and nothing was spent."
        )
    for one in earlier:
        _check_shares(plan, one)


def _check_shares(plan: Plan, earlier: Released) -> None:
    shares = _shares(plan)
    if any(shares.get(mark, number) != number for mark, number in earlier.shares.items()):
        raise LedgerError(
            f"When step {earlier.step} of {plan.study} was released, a promise was shared out over another number of "
            "steps than the study has now: the shares would add up to more than the promise. Publish the new step "
            "in a study of its own, whose promise adds to this one: the ledger counts both. Nothing was drawn and "
            "nothing was spent."
        )


def _tell_skipped(plan: Plan, latest: int, step: int, tell: Callable[[str], None]) -> None:
    known = publishing_steps(plan.network.spec) if plan.network is not None else ()
    skipped = [str(number) for number in known if latest < number < step]
    if skipped:
        which = f"step {skipped[0]} is" if len(skipped) == 1 else f"steps {', '.join(skipped)} are"
        tell(
            f"WARNING: {which} skipped for ever: what comes before step {step} is refused once that is released, and "
            "its share of the promise stays unused. To publish it, stop this run (Ctrl-C) before noise is drawn, and "
            "run that step first."
        )
