"""Whether what is planned will be of use: said before anything is spent.

In:   a Plan.
Out:  sentences: noise wider than the column it hides, what synthetic rows are expected to reach.
Not here: predictions (plan/strategy.py and whoever registers there), who prints them (cli/study.py, evidence/).
"""

from __future__ import annotations

from sfumato.core import Interval, Schema
from sfumato.plan.act import Act
from sfumato.plan.plan import Plan, Planned

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
        if (act.name, act.observer) == (planned.name, planned.observer):
            if act.kind == "table":
                return _noised(act, planned)
            if act.kind == "synthetic":
                return (planned.seen[0].note,)
    return ()


def _noised(act: Act, planned: Planned) -> tuple[str, ...]:
    domains = Schema.from_toml(act.parameters["schema"]).columns
    ratios = {
        seen.node: seen.standard_error / domain.width
        for seen in planned.seen
        if isinstance(domain := domains.get(seen.node), Interval)
    }
    wide = {name: ratio for name, ratio in ratios.items() if ratio > 1}
    if not wide:
        return ()
    listed = ", ".join(f"{name} {ratio:.2g}" for name, ratio in wide.items())
    return (
        "Of one row the noise is wider than all its column can hold, so that a single cell says nothing (times the "
        f"column's width: {listed}). Publish statistics or synthetic rows, synthetic([…]), instead.",
    )
