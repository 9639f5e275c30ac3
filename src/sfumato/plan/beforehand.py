"""What is said of a plan before anything is spent, beside the table of its errors: one list for whoever shows a plan.

In:   a Plan; sentences about the errors one can live with, where somebody looked for them.
Out:  Said, one a sentence, in the order in which they are read.
Not here: the table (plan/told.py), how a terminal (cli/study.py) or Python (study/planned.py) shows them, what is said
after the run (cli/published.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, final

from sfumato.plan.about import weak_promises
from sfumato.plan.beside import shared_sentences
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.usefulness import verdicts_of

__all__ = ["Said", "Topic", "said_beforehand"]

#: An aim and whether it is met; what a promise is shared over; what an error rests on, and what it may be instead; what
#: a number is; what speaks against publishing it so; what the predictions assume.
Topic = Literal["aim", "shared", "error", "meaning", "caution", "assumed"]

#: Of errors that hang on what will be drawn, as plan/told.py says it of one number.
_SPREAD = "Expected, for values spread evenly over their ranges."


@final
@dataclass(frozen=True)
class Said:
    """One sentence, or several about one thing, and the publications that it is about, as (name, observer)."""

    topic: Topic
    sentence: str
    about: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """
        >>> str(Said("error", "For 9.", (("a", "public"), ("b", "public"), ("a", "doctor"))))
        'a, b for public and a for doctor: For 9.'
        """
        if self.topic == "assumed":
            return f"assumed for the predictions: {self.sentence}"
        named: dict[str, list[str]] = {}
        for name, observer in self.about:
            named.setdefault(observer, []).append(name)
        head = " and ".join(f"{', '.join(names)} for {observer}" for observer, names in named.items())
        return f"{head}: {self.sentence}" if head else self.sentence


def said_beforehand(plan: Plan, aims: Iterable[str] = ()) -> tuple[Said, ...]:
    """All of it; what is said of several publications is said once."""
    return (
        *(Said("aim", sentence) for sentence in aims),
        *(Said("shared", sentence) for sentence in shared_sentences(plan)),
        *_together(plan, "error"),
        *_together(plan, "meaning"),
        *_together(plan, "caution"),
        *(Said("caution", sentence) for sentence in weak_promises(plan)),
        *(Said("assumed", sentence) for sentence in plan.assumptions),
    )


def _together(plan: Plan, topic: Topic) -> Iterator[Said]:
    found: dict[str, list[tuple[str, str]]] = {}
    for planned in plan.publications:
        for sentence in _said_of(plan, planned, topic):
            found.setdefault(sentence, []).append((planned.name, planned.observer))
    return (Said(topic, sentence, tuple(dict.fromkeys(about))) for sentence, about in found.items())


def _said_of(plan: Plan, planned: Planned, topic: Topic) -> Sequence[str]:
    if topic == "meaning":
        return planned.about
    cautions = verdicts_of(plan, planned)
    if topic == "caution":
        return cautions
    several = len(planned.seen) > 1
    spread = any(seen.basis == "drawn" for seen in planned.seen)
    return [
        *([_SPREAD] if spread else []),
        *(
            f"{seen.node}: {seen.note}" if several else seen.note
            for seen in planned.seen
            if seen.note and seen.note not in cautions
        ),
    ]
