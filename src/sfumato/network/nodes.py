"""From one grounding to nodes: expressions, ranges, bounds, in the order of their dependencies.

In:   a Grounding for one representative, the Spec.
Out:  Node values, checked: one CPF per variable, no cycle, tables of cases complete.
Not here: who the representatives are (network/build.py), aggregates (network/build.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from sfumato.core.domain import Categories, Interval
from sfumato.core.tables import nearest
from sfumato.core.text import AnyText
from sfumato.lang.derivations import Dependency, Grounding
from sfumato.lang.spec import Column, Spec
from sfumato.lang.term import Compound, ListTerm, Position, Term, Variable, show, walk
from sfumato.network.algebra import times, total, within
from sfumato.network.bounds import Bounds, as_bounds, hull
from sfumato.network.convert import expression_of
from sfumato.network.discrete import clipped_level, clipped_levels, level_probability
from sfumato.network.expression import Call, Constant, Distribution, Expression, Level, Lookup, Power, Reference
from sfumato.network.inference import Inference, affine, guarded, is_random
from sfumato.network.network import Group, Node
from sfumato.network.refusal import refusal
from sfumato.network.tables import layout_of

__all__ = ["Draft", "Mask", "drafts", "finish", "masked"]

Mask = Mapping[Term, Variable]

_MOST_LEVELS = 1_000
_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A variable before inference: its law as written, its declared range, its column."""

    name: str
    term: Term
    atom: Term
    law: Expression | None
    parents: tuple[str, ...]
    source: Column | None
    declared: Interval | Categories | AnyText | None
    missing: Level | None
    public: bool
    rows: int
    row_table: str | None
    skip: bool
    position: Position | None = field(default=None, compare=False)


def masked(term: Term, mask: Mask) -> Term:
    """The term with representatives replaced by their dataset's variable.

    >>> print(masked(Compound("age", (Compound("$patient_1"),)), {Compound("$patient_1"): Variable("P")}))
    age(P)
    """
    if term in mask:
        return mask[term]
    match term:
        case Compound() if term.arguments:
            return Compound(term.functor, tuple(masked(part, mask) for part in term.arguments), term.position)
        case ListTerm() if term.items:
            return ListTerm(tuple(masked(part, mask) for part in term.items))
    return term


def drafts(spec: Spec, grounding: Grounding, mask: Mask, also: Iterable[str] = ()) -> dict[str, Draft]:
    """Every declared variable; `also` names aggregates a CPF may refer to."""
    known = {show(masked(term, mask)) for term in grounding.variables} | set(also)

    def naming(term: Term) -> str | None:
        if not isinstance(term, Compound):
            return None
        name = show(masked(term, mask))
        return name if name in known else None

    by_child: dict[str, list[Dependency]] = {}
    for dependency in grounding.dependencies:
        by_child.setdefault(show(masked(dependency.child, mask)), []).append(dependency)
    _check_children(by_child, known)
    found = {}
    for term in grounding.variables:
        draft = _draft(spec, masked(term, mask), term, by_child, naming)
        found[draft.name] = draft
    return found


def _check_children(by_child: Mapping[str, list[Dependency]], known: set[str]) -> None:
    for name, dependencies in by_child.items():
        if name not in known:
            raise refusal(
                dependencies[0].position,
                f"{name} has a CPF and is not declared{nearest(name, sorted(known))}.",
                f"Declare random({name}).",
            )


def _only_law(name: str, dependencies: Sequence[Dependency], naming) -> Expression | None:
    """The law that a node is given, by one of its dependencies or alike by several; None where none gives one."""
    given: dict[Expression, Dependency] = {}
    for one in dependencies:
        if one.cpf != Compound("unspecified"):
            given.setdefault(expression_of(one.cpf, naming, one.position), one)
    if len(given) > 1:
        raise refusal(
            list(given.values())[1].position,
            f"{name} has {len(given)} different CPFs.",
            "Bind every variable of the clause's body, so that it has one answer.",
        )
    return next(iter(given), None)


