"""How many things one owner has, and what that makes of the owners' promises.

In:   a Spec with owners, its public tables.
Out:  the Spec whose requirements say what one thing may cost, so that all things of one owner keep the owner's promise.
Not here: which lines make somebody an owner (lang/owners.py).
Proof: docs/proofs/owners.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.core import ApproxDP, Guarantee, PureDP
from sfumato.core.one_of_several import for_one_of
from sfumato.lang.spec import PrivacyRequirement, Spec
from sfumato.lang.whose import Owner
from sfumato.network.expression import sql_name
from sfumato.network.refusal import refusal
from sfumato.network.tables import TableRoom, name_text, name_writing

__all__ = ["most_things", "with_owners"]


def with_owners(spec: Spec, tables: Mapping[str, Any]) -> Spec:
    """The study as its things see it: the strictest of their owners' promises, divided by how many one may have."""
    if not spec.owners:
        return spec
    most = most_things(spec, tables)
    owners = tuple(replace(owner, most=most[owner.dataset]) for owner in spec.owners)
    promised = [one for one in spec.requirements if one.owner is not None]
    changed = tuple(
        one
        if one.owner is None
        else replace(
            one,
            guarantee=_strictest(one, promised, most).under(spec.dataset(one.dataset).adjacency),
            owned=str(one.guarantee),
        )
        for one in spec.requirements
    )
    return replace(spec, owners=owners, requirements=changed)


def most_things(spec: Spec, tables: Mapping[str, Any]) -> dict[str, int]:
    """The largest number of things of one owner, by dataset; of somebody who may be both, the sum."""
    with TableRoom(tables, sorted({owner.table for owner in spec.owners})) as room:
        found = {name: _most(room, [one for one in spec.owners if one.dataset == name]) for name in _datasets(spec)}
    together = {name: {name} for name in found}
    for first, second in spec.same_people:
        both = together[first] | together[second]
        together |= dict.fromkeys(both, both)
    return {name: sum(found[other] for other in together[name]) for name in found}


def _datasets(spec: Spec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(owner.dataset for owner in spec.owners))


def _most(room: TableRoom, owners: Sequence[Owner]) -> int:
    """Several tables or columns may name the same owner, so things are counted once over all of them.

    Owners and things are known by their names, of which 7 and 7.0 are one. Names of another writing (7.00, 7.000) are
    counted apart and summed, for too many is safe and too few is not.
    """
    pairs: dict[str, list[str]] = {}
    for one in owners:
        kinds = room.types(one.table, [one.column, one.thing])
        owner, thing = (name_text(kinds[column], sql_name(column)) for column in (one.column, one.thing))
        pairs.setdefault(name_writing(kinds[one.column]), []).append(
            f"SELECT {owner} AS o, {thing} AS t FROM {room.names[one.table]}"
        )
    counts = [
        room.run(f"SELECT max(n) FROM (SELECT count(DISTINCT t) AS n FROM ({' UNION '.join(same)}) GROUP BY o)")
        for same in pairs.values()
    ]
    return max(1, sum(int(number or 0) for ((number,),) in counts))


def _is_for_the_same(other: PrivacyRequirement, one: PrivacyRequirement) -> bool:
    return (other.observer, other.dataset) == (one.observer, one.dataset)


def _shares(own: Sequence[PrivacyRequirement], most: Mapping[str, int]) -> list[Guarantee | None]:
    shares = [for_one_of(other.guarantee, most[str(other.owner)]) for other in own]
    if any(isinstance(share, PureDP) for share in shares):  # a pure ε keeps an (ε, δ) too
        return [_pure(other.guarantee, most[str(other.owner)]) for other in own]
    return shares


def _strictest(one: PrivacyRequirement, promised: Sequence[PrivacyRequirement], most: Mapping[str, int]) -> Guarantee:
    shares = _shares([other for other in promised if _is_for_the_same(other, one)], most)
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or len({type(share) for share in known}) > 1:
        raise refusal(
            one.position,
            "The promises to the owners of the same things are of kinds that cannot be compared.",
            "State dp(ε), dp(ε, δ), gdp(μ) or zcdp(ρ), the same for every owner.",
        )
    return min(known, key=lambda share: share.epsilon(1e-6))


def _pure(guarantee: Guarantee, number: int) -> Guarantee | None:
    known = isinstance(guarantee, PureDP | ApproxDP)
    return for_one_of(PureDP(guarantee.eps, adjacency=guarantee.adjacency), number) if known else None
