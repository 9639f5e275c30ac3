"""`sfumato coordinate` and `sfumato centre`: three institutions, TLS, files in and files out."""

from __future__ import annotations

import asyncio
import io
import json
import re
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from rich.console import Console
from typer.testing import CliRunner

from centres.small_rounds import PATIENT
from sfumato.centres import Centre, Means, Requirement, network, plan_round
from sfumato.cli.app import app
from sfumato.cli.centres import _coordinate, _read_round, _take_part
from sfumato.core import ApproxDP, Interval, Schema
from sfumato.core.certificate import Certificate
from sfumato.errors import InputError, LedgerError, OverspendError, SfumatoError, UnknownDatasetError
from sfumato.evidence import verify
from sfumato.ledger.ledger import Ledger
from sfumato.run.accounts import table_sources
from sfumato.run.centre_home import Home, new_key
from sfumato.run.centre_part import TablePurse, address_of

NAMES = ("north", "south", "west")


def server_certificate(folder):
    """A certificate for this machine that signs itself, and its key."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "coordinator")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    (folder / "server.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "server.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return folder / "server.pem", folder / "server.key"


@pytest.fixture
def agreed(tmp_path):
    """A round file, a key, a table and a ledger for each of three centres."""
    members = [Centre(name, new_key(tmp_path / f"{name}.pem").public_key().public_bytes_raw().hex()) for name in NAMES]
    statistic = Means(Schema({"kalium": Interval(2, 8)}))
    planned = plan_round(
        "mean kalium", members, statistic, [Requirement(PATIENT, ApproxDP(1.0, 1e-6))], most_patients=1000, absences=1,
        step_seconds=20.0,
    )  # fmt: skip
    (tmp_path / "round.json").write_text(json.dumps(planned.to_dict()))
    for place, name in enumerate(NAMES):
        rows = (f"{name} {i},{4.49 + place / 100}" for i in range(400))
        (tmp_path / f"{name}.csv").write_text("patient,kalium\n" + "\n".join(rows))
        Ledger(tmp_path / f"{name}.db").grant(name, ApproxDP(2.0, 1e-5), adjacency=PATIENT)
    return tmp_path / "round.json"


@pytest.fixture
def conducted(monkeypatch):
    """The coordinator's side of the round as it runs, with its loop."""
    found, conduct = [], network.Coordination.conduct

    async def known(self):
        found.append((self, asyncio.get_running_loop()))
        return await conduct(self)

    monkeypatch.setattr(network.Coordination, "conduct", known)
    return found


def end_joining(conducted, threads):
    """As soon as every centre has joined or gone: how long a busy machine takes for that is not the question."""
    coordinator, *centres = threads
    while coordinator.is_alive():
        for here, loop in conducted:
            if all(thread.name in here._members or not thread.is_alive() for thread in centres):
                with suppress(RuntimeError):  # the round is over already
                    loop.call_soon_threadsafe(here._complete.set)
                return
        time.sleep(0.02)


def play(agreed, tls, trusted, conducted, names=NAMES):
    """The coordinator and centres in threads; what each of them said or raised."""
    folder, said, raised = agreed.parent, {}, {}

    def run(name, action):
        said[name] = io.StringIO()
        try:
            action(Console(file=said[name], highlight=False, width=200))
        except SfumatoError as error:
            raised[name] = error

    coordinator = threading.Thread(
        target=run,
        args=("coordinator", lambda c: _coordinate(c, _read_round(agreed), "127.0.0.1:0", folder / "out", *tls, 60.0)),
    )
    coordinator.start()
    while "Waiting" not in said.get("coordinator", io.StringIO()).getvalue():
        time.sleep(0.02)
    port = re.search(r":(\d+)\.", said["coordinator"].getvalue())[1]

    def centre(name):
        def action(console):
            files = folder / f"{name}.pem", folder / f"{name}.csv"
            _take_part(
                console, f"127.0.0.1:{port}", _read_round(agreed), name, *files, folder / f"{name}.db", False, trusted,
                lambda certificate: verify(certificate).ok,
            )  # fmt: skip

        return threading.Thread(target=run, args=(name, action), name=name)

    threads = [coordinator, *(centre(name) for name in names)]
    for thread in threads[1:]:
        thread.start()
    end_joining(conducted, threads)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return {name: text.getvalue() for name, text in said.items()}, raised


def test_three_institutions_over_tls(agreed, conducted):
    certificate, key = server_certificate(agreed.parent)
    said, raised = play(agreed, (certificate, key), certificate, conducted)
    assert not raised
    result = json.loads((agreed.parent / "out" / "aggregate.json").read_text())
    assert result["reading"]["count"] == pytest.approx(1200, abs=6 * result["noise_deviation"])
    assert result["reading"]["kalium"] == pytest.approx(4.5, abs=0.3)
    assert verify(Certificate.read(agreed.parent / "out" / "certificate-patient.json")).ok
    assert all("committed" in said[name] for name in NAMES)
    assert all(Ledger(agreed.parent / f"{name}.db").history(name)[-1].action == "commit" for name in NAMES)


