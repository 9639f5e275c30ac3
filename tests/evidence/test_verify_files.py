"""A certificate binds its results: whatever is changed in a published folder, `verify` says so."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato.cli import centres as centre_commands
from sfumato.cli.app import app
from sfumato.core import Interval, Schema
from sfumato.evidence.recipient import write_recipient_readme
from sfumato.evidence.verify_files import verify_files
from sfumato.evidence.verify_plan import verify_folder
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan
from sfumato.release import LaplaceRelease
from sfumato.run.partition_release import release_partitions
from sfumato.run.study import run_plan
from sfumato.run.tables import release_file

sys.path.append(str(Path(__file__).parents[1]))
from centres.small_rounds import gather, small_round  # type: ignore[import-not-found]

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
rows_per_person(patients, 1).
missing(age(P), 50).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(0.5)).
privacy_requirement(openness(doctor), people, dp(2)).
sum(total, age(P), patient(P)).
publish(total, total, openness(public)).
publish(total, total, openness(doctor)).
"""


def of_run(folder):
    table = pa.table({"id": list(range(40)), "age": [50.0] * 40})
    run_plan(make_plan(STUDY), {"patients": table}, folder / "ledger.db", out=folder / "out", grant=True)


def of_release(folder):
    parquet.write_table(pa.table({"age": np.arange(100.0)}), folder / "people.parquet")
    prepared = LaplaceRelease(Schema({"age": Interval(0, 110)}), epsilon=1.0).prepare()
    ledger = Ledger(folder / "ledger.db", beside=())
    release_file(folder / "people.parquet", prepared, folder / "out", ledger, "people", grant=True)


def of_partitions(folder):
    (folder / "people").mkdir()
    parquet.write_table(pa.table({"age": np.arange(100.0)}), folder / "people" / "0.parquet")
    prepared = LaplaceRelease(Schema({"age": Interval(0, 110)}), epsilon=1.0).prepare()
    release_partitions(
        folder / "people", prepared, folder / "out", Ledger(folder / "ledger.db", beside=()), "people", grant=True
    )


def of_coordinate(folder):
    agreed, *others = small_round(centres=3, length=2, absences=0)
    found, _ = gather(agreed, *others)
    (folder / "out").mkdir()
    centre_commands._write(found, agreed, folder / "out")


MAKERS = {"run": of_run, "release": of_release, "partitions": of_partitions, "coordinate": of_coordinate}


@pytest.fixture(scope="module", params=MAKERS)
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    MAKERS[request.param](folder)
    return folder / "out"


def failures(folder):
    return [check for check in verify_folder(folder) if not check.ok]


