"""From clauses to declarations: sources, columns, ranges, datasets, requirements and wishes about publications.

In:   clauses that passed the reader.
Out:  the fields of a Spec, and a problem for each declaration that says something impossible.
Not here: declarations with conditions, which the logic engine derives (lang/ground.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sfumato.core import ZCDP, Adjacency, ApproxDP, Categories, GaussianDP, Guarantee, Interval, PureDP, RenyiDP
from sfumato.core.checks import is_one_line
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.about import about, decision
from sfumato.lang.absent import unknown_missing
from sfumato.lang.arguments import Wrong as _Wrong
from sfumato.lang.arguments import atom_of as _atom
from sfumato.lang.arguments import name_of as _name
from sfumato.lang.arguments import names_of as _names
from sfumato.lang.arguments import number_of as _number
from sfumato.lang.arguments import scalar_of as _scalar
from sfumato.lang.centre_units import protect_centres
from sfumato.lang.correlated import Correlated, correlated, pufferfish
from sfumato.lang.declare_centres import CENTRE_READERS
from sfumato.lang.declared import Declared
from sfumato.lang.fair import fair_rv, fairness_holds, fairness_requirement
from sfumato.lang.held import read_as_one
from sfumato.lang.paths import wrong_path
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.ranges import interval_of
from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import (
    EVERYONE,
    ROW,
    TABLE_ENDINGS,
    Collusion,
    Column,
    Dataset,
    EachPerson,
    Forbidden,
    Forgotten,
    Keep,
    Missing,
    MissingRule,
    Nonnegative,
    Preference,
    PrivacyRequirement,
    Range,
    Relation,
    RowLimit,
    Source,
    Weight,
    Whole,
    Within,
)
from sfumato.lang.term import (
    PARTIAL_LIST,
    Compound,
    ListTerm,
    Number,
    Term,
    Variable,
    called,
    indicator,
    is_variant,
    show,
    variables,
)
from sfumato.lang.vocabulary import METRICS, STATIC

__all__ = ["Declared", "declare"]


def declare(clauses: Iterable[Clause]) -> tuple[Declared, list[Problem]]:
    """All declarations that are facts, and what is wrong with the others."""
    declared = Declared()
    problems: list[Problem] = []
    clauses = [clause for clause in clauses if indicator(clause.head) in STATIC and clause.body is None]
    # Requirements name datasets, and datasets ask for their adjacency: these first.
    for clause in sorted(clauses, key=lambda clause: _ORDER.get(clause.head.functor, 1)):
        try:
            _READERS[clause.head.functor](declared, clause)
        except _Wrong as wrong:
            problems.append(_problem(clause, wrong))
        except InputError as error:  # core's own words about an interval, categories or a privacy parameter
            problems.append(_problem(clause, _Wrong(str(error))))
    # Of a range for lab(P, na) and one for lab(P, T) the first that fits counts: the more special, wherever it stands.
    declared.ranges.sort(key=lambda one: len(set(variables(one.atom_pattern))))
    declared.missing.sort(key=lambda one: len(set(variables(one.atom_pattern))))
    problems += _unknown_adjacencies(declared)
    problems += unknown_missing(declared)
    problems += read_as_one(declared)
    problems += protect_centres(declared)
    return declared, problems


def _problem(clause: Clause, wrong: _Wrong) -> Problem:
    more = {"expected": STATIC[indicator(clause.head)], "code": "declaration", **wrong.more}
    place = clause.at(wrong.at) if wrong.at is not None else clause.position
    return Problem("error", message=str(wrong), position=place, clause=clause.text, **more)


# --- one reader for each declaration -----------------------------------------------------------------------------


def _source(declared: Declared, clause: Clause) -> None:
    table, path, *inner = clause.head.arguments
    name = _name(inner[0], "a table of a database") if inner else None
    made = Source(_name(table, "a table"), _name(path, "a file"), name, clause.position)
    if any(other.table == made.table for other in declared.sources):
        raise _Wrong(f"the table {made.table} has two sources", table, code="twice", way_out="Keep one of them.")
    declared.sources.append(made)
    if wrong := wrong_path(made):
        way_out = (
            f"Write the path of one file inside the data folder, ending in {', '.join(TABLE_ENDINGS)}, of a folder of "
            "them ending in /, of a database with the name of its table, source(T, 'file.duckdb', table), or "
            "'postgresql:table', 'postgresql:schema.table', where a name with blanks or signs stands in double quotes: "
            "'postgresql:\"a table\"'."
        )
        raise _Wrong(f"the source of {made.table} {wrong}", path, code="source", way_out=way_out)


def _column(declared: Declared, clause: Clause) -> None:
    table, name, atom = clause.head.arguments
    if _name(name, "a column") == ROW:
        raise _Wrong(f"{ROW} is no name of a column", name, way_out="Where every row is one person write each_row(…).")
    made = Column(_name(table, "a table"), _name(name, "a column"), _atom(atom, "what a column holds"), clause.position)
    if any(other.table == made.table and other.name == made.name for other in declared.columns):
        raise _Wrong(f"the column {made.name} of {made.table} is declared twice", name, code="twice")
    declared.columns.append(made)


def _relation(declared: Declared, clause: Clause) -> None:
    table, atom = clause.head.arguments
    declared.relations.append(Relation(_name(table, "a table"), _atom(atom, "a relation"), clause.position))


def _public(declared: Declared, clause: Clause) -> None:
    declared.public_tables.add(_name(clause.head.arguments[0], "a table"))


def _range(declared: Declared, clause: Clause) -> None:
    atom = _atom(clause.head.arguments[0], "a random variable")
    domain: Interval | Categories | AnyText
    if len(clause.head.arguments) == 3:
        low, high = (_number(end, "an end of a range") for end in clause.head.arguments[1:])
        domain = Interval(low, high)
    elif indicator(clause.head.arguments[1]) == "text/0":
        domain = AnyText()
    elif (found := interval_of(clause.head.arguments[1])) is not None:
        domain = found
    else:
        domain = _categories(clause.head.arguments[1])
    if any(is_variant(other.atom_pattern, atom) for other in declared.ranges):
        raise _Wrong(f"{show(atom)} has two ranges", atom, code="twice", way_out="Keep one of them.")
    declared.ranges.append(Range(atom, domain, clause.position))


def _categories(listed: Term, fold: bool = False) -> Categories:
    """[a, b], or [a, b | other]: whatever is not listed is `other`, a category of its own; fold(…) of one of these."""
    if isinstance(listed, Compound) and indicator(listed) == "fold/1" and not fold:
        return _categories(listed.arguments[0], fold=True)
    values = []
    while isinstance(listed, Compound) and listed.functor == PARTIAL_LIST:
        head, listed = listed.arguments
        values.append(_scalar(head))
    if isinstance(listed, ListTerm):
        return Categories((*values, *(_scalar(item) for item in listed.items)), fold=fold)
    if not values:
        raise _Wrong("the categories of a range must be a list", listed)
    other = _scalar(listed)
    return Categories((*values, other), unknown=other, null=other, fold=fold)


def _missing(declared: Declared, clause: Clause) -> None:
    atom, value = clause.head.arguments
    pattern = _atom(atom, "a random variable")
    content = value.value if isinstance(value, Number) else _name(value, "what stands for an absent cell")
    rule: MissingRule = "skip" if content == "skip" else "never" if content == "never" else "value"
    if any(is_variant(other.atom_pattern, pattern) for other in declared.missing):
        raise _Wrong(f"absent cells of {show(pattern)} are spoken of twice", atom, code="twice")
    declared.missing.append(Missing(pattern, content if rule == "value" else None, rule, clause.position))


def _rows_per_person(declared: Declared, clause: Clause) -> None:
    table, number, *which = clause.head.arguments
    maximum = _number(number, "the number of rows")
    if not isinstance(maximum, int) or maximum < 1:
        raise _Wrong("the number of rows must be a whole number of at least 1", number)
    keep, column = _which_rows(which[0]) if which else ("sample", None)
    name = _one_rule(declared, table)
    declared.row_limits.append(RowLimit(name, maximum, keep, column, clause.position))


def _which_rows(which: Term) -> tuple[Keep, str | None]:
    match which:
        case Compound(functor="sample", arguments=()):
            return "sample", None
        case Compound(functor="first", arguments=(column,)):
            return "first", _name(column, "a column")
        case Compound(functor="last", arguments=(column,)):
            return "last", _name(column, "a column")
    raise _Wrong(
        f"{show(which)[:60]} does not say which rows are kept",
        which,
        way_out="Write sample, first(column) or last(column).",
    )


def _each_person(declared: Declared, clause: Clause) -> None:
    table, statistic = clause.head.arguments
    if _name(statistic, "what a person counts with") != "mean":
        raise _Wrong(f"a person counts with the mean of her rows, not with {show(statistic)[:60]}", statistic)
    declared.each_person.append(EachPerson(_one_rule(declared, table), clause.position))


def _each_row(declared: Declared, clause: Clause) -> None:
    """Every row is one individual: an identity that no column holds, and one row of each."""
    table, who = clause.head.arguments
    atom = _atom(who, "who a row is about")
    if len(atom.arguments) != 1 or not isinstance(atom.arguments[0], Variable):
        raise _Wrong(f"who a row is about must be an atom such as person(P), not {show(atom)[:60]}", who)
    name = _one_rule(declared, table)
    declared.columns.append(Column(name, ROW, atom, clause.position))
    declared.row_limits.append(RowLimit(name, 1, position=clause.position))


def _one_rule(declared: Declared, table: Term) -> str:
    """The table's name, if nothing was said yet about several rows of one person in it."""
    name = _name(table, "a table")
    if any(other.table == name for other in (*declared.row_limits, *declared.each_person)):
        raise _Wrong(
            f"several rows of one person in {name} are spoken of twice",
            table,
            code="twice",
            way_out="Keep one line: rows_per_person, each_person or each_row.",
        )
    return name