def test_a_centre_turns_away_from_a_server_it_does_not_know(agreed, conducted):
    certificate, key = server_certificate(agreed.parent)
    other = agreed.parent / "other"
    other.mkdir()
    _, raised = play(agreed, (certificate, key), server_certificate(other)[0], conducted, names=("north",))
    assert "no connection" in str(raised["north"])
    assert Ledger(agreed.parent / "north.db").history("north")[-1].action == "grant"
    assert "Nothing was revealed" in str(raised["coordinator"])


def test_one_institution_may_be_missing(agreed, conducted):
    said, raised = play(agreed, (None, None), None, conducted, names=("north", "south"))
    assert not raised
    assert "absent: west (never joined)" in said["coordinator"]


def test_a_centre_is_made_once_and_for_its_owner(tmp_path):
    done = CliRunner().invoke(app, ["centre", "init", "own", "--home", str(tmp_path)])
    assert "own.card to the coordinator" in done.output
    own = Home.open(tmp_path / "own", "own")
    assert own.key_file.stat().st_mode & 0o077 == 0
    assert own.card().identity == own.key().public_key().public_bytes_raw().hex()
    assert own.card().identity in done.output.replace(" ", "")
    assert not Ledger(own.ledger_file).datasets()
    with pytest.raises(InputError, match="never overwritten"):
        Home.make(tmp_path / "own", "own")


def test_what_is_missing_is_named(tmp_path):
    done = CliRunner().invoke(app, ["coordinate", "sum", str(tmp_path / "none.json")])
    assert "can be read" in str(done.exception)
    done = CliRunner().invoke(app, ["centre", "join", str(tmp_path), "--as", "north", "--data", "."])
    assert "sfumato centre init north" in str(done.exception)
    for bad in ("nowhere", "host:", ":70000", "host:port"):
        with pytest.raises(InputError, match="not an address"):
            address_of(bad)


def test_a_table_without_the_column_is_refused(agreed):
    (agreed.parent / "north.csv").write_text("patient\n1\n")
    with pytest.raises(InputError, match="lacks the column"):
        _take_part(
            Console(file=io.StringIO()), "127.0.0.1:1", _read_round(agreed), "north", agreed.parent / "north.pem",
            agreed.parent / "north.csv", agreed.parent / "north.db", False, None, lambda _: True,
        )  # fmt: skip


def test_a_result_that_cannot_be_written_is_told_before_anybody_pays(agreed):
    """A file in the way, a link to nowhere: neither is found out with the opened sum in hand."""
    folder = agreed.parent
    (folder / "file").write_text("")
    (folder / "link").symlink_to(folder / "nowhere" / "at" / "all")
    for out in (folder / "file" / "out", folder / "link"):
        with pytest.raises(InputError, match=r"cannot be made|exists"):
            _coordinate(Console(file=io.StringIO()), _read_round(agreed), "127.0.0.1:0", out, None, None, 60.0)


class Kept:
    """A ledger on whose reservations nothing follows."""

    def __init__(self, book, dataset, sources):
        self.purse, self.made = TablePurse(book, dataset, sources, False), []

    def __call__(self, agreed):
        self.made.clear()
        self.purse.reserve(agreed, f"key {id(self.made)} {len(self.purse.ledger.history())}", self.made)
        return [(one.dataset, one.unit) for one in self.made]


def test_a_round_is_paid_by_the_account_of_its_table_whatever_its_file_is_called(agreed, tmp_path):
    round_, table = _read_round(agreed), tmp_path / "north.csv"
    book = Ledger(tmp_path / "north.db")
    assert Kept(book, "north", table_sources(table))(round_) == [("north", "patient")]
    other = tmp_path / "renamed.csv"
    other.write_text(table.read_text())
    book.grant("renamed", ApproxDP(2.0, 1e-5), adjacency=PATIENT)
    assert Kept(book, "renamed", table_sources(other))(round_) == [("north", "patient")]
    with pytest.raises(LedgerError, match="another column"):
        Kept(book, "north", table_sources(table, "patient"))(round_)
    elsewhere = Ledger(tmp_path / "other.db", beside=[book.path])
    elsewhere.grant("renamed", ApproxDP(2.0, 1e-5), adjacency=PATIENT)
    with pytest.raises(UnknownDatasetError, match="has its budget in"):
        Kept(elsewhere, "renamed", table_sources(other))(round_)
    with pytest.raises(OverspendError):
        Kept(book, "north", table_sources(table))(round_)