def _draft(spec: Spec, atom: Term, term: Term, by_child: Mapping[str, list[Dependency]], naming) -> Draft:
    name = show(atom)
    source = spec.column_of(atom)
    dependencies = by_child.get(name, ())
    law = _only_law(name, dependencies, naming)
    if source is not None and law is not None:  # where a public table decides it, no check without rows can see it
        raise refusal(
            next(one.position for one in dependencies if one.cpf != Compound("unspecified")),
            f"{name} has a column and also a CPF.",
            "Keep one of them, or give what is computed a name of its own.",
        )
    parents = dict.fromkeys(parent for one in dependencies for parent in _parents(one, naming))
    parents.update(dict.fromkeys(sorted(law.references()) if law else ()))
    declared = spec.domain_of(atom)
    rows, row_table = _rows(spec, source, atom)
    position = next((one.position for one in dependencies), source.position if source else None)
    public = source is not None and source.table in spec.public_tables
    missing, said = _missing(spec, atom, declared), spec.missing_of(atom)
    skip = source is not None and said is not None and said.rule == "skip"
    return Draft(
        name, term, atom, law, tuple(parents), source, declared, missing, public, rows, row_table, skip, position
    )


def _parents(dependency: Dependency, naming) -> list[str]:
    names = []
    for parent in dependency.parents:
        name = naming(parent)
        if name is None:
            raise refusal(
                dependency.position,
                f"{show(parent)}, a parent of {show(dependency.child)}, is not declared.",
                "Declare it with random/1, or take it out of the list of parents.",
            )
        names.append(name)
    return names


def _missing(spec: Spec, atom: Term, declared: Interval | Categories | AnyText | None) -> Level | None:
    said = spec.missing_of(atom)
    if said is not None and said.value is not None:
        return said.value
    if isinstance(declared, Interval):
        if declared.null is not None:
            return declared.null
        middle = declared.low + declared.width / 2
        return math.floor(middle) if declared.calendar == "date" else middle  # a day is whole
    if isinstance(declared, Categories):
        return declared.values[0] if declared.null is None else declared.null
    return None


def _rows(spec: Spec, source: Column | None, atom: Term) -> tuple[int, str | None]:
    """Several rows of a person count as several values only where nothing but the person identifies a row."""
    if source is None:
        return 1, None
    layout = layout_of(spec, source.table)
    limit = layout.row_limit
    if limit is None or limit.maximum == 1 or len(layout.identities) > 1:
        return 1, None
    return limit.maximum, source.table


def finish(
    found: Mapping[str, Draft], known: Mapping[str, Node], aggregates: Mapping[str, Bounds], level
) -> dict[str, Node]:
    """Nodes in the order of their dependencies. `known` are nodes made before; `aggregates` have bounds already."""
    done: dict[str, Node] = dict(known)
    looked_up = _lookup_parents(found)
    inference = Group(None, (), None, tuple(known.values())).inference()
    inference.ranges.update(aggregates)
    for draft in _in_order(found, set(known) | set(aggregates)):
        levels = _levels(draft, looked_up)
        if draft.law is not None:
            _check_tables(draft.law, draft, done)
        node = _node(draft, levels, inference, done, level)
        inference.ranges[node.name] = node.domain or node.bounds
        done[draft.name] = node
    return {name: node for name, node in done.items() if name in found}


def _node(draft: Draft, levels: tuple[Level, ...], inference: Inference, done: Mapping[str, Node], level) -> Node:
    rows, row_table = _inherited_rows(draft, done)
    reach = as_bounds(draft.declared)
    shell = Node(
        draft.name,
        draft.atom,
        level,
        draft.source,
        draft.law,
        None,
        draft.parents,
        draft.declared,
        reach,
        draft.public,
        draft.missing,
        levels,
        (),
        rows,
        row_table,
        draft.skip,
        draft.position,
        support=reach,
    )
    if draft.source is not None or draft.law is None:
        return shell
    law = _possible(inference.without_chances(draft.law), inference)
    if isinstance(draft.declared, Interval):
        law = clipped_levels(law, draft.declared.low, draft.declared.high)
    if levels:
        return _latent_node(shell, law, inference)
    return _number_node(shell, law, inference, draft)


