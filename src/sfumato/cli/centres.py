"""`sfumato centre init | join` and `sfumato coordinate init | sum`: several institutions, at the command line.

In:   a centre's name; cards and a study; the folder of a round; at a centre its tables and ledger.
Out:  folders; at the centres what their part costs. The coordinator of a study is `sfumato run --centres` (cli/app.py).
Not here: the protocol (centres/), how errors are printed (cli/app.py: they are left to rise).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sfumato.core.whole_file import write_whole_file
from sfumato.errors import DataError, InputError
from sfumato.run.manifest import hashes, write_manifest
from sfumato.run.names import file_stems

if TYPE_CHECKING:
    import ssl

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sfumato.centres import Aggregate, Round, StatisticRound
    from sfumato.centres.card import PartyCard
    from sfumato.core import Schema
    from sfumato.core.certificate import Certificate

__all__ = ["register_centre_commands", "run_over_centres"]

_ROWS = 100_000


def register_centre_commands(app: typer.Typer, verify: Callable[[Certificate], bool]) -> None:
    """Adds both groups; `verify` checks certificates independently and is handed in, as it lives further up."""
    centre = typer.Typer(no_args_is_help=True, add_completion=False)
    coordinate = typer.Typer(no_args_is_help=True, add_completion=False)
    app.add_typer(centre, name="centre", help="One institution of several: its key and card, and its part in a round.")
    app.add_typer(coordinate, name="coordinate", help="Rounds over several institutions.")

    @centre.command("init")
    def init(
        names: Annotated[list[str], typer.Argument(metavar="NAME", help="The centre's name in the study.")],
        home: Annotated[Path, typer.Option(help="Where its folder is made.")] = Path("."),
    ) -> None:
        """Make a centre's folder: a key, an empty ledger, and a card for the coordinator. Nothing is granted.

        Several names make several folders, for a trial on one machine. Example: sfumato centre init north
        """
        from sfumato.run.centre_home import Home

        console = _console()
        for name in names:
            made = Home.make(home / name, name)
            console.print(f"{name}: send {made.card_file} to the coordinator; the rest of {made.folder} stays here.")
            console.print(f"To read aloud, so that nobody exchanges it: identity {_aloud(made.card().identity)}")
            console.print(
                f"When the folder of the round has come: sfumato centre join ROUND --as {shlex.quote(name)} --data "
                "FOLDER (with --grant the data is granted exactly what the round needs, if it has no budget yet)"
            )

    @centre.command("join")
    def join(
        agreed: Annotated[Path, typer.Argument(metavar="ROUND", help="The folder of the round, or a round as JSON.")],
        name: Annotated[str, typer.Option("--as", help="This centre's name in the round.")],
        data: Annotated[Path, typer.Option(help="Folder with this centre's tables, or its one table.")],
        home: Annotated[Path | None, typer.Option(help="This centre's folder; default: its name.")] = None,
        at: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="The coordinator's address.")] = None,
        ledger: Annotated[
            Path | None, typer.Option(envvar="SFUMATO_LEDGER", help="The ledger; default: that of its folder.")
        ] = None,
        grant: Annotated[
            bool, typer.Option("--grant", help="Data that has no budget yet is granted exactly what this round needs.")
        ] = False,
        out: Annotated[Path | None, typer.Option(help="New folder for the release, here too.")] = None,
        key: Annotated[Path | None, typer.Option(help="For a round as JSON: this centre's private key.")] = None,
        trusted: Annotated[
            Path | None, typer.Option("--tls-ca", help="For a round as JSON: what the coordinator must show.")
        ] = None,
    ) -> None:
        """Take part in a round: check what is offered, add noise and masks, pay only if the sum was opened.

        Example: sfumato centre join round --as north --data tables --grant
        """
        console = _console()
        if agreed.is_dir():
            _join_study(console, agreed, name, data, home or Path(name), at, ledger, grant, out, verify)
            return
        offered = _read_round(agreed)
        own = key or (home or Path(name)) / "key.pem"
        book = ledger or (home or Path(name)) / "ledger.db"
        _take_part(console, at or "127.0.0.1:4711", offered, name, own, data, book, grant, trusted, verify)

    @coordinate.command("init")
    def coordinate_init(
        study: Annotated[Path, typer.Argument(help="A study with centres.")],
        cards: Annotated[list[Path], typer.Argument(metavar="CARD", help="The card of every centre.")],
        out: Annotated[Path, typer.Option(help="New folder of the round, to be sent to every centre.")] = Path("round"),
        at: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where centres reach you.")] = "127.0.0.1:4711",
        home: Annotated[Path, typer.Option(help="Your own folder, with your key.")] = Path("coordinator"),
        size: Annotated[
            list[str] | None, typer.Option(help="NAME=NUMBER: how many individuals a dataset has, if public.")
        ] = None,
        step: Annotated[int | None, typer.Option("--step", help="The step to publish, of a study with steps.")] = None,
    ) -> None:
        """Make the folder of a round from a study and the centres' cards. It holds nothing secret.

        Example: sfumato coordinate init study.pl north.card south.card west.card
        """
        from sfumato.centres.card import PartyCard
        from sfumato.cli.study import read_sizes
        from sfumato.run.centre_home import COORDINATOR, Home, RoundFolder
        from sfumato.run.centre_part import address_of

        console = _console()
        address_of(at)
        shown = [PartyCard.read(path) for path in cards]
        _check_apart(cards, shown)
        own = Home(home, COORDINATOR)
        if not own.key_file.is_file():
            own = Home.make(home, COORDINATOR, address=at, ledger=False)
        card = dataclasses.replace(own.card(), address=at)
        made = RoundFolder.make(study, shown, out, card, read_sizes(size), step)
        console.print(f"{out}: a round of {', '.join(made.round.places)} ({_way_of(made.round)}).")
        for one in shown:
            console.print(f"{one.name} has identity {_aloud(one.identity)}: compare it with {one.name} by telephone.")
        console.print("Send the folder to every centre.")
        console.print(f"Next: sfumato run {shlex.quote(str(study))} --centres {out} --out published")

    @coordinate.command("sum")
    def coordinate_sum(
        agreed: Annotated[Path, typer.Argument(metavar="ROUND", help="A round as JSON, made in Python.")],
        listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where centres connect.")] = "127.0.0.1:4711",
        out: Annotated[Path, typer.Option(help="New folder for the result and its certificates.")] = Path("aggregate"),
        certificate: Annotated[Path | None, typer.Option("--tls-cert", help="This server's certificate (PEM).")] = None,
        private: Annotated[Path | None, typer.Option("--tls-key", help="Its private key (PEM).")] = None,
        join_seconds: Annotated[float, typer.Option(help="How long to wait for centres to join.")] = 600.0,
    ) -> None:
        """Collect one sum that was agreed on in Python: the noisy sum over all centres, without seeing the parts.

        Example: sfumato coordinate sum round.json --listen 0.0.0.0:4711 --tls-cert server.pem --tls-key server.key
        """
        _coordinate(_console(), _read_round(agreed), listen, out, certificate, private, join_seconds)


def run_over_centres(
    console: Console,
    study: Path,
    folder: Path,
    out: Path,
    home: Path,
    listen: str | None,
    join_seconds: float,
    at: int | None,
    others: Mapping[str, object],
) -> None:
    """`sfumato run STUDY --centres FOLDER`: this machine is the coordinator. `others` are options of the centres."""
    from sfumato.cli.published import show_release
    from sfumato.cli.trace import folder_note
    from sfumato.evidence.report import finish_folder
    from sfumato.run.centre_home import COORDINATOR, Home, RoundFolder
    from sfumato.run.centre_part import coordinate_study
    from sfumato.run.interruption import told_when_interrupted
    from sfumato.run.study_file import public_tables

    given = [name for name, value in others.items() if value not in (None, False, "local")]
    if given:
        raise InputError(
            f"{' and '.join(given)}: the coordinator of a round has no rows and no budget. --grant and --data are "
            "for `sfumato centre join`, --size and --step for `sfumato coordinate init`. Nothing was run."
        )
    shared = RoundFolder.read(folder)
    if at is not None and at != shared.at:
        raise InputError(
            f"{folder} is the round of {'the whole study' if shared.at is None else f'step {shared.at}'}. Make the "
            f"round of step {at} with `sfumato coordinate init {study} CARD CARD … --step {at}`. Nothing was run."
        )
    if study.read_bytes() != shared.study.read_bytes():
        raise InputError(
            f"{study} is not the study of {folder}. Make the round again: sfumato coordinate init {study} CARD CARD … "
            "Nothing was run."
        )
    tell = _console().print
    own = Home.open(home, COORDINATOR)
    with told_when_interrupted(_COORDINATOR_STOPPED):
        made, release = coordinate_study(shared, own, out, listen=listen, join_seconds=join_seconds, tell=tell)
    show_release(made, release, console)
    tell(f"{len(release.published)} publication(s) in {out}")
    assert made.network is not None  # it was planned just now
    missing = finish_folder(made, out, None, tables=public_tables(made.network.spec, shared.folder))
    tell(folder_note(out, missing))
    if missing:
        raise typer.Exit(1)


_COORDINATOR_STOPPED = (
    "Interrupted. Nothing was published. This machine holds no rows and no budget of the centres: each one's own "
    "ledger says what it reserved. A new round begins with `sfumato coordinate init`."
)


def _check_apart(files: Sequence[Path], cards: Sequence[PartyCard]) -> None:
    """Two cards of one name or one key are one centre: which files they are, and what to write instead."""
    for what, told in (("name", lambda card: card.name), ("key", lambda card: card.identity)):
        met: dict[str, Path] = {}
        for file, card in zip(files, cards, strict=True):
            first = met.setdefault(told(card), file)
            if first != file or files.count(file) > 1:
                raise InputError(
                    f"{first} and {file} are cards of the same {what}: {card.name}. Give every centre's card once. A "
                    "centre that has none yet makes it with `sfumato centre init NAME`, where NAME is its name in the "
                    "study. Nothing was made."
                )


def _aloud(identity: str) -> str:
    """In groups of four, as it is read."""
    return " ".join(identity[start : start + 4] for start in range(0, len(identity), 4))


def _way_of(agreed: Round) -> str:
    if agreed.masked:
        return "masked sums with shares of the noise"
    everybody = any(block.often is not None for block in agreed.blocks)
    return "noise at each individual" if everybody else "noise at each centre"


def _console() -> Console:
    return Console(highlight=False, markup=False, soft_wrap=True)


def _join_study(
    console: Console,
    folder: Path,
    name: str,
    data: Path,
    home: Path,
    at: str | None,
    ledger: Path | None,
    grant: bool,
    out: Path | None,
    verify: Callable[[Certificate], bool],
) -> None:
    from sfumato.cli.ledger import granting
    from sfumato.ledger.ledger import Ledger
    from sfumato.run.centre_home import Home, RoundFolder
    from sfumato.run.centre_part import join_study
    from sfumato.run.interruption import told_when_interrupted

    own = Home.open(home, name)
    book = (ledger or own.ledger_file).resolve()
    shared = RoundFolder.read(folder)
    with told_when_interrupted(lambda: _centre_stopped(shared.study, book)):
        release = join_study(
            shared,
            own,
            data,
            at=at,
            ledger=Ledger(book),
            grant=granting(grant, console),
            out=out,
            verify=verify,
            tell=console.print,
        )
    console.print(f"{name}: the sum was opened, {len(release.published)} publication(s); the cost is in {book}.")


def _centre_stopped(study: Path, ledger: Path) -> str:
    """What a centre that leaves a round should know: its own ledger says whether its part had left the house."""
    from sfumato.lang.load import load
    from sfumato.ledger.commands import settle_command

    settle = " and ".join(f"`{settle_command(one.name, one.adjacency.unit, ledger)}`" for one in load(study).datasets)
    return (
        "Interrupted. If this centre's part had been sent, its cost stays reserved, because nobody can know what was "
        f"seen: `sfumato ledger show --ledger {shlex.quote(str(ledger))}` says so. A new round begins "
        f"with `sfumato coordinate init`. To record what is reserved as spent: {settle}."
    )


def _read_round(path: Path) -> StatisticRound:
    from sfumato.centres import Round, StatisticRound

    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: no round can be read there. Give the folder that the coordinator made (sfumato coordinate init "
            "STUDY CARD CARD …) and sent: sfumato centre join FOLDER --as NAME --data TABLES. Nothing was run."
        ) from error
    found = Round.from_dict(record)
    if not isinstance(found, StatisticRound):
        raise InputError(f"{path} is a study's round: give its folder. Nothing was run.")
    return found


def _own_cells(agreed: StatisticRound, path: Path, secret: Ed25519PrivateKey) -> Any:
    """This centre's sum. The key that chooses among a patient's rows comes from the centre's own: it stays the same."""
    from sfumato.centres.statistics import OfSchema

    statistic = agreed.statistic
    if not isinstance(statistic, OfSchema):
        raise DataError(f"{statistic.kind!r} is summed from arrays, in Python; a table file needs a schema.")
    names = list(statistic.schema.columns)
    if statistic.identity is not None and statistic.identity not in names:
        names.append(statistic.identity)
    table = _own_table(path, names, statistic.schema)
    choice = hashlib.sha256(b"sfumato kept rows\0" + secret.private_bytes_raw()).digest()
    return statistic.cells(table, agreed.grid, agreed.most_patients, key=choice)


