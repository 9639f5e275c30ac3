"""Every strategy for what is no statistic, and how the acts of a plan are carried out.

In:   a Plan with acts, the evaluated network (private), a seed for dry runs.
Out:  Performed for each act; the events that were really drawn keep what was planned, or nothing is published.
Not here: the order of events of a run (run/study.py).
Proof: docs/proofs/portions.md
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import isclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core import Categories, Interval, Schema, compose
from sfumato.errors import InputError, UnprovedError
from sfumato.network.evaluate import ID, Values
from sfumato.plan.act import Act
from sfumato.plan.plan import Plan
from sfumato.questions.question import Question
from sfumato.questions.registry import WAYS, kind_called, question_from_dict
from sfumato.questions.sums import Sums
from sfumato.questions.ways import Ways
from sfumato.run.publish_base import Performed, Publisher, column_of

__all__ = [
    "STRATEGIES",
    "Columns",
    "checked",
    "columns_for",
    "counted_nobody",
    "perform",
    "strategies_of",
    "strategy_of",
]

if TYPE_CHECKING:
    STRATEGIES: tuple[Publisher, ...]

#: Whole numbers beyond 64 bits.
#: Of what a question reads that is drawn itself.
_TYPES = {"sum": pa.decimal128(38, 0), "count": pa.int64(), "text": pa.string()}


@cache
def strategies_of(*kinds: str) -> tuple[Publisher, ...]:
    """The strategies for these kinds of publication; none for an unknown one."""
    return tuple(one() for kind in kinds if kind in WAYS for one in _publishers(WAYS[kind]))


def _publishers(ways: Ways) -> Iterator[type[Publisher]]:
    """Whoever is at home where the question or kind says, in the order of its words; imported here."""
    living = [one for home in ways.homes for one in vars(import_module(home)).values() if isclass(one)]
    final = [one for one in living if issubclass(one, Publisher) and getattr(one, "__final__", False)]
    found = {one.name: one for one in final if one.kind == ways.name}
    return (found[name] for name in sorted(found, key=list(ways.words).index))


def __getattr__(name: str) -> Any:
    if name == "STRATEGIES":
        return strategies_of(*WAYS)
    raise AttributeError(name)


@dataclass(frozen=True)
class Columns:
    """What an act reads: private."""

    act: Act
    table: pa.Table = field(repr=False)
    identifiers: Sequence[Any] = field(repr=False)


def columns_for(plan: Plan, values: Values, *, parts: bool = False) -> tuple[Columns, ...]:
    """The columns of every act, each value put into its domain; done before anything is charged.

    One of several `parts` of a table may be empty.
    """
    return tuple(_columns(act, values, parts) for act in plan.acts)


def _check_strategy(act: Act) -> None:
    if not any(one.name == act.strategy for one in strategies_of(act.kind)):
        raise InputError(
            f"{act.name}: no strategy for a {act.kind} is called {act.strategy!r}. Make the plan again with make_plan. "
            "Nothing was drawn and nothing was spent."
        )


def _columns(act: Act, values: Values, parts: bool) -> Columns:
    _check_strategy(act)
    if "question" in act.parameters:
        return _counted(act, values)
    rows = act.parameters.get("row_table")
    table = values.individuals[act.dataset] if rows is None else values.rows[rows]
    if table.num_rows == 0 and not parts:
        # Under replace-one the number of individuals is public.
        raise InputError(f"{act.name}: {act.dataset} has no individuals. Nothing was drawn and nothing was spent.")
    read: dict[str, pa.Array] = {}
    for name, domain in Schema.from_toml(act.parameters["schema"]).columns.items():
        assert isinstance(domain, Interval | Categories)
        read[name] = column_of(table[name].to_numpy(zero_copy_only=False), domain)
        if kind_called(act.kind).keeps_whole and name in values.whole:
            # The middle of a range, for a cell that should be there, may lie between two of its numbers.
            read[name] = pc.floor(read[name]).cast(pa.int64())  # pyright: ignore[reportAttributeAccessIssue]
    whose = values.identifiers(act.dataset) if rows is None else table[ID].to_numpy(zero_copy_only=False)
    return Columns(act, pa.table(read), whose.tolist())


def counted_nobody(act: Act) -> Columns:
    """What a question that is drawn itself reads where there are no rows at all."""
    question = question_from_dict(act.parameters["question"])
    return _columns_of(act, question, question.total(()))


def _counted(act: Act, values: Values) -> Columns:
    """Of a question that is drawn itself: how many rows there are at each of its places, or with each of its texts."""
    question = question_from_dict(act.parameters["question"])
    (node,) = act.parameters["columns"]
    return _columns_of(act, question, values.aggregates[node])


def _columns_of(act: Act, question: Question, sums: Sums) -> Columns:
    read = {name: pa.array(column, _TYPES[name]) for name, column in question.read_off(sums).items()}
    return Columns(act, pa.table(read), ())


def strategy_of(act: Act) -> Publisher:
    """Who carries out an act."""
    _check_strategy(act)
    (strategy,) = (one for one in strategies_of(act.kind) if one.name == act.strategy)
    return strategy


def perform(columns: Columns, random_state: int | None = None) -> Performed:
    """Carry out one act and check that what was drawn keeps the act's guarantee."""
    act = columns.act
    return checked(act, strategy_of(act).perform(act, columns.table, columns.identifiers, random_state))


def checked(act: Act, done: Performed) -> Performed:
    """What an act gave, if it drew what was planned and that keeps its guarantee."""
    planned = [event.to_dict() for event in act.events]
    if planned and planned != [event.to_dict() for event in done.events]:
        raise UnprovedError(f"{act.name}: what was drawn is not what was planned. Nothing was published.")
    cost = compose(done.events)
    if cost.adjacency != act.guarantee.adjacency or cost.implies(act.guarantee) is not True:
        raise UnprovedError(
            f"{act.name}: what was drawn costs {cost.describe()}, more than {act.guarantee.describe()}. Nothing was "
            "published; the ledger keeps the charge."
        )
    return dataclasses.replace(done, kind=act.kind)
