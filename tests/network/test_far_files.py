"""Files at any address give the numbers that the same files give beside the study, and no study leaves its place."""

from __future__ import annotations

import uuid

import pytest

from network.test_stores import REST, SOURCES, exact_values, random_table, store
from sfumato.errors import DataError, StudyError
from sfumato.lang import load
from sfumato.ledger import Ledger
from sfumato.network.stores import far_files
from sfumato.network.stores.far_files import FarFiles
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan, tables_in

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
FAR = {
    "parquet": "source(t, 'fsspec:t.parquet').",
    "csv": "source(t, 'fsspec:t.csv').",
    "parquet folder": "source(t, 'fsspec:parts/').",
    "csv folder": "source(t, 'fsspec:texts/').",
}


@pytest.fixture(params=["file", "memory"])
def place(request, tmp_path, monkeypatch):
    """The same rows in this folder and at an address."""
    store(random_table(7), tmp_path)
    address = f"file://{tmp_path}"
    if request.param == "memory":
        address = f"memory://{uuid.uuid4().hex}"
        system, base = fsspec.core.url_to_fs(address)
        system.put(f"{tmp_path}/", base, recursive=True)
    monkeypatch.setenv("SFUMATO_FSSPEC", address)
    return tmp_path


@pytest.mark.parametrize("kind", FAR)
@pytest.mark.by_day(2)
def test_files_at_an_address_give_the_sums_of_files(place, kind, monkeypatch):
    near = exact_values(SOURCES["parquet"], place)
    if "folder" in kind:
        monkeypatch.setattr("sfumato.network.stores.spool._HELD", 100)  # put aside on disk
    assert exact_values(FAR[kind], place) == near


def test_an_address_beside_the_data_serves_as_well_and_a_copy_is_the_same_data(place, monkeypatch):
    address = f"file://{place}"
    monkeypatch.delenv("SFUMATO_FSSPEC")
    with pytest.raises(DataError, match=r"SFUMATO_FSSPEC.*sources.toml.*[Nn]othing was spent"):
        tables_in(make_plan(load(FAR["parquet"] + REST)), place)
    (place / "sources.toml").write_text(f'[fsspec]\naddress = "{address}"\n')
    ledger = Ledger(place / "ledger.db")
    run_plan(make_plan(load(FAR["parquet"] + REST)), place, ledger, grant=True)
    other = make_plan(load((SOURCES["csv"] + REST).replace("people", "persons")))
    with pytest.raises(Exception, match="nothing left"):
        run_plan(other, place, ledger, grant=True)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("fsspec:../t.parquet", "outside the data folder"),
        ("fsspec:a/../../t.parquet", "outside the data folder"),
        ("fsspec:/etc/t.parquet", "not a path inside"),
        ("fsspec:*.parquet", "several files"),
        ("fsspec:t.xlsx", "neither Parquet nor CSV"),
        ("fsspec:", "neither Parquet nor CSV"),
    ],
)
def test_a_study_does_not_leave_the_place(source, message):
    with pytest.raises(StudyError, match=message):
        load(f"source(t, '{source}')." + REST)


def test_what_is_not_there_changed_or_cannot_be_opened_is_told_and_nothing_is_spent(place, monkeypatch):
    ledger = Ledger(place / "ledger.db")
    for source, message in [
        ("source(t, 'fsspec:none.parquet').", "no file none.parquet"),
        ("source(t, 'fsspec:none/').", "no folder"),
    ]:
        with pytest.raises(DataError, match=rf"{message}.*Nothing was read"):
            run_plan(make_plan(load(source + REST)), place, ledger, grant=True)
    plan, marks = make_plan(load(FAR["parquet"] + REST)), iter(range(9))
    with monkeypatch.context() as patch:
        patch.setattr(far_files, "_marks", lambda *_: next(marks))
        with pytest.raises(DataError, match=r"changed while it was read.*nothing was spent"):
            run_plan(plan, place, ledger, grant=True)
    with monkeypatch.context() as patch:
        patch.setattr(far_files, "_parquet", lambda *_: (_ for _ in ()).throw(RuntimeError("a key of Anna")))
        with pytest.raises(DataError, match=r"could not be read \(RuntimeError\)") as caught:
            run_plan(plan, place, ledger, grant=True)
        assert "Anna" not in str(caught.value)
    monkeypatch.setenv("SFUMATO_FSSPEC", "nosuchkind://x")
    with pytest.raises(DataError, match="could not be read"):
        run_plan(plan, place, ledger, grant=True)
    assert not ledger.datasets()


def test_a_part_with_other_columns_is_refused_by_name(place):
    system, base = fsspec.core.url_to_fs(FarFiles.of(place).address)
    from pyarrow import parquet, table

    with system.open(f"{base}/parts/9.parquet", "wb") as stream:
        parquet.write_table(table({"id": ["a"]}), stream)
    with pytest.raises(DataError, match=r"9.parquet has other columns"):
        exact_values(FAR["parquet folder"], place)
