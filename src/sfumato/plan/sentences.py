"""What a publication is about, in sentences that a plan carries into every text about it.

In:   a settled publication, the network.
Out:  sentences: whose identifiers are shown, what each number is, what was done to it.
Not here: errors in words (evidence/figures.py), what a number is (network/meaning.py), all that is worded only when it
is read (templates/).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from sfumato.lang.fair import fair_wish
from sfumato.lang.term import show
from sfumato.network.meaning import made_of, meaning_of
from sfumato.network.network import Network, Node
from sfumato.plan.act import Act
from sfumato.plan.cell_rules import own_names
from sfumato.plan.plan import Planned
from sfumato.plan.request import template_of

__all__ = ["LISTED", "NONNEGATIVE", "in_own_names", "with_meaning"]

#: Said of every publication with a row for each individual.
LISTED = (
    "Who is listed is shown as it is: each row stands beside its individual's identifier, and no noise hides that "
    "somebody is in the data. What is protected is what the data say about them."
)


#: Said of counts that were moved.
NONNEGATIVE = (
    "Every table was moved to the nearest one without negative counts that has the same total, as the study asks "
    "(nonnegative): its numbers are biased, small ones upwards and large ones downwards, and different tables need not "
    "agree any more. standard_error, low and high are those of the unbiased numbers, the ends cut at 0."
)


#: Said of numbers that were rounded.
WHOLE = (
    "Its numbers are rounded to whole ones, as the study asks (whole): the ends of intervals outwards, so that these "
    "hold as before, and standard_error counts what rounding adds."
)


def _known(planned: Planned, network: Network) -> tuple[str, ...]:
    """Where an observer knows some of the cells behind what it is shown: what the file holds, and what it is for."""
    names = [seen.node for seen in planned.seen] if planned.listed else []
    templates = [template_of(network, group, names, planned.observer) for group in network.groups]
    known = sorted(frozenset().union(*(one.observed for one in templates if one is not None)))
    if not known or not planned.cut:
        return ()
    cells, noisy, shown = ", ".join(known), ", ".join(planned.cut), ", ".join(dict.fromkeys(names))
    return (
        f"{planned.observer} knows {cells} exactly, so no noise is spent on it: the file holds {noisy} with noise, and "
        f"{planned.observer} computes {shown} from it and from what it knows, as sfumato view does. The error stated "
        "is that of the result.",
    )


def with_meaning(planned: Planned, network: Network, act: Act | None = None, words: str = "") -> Planned:
    """The publication with all that must be known to read it; it stays in the plan's file, which has no network.

    `words` say of rows or a model what they are (plan/strategy.py): they are no cells, although they are named by some.
    """
    listed = (*((LISTED,) if planned.listed else ()), *_known(planned, network))
    if act is not None and words:
        meaning = _made(act, words, network)
    else:
        meaning = meaning_of(network, (seen.node for seen in planned.seen))
    moved = any(one.publication == planned.name for one in network.spec.nonnegative)
    rounded = any(one.publication == planned.name for one in network.spec.whole)
    said = (*((NONNEGATIVE,) if moved else ()), *((WHOLE,) if rounded else ()), *_fair(planned, network))
    about = (*listed, *meaning, *said)
    return dataclasses.replace(planned, about=about if planned.listed else in_own_names(network, about))


def in_own_names(network: Network, sentences: Sequence[str]) -> tuple[str, ...]:
    """Sentences in which a variable that is a column is called by the column's own name, in quotes if it is no word."""
    cells = {
        node.name: {"column": node.source.told} for node in network.nodes if isinstance(node, Node) and node.source
    }
    names = own_names(list(cells), cells, [node.name for node in network.aggregates])
    if not names:
        return tuple(sentences)
    longest_first = sorted(names, key=len, reverse=True)
    known = re.compile(rf"(?<![\w'])(?:{'|'.join(map(re.escape, longest_first))})")

    def named(found: re.Match[str]) -> str:
        own = names[found.group(0)]
        return own if own.isidentifier() else f"'{own}'"

    return tuple(known.sub(named, sentence) for sentence in sentences)


def _made(act: Act, words: str, network: Network) -> tuple[str, ...]:
    """What an act publishes, and what it is made from."""
    columns, target = act.parameters["columns"], act.parameters["target"]
    what = words.format(columns=_listing(columns), target=target)
    return (f"{act.name} is {what}.", *made_of(network, dict.fromkeys((*columns, *((target,) if target else ())))))


def _listing(names: Sequence[str]) -> str:
    """
    >>> _listing(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _fair(planned: Planned, network: Network) -> tuple[str, ...]:
    """Between whom a rule has to be fair, how surely, and what that costs in general."""
    wish = fair_wish(network.spec, planned.name)
    if wish is None:
        return ()
    one, holds = wish.requirement, wish.holds
    people = "in the population" if holds.where == "population" else "among the people it is measured on"
    return (
        f"It has to be fair ({one.name}): {one.measure.replace('_', ' ')} between values of {show(one.group)} within "
        f"{one.gap:g} {people}, with confidence {100 * holds.confidence:g} %. It is learned on one portion of the "
        "people and measured, with noise, on another; a part of its answers then becomes the same for everybody, as "
        "large as fairness needs. Its error is that part of the error of a constant, and the rest of its own.",
    )
