"""A plan in words: what each observer will see, what they could still learn, what the alternatives would have cost.

In:   a Plan (no data).
Out:  plain text in three registers: for an analyst, a lawyer, a person in the data; or for one observer.
Not here: the words (templates/explain_*.txt), the decisions (plan/make.py). `explain` and `run` walk the same Plan.
"""

from __future__ import annotations

from sfumato.core.places import Place
from sfumato.errors import InputError
from sfumato.evidence.facts import gather
from sfumato.plan.plan import Plan
from sfumato.plan.sentences import LISTED
from sfumato.wording import text

__all__ = ["REGISTERS", "explain"]

REGISTERS = ("analyst", "lawyer", "subject")
_WIDTH = 100


def explain(plan: Plan, reader: str = "analyst", folder: Place | None = None, width: int = _WIDTH) -> str:
    """The plan for a reader: one of "analyst", "lawyer", "subject" (in any case), or the name of an observer.

    With the folder of its release the errors are those of the published numbers, as far as the reader may know them.
    Lines have at most `width` characters.
    """
    word = reader.strip().lower()
    if word in REGISTERS:
        return text(f"explain_{word}.txt", width, facts=gather(plan, folder), listed=LISTED)
    facts = gather(plan, folder, own=reader)
    if reader not in facts.observers:
        raise InputError(
            f"Nobody called {reader!r} observes anything in this plan. Use one of {', '.join(REGISTERS)}, or one of "
            f"the observers: {', '.join(facts.observers)}."
        )
    return text("explain_observer.txt", width, facts=facts, observer=reader)
