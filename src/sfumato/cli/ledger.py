"""`sfumato ledger show | grant | raise | who | settle | history`: the budget at the command line.

In:   arguments; the ledger's path from --ledger, SFUMATO_LEDGER, or sfumato-ledger.db in the current folder (runs and
      releases look beside their data instead, and say where).
Out:  tables of at most 80 columns, or JSON; the adjacency stands wherever an ε does.
Not here: what the numbers mean (ledger/ledger.py), how errors are printed (cli/app.py: they are left to rise).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

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
    name="ledger", help="What may be spent on each dataset, and what was.", no_args_is_help=True, add_completion=False
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
    from sfumato.core import PureDP
    from sfumato.ledger.commands import grant_command
    from sfumato.ledger.ledger import Ledger

    book = Ledger(ledger, create=False)
    if dataset is not None:
        book.history(dataset)  # an unknown name is refused with the nearest known one
    balances = [book.balance(name, unit) for name, unit in book.datasets() if dataset in (None, name)]
    if not balances:
        example = grant_command("people", PureDP(1.0), ledger)
        _console().print(Text(f"Nothing is granted in {ledger} yet. For example: {example}"), soft_wrap=True)
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
    alpha: Annotated[float | None, typer.Option(help="Rényi order, together with --epsilon.")] = None,
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
    from sfumato.core import Adjacency, PureDP
    from sfumato.ledger.commands import grant_command
    from sfumato.ledger.ledger import Ledger

    who = unit or "record"
    protected = Adjacency(who, relation.value)
    example = grant_command(dataset, PureDP(1.0), ledger, protected)
    total = _depending(_total(epsilon, delta, mu, rho, alpha, example), groups, memory, longest, example)
    book = Ledger(ledger)
    others = [known for name, known in book.datasets() if name == dataset and known != who]
    if others and unit is None:
        held = book.balance(dataset, others[0]).granted
        instead = grant_command(dataset, book.least(dataset, others[0], total), ledger, held.adjacency)
        raise LedgerError(
            f"{dataset} already has a budget with the unit {' and '.join(others)} in {ledger}. To replace it: "
            f"`{instead}`. For a second budget beside it, which pays for other promises: "
            f"`{grant_command(dataset, total, ledger, protected)}`. Nothing changed."
        )
    book.grant(dataset, total, adjacency=protected, note=note, beside=beside)
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
    alpha: Annotated[float | None, typer.Option(help="Rényi order; as it is if left out.")] = None,
    unit: Annotated[str | None, typer.Option(help="Whose budget, where there are several.")] = None,
    note: Annotated[str, typer.Option(help="Who decided, and why.")] = "",
    ledger: LedgerPath = DEFAULT_LEDGER,
) -> None:
    """Raise a budget that exists, in its own currency and for its own unit. Lowering one is refused.

    Example: sfumato ledger raise people --epsilon 2 --note "data board, 3 May"
    """
    from sfumato.ledger.commands import doubled, grant_command, raise_command
    from sfumato.ledger.grants import is_higher
    from sfumato.ledger.ledger import Ledger

    book = Ledger(ledger, create=False)
    book.history(dataset)  # an unknown name is refused with the nearest known one
    known = {other: book.balance(dataset, other).granted for name, other in book.datasets() if name == dataset}
    if unit is None and len(known) == 1:
        (unit,) = known
    if unit is None or unit not in known:
        ways = [f"`{raise_command(dataset, doubled(held), ledger, other)}`" for other, held in known.items()]
        raise LedgerError(
            f"{dataset} has a budget with the unit {' and with the unit '.join(known)}. Say which and how much, for "
            f"example {' or '.join(ways)}. Nothing changed."
        )
    granted = known[unit]
    example = raise_command(dataset, doubled(granted), ledger, unit)
    total = _raised(granted, epsilon, delta, mu, rho, alpha, example)
    if not is_higher(total, granted):
        instead = grant_command(dataset, book.least(dataset, unit, total), ledger, granted.adjacency)
        raise LedgerError(
            f"{dataset} has {granted.describe()}, and {total.describe()} is no higher budget of its kind. One that is: "
            f"`{example}`. Lowering or changing it is a new decision: `{instead}`. Nothing changed."
        )
    book.grant(dataset, total, note=note)
    _console().print(Text(str(book.balance(dataset, unit))))


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
    """Record the open reservations of runs that ended early as spent.

    Nothing is given back but what a round over centres reserved and never sent.
    """
    from sfumato.ledger.commands import settle_command
    from sfumato.ledger.ledger import Ledger
    from sfumato.run.joining import given_back

    book, console = Ledger(ledger, create=False), _console()
    for reservation in given_back(book):
        told = "given back: the round that reserved it ended here before anything was sent."
        console.print(Text(f"{reservation}: {told}"), soft_wrap=True)
    waiting = book.open_reservations(dataset, unit)
    if not waiting:
        console.print(Text(f"{dataset} has no open reservation in {ledger}. Nothing changed."))
        return
    for reservation, purpose in waiting:
        when = f"{reservation.created:%Y-%m-%d %H:%M:%S} UTC"
        console.print(Text(f"{reservation}, {when}{f', for {purpose}' if purpose else ''}"), soft_wrap=True)
    question = "Their noise may have been drawn. End the runs that made them first. Record them as spent for good?"
    if not (yes or (sys.stdin.isatty() and console.is_terminal and typer.confirm(question, default=False))):
        command = settle_command(dataset, unit, ledger)
        console.print(Text(f"Nothing changed. To record them as spent for good: {command}"), soft_wrap=True)
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
    """Every grant, raise, reservation, commit and release, oldest first; in JSON a raise is a grant, as recorded."""
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


def _raised(
    granted: Guarantee,
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    rho: float | None,
    alpha: float | None,
    example: str,
) -> Guarantee:
    """The total that is asked for, what is left out of it as it was granted."""
    from sfumato.core import ApproxDP, Pufferfish, RenyiDP

    if isinstance(granted, ApproxDP | Pufferfish) and epsilon is not None and delta is None:
        delta = granted.delta_
    if isinstance(granted, RenyiDP) and epsilon is not None and alpha is None:
        alpha = granted.alpha
    total = _total(epsilon, delta, mu, rho, alpha, example).under(granted.adjacency)
    if isinstance(granted, Pufferfish) and epsilon is not None:
        return Pufferfish(epsilon, delta or 0.0, granted.dependence, adjacency=granted.adjacency)
    return total


def _total(
    epsilon: float | None, delta: float | None, mu: float | None, rho: float | None, alpha: float | None, example: str
) -> Guarantee:
    from sfumato.core import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP

    if (epsilon, mu, rho).count(None) != 2:
        raise _wrong("Give exactly one of --epsilon, --mu and --rho", example)
    if epsilon is None and (delta, alpha) != (None, None):
        raise _wrong("--delta and --alpha go together with --epsilon", example)
    if delta and alpha is not None:
        raise _wrong("Give one of --delta and --alpha", example)
    if epsilon is None:
        return GaussianDP(mu) if mu is not None else ZCDP(cast("float", rho))
    if alpha is not None:
        return RenyiDP(alpha, epsilon)
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def _wrong(rule: str, example: str) -> PrivacyParameterError:
    return PrivacyParameterError(f"{rule}, for example `{example}`. Nothing changed.")


def _depending(
    total: Guarantee, groups: int | None, memory: float | None, longest: int | None, example: str
) -> Guarantee:
    """The same amount as a promise to people who depend on each other, where that is said."""
    from sfumato.core import ApproxDP, Chains, Groups, Pufferfish, PureDP

    if groups is None and memory is None:
        return total
    if groups is not None and memory is not None:
        raise _wrong("Give one of --groups and --memory", f"{example} --groups {groups}")
    if not isinstance(total, PureDP | ApproxDP):
        also = f"--groups {groups}" if groups is not None else f"--memory {memory}"
        raise _wrong("--groups and --memory go together with --epsilon", f"{example} {also}")
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
    for record, what in zip(records, _in_words(records), strict=True):
        table.add_row(
            str(record.sequence),
            f"{record.created:%Y-%m-%d %H:%M:%S}",
            what,
            _who(record.dataset, record.amount.adjacency),
            _amount(record.amount),
            Text(record.text),
        )
    return table


def _in_words(records: list[LedgerRecord]) -> list[str]:
    """What each line did: a grant above the one before it, of the same kind and for the same people, is a raise."""
    from sfumato.ledger.grants import is_higher

    granted: dict[tuple[str, str], Guarantee] = {}
    words: list[str] = []
    for record in records:
        before = granted.get((record.dataset, record.unit))
        words.append(
            "raise" if record.action == "grant" and before and is_higher(record.amount, before) else record.action
        )
        if record.action == "grant":
            granted[record.dataset, record.unit] = record.amount
    return words
