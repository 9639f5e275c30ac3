"""What a publication of another kind than a statistic asks for: columns with public domains, a target, uses.

In:   a Request whose term is of a kind of publication (questions/kinds/); the network.
Out:  Wanted, or a PlanError that says where, what is missing and the way out. Nothing of the data.
Not here: how it is answered (plan/strategy.py and whoever registers there).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.core import Categories, Fairness, Interval, Schema
from sfumato.errors import PlanError
from sfumato.lang.fair import fair_wish
from sfumato.lang.term import Compound, ListTerm, Term, match, show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network, Node
from sfumato.plan.act import Act
from sfumato.plan.cell_rules import Cells, cell_rule
from sfumato.plan.reads import fair_groups
from sfumato.plan.request import Request, asked_of, requests_of
from sfumato.questions.kind import Argument, Kind
from sfumato.questions.question import Question
from sfumato.questions.registry import KINDS, kind_called

__all__ = ["Wanted", "asked_for", "follows_study", "wanted_of"]

#: Parameters of an act that are the study's own words; the others say how it is done.
_SAYS_WHAT_IS_READ = frozenset(
    {"question", "schema", "columns", "target", "rows", "row_table", "fairness", "group", "cells"}
)


@dataclass(frozen=True)
class Wanted:
    """One request of another kind. `columns` are features in the study's order; a table's include its label.

    `target` is the label or the number to predict; `uses` are a channel's, or the model a table is meant for. `rows` is
    how many rows of `row_table` one individual may have; one, and no table, for all but synthetic rows.
    """

    request: Request
    kind: str
    columns: tuple[str, ...]
    domains: tuple[Interval | Categories, ...]
    target: str | None = None
    target_domain: Interval | Categories | None = None
    uses: tuple[str, ...] = ()
    rows: int = 1
    row_table: str | None = None
    question: Question | None = None
    #: What is asked of a classifier that has to treat groups alike, and the variable that says who is in which group.
    fairness: Fairness | None = None
    group: str = ""
    group_domain: Categories | None = None
    #: What goes along with models and invented rows, whose readers have cells of their own.
    cells: Cells = field(default_factory=dict)
    #: How many contributions one individual is taken to make to the question.
    share: float = 1.0

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def schema(self) -> Schema:
        """The public domains of the features; of a table, of every column."""
        return Schema(dict(zip(self.columns, self.domains, strict=True)))

    @property
    def stated(self) -> dict[str, Any]:
        """What an act says about the columns it reads: their names, ranges and which of them is the target."""
        if self.question is not None:
            return {"question": self.question.to_dict(), "columns": list(self.columns), "target": None}
        read = dict(zip(self.columns, self.domains, strict=True))
        if self.target is not None and self.target_domain is not None:
            read.setdefault(self.target, self.target_domain)
        fair: dict[str, Any] = {}
        if self.fairness is not None and self.group_domain is not None:
            read.setdefault(self.group, self.group_domain)
            fair = {"fairness": self.fairness.to_dict(), "group": self.group}
        found = {"schema": Schema(read).to_toml(), "columns": list(self.columns), "target": self.target, **fair}
        found |= {"cells": {name: dict(rule) for name, rule in self.cells.items()}} if self.cells else {}
        several = kind_called(self.kind).several_rows
        return {**found, "rows": self.rows, "row_table": self.row_table} if several else found

    @property
    def classes(self) -> int:
        """How many labels are declared; 0 where the target is no category."""
        return len(self.target_domain.values) if isinstance(self.target_domain, Categories) else 0


def wanted_of(request: Request, network: Network) -> Wanted:
    """Read the term and check what every kind needs: one bounded value per individual, and nobody's presence hidden."""
    term = request.term
    asked = next((node for node in network.aggregates if (node.name,) == request.nodes), None)
    if asked is not None and show(term) == asked.name:
        question = asked_of(asked)
        share = asked.assumed_share
        return Wanted(request, question.form.ways.name, (asked.name,), (), question=question, share=share)
    kind = KINDS.get(term.functor) if isinstance(term, Compound) else None
    if not isinstance(term, Compound) or kind is None or not kind.ways.homes:
        known = "; ".join(one.written() for one in KINDS.values() if one.ways.homes)
        raise PlanError(
            f"{request.position}{request.name}: no strategy publishes {show(term)}. Publish a node of the network (a "
            "variable, an aggregate, something computed from aggregates) or one of "
            f"{known}. Nothing was spent."
        )
    if request.adjacency.relation != "replace-one":
        raise PlanError(
            f"{request.position}{request.name}: a {term.functor} shows or uses how many individuals there are, which "
            f"adjacency({request.requirement.dataset}, add_remove) keeps secret. Publish an aggregate, or leave that "
            "adjacency out. Nothing was planned and nothing was spent."
        )
    return _read(request, term, kind, _Reader(request, network, kind))


