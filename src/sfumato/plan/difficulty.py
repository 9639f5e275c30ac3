"""What each block of a budget is worth: its difficulty, what no answer at all would cost, what it gets at least.

In:   a dataset being settled (plan/settle.py).
Out:  numbers by reader and block, for plan/allocation.py.
Not here: the split itself (plan/allocation.py), which sums are one block (plan/together.py).
Proof: docs/proofs/allocation.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.plan.individual_part import IndividualPart, finite_difficulty
from sfumato.plan.portions import FAIR

if TYPE_CHECKING:
    from sfumato.plan.request import Request
    from sfumato.plan.settle import Settling

__all__ = ["FAIR", "difficulties_of", "floors_of", "individuals", "limits_of"]

_INDIVIDUALS = "individuals "


def _moved_parts(settling: Settling) -> Iterator[tuple[str, Sequence[IndividualPart]]]:
    """What readers see of individuals, where any of it rests on private values."""
    for reader, parts in settling.individual_parts.items():
        if any(part.template.private for part in parts):
            yield reader, parts


def _asked_of_sums(settling: Settling) -> Iterator[tuple[str, Request]]:
    return ((reader, request) for reader, own in settling.asked.items() for request in own if request.of_sums)


def difficulties_of(settling: Settling) -> dict[str, dict[str, float]]:
    """By reader and block: the expected weighted squared error times the share, to the law's degree."""
    found: dict[str, dict[str, float]] = {reader: {} for reader in settling.asked}
    law = settling.law
    for reader, request in _asked_of_sums(settling):
        own = found[reader]
        for name, influence in settling.reads_of(request).items():
            question = settling.questions[name]
            if question.is_public:
                continue
            block, price = settling.block_of(name)
            each = law.variance * law.sensitivity(question.moves()) ** 2 * price**law.degree
            own[block] = own.get(block, 0.0) + request.weight * influence * each
    for reader, parts in _moved_parts(settling):
        found[reader][individuals(parts, reader)] = max(map(finite_difficulty, parts))
    return {reader: blocks for reader, blocks in found.items() if blocks}


def limits_of(settling: Settling) -> dict[str, dict[str, float]]:
    """The relative squared error of no answer at all: that of the middle of the range, 1/12 for every number."""
    found: dict[str, dict[str, float]] = {reader: {} for reader in settling.asked}
    for reader, request in _asked_of_sums(settling):
        own = found[reader]
        for name in settling.reads_of(request):
            part = settling.questions[name].size / settling.numbers_of(request) if name in request.nodes else 1.0
            block, _ = settling.block_of(name)
            own[block] = own.get(block, 0.0) + request.weight * part / 12
    for reader, parts in settling.individual_parts.items():
        weight = max(math.fsum(w * settling.unit_of(n) ** 2 for n, w in part.weights.items()) for part in parts)
        found[reader][individuals(parts, reader)] = weight / 12
    return found


def floors_of(settling: Settling, difficulties: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """What each block gets at least, as a part of the budget: no publication becomes more than 1.2 times as noisy
    as in an even split, in which publications of larger weight have the larger part."""
    power = settling.law.power
    least = FAIR ** (-2 / settling.law.degree)
    found: dict[str, dict[str, float]] = {}
    for reader, blocks in difficulties.items():
        behind = _blocks_by_publication(settling, reader, blocks)
        parts = {name: weight ** (1 / power) for name, (weight, _) in behind.items()}
        own = found.setdefault(reader, dict.fromkeys(blocks, 0.0))
        for name, (_, needed) in behind.items():
            roots = {block: blocks[block] ** (1 / power) for block in needed}
            share = least * parts[name] / math.fsum(parts.values())
            for block, root in roots.items():
                own[block] = max(own[block], share * root / math.fsum(roots.values()))
    return found


def _blocks_by_publication(
    settling: Settling, reader: str, blocks: Mapping[str, float]
) -> dict[str, tuple[float, list[str]]]:
    found: dict[str, tuple[float, list[str]]] = {}
    for request in settling.asked[reader]:
        if request.of_sums:
            read = dict.fromkeys(settling.block_of(name)[0] for name in settling.reads_of(request))
            needed = [name for name in read if name in blocks]
        else:
            needed = [name for name in blocks if name.startswith(_INDIVIDUALS)]
        if needed:
            found[request.name] = (request.weight, needed)
    return found


def individuals(parts: Sequence[IndividualPart], reader: str) -> str:
    """The name of the block that stands for one value per individual; equal for readers who can share draws."""
    return _INDIVIDUALS + repr(sorted((part.key(reader) for part in parts), key=repr))
