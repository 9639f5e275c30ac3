"""`sfumato steps STUDY.pl --data DIR`: a history in lines.

In:   arguments.
Out:  text.
Not here: what it means (run/steps.py, evidence/trace.py).
"""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.cli.study import read_sizes
from sfumato.cli.width import text_width
from sfumato.core import Guarantee
from sfumato.lang import load
from sfumato.lang.spec import Forgotten
from sfumato.lang.term import show
from sfumato.ledger.balance import amount_text
from sfumato.network.forgotten import forgotten_name
from sfumato.plan.whole import whole_cost
from sfumato.run.accounts import default_ledger
from sfumato.run.forget import listed, read_forgotten
from sfumato.run.steps import StepState, StudyAccounts, standings

__all__ = ["run_steps"]


def run_steps(
    study: Path,
    data: Path,
    ledger: Path | None,
    size: list[str] | None = None,
    person: str | None = None,
    forgotten: Path | None = None,
) -> str:
    """What to print: every step, the account, the next step; of a person, what they are part of.

    `forgotten` is the curator's own list: what it says of the person is told, of nobody else.
    """
    private = read_forgotten(forgotten) if forgotten is not None else ()
    listed(load(study), private)
    place = ledger or default_ledger(data)
    found, account, needs = standings(study, data, place, read_sizes(size))
    lines = [line for standing in found for line in _step(standing)]
    lines += ["", *_account(account, needs)]
    lines += ["", *_next(found, study, data, forgotten)]
    if person is not None:
        own = [entry for entry in private if forgotten_name(entry.individual) == person]
        lines += ["", *_person(found, person, account, own, forgotten)]
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, text_width(), initial_indent=indent, subsequent_indent=indent + "  ")


def _step(one: StepState) -> Iterator[str]:
    yield from _wrapped(f"step {one.number}: {', '.join(one.actions)}")
    for released in one.released:
        booked = amount_text(released.reservation.charged) if released.reservation.charged else "no guarantee"
        yield from _wrapped(
            f"released with plan {released.plan}; booked on {released.reservation.dataset}: {booked}", "  "
        )
    if one.plan is not None:
        costs = ", ".join(f"{dataset} {whole_cost(one.plan, dataset)}" for dataset in one.plan.datasets)
        yield from _wrapped(f"to come; it costs {costs}", "  ")
    if one.skipped:
        yield from _wrapped("skipped: a later step was released, so this one is refused for ever", "  ")
    if one.refusal:
        yield from _wrapped(f"does not fit: {one.refusal}", "  ")


def _account(account: StudyAccounts | None, needs: dict[str, Guarantee]) -> Iterator[str]:
    if account is not None and account.balances:
        for balance in account.balances:
            yield from _wrapped(str(balance))
        yield from _wrapped("The promise about the whole history is what is granted, whatever was spent of it so far.")
    else:
        for dataset, need in needs.items():
            yield from _wrapped(f"Nothing is granted for {dataset} yet. All steps together need {amount_text(need)}.")


def _next(found: Sequence[StepState], study: Path, data: Path, forgotten: Path | None) -> Iterator[str]:
    coming = [one for one in found if one.plan is not None]
    if not coming:
        lost = ", ".join(str(one.number) for one in found if one.skipped)
        yield f"No step is to come; never released: {lost}." if lost else "Every step that publishes was released."
        return
    words = [
        "sfumato",
        "run",
        str(study),
        "--data",
        str(data),
        "--at",
        str(coming[0].number),
        "--out",
        f"step{coming[0].number}",
    ]
    words += ["--forgotten", str(forgotten)] if forgotten is not None else []
    if coming[0].refusal:
        yield from _wrapped(f"Next would be step {coming[0].number}, and the account does not hold it.")
    else:
        yield f"Next: {shlex.join(words)}"


def _released_before(found: Sequence[StepState], number: float) -> list[int]:
    return [one.number for one in found if one.released and one.number < number]


def _bounded(account: StudyAccounts | None) -> Iterator[str]:
    for balance in account.balances if account is not None else ():
        yield from _wrapped(
            f"All of it together is within {amount_text(balance.granted)} of what it would have been with other data "
            "in this one place. It cannot be taken back; nothing of the budget comes back either.",
            "  ",
        )


def _privately_forgotten(entry: Forgotten, person: str, listed: Path | None) -> Iterator[str]:
    what = f"no row of {person}" if entry.variable is None else f"{show(entry.variable)} as an absent cell"
    yield from _wrapped(
        f"A run with --forgotten {listed} reads {what}. Which earlier runs were made with that list is written "
        "nowhere, so that no file tells of it: the steps above are those that may hold something of it.",
        "  ",
    )


def _person(
    found: Sequence[StepState],
    person: str,
    account: StudyAccounts | None,
    private: Sequence[Forgotten],
    forgotten: Path | None,
) -> Iterator[str]:
    """What was released before somebody was forgotten, and why that is bounded."""
    yield f"{person}: no table was opened for this line, and whether {person} is in the data is not told."
    gone = min((one.number for one in found if f"forget({person})" in one.actions), default=math.inf)
    before = _released_before(found, gone)
    steps = ", ".join(map(str, before)) or "none"
    yield from _wrapped(
        f"Data of {person}, if there are any, are part of what was released at these steps: {steps}.", "  "
    )
    if before:
        yield from _bounded(account)
    for one in found:
        yield from _forgotten_at(one, person)
    for entry in private:
        yield from _privately_forgotten(entry, person, forgotten)
    if math.isinf(gone) and all(entry.variable for entry in private):
        yield from _wrapped(f"Later steps read the rows of {person}: no step says forget({person}).", "  ")


def _forgotten_at(step: StepState, person: str) -> Iterator[str]:
    for action in step.actions:
        if action == f"forget({person})":
            yield from _wrapped(f"From step {step.number} on no row of {person} is read.", "  ")
        elif action.startswith(f"forget({person},"):
            cell = action.removeprefix(f"forget({person},").removesuffix(")").strip()
            yield from _wrapped(f"From step {step.number} on {cell} is read as an absent cell.", "  ")