_NEIGHBOURS = {"add_remove": "add-remove", "replace_one": "replace-one"}


def _adjacency(declared: Declared, clause: Clause) -> None:
    dataset, relation = clause.head.arguments
    name, kind = _name(dataset, "a dataset"), _name(relation, "an adjacency")
    if kind not in _NEIGHBOURS:
        raise _Wrong(
            f"{kind} is not an adjacency",
            relation,
            nearest=nearest(kind, _NEIGHBOURS),
            way_out="Write add_remove (presence is protected too) or replace_one (the number of people is public).",
        )
    if name in declared.relations_of_neighbours:
        raise _Wrong(f"the adjacency of {name} is declared twice", dataset, code="twice")
    declared.relations_of_neighbours[name] = (_NEIGHBOURS[kind], clause)


def _dataset(declared: Declared, clause: Clause) -> None:
    name, domain = clause.head.arguments
    expected = _atom(domain, "a domain")
    if indicator(expected) != "domain/2" or not isinstance(expected.arguments[0], Variable):
        raise _Wrong("a dataset needs domain(P, goal(P)): a variable and the goal that says who is in it", domain)
    variable, goal = expected.arguments
    first = goals(goal)[0]
    if variable not in variables(goal) or not isinstance(first, Compound):
        raise _Wrong(f"the goal of a domain must speak of {show(variable)}", goal)
    made_name = _name(name, "a dataset")
    if any(other.name == made_name for other in declared.datasets):
        raise _Wrong(f"the dataset {made_name} is declared twice", name, code="twice")
    for what, word in (("the dataset", made_name), ("those who are protected,", first.functor)):
        if not is_one_line(word):  # the ledger would refuse it when the study is run
            way_out = "Write a name of printable letters, in one line and without blanks around it."
            raise _Wrong(f"{what} {word!r} cannot be written into a ledger", name, way_out=way_out)
    relation = declared.relations_of_neighbours.get(made_name, ("replace-one",))[0]
    adjacency = Adjacency(first.functor, relation)  # type: ignore[arg-type]  # one of the two words above
    assert isinstance(variable, Variable)
    declared.datasets.append(Dataset(made_name, variable.name, goal, adjacency, clause.position))


