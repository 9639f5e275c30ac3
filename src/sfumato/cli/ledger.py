"""`sfumato ledger show | grant | raise | who | settle | history`: the budget at the command line.

In:   arguments; the ledger's path from --ledger, SFUMATO_LEDGER, or sfumato-ledger.db in the current folder (runs and
      releases look beside their data instead, and say where).
Out:  tables of at most 80 columns, or JSON; the adjacency stands wherever an ε does.
Not here: what the numbers mean (ledger/ledger.py), how errors are printed (cli/app.py: they are left to rise).
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.errors import LedgerError, PrivacyParameterError
from sfumato.run.names import LEDGER_NAME

if TYPE_CHECKING:
    from sfumato.core import Adjacency, Guarantee
    from sfumato.ledger.records import Balance, LedgerRecord

__all__ = ["DEFAULT_LEDGER", "LedgerPath", "granting", "ledger_app"]

ledger_app = typer.Typer(
    name="ledger",
    help="What may be spent on each dataset, and what was.",
    no_args_is_help=True,
    add_completion=False,
)

DEFAULT_LEDGER = Path(LEDGER_NAME)
LedgerPath = Annotated[Path, typer.Option("--ledger", envvar="SFUMATO_LEDGER", help="The ledger file.")]
DatasetName = Annotated[str | None, typer.Argument(help="Only this dataset.")]


class _Relation(StrEnum):
    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


@ledger_app.command()
def show(dataset: DatasetName = None, ledger: LedgerPath = DEFAULT_LEDGER) -> None:
    """Granted, spent and left, for every dataset or one."""
    from sfumato.ledger.ledger import Ledger

    book = Ledger(ledger, create=False)
    if dataset is not None:
        book.history(dataset)  # an unknown name is refused with the nearest known one
    balances = [book.balance(name, unit) for name, unit in book.datasets() if dataset in (None, name)]
    if not balances:
        _console().print(Text(f"Nothing is granted in {ledger} yet: sfumato ledger grant DATASET --epsilon E"))
        return
    _console().print(_balance_table(balances, ledger))


@ledger_app.command()
def grant(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.")],
    *,
    epsilon: Annotated[float | None, typer.Option(help="ε of the whole budget.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ, together with --epsilon.")] = None,
    mu: Annotated[float | None, typer.Option(help="Gaussian μ instead of ε.")] = None,
    rho: Annotated[float | None, typer.Option(help="Zero-concentrated ρ instead of ε.")] = None,
    groups: Annotated[int | None, typer.Option(help="So many at most depend on each other (households).")] = None,
    memory: Annotated[float | None, typer.Option(help="Series whose steps have at most this memory.")] = None,
    longest: Annotated[int | None, typer.Option(help="The length of a series, together with --memory.")] = None,
    unit: Annotated[str | None, typer.Option(help="Who is protected: a record (if left out), a person, …")] = None,
    relation: Annotated[_Relation, typer.Option(help="What counts as a change.")] = _Relation.REPLACE_ONE,
    note: Annotated[str, typer.Option(help="Who decided, and why.")] = "",
    beside: Annotated[
        str | None, typer.Option(help="Another account of the same data, by another identity column: both are spent.")
    ] = None,
    ledger: LedgerPath = DEFAULT_LEDGER,
) -> None:
    """Set what may be spent on a dataset in all; granting again replaces the total."""
    from sfumato.core import Adjacency
    from sfumato.ledger.ledger import Ledger

    total = _depending(_total(epsilon, delta, mu, rho), groups, memory, longest)
    book = Ledger(ledger)
    others = [known for name, known in book.datasets() if name == dataset and known != (unit or "record")]
    if others and unit is None:
        raise LedgerError(
            f"{dataset} already has a budget with the unit {' and '.join(others)} in {ledger}. To replace it, add "
            f"--unit {shlex.quote(others[0])}; for a second budget beside it, which pays for other promises, "
            "--unit record. Nothing changed."
        )
    who = unit or "record"
    book.grant(dataset, total, adjacency=Adjacency(who, relation.value), note=note, beside=beside)
    if others:
        _console().print(Text(f"{dataset} also has a budget with the unit {' and '.join(others)}; it stays as it is."))
    _console().print(Text(str(book.balance(dataset, who))))


@ledger_app.command("raise")
def raise_grant(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.")],
    *,
    epsilon: Annotated[float | None, typer.Option(help="ε of the whole budget from now on.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ; as it is if left out.")] = None,
    mu: Annotated[float | None, typer.Option(help="Gaussian μ, for a budget stated so.")] = None,
    rho: Annotated[float | None, typer.Option(help="Zero-concentrated ρ, for a budget stated so.")] = None,
    unit: Annotated[str | None, typer.Option(help="Whose budget, where there are several.")] = None,
    note: Annotated[str, typer.Option(help="Who decided, and why.")] = "",
    ledger: LedgerPath = DEFAULT_LEDGER,
) -> None:
    """Raise a budget that exists, in its own currency and for its own unit. Lowering one is refused.

    Example: sfumato ledger raise people --epsilon 2 --note "data board, 3 May"
    """
    from sfumato.core import ApproxDP, Pufferfish
    from sfumato.ledger.ledger import Ledger

    book = Ledger(ledger, create=False)
    book.history(dataset)  # an unknown name is refused with the nearest known one
    units = [known for name, known in book.datasets() if name == dataset and unit in (None, known)]
    if len(units) != 1:
        known = [other for name, other in book.datasets() if name == dataset]
        raise LedgerError(
            f"{dataset} has a budget with the unit {' and with the unit '.join(known)}. Say which with "
            f"--unit {shlex.quote(known[0])}. Nothing changed."
        )
    granted = book.balance(dataset, units[0]).granted
    if isinstance(granted, ApproxDP | Pufferfish) and epsilon is not None and delta is None:
        delta = granted.delta_
    total = _total(epsilon, delta, mu, rho).under(granted.adjacency)
    if isinstance(granted, Pufferfish) and epsilon is not None:
        total = Pufferfish(epsilon, delta or 0.0, granted.dependence, adjacency=granted.adjacency)
    if type(total) is not type(granted) or total.implies(granted) is True or granted.implies(total) is not True:
        raise LedgerError(
            f"{dataset} has {granted.describe()}, and {total.describe()} is no higher budget of that kind. Lowering or "
            "changing it is a new decision: sfumato ledger grant. Nothing changed."
        )
    book.grant(dataset, total, note=note)
    _console().print(Text(str(book.balance(dataset, units[0]))))


@ledger_app.command()
def who(dataset: DatasetName = None, ledger: LedgerPath = DEFAULT_LEDGER) -> None:
    """Who decided on each budget, when and why: every grant with its note, and what was spent under it."""
    from sfumato.ledger.ledger import Ledger

    records = Ledger(ledger, create=False).history(dataset)
    table = Table(title=Text(f"Decisions in {ledger.name}"), title_justify="left")
    table.add_column("when (UTC)", width=10)
    table.add_column("dataset, who is protected", overflow="fold")
    table.add_column("granted in all", overflow="fold")
    table.add_column("who decided, and why", overflow="fold")
    table.add_column("runs since", justify="right")
    for place, record in enumerate(records):
        if record.action != "grant":
            continue
        later = records[place + 1 :]
        same = [one for one in later if (one.dataset, one.unit) == (record.dataset, record.unit)]
        until = next((at for at, one in enumerate(same) if one.action == "grant"), len(same))
        runs = sum(one.action == "reserve" for one in same[:until])
        table.add_row(
            f"{record.created:%Y-%m-%d %H:%M:%S}",
            _who(record.dataset, record.amount.adjacency),
            _amount(record.amount),
            Text(record.text or "not said: --note tells it next time"),
            str(runs),
        )
    _console().print(table)


@ledger_app.command()
def settle(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.")],
    unit: Annotated[str, typer.Option(help="Whose budget: that of records, of persons, …")] = "record",
    yes: Annotated[bool, typer.Option("--yes", help="Record them as spent without asking.")] = False,
    ledger: LedgerPath = DEFAULT_LEDGER,
) -> None:
    """Record the open reservations of runs that ended early as spent. Nothing is ever given back here."""
    from sfumato.ledger.ledger import Ledger

    book, console = Ledger(ledger, create=False), _console()
    waiting = book.open_reservations(dataset, unit)
    if not waiting:
        console.print(Text(f"{dataset} has no open reservation in {ledger}. Nothing changed."))
        return
    for reservation, purpose in waiting:
        when = f"{reservation.created:%Y-%m-%d %H:%M:%S} UTC"
        console.print(Text(f"{reservation}, {when}{f', for {purpose}' if purpose else ''}"), soft_wrap=True)
    question = "Their noise may have been drawn. End the runs that made them first. Record them as spent for good?"
    if not (yes or (sys.stdin.isatty() and console.is_terminal and typer.confirm(question, default=False))):
        console.print(Text("Nothing changed. Add --yes to record them as spent for good."))
        return
    for reservation, _ in waiting:
        book.commit(reservation)
    console.print(Text(str(book.balance(dataset, unit))))


@ledger_app.command()
def history(
    dataset: DatasetName = None,
    ledger: LedgerPath = DEFAULT_LEDGER,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list instead of a table.")] = False,
) -> None:
    """Every grant, reservation, commit and release, oldest first."""
    from sfumato.ledger.ledger import Ledger

    records = Ledger(ledger, create=False).history(dataset)
    if as_json:
        typer.echo(json.dumps([record.to_dict() for record in records], indent=2, ensure_ascii=False))
        return
    _console().print(_history_table(records, ledger))


def granting(flag: bool, console: Console) -> bool | Callable[[str], bool]:
    """Whether a first grant may be made: by the flag, or by a person at the terminal who is asked."""
    if flag or not (sys.stdin.isatty() and console.is_terminal):
        return flag
    return lambda question: typer.confirm(question, default=False)


def _total(epsilon: float | None, delta: float | None, mu: float | None, rho: float | None) -> Guarantee:
    from sfumato.core import ZCDP, ApproxDP, GaussianDP, PureDP

    if sum(value is not None for value in (epsilon, mu, rho)) != 1:
        raise PrivacyParameterError("Give exactly one of --epsilon, --mu and --rho. Nothing changed.")
    if delta is not None and epsilon is None:
        raise PrivacyParameterError("--delta goes together with --epsilon. Nothing changed.")
    if mu is not None:
        return GaussianDP(mu)
    if rho is not None:
        return ZCDP(rho)
    assert epsilon is not None
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def _depending(total: Guarantee, groups: int | None, memory: float | None, longest: int | None) -> Guarantee:
    """The same amount as a promise to people who depend on each other, where that is said."""
    from sfumato.core import ApproxDP, Chains, Groups, Pufferfish, PureDP

    if groups is None and memory is None:
        return total
    if groups is not None and memory is not None:
        raise PrivacyParameterError("Give one of --groups and --memory. Nothing changed.")
    if not isinstance(total, PureDP | ApproxDP):
        raise PrivacyParameterError("--groups and --memory go together with --epsilon. Nothing changed.")
    point = total.stated
    if groups is not None:
        return Pufferfish(*point, Groups(groups))
    assert memory is not None
    return Pufferfish(*point, Chains.best(memory, *point, longest))


def _console() -> Console:
    return Console(highlight=False)  # made per call: the stream may have been redirected since import


def _balance_table(balances: list[Balance], path: Path) -> Table:
    from sfumato.ledger.balance import left_text

    table = Table(title=Text(f"Budgets in {path.name}"), title_justify="left", show_lines=True)
    table.add_column("dataset, who is protected", overflow="fold")
    table.add_column("", no_wrap=True)
    table.add_column("how much", overflow="fold")
    for balance in balances:
        amounts = {
            "granted": _amount(balance.granted),
            "spent": _amount(balance.spent),
            "reserved": _amount(balance.reserved),
            "left": Text(left_text(balance.remaining), style="bold"),
        }
        notes = f"{balance.without_guarantee} × NO PRIVACY GUARANTEE" if balance.without_guarantee else ""
        who = _who(balance.dataset, balance.adjacency).append(f"\n{notes}" if notes else "", style="bold red")
        table.add_row(who, Text("\n".join(amounts)), Text("\n").join(amounts.values()))
    return table


def _who(dataset: str, adjacency: Adjacency | None) -> Text:
    return Text.assemble((dataset, "bold"), f"\nunder {adjacency}")


def _amount(guarantee: Guarantee | None) -> Text:
    from sfumato.core import NoGuarantee
    from sfumato.ledger.balance import amount_text

    if guarantee is None:
        return Text("nothing", style="dim")
    return Text(amount_text(guarantee), style="bold red" if isinstance(guarantee, NoGuarantee) else "")


def _history_table(records: list[LedgerRecord], path: Path) -> Table:
    table = Table(title=Text(f"History of {path.name}"), title_justify="left")
    table.add_column("row", justify="right")
    table.add_column("when (UTC)", width=10)
    table.add_column("what", width=7)
    table.add_column("dataset, who is protected", overflow="fold")
    table.add_column("how much", overflow="fold")
    table.add_column("for", overflow="fold")
    for record in records:
        table.add_row(
            str(record.sequence),
            f"{record.created:%Y-%m-%d %H:%M:%S}",
            record.action,
            _who(record.dataset, record.amount.adjacency),
            _amount(record.amount),
            Text(record.text),
        )
    return table