def _read(request: Request, term: Compound, kind: type[Kind], reader: _Reader) -> Wanted:
    parts = _parts(term, kind, reader)
    columns = tuple(map(reader.name, parts.columns))
    aim = reader.name(parts.target) if parts.target is not None else None
    _check_columns(request, reader, columns, aim, parts.within)
    domains = tuple(map(reader.domain, columns))
    rows, row_table = reader.rows(columns)
    fairness, group, group_domain = reader.fairness() if kind.may_be_fair else (None, "", None)
    return Wanted(
        request,
        kind.functor,
        columns,
        domains,
        aim,
        reader.domain(aim) if aim is not None else None,
        parts.uses,
        rows,
        row_table,
        None,
        fairness,
        group,
        group_domain,
        reader.cells((*columns, *(() if aim is None else (aim,)))) if kind.meets_cells else {},
    )


def _check_columns(request: Request, reader: _Reader, columns: tuple[str, ...], aim: str | None, within: bool) -> None:
    if len(set(columns)) < len(columns) or (aim in columns and not within):
        raise reader.wrong("names a variable twice", "Name each once.")
    if set(request.nodes) - {*columns, aim}:
        raise reader.wrong(
            "is not the only answer of its clause: one name would stand for several",
            "Give each its own name and clause.",
        )
    if within and aim not in columns:
        raise reader.wrong(f"is meant for predicting {aim}, which is no column of it", "List it among the columns.")


@dataclass(frozen=True)
class _Parts:
    """Atoms of the columns and of the target, whether that is one of the columns, the names of uses."""

    columns: tuple[Term, ...] = ()
    target: Term | None = None
    within: bool = False
    uses: tuple[str, ...] = ()


def _parts(term: Compound, kind: type[Kind], reader: _Reader) -> _Parts:
    places = kind.places(len(term.arguments))
    read = [_part(place, given, kind.models) for place, given in zip(places, term.arguments, strict=False)]
    if not read or not all(read):
        raise reader.wrong("is not written as it should be", f"Write {kind.written()}.")
    return _Parts(**{name: part for one in read for name, part in one.items()})


def _part(place: Argument, given: Term, models: tuple[str, ...]) -> dict[str, Any]:
    """What stands in one place; nothing where something else should.

    for(svm(label(P))) says the same as for(label(P)): a variable's arguments are individuals, not variables.
    """
    match place, given:
        case "variable", Compound():
            return {"columns": (given,)}
        case "columns", ListTerm(items=items) if items:
            return {"columns": tuple(items)}
        case "target", Compound():
            return {"target": given}
        case "uses", ListTerm(items=items) if items:
            return {"uses": tuple(map(_use, items))}
        case (("label" | "model"), Compound(functor="for", arguments=(Compound() as use,))):
            match use:
                case Compound(functor=model, arguments=(Compound() as label,)) if model in models:
                    return {"target": label, "within": True, "uses": (model,)}
            return {"target": use, "within": True} if place == "label" else {}
    return {}


def _use(term: Term) -> str:
    """identity, log, …; power(-2) is written power:-2 elsewhere."""
    if isinstance(term, Compound) and len(term.arguments) == 1:
        return f"{term.functor}:{show(term.arguments[0])}"
    return term.functor if isinstance(term, Compound) else show(term)