def _own_table(path: Path, names: list[str], schema: Schema) -> Any:
    """The named columns: of a CSV file as text, whatever its cells hold; of a Parquet file with the file's types."""
    import pyarrow as pa

    from sfumato.network.stores.spool import whole
    from sfumato.network.text_files import read_text
    from sfumato.run.files import TableFile

    file = TableFile.open(path)
    table = whole(read_text(path).table) if file.format == "csv" else None
    present = file.column_names() if table is None else table.column_names
    absent = [name for name in names if name not in present]
    if absent:
        raise DataError(f"{path.name} lacks the column {absent[0]!r} of the round. Nothing left the centre.")
    if table is not None:
        return table.select(names)
    return pa.concat_tables(file.batches(schema, names, _ROWS))


def _take_part(
    console: Console,
    join: str,
    agreed: StatisticRound,
    name: str,
    key: Path,
    data: Path,
    ledger: Path,
    grant: bool,
    trusted: Path | None,
    verify: Callable[[Certificate], bool],
) -> None:
    import asyncio

    from sfumato.centres.network import take_part
    from sfumato.cli.ledger import granting
    from sfumato.ledger.ledger import Ledger
    from sfumato.run.accounts import table_sources
    from sfumato.run.centre_home import read_key
    from sfumato.run.centre_part import TablePurse, address_of
    from sfumato.run.joining import taking_part

    host, port = address_of(join)
    tls = _client_tls(host, trusted)
    secret = read_key(key)
    cells = _own_cells(agreed, data, secret)
    book = Ledger(ledger, create=False)
    sources = table_sources(data, agreed.statistic.identity or "")
    account = TablePurse(book, data.stem, sources, granting(grant, console))
    for event in agreed.events:
        console.print(f"This round costs {event.guarantee()}.")
    part = {"name": name, "key": secret, "cells": cells, "account": account, "tls": tls, "verify": verify}
    try:
        with taking_part(book, console.print):
            outcome = asyncio.run(take_part(host, port, approved=agreed, **part))
    except OSError as error:
        raise InputError(f"{join}: no connection ({type(error).__name__}). Nothing left the centre.") from error
    console.print(f"The sum over {len(outcome.included)} centres was opened; the cost is committed in {ledger}.")


