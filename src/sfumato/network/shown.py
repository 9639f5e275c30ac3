"""Conditions about individuals in publish/3 and dp_rv/2: whom they leave out may not be shown after all.

In:   what each public structure of a dataset says is shown, and the variables it has.
Out:  nothing, or a refusal with the way out.
Not here: what an observer sees (network/zones.py), conditions in the goals of aggregates (network/goals.py).

What is published is planned by the names of variables, and a name stands for everybody who has the variable. So a line
that holds for the individuals of some structures alone is refused where others have that variable too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.lang.derivations import DpRv, Publication
from sfumato.lang.spec import Dataset
from sfumato.lang.term import Position, Term, show
from sfumato.lang.vocabulary import published_kind
from sfumato.network.nodes import Draft
from sfumato.network.refusal import refusal
from sfumato.network.zones import seen

__all__ = ["Lines", "check_shown"]


@dataclass(frozen=True)
class Lines:
    """What one structure's individuals have, and what is shown of them; terms are masked already."""

    own: Mapping[str, Draft]
    observed: Sequence[DpRv]
    publications: Sequence[Publication]

    def shown(self) -> dict[tuple[str, str, str], tuple[Term, Position | None]]:
        """(publication, requirement, variable) for each variable of theirs that is shown, in what, and where."""
        said: list[tuple[str, Term, Term, Position | None]] = [
            *(("", entry.requirement, entry.variable, entry.position) for entry in self.observed),
            *((entry.name, entry.requirement, entry.what, entry.position) for entry in self.publications),
        ]
        return {
            (name, show(requirement), variable): (what, position)
            for name, requirement, what, position in said
            for variable in sorted(seen(what, self.own))
        }


def check_shown(dataset: Dataset, structures: Iterable[Lines]) -> None:
    """Refuse what is shown of the individuals of some structures, where those of another have it as well."""
    every = list(structures)
    shown = [lines.shown() for lines in every]
    said = {key: at for one in shown for key, at in one.items()}
    for (name, requirement, variable), (what, position) in said.items():
        for lines, own in zip(every, shown, strict=True):
            if variable in lines.own and (name, requirement, variable) not in own:
                line = f"publish({name}, {show(what)}, {requirement})" if name else f"dp_rv({requirement}, {variable})"
                raise refusal(
                    position,
                    f"{line} holds for some individuals of {dataset.name} alone, and others have {variable} too: it "
                    "would be shown of all of them.",
                    _way_out(dataset, variable, what),
                )


def _way_out(dataset: Dataset, variable: str, what: Term) -> str:
    everybody = f"Write it for everybody (:- {show(dataset.goal)})"
    kind = published_kind(what)
    if kind is not None and not kind.is_answer:
        return f"{everybody}, or publish an aggregate that has the condition in its goal."
    own = f"own({dataset.variable})"
    return (
        f"{everybody}; or make it a variable of those individuals, random({own}) :- Condition. "
        f"depends({own}, [{variable}], {variable}) :- Condition. and publish {own}."
    )