@pytest.mark.by_day(2)
def test_a_folder_as_it_was_published_holds(published):
    assert failures(published) == []
    done = CliRunner().invoke(app, ["verify", str(published)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.by_day(1)
def test_every_byte_of_every_file_counts(published, tmp_path):
    """One changed byte at a random place, a lost file, a file that was added: each is found."""
    generator = np.random.default_rng(0)
    names = [path.relative_to(published) for path in sorted(published.rglob("*")) if path.is_file()]
    assert len(names) >= 3
    for place, name in enumerate(names):
        for change in ("byte", "lost"):
            copy = tmp_path / f"{place}{change}"
            shutil.copytree(published, copy)
            path = copy / name
            if change == "lost":
                path.unlink()
            else:
                content = bytearray(path.read_bytes())
                content[int(generator.integers(len(content)))] ^= 1 << int(generator.integers(7))
                path.write_bytes(bytes(content))
            assert failures(copy), f"{name} {change}"
            shutil.rmtree(copy)


def _rewritten(path, change):
    """A certificate changed by somebody who knows how its digest is made."""
    record = json.loads(path.read_text(encoding="utf-8"))
    record.pop("digest")
    change(record)
    canonical = json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    record["digest"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(record, sort_keys=True, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def test_certificates_of_an_older_kind_do_not_stand_beside_a_manifest(published, tmp_path):
    """Certificates used to name no files. One that is written back to that kind says nothing about its results."""

    def older(record):
        record.pop("files")
        record["schema_version"] = 1

    copy = tmp_path / "copy"
    shutil.copytree(published, copy)
    if not list(copy.glob("manifest*.json")):
        pytest.skip("its certificate names the results themselves")
    for path in copy.glob("certificate*.json"):
        _rewritten(path, older)
    assert any("not issued together" in check.sentence for check in failures(copy))


def test_the_certificate_of_a_promise_is_missed(tmp_path):
    of_run(tmp_path)
    certificates = sorted((tmp_path / "out").glob("certificate*.json"))
    assert len(certificates) == 3
    for path in certificates:
        text = path.read_text(encoding="utf-8")
        path.unlink()
        assert [check.field for check in failures(tmp_path / "out")] == [path.name]
        path.write_text(text, encoding="utf-8")


def test_what_no_certificate_covers_is_named(tmp_path):
    of_run(tmp_path)
    out = tmp_path / "out"
    for name in ("README.txt", "report.html", "notes.txt"):
        (out / name).write_text("Anything.")
    named = [check for check in verify_folder(out) if "No certificate covers" in check.sentence]
    assert [check.field for check in named] == ["README.txt, notes.txt, report.html"]
    said = CliRunner().invoke(app, ["verify", str(out)])
    assert said.exit_code == 0
    assert "The release holds. Not covered: README.txt, notes.txt, report.html." in " ".join(said.output.split())


def test_a_readme_is_compared_with_what_the_certified_files_say(tmp_path):
    """Every word of it is: a number that is edited by one digit is no longer vouched for."""
    of_run(tmp_path)
    out = tmp_path / "out"
    write_recipient_readme(Plan.read(out / "plan.json"), out)
    readme = out / "README.txt"
    text = readme.read_text(encoding="utf-8")
    assert [check.field for check in verify_folder(out) if not check.covered] == []
    assert "README.txt" in [check.field for check in verify_folder(out)]
    words = [found.start() for found in re.finditer(r"\S+", text)]
    for place in words[:: len(words) // 20]:
        readme.write_text(text[:place] + ("7" if text[place] != "7" else "8") + text[place + 1 :], encoding="utf-8")
        assert [check.field for check in verify_folder(out) if not check.covered] == ["README.txt"]


def test_a_dry_run_does_not_pass_for_a_release(tmp_path):
    table = pa.table({"id": list(range(40)), "age": [50.0] * 40})
    run_plan(make_plan(STUDY), {"patients": table}, None, out=tmp_path / "out", random_state=1)
    said = CliRunner().invoke(app, ["verify", str(tmp_path / "out")])
    assert said.exit_code == 1
    assert "not for publication" in " ".join(said.output.split())


@pytest.mark.parametrize(("maker", "inner"), [(of_run, "results"), (of_partitions, "table")])
def test_an_added_result_is_found(maker, inner, tmp_path):
    maker(tmp_path)
    (tmp_path / "out" / inner / "extra.json").write_text("[]")
    assert "No certificate covers it." in {check.sentence for check in failures(tmp_path / "out")}


def test_a_certificate_alone_says_what_was_not_compared(published, tmp_path):
    for certificate in published.glob("certificate*.json"):
        shutil.copy(certificate, tmp_path)
        alone = verify_files(tmp_path / certificate.name, complete=False)
        assert all(check.ok for check in alone)
        assert any("not here" in check.sentence for check in alone)
        done = CliRunner().invoke(app, ["verify", str(tmp_path / certificate.name)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        beside = verify_files(certificate, complete=False)
        assert "hashed again" in beside[-1].sentence


def test_an_edited_result_fails_the_certificate_beside_it(published, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(published, copy)
    for path in copy.rglob("*.parquet"):
        path.write_bytes(path.read_bytes() + b" ")
    (copy / "aggregate.json").write_text("{}")
    certificate = sorted(copy.glob("certificate*.json"))[0]
    done = CliRunner().invoke(app, ["verify", str(certificate)], catch_exceptions=False)
    assert done.exit_code == 1


def test_an_observers_certificate_says_nothing_about_anothers_result(tmp_path):
    """What doctor's certificate and manifest hold has no hash of the public's file, and the salt hides the rest."""
    of_run(tmp_path)
    out = tmp_path / "out"
    (manifest,) = out.glob("manifest.*doctor*.json")
    listed = json.loads(manifest.read_text())["files"]
    assert listed
    assert all(".doctor." in name for name in listed)
    other = hashlib.sha256((out / "results" / "total.public.json").read_bytes()).hexdigest()
    (certificate,) = out.glob("certificate.*doctor*.json")
    assert other not in manifest.read_text() + certificate.read_text()
    salts = {json.loads(path.read_text())["salt"] for path in out.glob("manifest*.json")}
    assert len(salts) == len(list(out.glob("manifest*.json")))