def _correlated(declared: Declared, clause: Clause) -> None:
    dataset, what, bound = clause.head.arguments
    owner = _known_dataset(declared, dataset)
    if any(other.dataset == owner.name for other in declared.correlations):
        raise _Wrong(
            f"who depends on whom in {owner.name} is said twice", dataset, code="twice", way_out="Keep the wider class."
        )
    declared.correlations.append(correlated(owner.name, owner.adjacency.relation, what, bound, clause.position))


def _known_dataset(declared: Declared, dataset: Term) -> Dataset:
    wanted = _name(dataset, "a dataset")
    known = {declared_one.name: declared_one for declared_one in declared.datasets}
    if wanted not in known:
        raise _Wrong(
            f"the dataset {wanted} is not declared",
            dataset,
            code="unknown-dataset",
            nearest=nearest(wanted, known),
            way_out=f"Declare it: dataset({wanted}, domain(P, patient(P))). It says who is protected.",
        )
    return known[wanted]


def _privacy_requirement(declared: Declared, clause: Clause) -> None:
    name, dataset, metric = clause.head.arguments
    named = _atom(name, "a requirement's name")
    if variables(named):
        raise _Wrong(
            "a requirement's name must not hold a variable",
            name,
            way_out="Write one requirement for each observer; their budgets are separate.",
        )
    owner = _known_dataset(declared, dataset)
    if any(other.name == named for other in declared.requirements):
        raise _Wrong(f"the requirement {show(named)} is declared twice", name, code="twice")
    known = next((one for one in declared.correlations if one.dataset == owner.name), None)
    guarantee = _guarantee(metric, owner.name, known).under(owner.adjacency)
    observer = called(named.arguments[0]) if len(named.arguments) == 1 else EVERYONE
    declared.requirements.append(PrivacyRequirement(named, observer, owner.name, guarantee, clause.position))