def _client_tls(host: str, trusted: Path | None) -> ssl.SSLContext | None:
    import ssl

    if trusted is None:
        if host in ("127.0.0.1", "::1", "localhost"):
            return None
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(trusted))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{trusted}: no certificate can be read from it. Nothing was run.") from error


def _coordinate(
    console: Console,
    agreed: StatisticRound,
    listen: str,
    out: Path,
    certificate: Path | None,
    private: Path | None,
    join_seconds: float,
) -> None:
    import asyncio
    import ssl

    from sfumato.centres.network import coordinate
    from sfumato.run.centre_part import address_of

    host, port = address_of(listen)
    if out.exists():
        raise InputError(f"{out} exists: give a new folder. Nothing was run.")
    tls = None
    if certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(certificate, private)
        except (OSError, ssl.SSLError) as error:
            raise InputError("The TLS certificate or its key cannot be read. Nothing was run.") from error

    async def ready(host: str, port: int) -> None:
        console.print(f"Waiting for {len(agreed.centres)} centres on {host}:{port}.")

    try:
        out.mkdir(parents=True)  # what cannot be made is told before a centre pays
    except OSError as error:
        raise InputError(f"{out} cannot be made ({error.strerror}): give another folder. Nothing was run.") from None
    try:
        found = asyncio.run(coordinate(agreed.fresh(), host, port, join_seconds=join_seconds, tls=tls, ready=ready))
    except BaseException:
        out.rmdir()
        raise
    _write(found, agreed, out)
    for name, reason in found.absent.items():
        console.print(f"absent: {name} ({reason})")
    console.print(
        f"Published {out}: {len(found.values)} numbers over {len(found.included)} centres, noise of standard deviation "
        f"{found.deviation:.4g} in each."
    )
    for one in found.certificates():
        console.print(f"Promise: {one.guarantee}")


def _write(found: Aggregate, agreed: StatisticRound, out: Path) -> None:
    record = {
        "subject": found.round.subject,
        "reading": found.read(),
        "values": dict(zip(agreed.statistic.names, found.values.tolist(), strict=True)),
        "noise_deviation": found.deviation,
        "included": list(found.included),
        "absent": dict(found.absent),
        "round": found.round.to_dict(),
    }
    write_whole_file(out / "aggregate.json", json.dumps(record, indent=2) + "\n")
    named = write_manifest(out, "manifest.json", hashes(out))
    certificates = {
        certificate.adjacency.unit if certificate.adjacency else "unit": certificate
        for certificate in found.certificates()
    }
    stems = file_stems((unit,) for unit in certificates)
    for unit, certificate in certificates.items():
        certificate.bound_to(named).write(out / f"certificate-{stems[unit,]}.json")
