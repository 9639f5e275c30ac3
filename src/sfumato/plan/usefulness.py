"""Whether what is planned will be of use: said before anything is spent.

In:   a Plan.
Out:  sentences, as the kinds of publication say them: noise wider than its column, what invented rows will reach.
Not here: predictions (plan/strategy.py and whoever registers there), who prints them (cli/study.py, evidence/).
"""

from __future__ import annotations

from sfumato.core import Schema
from sfumato.plan.plan import Plan, Planned
from sfumato.questions.registry import kind_called

__all__ = ["verdicts", "verdicts_of"]


def verdicts(plan: Plan) -> tuple[str, ...]:
    """One sentence for each publication about which there is something to say."""
    return tuple(
        f"{planned.name} for {planned.observer}: {sentence}"
        for planned in plan.publications
        for sentence in verdicts_of(plan, planned)
    )


def verdicts_of(plan: Plan, planned: Planned) -> tuple[str, ...]:
    """What is to be said of one publication."""
    for act in plan.acts:
        if act.makes(planned.name, planned.observer):
            schema = act.parameters.get("schema")
            domains = Schema.from_toml(schema).columns if schema else {}
            errors = {seen.node: seen.standard_error for seen in planned.seen}
            said = kind_called(act.kind).verdict(domains, errors, planned.seen[0].note)
            return (said,) if said else ()
    return ()