def _possible(law: Expression, inference: Inference) -> Expression:
    """The law with its parameters guarded, random ones by the values they can take."""
    supports = {name: inference.support(Reference(name)) for name in law.references() if name in inference.formulas}
    return guarded(law, {**inference.ranges, **supports})  # type: ignore[arg-type]


def _number_node(shell: Node, law: Expression, inference: Inference, draft: Draft) -> Node:
    """A derived value is clipped to its declared range when it could leave it: each draw, not the mean of all."""
    if isinstance(draft.declared, Categories):
        raise refusal(
            draft.position,
            f"{draft.name} has categories as its range and {law} as its CPF.",
            "Write discrete([Level: Probability, …]), bernoulli(P) or a lookup of those, or declare an interval.",
        )
    random = is_random(law, inference.formulas)
    support = inference.support(law) if random else law.interval(inference.ranges)  # type: ignore[arg-type]
    if isinstance(draft.declared, Interval):
        low, high = draft.declared.low, draft.declared.high
        if support.low < low or support.high > high:
            law = Call("clip", (law, Constant(low), Constant(high)))
        support = support.intersect(low, high)
    expression = law
    if random:
        inference.formulas[shell.name] = law
        simple = affine(law, inference.formulas) and not law.references() & inference.levels.keys()
        expression = law if simple else inference.expected(law)
        expression = within(expression, support, inference.ranges)  # type: ignore[arg-type]
    bounds = expression.interval(inference.ranges)  # type: ignore[arg-type]
    drawn = law if random else None
    return replace(shell, expression=expression, bounds=bounds, domain=bounds.interval(), drawn=drawn, support=support)


def _latent_node(shell: Node, law: Expression, inference: Inference) -> Node:
    inference.formulas[shell.name] = law
    inference.levels[shell.name] = shell.levels
    chances = tuple(inference.expected(level_probability(law, level)) for level in shell.levels)
    chances = tuple(within(chance, Bounds(0.0, 1.0), inference.ranges) for chance in chances)  # type: ignore[arg-type]
    expression, bounds, domain, reach = None, shell.bounds, shell.domain, shell.support
    if not any(isinstance(level, str) for level in shell.levels):
        reach = hull(Bounds.point(float(level)) for level in shell.levels)
        weighted = (times(Constant(float(v)), chance) for v, chance in zip(shell.levels, chances, strict=True))
        expression = within(total(weighted), reach, inference.ranges)  # type: ignore[arg-type]
        bounds = expression.interval(inference.ranges)  # type: ignore[arg-type]
        domain = bounds.interval()
    return replace(
        shell, expression=expression, probabilities=chances, bounds=bounds, domain=domain, drawn=law, support=reach
    )


def _is_coin(law: Expression) -> bool:
    return isinstance(law, Distribution) and law.kind == "bernoulli"


def _declared_levels(draft: Draft, values: tuple[Level, ...], listed: tuple[Level, ...] | None) -> tuple[Level, ...]:
    extra = [level for level in listed or () if level not in values]
    if extra:
        raise refusal(draft.position, f"{draft.name}: {extra[0]} is not in its range.", f"Its range is {list(values)}.")
    return values if listed is not None else ()


def _levels(draft: Draft, looked_up: frozenset[str]) -> tuple[Level, ...]:
    """The levels of an unobserved variable whose law is over finitely many."""
    if draft.source is not None or draft.law is None:
        return ()
    listed = _law_levels(draft.law)
    if isinstance(draft.declared, Categories):
        return _declared_levels(draft, tuple(draft.declared.values), listed)
    if listed is None or (_is_coin(draft.law) and draft.name not in looked_up):
        return ()
    if isinstance(draft.declared, Interval):
        listed = tuple(clipped_level(level, draft.declared.low, draft.declared.high) for level in listed)
    return tuple(dict.fromkeys(listed))


