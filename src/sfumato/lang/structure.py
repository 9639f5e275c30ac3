"""What can be said about a study without running its logic: names, tables, and structure that would leak.

In:   a Spec whose clauses were read.
Out:  problems.
Not here: what the clauses derive (lang/check.py), what may be called at all (lang/safety.py).

Structure must not depend on private rows: the plan, the noise and the very list of published values would tell them.
A structural clause, or anything it calls, may ask for the individual it speaks of (the dataset's own goal) and for
public tables. Whoever wants private rows asks for them inside an aggregate's goal, where they become a sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sfumato.lang.asked import check_questions
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause, goals
from sfumato.lang.safety import called
from sfumato.lang.spec import ROW, Column, Forgotten, Missing, Relation, Spec
from sfumato.lang.term import Compound, Position, Term, Variable, indicator, match, show, variables, walk
from sfumato.lang.vocabulary import AGGREGATES, STATEMENT, STRUCTURAL, published_variables
from sfumato.lang.wishes import check_wishes

__all__ = ["check_forgotten", "check_structure", "domain_predicates"]

#: Where a random variable stands in a structural head.
_VARIABLE_PLACE = {"depends/3": 0, "cpd/2": 0, "dp_rv/2": 1, "personal_rv/2": 1, "instance_rv/3": 2}


def check_structure(spec: Spec) -> Iterator[Problem]:
    """Every problem of names, tables and leaking structure."""
    text = {clause.position: clause.text for clause in spec.clauses}
    yield from _tables(spec, text)
    yield from _patterns(spec, text)
    yield from _names_of_variables(spec)
    yield from check_wishes(spec)
    yield from _requirement_names(spec)
    yield from _domains(spec, text)
    yield from check_questions(spec, domain_predicates(spec))
    yield from _leaks(spec)
    yield from _constants_in_place_of_individuals(spec)


def domain_predicates(spec: Spec) -> dict[str, str]:
    """functor/arity of every dataset's goal -> the dataset."""
    return {indicator(goal): dataset.name for dataset in spec.datasets for goal in goals(dataset.goal)}


def _problem(
    code: str, message: str, position: Position | None, text: str, way_out: str, close: str | None = None
) -> Problem:
    return Problem("error", code, message, position or Position("study", 1, 1), text, nearest=close, way_out=way_out)


# --- tables ------------------------------------------------------------------------------------------------------


def _text_at(text: dict[Position, str], position: Position | None) -> str:
    return text.get(position, "") if position else ""


def _no_source(table: str, position: Position | None, text: str, known: set[str]) -> Problem:
    way_out = f"Declare it: source({table}, '{table}.parquet')."
    return _problem("unknown-table", f"the table {table} has no source", position, text, way_out, nearest(table, known))


def _says_public(head: Compound, table: str) -> bool:
    return indicator(head) == "public/1" and show(head.arguments[0]) in (table, f"'{table}'", f'"{table}"')


