"""A plan in words: what each observer will see, what they could still learn, what the alternatives would have cost.

In:   a Plan (no data).
Out:  plain text in three registers: for an analyst, a lawyer, a person in the data; or for one observer.
Not here: the decisions (plan/make.py). `explain` and `run` walk the same Plan.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.errors import InputError
from sfumato.evidence.figures import told_of
from sfumato.evidence.odds import odds_sentence, one_in, stated_point
from sfumato.plan.about import decided_of, title_of, weak_promises
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.individual_part import AnyDraw
from sfumato.plan.linear.individual import LinearDraw
from sfumato.plan.plan import Plan, Planned, Promise
from sfumato.plan.sentences import LISTED, exact_sentences, history_sentences, part_sentences
from sfumato.plan.told import Told

__all__ = ["REGISTERS", "explain"]

REGISTERS = ("analyst", "lawyer", "subject")
_WIDTH = 100


def explain(plan: Plan, reader: str = "analyst", folder: Path | None = None) -> str:
    """The plan for a reader: one of "analyst", "lawyer", "subject" (in any case), or the name of an observer.

    With the folder of its release the errors are those of the published numbers, as far as the reader may know them.
    """
    word = reader.strip().lower()
    observers = sorted({planned.observer for planned in plan.publications})
    if word in REGISTERS:
        lines = _lawyer(plan) if word == "lawyer" else {"analyst": _analyst, "subject": _subject}[word](plan, folder)
    elif reader in observers:
        lines = _for_observer(plan, reader, folder, own=True)
    else:
        raise InputError(
            f"Nobody called {reader!r} observes anything in this plan. Use one of {', '.join(REGISTERS)}, or one of "
            f"the observers: {', '.join(observers)}."
        )
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent) or [""]


def _title(text: str) -> list[str]:
    return ["", text, "─" * len(text)]


def _promises_for(plan: Plan, observer: str) -> list[Promise]:
    return [promise for promise in plan.promises if observer in promise.observers]


def _analyst(plan: Plan, folder: Path | None) -> list[str]:
    lines = [f"Plan {plan.hash[:12]} of {plan.study}"]
    for observer in sorted({planned.observer for planned in plan.publications}):
        lines += _for_observer(plan, observer, folder)
    if exact := exact_sentences(plan):
        lines += _title("What somebody learns exactly")
        for sentence in exact:
            lines += _wrapped(f"· {sentence}")
    lines += _title("What the ledger will be charged")
    for dataset in plan.datasets:
        lines += _wrapped(f"{dataset}: {plan.cost(dataset)}, as if all observers showed each other everything.")
    for sentence in (*history_sentences(plan), *part_sentences(plan)):
        lines += _wrapped(f"· {sentence}")
    if plan.assumptions:
        lines += _title("Assumed for the predictions, not for the privacy")
        for assumption in plan.assumptions:
            lines += _wrapped(f"· {assumption}")
    return lines


def _for_observer(plan: Plan, observer: str, folder: Path | None, own: bool = False) -> list[str]:
    lines = _title(f"What {observer} will see")
    for planned in plan.publications:
        if planned.observer == observer:
            lines += list(_publication(plan, planned, told_of(planned, folder, own=own)))
    for sentence in exact_sentences(plan, (observer,)):
        lines += _wrapped(sentence)
    lines += _title(f"What {observer} could still learn")
    for promise in _promises_for(plan, observer):
        who = " and ".join(promise.observers)
        together = f" ({who} together)" if len(promise.observers) > 1 else ""
        lines += _wrapped(f"Promised{together}: {promise.asked}. Kept: {promise.kept.describe()}.")
        lines += _wrapped(odds_sentence(promise.asked, promise.kept), "  ")
    for draw in plan.draws:
        if observer in draw.observers:
            lines += _wrapped(_limit(draw), "  ")
    return lines


def _limit(draw: AnyDraw) -> str:
    """The Cramér-Rao bound of one draw, in the unit of its node. It holds for estimates without bias only."""
    error = f"{draw.scale:.4g}"  # 1/√(Fisher information) is the scale, of Gaussian and of Laplace noise alike
    if isinstance(draw, SampleDraw):
        return f"{draw.node}: a random answer, in {100 * draw.scale:.3g} % of cases not the network's own."
    if isinstance(draw, LinearDraw):
        return f"{draw.node}: read off {draw.dimension} numbers with Gaussian noise of scale {error} each."
    if draw.group is None:
        unit = draw.adjacency.unit
        return (
            f"{draw.node}: who knows every other {unit} and estimates, without bias, what one {unit} added to the sum "
            f"has a typical error of at least {error} (Cramér-Rao)."
        )
    return f"{draw.node}: who estimates it without bias from this draw errs typically by at least {error} (Cramér-Rao)."


def _publication(plan: Plan, planned: Planned, told: Sequence[Told]) -> Iterator[str]:
    yield from _wrapped(
        f"{planned.name}: {planned.strategy}" + (f" on {', '.join(planned.cut)}" if planned.cut else "")
    )
    for one in told:
        yield from _wrapped(one.sentence, "  ")
    for sentence in planned.about:
        yield from _wrapped(sentence, "  ")
    if any(one.wrong is None for one in told):
        yield from _wrapped(f"Expected squared error in all, as planned: {planned.error:.4g}.", "  ")
    yield from _wrapped(f"Why: {planned.reason}", "  ")
    for other in planned.alternatives:
        cost = "" if other.error is None else f" expected squared error {other.error:.4g};"
        yield from _wrapped(f"instead of {other.strategy}:{cost} {other.reason}", "    ")


def _lawyer(plan: Plan) -> list[str]:
    lines = [f"What is promised in {title_of(plan)}, and to whom it applies"]
    if purpose := plan.extras.get("about", {}).get("purpose"):
        lines += _wrapped(f"Purpose: {purpose}")
    for sentence in weak_promises(plan):
        lines += _wrapped(f"Warning: {sentence}")
    for promise in plan.promises:
        who = " and ".join(promise.observers)
        unit = promise.asked.adjacency.unit if promise.asked.adjacency else "record"
        lines += _title(f"Towards {who}")
        lines += _wrapped(
            f"The protected unit is one {unit} of {promise.dataset}; the change considered is "
            f"{promise.asked.adjacency}. The promise is {promise.asked.describe()} (requirement {promise.requirement})."
            f"{_delta(promise)} {_decided(plan, promise)}"
        )
        for sentence in exact_sentences(plan, promise.observers):
            lines += _wrapped(f"Not promised: {sentence}")
        if named := plan.extras.get("instances"):
            lines += _wrapped(
                f"What is protected are all values of one {unit} together; the study names {', '.join(named)}, and "
                "every other value read from a table is protected in the same way."
            )
        lines += _wrapped(odds_sentence(promise.asked, promise.kept, "lawyer"))
        shown = [planned.name for planned in plan.publications if planned.observer in promise.observers]
        lines += _wrapped(
            f"It covers everything that this study shows to {who}, taken together ({', '.join(dict.fromkeys(shown))}), "
            "and everything that anybody computes from it later. It does not cover what is published elsewhere about "
            f"the same {unit}, nor facts about groups that would be found without this {unit}'s data as well."
        )
        if listing := [p.name for p in plan.publications if p.listed and p.observer in promise.observers]:
            lines += _wrapped(
                f"{', '.join(dict.fromkeys(listing))}: {LISTED} The promise does not cover being listed, because the "
                f"change considered replaces the data of one {unit} and leaves the identifiers."
            )
    if exact := exact_sentences(plan):
        lines += _title("What no promise covers")
        for sentence in exact:
            lines += _wrapped(sentence)
    for title, sentences in (
        ("The history this release is part of", history_sentences(plan)),
        ("Promises about parts of the same people", part_sentences(plan)),
    ):
        lines += _title(title) if sentences else []
        for sentence in sentences:
            lines += _wrapped(sentence)
    lines += _numbers(plan)
    lines += _title("How this can be checked")
    lines += _wrapped(
        "Each promise follows from the noise listed in the certificate, by proofs named there. Anybody can recompute "
        "it without the data: sfumato verify certificate.json. The plan was made without looking at the data. Its "
        f"hash is {plan.hash}."
    )
    return lines


def _delta(promise: Promise) -> str:
    delta = stated_point(promise.asked)[1]
    return f" Its δ of {delta:g} is {one_in(delta)}." if delta else ""


def _decided(plan: Plan, promise: Promise) -> str:
    who = decided_of(plan, promise.requirement)
    return f"It was decided by {who}." if who else "The study does not say who decided it (decided_by)."


def _numbers(plan: Plan) -> list[str]:
    """What each number is: the question, the rows that count, what is done with values that do not fit."""
    lines = _title("What the numbers are")
    told: dict[tuple[str, ...], list[str]] = {}
    for planned in plan.publications:
        told.setdefault((planned.name, *(planned.about or (planned.reason,))), []).append(planned.observer)
    for (name, *sentences), observers in told.items():
        lines += _wrapped(f"{name}, for {' and '.join(observers)}:")
        for sentence in sentences:
            lines += _wrapped(sentence, "  ")
    return lines


def _subject(plan: Plan, folder: Path | None) -> list[str]:
    lines = ["If your data are in this study"]
    for planned in plan.publications:
        nodes = ", ".join(dict.fromkeys(seen.node for seen in planned.seen))
        widest = max(told_of(planned, folder), key=lambda one: max(one.below, one.above))
        lines += _wrapped(
            f"· {planned.observer} will see {planned.name} ({nodes}). Random noise is added before "
            f"({'typically ' if widest.wrong is None else ''}{widest.within}), so that {_who_cannot(plan)} "
            "can tell from it with confidence what your own entry was."
        )
    for sentence in exact_sentences(plan):
        lines += _wrapped(f"· {sentence}")
    if listing := [planned for planned in plan.publications if planned.listed]:
        who = " and ".join(sorted({planned.observer for planned in listing}))
        names = ", ".join(dict.fromkeys(planned.name for planned in listing))
        lines += _wrapped(f"· {who} will see that you are in this study, by the identifier in {names}. {LISTED}")
    if known := plan.extras.get("personal"):
        lines += _wrapped(
            f"· You know {', '.join(known)} of yourself exactly. It is counted as nobody else's knowledge and "
            "changes no promise."
        )
    for promise in plan.promises:
        sentence = odds_sentence(promise.asked, promise.kept, "subject")
        lines += _wrapped(f"· Towards {' and '.join(promise.observers)}: {sentence}", "")
        for exact in exact_sentences(plan, promise.observers):
            lines += _wrapped(f"  But {exact}")
    for sentence in (*history_sentences(plan), *part_sentences(plan)):
        lines += _wrapped(f"· {sentence}")
    lines += _wrapped(
        "· It stays so for what is computed from the results later. It does not stop general findings, for example "
        "about an illness, from being learned."
    )
    return lines


def _who_cannot(plan: Plan) -> str:
    """Who is kept from telling an entry: nobody can, but for who learns something exactly anyhow."""
    knowing = sorted({observer for observer, _ in plan.extras.get("exact", ())})
    return f"nobody but {' and '.join(knowing)}, who learns something exactly," if knowing else "nobody"