def _law_levels(law: Expression) -> tuple[Level, ...] | None:
    match law:
        case Distribution(kind="discrete", levels=levels):
            return levels
        case Distribution(kind="bernoulli"):
            return (0, 1)
        case Lookup(rows=rows):
            parts = [_law_levels(part) for _, part in rows]
            known = [part for part in parts if part is not None]
            return tuple(dict.fromkeys(level for part in known for level in part)) if len(known) == len(parts) else None
    return None


def _lookup_parents(found: Mapping[str, Draft]) -> frozenset[str]:
    return frozenset(
        name for draft in found.values() if draft.law for table in _tables(draft.law) for name in table.parents
    )


def _tables(law: Expression) -> list[Lookup]:
    match law:
        case Lookup(rows=rows):
            return [law, *(table for _, part in rows for table in _tables(part))]
        case Call(arguments=arguments) | Distribution(arguments=arguments):
            return [table for part in arguments for table in _tables(part)]
        case Power(base=base):
            return _tables(base)
    return []


def _check_tables(law: Expression, draft: Draft, done: Mapping[str, Node]) -> None:
    """Every combination of the parents' levels has a row, so that no cell can fall between them."""
    for table in _tables(law):
        levels = [_levels_of(name, draft, done) for name in table.parents]
        size = 1
        for each in levels:
            size *= len(each)
        if size > _MOST_ROWS or len(table.rows) > _MOST_ROWS:
            raise refusal(draft.position, f"A lookup of {draft.name} is too large.", f"At most {_MOST_ROWS} rows.")
        listed = {key for key, _ in table.rows}
        lacking = next((key for key in product(*levels) if key not in listed), None)
        if lacking is not None:
            raise refusal(
                draft.position,
                f"The lookup of {draft.name} has no row for {list(lacking)}.",
                "Add row([…], CPF) for every combination of its parents' levels.",
            )


def _levels_of(name: str, draft: Draft, done: Mapping[str, Node]) -> tuple[Level, ...]:
    if name in done and done[name].is_random and done[name].levels:
        return done[name].levels
    domain = done[name].domain if name in done else None
    if isinstance(domain, Categories) and len(domain.values) <= _MOST_LEVELS:
        return domain.values
    raise refusal(
        draft.position,
        f"{name} stands in a lookup of {draft.name} and has no list of levels.",
        f"Declare range({name}, [level, …]).",
    )


def _inherited_rows(draft: Draft, done: Mapping[str, Node]) -> tuple[int, str | None]:
    if draft.source is not None:
        return draft.rows, draft.row_table
    tables = {done[name].row_table: done[name].rows for name in draft.parents if name in done and done[name].row_table}
    if len(tables) > 1:
        raise refusal(
            draft.position,
            f"{draft.name} mixes rows of {' and '.join(sorted(map(str, tables)))}, several per person each.",
            "Limit one of them with rows_per_person(Table, 1), or aggregate them separately.",
        )
    return next(((rows, table) for table, rows in tables.items()), (1, None))


def _in_order(found: Mapping[str, Draft], given: set[str]) -> list[Draft]:
    order: dict[str, Draft] = {}
    state: dict[str, int] = {}
    for start in found:
        waiting = [(start, False)]
        while waiting:
            name, left = waiting.pop()
            if left:
                state[name] = 2
                order[name] = found[name]
            elif state.get(name, 0) == 0 and name in found:
                state[name] = 1
                waiting.append((name, True))
                waiting += [(parent, False) for parent in reversed(found[name].parents) if parent not in given]
            elif state.get(name) == 1:
                raise refusal(found[name].position, f"{name} depends on itself.", "Take the cycle apart.")
    return list(order.values())


def mentions(term: Term, constants: Iterable[Term]) -> bool:
    """Whether one of the constants stands in the term."""
    wanted = set(constants)
    return any(part in wanted for part in walk(term))
