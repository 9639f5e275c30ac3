"""Names of a server's tables, and why a server could not be reached: told without the address."""

from __future__ import annotations

import random
import traceback

import pytest

from sfumato.errors import DataError
from sfumato.lang.paths import server_names, written_names, wrong_path
from sfumato.lang.spec import Source
from sfumato.network.stores.postgresql import PostgreSQL


def test_names_of_a_server_are_read_as_they_are_written():
    """Whatever a table is called there is a way to write it, and it is read back; what is no name is refused."""
    source = random.Random(5)
    for _ in range(300):
        names = [
            "".join(source.choices("aZ_9 .\"'-é東$", k=source.randrange(1, 8))) for _ in range(source.choice([1, 2]))
        ]
        written = written_names(names)
        assert server_names(written) == names
        assert wrong_path(Source("t", f"postgresql:{written}")) is None
    for wrong in ("a b", 'a"b"', '"a', '""', "a.b.c", "//user:word@host/base", "a.", ""):
        assert "names no table" in str(wrong_path(Source("t", f"postgresql:{wrong}")))


@pytest.mark.parametrize(
    ("driver", "told"),
    [
        ('connection to server at "h", port 1 failed: Connection refused', "no server answers"),
        ("connection to server failed: fe_sendauth: no password supplied", "asks for a password"),
        ('FATAL:  password authentication failed for user "ana"', "does not let this user in"),
        ('FATAL:  database "clinic" does not exist', "no such user or no such database"),
        ('could not translate host name "h" to address: Name or service not known', "no such host"),
        ('missing "=" after "ana:word-of-ana" in connection info string', "no address of PostgreSQL"),
        ('root certificate file "/home/ana/root.crt" does not exist', "the certificate"),
        ("something in another language: word-of-ana", "it failed"),
    ],
)
def test_why_no_connection_was_made_is_told_and_the_address_is_not(monkeypatch, driver, told):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra [postgresql] is not installed")
    from adbc_driver_manager import AdbcStatusCode

    def connect(address: str) -> None:
        raise dbapi.OperationalError(f"IO: [libpq] Failed to connect: {driver}", status_code=AdbcStatusCode.IO)

    monkeypatch.setattr(dbapi, "connect", connect)
    with pytest.raises(DataError, match=rf"{told}.*SFUMATO_POSTGRESQL.*nothing was spent") as caught:
        PostgreSQL("postgresql://ana:word-of-ana@h/clinic").read(["rows"])
    shown = "".join(traceback.format_exception(caught.value))
    assert "word-of-ana" not in shown.split("DataError")[-1]
    assert caught.value.__context__ is None