def _tables(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    known = {source.table for source in spec.sources}
    rules = (*spec.row_limits, *spec.each_person)
    users = [(one.table, one.position) for one in (*spec.columns, *spec.relations, *rules, *spec.holds)]
    for table, position in users:
        if table not in known:
            yield _no_source(table, position, _text_at(text, position), known)
    for table in sorted(spec.public_tables - known):
        clause = next(c for c in spec.clauses if _says_public(c.head, table))
        yield _no_source(table, clause.position, clause.text, known)
    yield from _centres(spec, text)
    yield from check_forgotten(spec, spec.forgotten, text)
    yield from _several_rows(spec, text)
    yield from _numbered(spec, text)
    yield from _chosen_by_value(spec, text)
    yield from _table_variables(spec, text)


def _centres(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    centres = {centre.name for centre in spec.centres}
    for one in spec.holds:
        if one.centre not in centres:
            yield _problem(
                "unknown-centre",
                f"the centre {one.centre} is not declared",
                one.position,
                _text_at(text, one.position),
                f"Declare it: centre({one.centre}).",
                nearest(one.centre, centres),
            )


def _several_rows(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    """A table that says whose its rows are says what is done with several of one person."""
    people = domain_predicates(spec)
    said = {rule.table for rule in (*spec.row_limits, *spec.each_person)} | spec.public_tables
    for column in spec.columns:
        if indicator(column.atom) in people and column.table not in said:
            said |= {column.table}
            others = sum(
                one.table == column.table and indicator(one.atom) not in spec.random_predicates for one in spec.columns
            )
            number = 1 if others == 1 else 10
            yield _problem(
                "rows-per-person",
                f"the table {column.table} does not say how many rows one {column.atom.functor} may have",
                column.position,
                text.get(column.position, "") if column.position else "",
                f"Write rows_per_person({column.table}, {number}). (a fair sample of each person's rows), "
                f"rows_per_person({column.table}, {number}, last(column)). or each_person({column.table}, mean).",
            )


def check_forgotten(
    spec: Spec, forgotten: Iterable[Forgotten], text: Mapping[Position, str] | None = None
) -> Iterator[Problem]:
    """What is forgotten of a person is a cell of a private table: only cells are read."""
    for one in forgotten:
        if one.variable is None and spec.owners:
            yield _forgotten_owner(spec, one, text)
        if one.variable is None or _is_read(spec, one.variable):
            continue
        yield _problem(
            "forget",
            f"{show(one.variable)} is no cell of a private table, and only what is read can be forgotten",
            one.position,
            text.get(one.position, "") if text and one.position else "",
            f"Forget the cells it is computed from, or the whole person: forget({show(one.individual)}).",
        )


def _is_read(spec: Spec, variable: Term) -> bool:
    return any(c.table not in spec.public_tables and match(c.atom, variable) is not None for c in spec.columns)


def _forgotten_owner(spec: Spec, one: Forgotten, text: Mapping[Position, str] | None) -> Problem:
    """An owner and a thing may have the same name, and what an owner has is not taken out by the owner's."""
    owners = " and ".join(dict.fromkeys(owner.dataset for owner in spec.owners))
    cell = show(spec.owners[0].cell)
    return _problem(
        "forget",
        f"{show(one.individual)} may be one of {owners} or a thing of theirs, and of an owner the things would be read "
        "all the same",
        one.position,
        text.get(one.position, "") if text and one.position else "",
        f"Forget each cell of each thing by its own line, forget(Thing, {cell}), or take its rows out of the tables.",
    )


def _numbered(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    """A row without an identifier is known to no other table, to no other centre, and cannot be named."""
    for column in spec.columns:
        if column.table not in spec.numbered_tables or column.name != ROW:
            continue
        wrong = _named_anyway(spec, column)
        if wrong:
            way_out = f"Give {column.table} an identity column: column({column.table}, id, {show(column.atom)})."
            yield _problem("each-row", wrong, column.position, _text_at(text, column.position), way_out)


def _is_identity(spec: Spec, column: Column) -> bool:
    return indicator(column.atom) not in spec.random_predicates


def _identities_beside(spec: Spec, column: Column) -> list[Column]:
    """The other columns of its table that say who a row is about."""
    own = [one for one in spec.columns if one.table == column.table and one is not column]
    return [one for one in own if _is_identity(spec, one)]


def _named_anyway(spec: Spec, column: Column) -> str | None:
    others = [one for one in spec.columns if one is not column and indicator(one.atom) == indicator(column.atom)]
    named = _identities_beside(spec, column)
    if others:
        return f"{indicator(column.atom)} are the rows of {column.table} and stand in {others[0].table} too"
    if named:
        return f"{named[0].name} says who a row of {column.table} is about, and each_row says that no column does"
    if spec.centres or spec.forgotten or column.table in spec.public_tables:
        return f"rows of {column.table} have no identifier: no public table, no centre and no forget can name them"
    return None


def _chosen_by_value(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    """Rows chosen by the values that are asked about give a mean of the smallest or largest, not of people."""
    for limit in spec.row_limits:
        for column in spec.columns:
            asked = (column.table, column.name) == (limit.table, limit.column)
            if asked and indicator(column.atom) in spec.random_predicates:
                yield _problem(
                    "rows-by-value",
                    f"{limit.keep}({limit.column}) chooses rows of {limit.table} by {show(column.atom)} itself: "
                    "what is published about it would be about the smallest or the largest values of each person",
                    limit.position,
                    text.get(limit.position, "") if limit.position else "",
                    f"Write rows_per_person({limit.table}, {limit.maximum}). (a fair sample), name a column that is "
                    f"not asked about, such as a date, or write each_person({limit.table}, mean).",
                )


def _identities(spec: Spec) -> dict[str, set[str]]:
    """By table the variables that its identity columns name."""
    found: dict[str, set[str]] = {}
    for column in spec.columns:
        if _is_identity(spec, column):
            found.setdefault(column.table, set()).update(v.name for v in variables(column.atom))
    return found


def _table_variables(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    """Cells and relations speak of individuals that the table's identity columns name."""
    random, identities = spec.random_predicates, _identities(spec)
    whose = next((name.split("/")[0] for name in domain_predicates(spec)), "patient")
    users: list[Column | Relation] = [column for column in spec.columns if indicator(column.atom) in random]
    for one in (*users, *spec.relations):
        named = identities.get(one.table, set())
        for variable in (variable for variable in variables(one.atom) if variable.name not in named):
            yield _problem(
                "table-variable",
                f"nothing in the table {one.table} says who {variable.name} is in {show(one.atom)}",
                one.position,
                text.get(one.position, "") if one.position else "",
                f"Name the identity column: column({one.table}, id, {whose}({variable.name})). Where every row is "
                f"one individual and no column says who: each_row({one.table}, {whose}({variable.name})).",
            )


# --- names -------------------------------------------------------------------------------------------------------


def _patterns(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    random = spec.random_predicates
    tables = {source.table for source in spec.sources}
    for one in (*spec.ranges, *spec.missing):
        name = indicator(one.atom_pattern)
        of_table = isinstance(one, Missing) and one.of_table
        if name in random or (of_table and one.atom_pattern.functor in tables):
            continue
        if isinstance(one, Missing) and one.of_table and tables:
            yield _unknown_table_of_cells(one, tables, random, text)
        else:
            yield _problem(
                "unknown-variable",
                f"{name} is not a declared random variable",
                one.position,
                text.get(one.position, "") if one.position else "",
                f"Declare it: random({show(one.atom_pattern)}) :- conditions.",
                nearest(name, random),
            )


def _unknown_table_of_cells(
    one: Missing, tables: set[str], random: Collection[str], text: dict[Position, str]
) -> Problem:
    """missing(Word, skip) where the word is neither a table nor a variable without arguments."""
    word, plain = one.atom_pattern.functor, {name.removesuffix("/0") for name in random if name.endswith("/0")}
    known = sorted(tables)
    return _problem(
        "unknown-table",
        f"{word} is neither a table nor a declared random variable",
        one.position,
        text.get(one.position, "") if one.position else "",
        f"Name a table as source(…) does ({', '.join(known)}): missing({known[0]}, {one.rule}). Or a variable with "
        f"what it is of: missing({word}(P), {one.rule}).",
        nearest(word, {*tables, *plain}),
    )


def _names_of_variables(spec: Spec) -> Iterator[Problem]:
    random = spec.random_predicates
    for clause in spec.clauses:
        for atom in _random_atoms(clause):
            name = indicator(atom)
            if isinstance(atom, Compound) and name not in random:
                yield _problem(
                    "unknown-variable",
                    f"{name} is not a declared random variable",
                    clause.at(atom),
                    clause.text,
                    f"Declare it: random({show(atom)}) :- conditions.",
                    nearest(name, random),
                )
        if indicator(clause.head) == "random/1" and not isinstance(clause.head.arguments[0], Compound):
            yield _problem(
                "declaration",
                "random/1 needs an atom such as age(P)",
                clause.position,
                clause.text,
                "Name the variable.",
            )


def _random_atoms(clause: Clause) -> list[Term]:
    name, arguments = indicator(clause.head), clause.head.arguments
    if name in _VARIABLE_PLACE:
        return [arguments[_VARIABLE_PLACE[name]]]
    if name == f"{STATEMENT}/2":
        return [arguments[0], *goals(arguments[1])]
    what = arguments[1] if name == "publish/3" else None
    if isinstance(what, Compound) and indicator(what) != "probability/1":  # its inside is checked like a CPF
        return published_variables(what)
    return []


def _requirement_names(spec: Spec) -> Iterator[Problem]:
    known = {requirement.name for requirement in spec.requirements}
    used: list[Term] = []
    for clause in spec.clauses:
        place = {"dp_rv/2": 0, "publish/3": 2}.get(indicator(clause.head))
        if place is None:
            continue
        wanted = clause.head.arguments[place]
        used.append(wanted)
        if not variables(wanted) and wanted not in known:
            yield _problem(
                "unknown-requirement",
                f"the privacy requirement {show(wanted)} is not declared",
                clause.at(wanted),
                clause.text,
                f"Declare it: privacy_requirement({show(wanted)}, Dataset, dp(Epsilon, Delta)).",
                nearest(show(wanted), (show(name) for name in known)),
            )
    if spec.step is None:  # otherwise another step may refer to it
        yield from _unused_requirements(spec, used)


def _unused_requirements(spec: Spec, used: Sequence[Term]) -> Iterator[Problem]:
    for requirement in spec.requirements:
        if requirement.owner is not None:  # it holds beside that of another owner of the same things
            continue
        if requirement.position and not any(match(wanted, requirement.name) is not None for wanted in used):
            yield _problem(
                "unused-requirement",
                f"nothing refers to the requirement {show(requirement.name)}",
                requirement.position,
                next((c.text for c in spec.clauses if c.position == requirement.position), ""),
                "Publish something under it, name an observed variable with dp_rv, or remove it.",
            )


def _domains(spec: Spec, text: dict[Position, str]) -> Iterator[Problem]:
    defined = {indicator(clause.head) for clause in spec.clauses} | set(spec.table_predicates)
    for dataset in spec.datasets:
        for goal in goals(dataset.goal):
            if indicator(goal) not in defined:
                yield _problem(
                    "unknown-predicate",
                    f"{indicator(goal)} says who is in {dataset.name} and is defined nowhere",
                    dataset.position,
                    text.get(dataset.position, "") if dataset.position else "",
                    "Feed it from a table: column(patients, id, patient(P)), or add facts.",
                    nearest(indicator(goal), defined),
                )


# --- structure that would leak -----------------------------------------------------------------------------------


def _leaks(spec: Spec) -> Iterator[Problem]:
    private = {name: table for name, (table, public) in spec.table_predicates.items() if not public}
    domains = {name for name in domain_predicates(spec) if name in private}
    for clause in _reachable(spec):
        for goal in called(clause.body):
            name = indicator(goal)
            if name in private and name not in domains:
                table = private[name]
                yield _problem(
                    "leak",
                    f"structure would depend on private rows: {name} is fed by the table {table}, which is not public",
                    clause.at(goal),
                    clause.text,
                    f"Declare the table: public({table}), if its rows may be known to everyone; or make it a random "
                    "variable with a declared range and let the structure range over that domain. Inside the goal of "
                    "an aggregate private rows are welcome.",
                )
        yield from _individuals(clause, domains)


def _reachable(spec: Spec) -> list[Clause]:
    """Structural clauses, the conditions of aggregates, and every clause they call."""
    by_name: dict[str, list[Clause]] = {}
    for clause in spec.clauses:
        by_name.setdefault(indicator(clause.head), []).append(clause)
    waiting = [c for c in spec.clauses if indicator(c.head) in {*STRUCTURAL, *AGGREGATES, f"{STATEMENT}/2"}]
    found: dict[int, Clause] = {}
    while waiting:
        clause = waiting.pop()
        if id(clause) in found:
            continue
        found[id(clause)] = clause
        for goal in called(clause.body):
            waiting += by_name.get(indicator(goal), [])
    return sorted(found.values(), key=lambda clause: (clause.position.line, clause.position.column))


def _individuals(clause: Clause, domains: set[str]) -> Iterator[Problem]:
    """A clause speaks of one individual, and its head names it."""
    asked = [goal for goal in called(clause.body) if indicator(goal) in domains]
    people = {v.name: goal for goal in asked for v in variables(goal)}
    in_head = {v.name for v in variables(clause.head)}
    outside = [name for name in people if name not in in_head]
    yield from _named_one(clause, asked)
    for name in outside:
        yield _problem(
            "leak",
            f"{show(people[name])} runs over all individuals and the head does not name {name}: "
            "what exists would depend on who is in the data",
            clause.at(people[name]),
            clause.text,
            f"Use an aggregate such as mean(Atom, rv({name}), {show(people[name])}), or put {name} into the head.",
        )
    if len(people) - len(outside) > 1:
        names = " and ".join(sorted(set(people) - set(outside)))
        yield _problem(
            "two-individuals",
            f"this clause ties the individuals {names} together",
            clause.position,
            clause.text,
            "Let a clause speak of one individual; reach others through an aggregate.",
        )


def _named_one(clause: Clause, asked: Sequence[Term]) -> Iterator[Problem]:
    for goal in asked:
        if not variables(goal):
            yield _problem(
                "leak",
                f"{show(goal)} asks whether one named individual is in the data",
                clause.at(goal),
                clause.text,
                "Let the clause hold for every individual: write a variable, and put it into the head.",
            )


def _constants_in_place_of_individuals(spec: Spec) -> Iterator[Problem]:
    """age(uma) in a clause over P: one person's value would stand in everybody's formula."""
    places = _individual_places(spec)
    for clause in spec.clauses:
        if indicator(clause.head) not in {"depends/3", "cpd/2", f"{STATEMENT}/2", "dp_rv/2", "instance_rv/3"}:
            continue
        if not any(isinstance(part, Variable) for part, _ in _people(clause.head, places)):
            continue
        for part, atom in [found for term in (clause.head, clause.body) if term for found in _people(term, places)]:
            if isinstance(part, Compound):
                yield _problem(
                    "constant-individual",
                    f"{show(atom)} names one individual inside a clause that holds for every individual",
                    clause.at(atom),
                    clause.text,
                    f"Write the clause's own variable instead of {show(part)}.",
                )


def _individual_places(spec: Spec) -> dict[str, int]:
    """Which argument of a random variable is the individual, from `random(rv(P)) :- patient(P)`."""
    domains = domain_predicates(spec)
    found: dict[str, int] = {}
    for clause in spec.clauses:
        if indicator(clause.head) != "random/1" or not isinstance(clause.head.arguments[0], Compound):
            continue
        atom = clause.head.arguments[0]
        people = {v for goal in goals(clause.body) if indicator(goal) in domains for v in variables(goal)}
        for place, part in enumerate(atom.arguments):
            if part in people:
                found[indicator(atom)] = place
    return found


def _people(term: Term, places: dict[str, int]) -> list[tuple[Term, Compound]]:
    """(who, atom) for every random variable of an individual inside a term."""
    return [
        (atom.arguments[places[indicator(atom)]], atom)
        for atom in walk(term)
        if isinstance(atom, Compound) and indicator(atom) in places
    ]
