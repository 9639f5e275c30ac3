"""`sfumato coordinate` and `sfumato centre`: one round over several institutions, at the command line.

In:   a round file that all institutions have agreed on; at a centre its table, key and ledger.
Out:  at the coordinator a folder with the result and its certificates; at the centres the same result on the terminal.
Not here: the protocol (centres/), how errors are printed (cli/app.py: they are left to rise).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sfumato.cli.ledger import DEFAULT_LEDGER, LedgerPath
from sfumato.errors import DataError, InputError
from sfumato.run.manifest import hashes, write_manifest
from sfumato.run.names import file_stems

if TYPE_CHECKING:
    import ssl

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sfumato.centres import Aggregate, Round
    from sfumato.core import Schema
    from sfumato.core.certificate import Certificate

__all__ = ["register_centre_commands"]

_ROWS = 100_000


def register_centre_commands(app: typer.Typer, verify: Callable[[Certificate], bool]) -> None:
    """Adds both commands; `verify` checks certificates independently and is handed in, as it lives further up."""

    @app.command("centre")
    def centre(
        join: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="The coordinator's address.")] = None,
        agreed: Annotated[
            Path | None, typer.Option("--round", help="The round this centre has agreed to (JSON).")
        ] = None,
        name: Annotated[str | None, typer.Option(help="This centre's name in the round.")] = None,
        key: Annotated[Path | None, typer.Option(help="This centre's private key (PEM); see --new-key.")] = None,
        data: Annotated[Path | None, typer.Option(help="This centre's table: .parquet or .csv.")] = None,
        dataset: Annotated[str | None, typer.Option(help="Name in the ledger; default: the file's name.")] = None,
        ledger: LedgerPath = DEFAULT_LEDGER,
        trusted: Annotated[
            Path | None, typer.Option("--tls-ca", help="Certificate that the coordinator must show.")
        ] = None,
        new_key: Annotated[Path | None, typer.Option("--new-key", help="Make a key, print its identity, stop.")] = None,
    ) -> None:
        """Take part in a round: check what is offered, add a noise share and masks, pay only if the sum was opened.

        Example: sfumato centre --join 10.0.0.7:4711 --round round.json --name north --key north.pem --data patients.csv
        """
        console = Console(highlight=False, markup=False)
        if new_key is not None:
            console.print(f"identity: {_make_key(new_key)}")
            return
        missing = [
            option
            for option, given in (
                ("--join", join),
                ("--round", agreed),
                ("--name", name),
                ("--key", key),
                ("--data", data),
            )
            if given is None
        ]
        if missing or join is None or agreed is None or name is None or key is None or data is None:
            raise InputError(f"Missing: {', '.join(missing)}. Nothing was read and nothing was spent.")
        _take_part(console, join, _read_round(agreed), name, key, data, dataset or data.stem, ledger, trusted, verify)

    @app.command("coordinate")
    def coordinate(
        agreed: Annotated[
            Path, typer.Argument(metavar="STUDY|ROUND", help="A study with centres, or a round as JSON.")
        ],
        listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where centres connect.")] = "127.0.0.1:4711",
        out: Annotated[Path, typer.Option(help="New folder for the result and its certificates.")] = Path("aggregate"),
        certificate: Annotated[Path | None, typer.Option("--tls-cert", help="This server's certificate (PEM).")] = None,
        private: Annotated[Path | None, typer.Option("--tls-key", help="Its private key (PEM).")] = None,
        join_seconds: Annotated[float, typer.Option(help="How long to wait for centres to join.")] = 600.0,
        publication: Annotated[str | None, typer.Option(help="Which aggregate of the study to sum.")] = None,
        identity: Annotated[
            list[str] | None, typer.Option("--centre", help="NAME=KEY: a centre and its public key; repeat it.")
        ] = None,
        write_round: Annotated[
            Path | None, typer.Option(help="Write the study's round here for the centres to agree to, and stop.")
        ] = None,
        absences: Annotated[int, typer.Option(help="How many centres may drop out.")] = 0,
        colluders: Annotated[int, typer.Option(help="How many centres may collude.")] = 0,
    ) -> None:
        """Collect one round: the noisy sum over all centres, without seeing any of the parts.

        Example: sfumato coordinate study.pl --publication meanKalium --centre north=HEX --centre south=HEX
        --write-round round.json, and when the centres have agreed: sfumato coordinate round.json --listen 0.0.0.0:4711
        --tls-cert server.pem --tls-key server.key
        """
        console = Console(highlight=False, markup=False)
        if agreed.suffix == ".pl":
            offered = _round_of_study(agreed, publication, identity or [], absences, colluders)
        else:
            offered = _read_round(agreed)
        if write_round is not None:
            write_round.write_text(json.dumps(offered.to_dict(), indent=2) + "\n", encoding="utf-8")
            console.print(f"The round is in {write_round}: send it to the centres, then coordinate it.")
            return
        _coordinate(console, offered, listen, out, certificate, private, join_seconds)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise InputError(f"{text!r} is not an address: write HOST:PORT. Nothing was run.")
    return host.strip("[]"), int(port)


def _read_round(path: Path) -> Round:
    from sfumato.centres import Round

    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the round cannot be read. Nothing was run.") from error
    return Round.from_dict(record)


def _round_of_study(
    study: Path, publication: str | None, identities: list[str], absences: int, colluders: int
) -> Round:
    from sfumato.centres import Centre
    from sfumato.run.centre_study import round_for
    from sfumato.run.study_file import plan_study

    pairs = [text.partition("=") for text in identities]
    if publication is None or not pairs or any(not sign for _, sign, _ in pairs):
        raise InputError(
            "A study needs --publication NAME and --centre NAME=KEY for every centre (sfumato centre --new-key FILE "
            "prints the key). Nothing was run."
        )
    centres = [Centre(name.strip(), key.strip()) for name, _, key in pairs]
    plan = plan_study(study, None, {})
    return round_for(plan, publication, centres, absences=absences, colluders=colluders)


def _make_key(path: Path) -> str:
    """A new Ed25519 key in a file that only its owner may read; the public half, in hex."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise InputError(f"{path} exists; a key is never overwritten. Give another name.") from error
    with os.fdopen(handle, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key.public_key().public_bytes_raw().hex()


def _read_key(path: Path) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: no private key can be read from it. Nothing was run.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: an Ed25519 key is needed (sfumato centre --new-key FILE). Nothing was run.")
    return key


def _own_cells(agreed: Round, path: Path, secret: Ed25519PrivateKey) -> Any:
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

    from sfumato.network.text_files import read_text
    from sfumato.run.files import TableFile

    file = TableFile.open(path)
    table = read_text(path).table if file.format == "csv" else None
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
    agreed: Round,
    name: str,
    key: Path,
    data: Path,
    dataset: str,
    ledger: Path,
    trusted: Path | None,
    verify: Callable[[Certificate], bool],
) -> None:
    import asyncio

    from sfumato.centres.network import take_part
    from sfumato.centres.node import Account
    from sfumato.ledger.ledger import Ledger

    host, port = _address(join)
    tls = _client_tls(host, trusted)
    secret = _read_key(key)
    cells = _own_cells(agreed, data, secret)
    account = Account(Ledger(ledger, create=False), dataset)
    for event in agreed.events:
        console.print(f"This round costs {event.guarantee()}.")
    try:
        outcome = asyncio.run(
            take_part(
                host, port, approved=agreed, name=name, key=secret, cells=cells, account=account, tls=tls, verify=verify
            )
        )
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
    agreed: Round,
    listen: str,
    out: Path,
    certificate: Path | None,
    private: Path | None,
    join_seconds: float,
) -> None:
    import asyncio
    import ssl

    from sfumato.centres.network import coordinate

    host, port = _address(listen)
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

    found = asyncio.run(coordinate(agreed.fresh(), host, port, join_seconds=join_seconds, tls=tls, ready=ready))
    _write(found, out)
    for name, reason in found.absent.items():
        console.print(f"absent: {name} ({reason})")
    console.print(
        f"Published {out}: {len(found.values)} numbers over {len(found.included)} centres, noise of standard deviation "
        f"{found.deviation:.4g} in each."
    )
    for one in found.certificates():
        console.print(f"Promise: {one.guarantee}")


def _write(found: Aggregate, out: Path) -> None:
    out.mkdir(parents=True)
    record = {
        "subject": found.round.subject,
        "reading": found.read(),
        "values": dict(zip(found.round.statistic.names, found.values.tolist(), strict=True)),
        "noise_deviation": found.deviation,
        "included": list(found.included),
        "absent": dict(found.absent),
        "round": found.round.to_dict(),
    }
    (out / "aggregate.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    named = write_manifest(out, "manifest.json", hashes(out))
    certificates = {
        certificate.adjacency.unit if certificate.adjacency else "unit": certificate
        for certificate in found.certificates()
    }
    stems = file_stems((unit,) for unit in certificates)
    for unit, certificate in certificates.items():
        certificate.bound_to(named).write(out / f"certificate-{stems[unit,]}.json")