def _guarantee(metric: Term, dataset: str, known: Correlated | None) -> Guarantee:
    name = indicator(metric)
    if not isinstance(metric, Compound) or name not in METRICS:
        raise _Wrong(
            f"{show(metric)[:60]} is not a privacy metric",
            metric,
            code="metric",
            expected=", ".join(METRICS.values()),
            nearest=nearest(name, METRICS),
        )
    values = [float(_number(part, "a privacy parameter")) for part in metric.arguments]
    try:
        if metric.functor == "pufferfish":
            return pufferfish(dataset, known, values)
        return _METRIC_CLASSES[name](*values)
    except InputError as error:
        raise _Wrong(str(error), metric, code="metric", expected=METRICS[name]) from None


_METRIC_CLASSES: dict[str, Callable[..., Guarantee]] = {
    "dp/1": PureDP,
    "dp/2": ApproxDP,
    "renyi_dp/2": RenyiDP,
    "gdp/1": GaussianDP,
    "zcdp/1": ZCDP,
}


def _prefer(declared: Declared, clause: Clause) -> None:
    publication, strategies = clause.head.arguments
    names = _names(strategies, "a strategy")
    declared.preferences.append(Preference(_name(publication, "a publication"), names, clause.position))


def _forbid(declared: Declared, clause: Clause) -> None:
    publication, strategies = clause.head.arguments
    names = _names(strategies, "a strategy")
    declared.forbidden.append(Forbidden(_name(publication, "a publication"), names, clause.position))


def _weight(declared: Declared, clause: Clause) -> None:
    publication, number = clause.head.arguments
    value = float(_number(number, "a weight"))
    if not value > 0:
        raise _Wrong("a weight must be above zero", number)
    declared.weights.append(Weight(_name(publication, "a publication"), value, clause.position))


def _nonnegative(declared: Declared, clause: Clause) -> None:
    (publication,) = clause.head.arguments
    declared.nonnegative.append(Nonnegative(_name(publication, "a publication"), clause.position))