@dataclass(frozen=True)
class _Reader:
    """Names and domains of the nodes behind the atoms of one request."""

    request: Request
    network: Network
    kind: type[Kind]

    def wrong(self, what: str, way_out: str) -> PlanError:
        shown = f"{self.request.position}{self.request.name}: {show(self.request.term)}"
        return PlanError(f"{shown} {what}. {way_out} Nothing was planned and nothing was spent.")

    def name(self, atom: Term) -> str:
        known = [node for node in self.network.nodes if node.name in self.request.nodes]
        found = [node.name for node in known if match(atom, node.atom) is not None]
        if len(found) != 1:
            raise self.wrong(
                f"names {show(atom)}, which is {'no variable' if not found else 'several variables'} of the network",
                "Name declared variables of one individual, such as age(P).",
            )
        return found[0]

    def domain(self, name: str) -> Interval | Categories:
        node = self._checked(name)
        if isinstance(node.domain, Categories) and len(node.domain.values) > 1:
            return node.domain
        if isinstance(node.domain, Interval) and node.domain.width > 0:
            return Interval(node.domain.low, node.domain.high, calendar=node.domain.calendar)
        raise self.wrong(
            f"needs a public range of {name}, with more than one value in it", f"Declare range({name}, Low, High)."
        )

    def cells(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What the study says of the cells behind these variables, of those that are plain columns."""
        dataset, spec = self.request.requirement.dataset, self.network.spec
        found = {name: cell_rule(self._of_everybody(name, dataset), spec) for name in dict.fromkeys(names)}
        return {name: rule for name, rule in found.items() if rule}

    def fairness(self) -> tuple[Fairness | None, str, Categories | None]:
        """What is asked of a fair rule, whose groups are the public categories of one variable."""
        wish = fair_wish(self.network.spec, self.request.name)
        if wish is None:
            return None, "", None
        found = fair_groups(self.network, self.request.name)
        if len(found) != 1:
            atom = show(wish.requirement.group)
            raise self.wrong(f"has to be fair between values of {atom}, which is no variable", "Declare it.")
        domain = self.domain(found[0])
        if not isinstance(domain, Categories):
            raise self.wrong(
                f"has to be fair between values of {found[0]}, which are not listed",
                f"Declare range({found[0]}, [first, second]).",
            )
        return wish.between(domain.values), found[0], domain

    def rows(self, columns: Sequence[str]) -> tuple[int, str | None]:
        """How many rows of which table one individual may have; all columns must be of that table's rows."""
        found = {(node.rows, node.row_table) for name in columns for node in [self._checked(name)]}
        if found == {(1, None)}:
            return 1, None
        if len(found) > 1:
            raise self.wrong(
                "mixes variables of an individual with variables of its rows, or of two tables",
                "Name variables of one table's rows, or of individuals alone.",
            )
        ((rows, table),) = found
        return rows, table

    def _checked(self, name: str) -> Node:
        """The node, the same for every individual of the requirement's dataset."""
        dataset = self.request.requirement.dataset
        own = self._of_everybody(name, dataset)
        several = any(node.rows != 1 or node.row_table is not None for node in own)
        if several and not self.kind.several_rows:
            raise self.wrong(*_one_row(name, own[0]))
        self._check_own(name, own)
        if any(node.probabilities and node.expression is None for node in own):
            raise self.wrong(
                f"uses {name}, of which only the probabilities are known", "Use a variable read from a column."
            )
        return own[0]

    def _of_everybody(self, name: str, dataset: str) -> list[Node]:
        groups = [group for group in self.network.groups if group.dataset == dataset]
        found = [group.node(name) for group in groups]
        own = [node for node in found if node is not None]
        if not own:
            raise self.wrong(f"uses {name}, which no individual of {dataset} has", "Name variables of individuals.")
        if len(own) < len(groups) or len({repr(node.domain) for node in own}) > 1:
            raise self.wrong(
                f"uses {name}, which is not the same variable for every individual of {dataset}",
                "Use variables that everybody has, with one range.",
            )
        return own

    def _check_own(self, name: str, own: list[Node]) -> None:
        """A row must be one individual's alone: what rests on a sum over everybody changes in every row at once."""
        nodes = {node.name: node for node in self.network.nodes}
        waiting, met = [parent for node in own for parent in node.inputs], {name}
        while waiting:
            current = waiting.pop()
            if current not in nodes or current in met:
                continue
            met.add(current)
            forms = self.network.variants(current) or (nodes[current],)
            if any(_is_of_everybody(one) for one in forms):
                raise self.wrong(
                    f"uses {name}, which rests on {current}, and that is not one individual's own",
                    "Use variables computed from the individual's own values and public facts.",
                )
            waiting += [parent for one in forms if isinstance(one, Node) for parent in one.inputs]


def _is_of_everybody(node: Node | AggregateNode) -> bool:
    return isinstance(node, AggregateNode) or (node.reads_data and not node.of_individual)


def _one_row(name: str, node: Node) -> tuple[str, str]:
    """That a row of what is published is one individual's, and the line that keeps one row of each."""
    table = show(Compound(node.row_table)) if node.row_table is not None else "Table"
    return (
        f"needs one value of {name} for each individual, and {table} may have {node.rows} rows of one",
        f"Write rows_per_person({table}, 1, sample). instead of rows_per_person({table}, {node.rows}). (or "
        f"each_person({table}, mean). for the mean of a person's rows).",
    )


def follows_study(act: Act, network: Network) -> bool:
    """Whether an act reads what the study's publication names, within the study's own ranges, under its adjacency."""
    own = asked_for(act, network)
    return len(own) == len(act.observers) and all(_follows(act, request, network) for request in own)


def asked_for(act: Act, network: Network) -> list[Request]:
    """The study's requests that an act makes: one of each of its observers."""
    return [one for one in requests_of(network) if act.makes(one.name, one.observer) and (one.is_act or one.either)]


def _follows(act: Act, request: Request, network: Network) -> bool:
    wanted = wanted_of(request, network)
    stated = (act.kind, act.dataset, act.guarantee.adjacency)
    asked = (wanted.kind, request.requirement.dataset, request.adjacency)
    said = {key: act.parameters[key] for key in act.parameters.keys() & _SAYS_WHAT_IS_READ}
    return stated == asked and said == wanted.stated