def _whole(declared: Declared, clause: Clause) -> None:
    (publication,) = clause.head.arguments
    declared.whole.append(Whole(_name(publication, "a publication"), clause.position))


def _within(declared: Declared, clause: Clause) -> None:
    publication, number = clause.head.arguments
    value = float(_number(number, "the error one can live with"))
    if not value > 0:
        raise _Wrong("the error one can live with must be above zero", number)
    declared.aims.append(Within(_name(publication, "a publication"), value, clause.position))


def _collude(declared: Declared, clause: Clause) -> None:
    observers = _names(clause.head.arguments[0], "an observer")
    if len(set(observers)) < 2:
        raise _Wrong("it takes two observers to collude", clause.head.arguments[0])
    declared.collusions.append(Collusion(frozenset(observers), clause.position))


def _about(declared: Declared, clause: Clause) -> None:
    topic, text = clause.head.arguments
    declared.about.append(about(topic, text, declared.about, clause.position))


def _decided_by(declared: Declared, clause: Clause) -> None:
    requirement, who = clause.head.arguments
    declared.decisions.append(decision(requirement, who, clause.position))


def _same_person(declared: Declared, clause: Clause) -> None:
    first, second = (_name(one, "a dataset") for one in clause.head.arguments)
    known = {dataset.name for dataset in declared.datasets}
    for name, term in zip((first, second), clause.head.arguments, strict=True):
        if name not in known:
            raise _Wrong(
                f"the dataset {name} is not declared", term, code="unknown-dataset", nearest=nearest(name, known)
            )
    declared.same_people.append((first, second))


def _forget(declared: Declared, clause: Clause) -> None:
    individual, *variable = clause.head.arguments
    if variables(clause.head) or not (isinstance(individual, Number) or called(individual)):
        raise _Wrong("forget names one individual", individual, code="forget", way_out="Write forget(uma).")
    cell = _atom(variable[0], "a random variable") if variable else None
    if cell is not None and individual not in cell.arguments:
        raise _Wrong(
            f"{show(cell)} is no variable of {show(individual)}",
            cell,
            code="forget",
            way_out=f"Write forget({show(individual)}, rv({show(individual)})), or forget({show(individual)}).",
        )
    declared.forgotten.append(Forgotten(individual, cell, clause.position))


_READERS: dict[str, Callable[[Declared, Clause], None]] = {
    "source": _source,
    "column": _column,
    "relation": _relation,
    "public": _public,
    "range": _range,
    "missing": _missing,
    "rows_per_person": _rows_per_person,
    "each_person": _each_person,
    "each_row": _each_row,
    "adjacency": _adjacency,
    "dataset": _dataset,
    "correlated": _correlated,
    "privacy_requirement": _privacy_requirement,
    "fairness_requirement": lambda d, c: d.fairness.append(fairness_requirement(c.head.arguments, c.position)),
    "fair_rv": lambda d, c: d.fair_rvs.append(fair_rv(c.head.arguments, c.position)),
    "fairness_holds": lambda d, c: d.fairness_holds.append(fairness_holds(c.head.arguments, c.position)),
    "prefer": _prefer,
    "forbid": _forbid,
    "weight": _weight,
    "nonnegative": _nonnegative,
    "whole": _whole,
    "within": _within,
    "collude": _collude,
    "about": _about,
    "decided_by": _decided_by,
    "same_person": _same_person,
    **CENTRE_READERS,
    "forget": _forget,
}
_ORDER = {"adjacency": -1, "dataset": 0, "same_person": 2, "privacy_requirement": 2}


def _unknown_adjacencies(declared: Declared) -> Iterable[Problem]:
    known = {dataset.name for dataset in declared.datasets}
    for name, (_, clause) in declared.relations_of_neighbours.items():
        if name not in known:
            wrong = _Wrong(f"the dataset {name} is not declared", code="unknown-dataset", nearest=nearest(name, known))
            yield _problem(clause, wrong)
