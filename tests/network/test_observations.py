"""observe/reveal against the requirements: contradictions are found, and only they."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plan.studies import HEAD, RISK
from sfumato.errors import SfumatoError
from sfumato.lang import load
from sfumato.network import Network
from sfumato.network.observations import check_observations

BASE = (
    HEAD
    + RISK
    + (
        "privacy_requirement(openness(public), people, dp(0.5, 0.000001)).\n"
        "privacy_requirement(openness(doctor), people, dp(1.5, 0.000001)).\n"
        "mean(meanRisk, risk(P), patient(P)).\npublish(average, meanRisk, openness(public)).\n"
        "publish(average, meanRisk, openness(doctor)).\n"
    )
)


def found(lines: str) -> list[tuple[str, str, str]]:
    network = Network.from_spec(load(BASE + lines))
    return [(one.observer, one.variable, one.requirement) for one in check_observations(network)]


def test_nothing_observed_nothing_found():
    assert found("") == []


@pytest.mark.parametrize("word", ["observe", "reveal"])
@pytest.mark.parametrize("variable", ["age(P)", "risk(P)"])
def test_what_is_protected_from_somebody_and_shown_to_them(word, variable):
    assert found(f"{word}(doctor, {variable}) :- patient(P).\n") == [("doctor", variable, "openness(doctor)")]


def test_another_observer_is_no_contradiction():
    assert found("observe(insurer, age(P)) :- patient(P).\n") == []


def test_people_may_know_themselves():
    assert found("observe(P, age(P)) :- patient(P).\n") == []


def test_colluders_tell_each_other():
    lines = "observe(doctor, age(P)) :- patient(P).\ncollude([doctor, public]).\n"
    assert sorted(found(lines)) == [("doctor", "age(P)", "openness(doctor)"), ("doctor", "age(P)", "openness(public)")]


def test_a_requirement_towards_everyone_covers_everybody():
    lines = "privacy_requirement(all, people, dp(2.0, 0.000001)).\ndp_rv(all, risk(P)) :- patient(P).\n"
    assert found(lines + "observe(insurer, age(P)) :- patient(P).\n") == [("insurer", "age(P)", "all")]


def test_an_exact_sum_is_a_contradiction_and_a_constant_is_none():
    constant = "random(price) :- true.\ndepends(price, [], 3).\nobserve(public, price).\n"
    assert found(constant) == []
    assert found("observe(public, meanRisk).\n") == [("public", "meanRisk", "openness(public)")]


def test_the_message_names_place_promise_and_way_out():
    network = Network.from_spec(load(BASE + "observe(doctor, age(P)) :- patient(P).\n"))
    (finding,) = check_observations(network)
    text = str(finding)
    assert text.startswith(f"study:{BASE.count(chr(10)) + 1}:") or f":{BASE.count(chr(10)) + 1}:" in text
    assert "(1.5, 1e-06)-DP" in text
    assert "average rests on" in text
    assert "dp_rv(openness(doctor), age(P))" in text


def test_structure_from_public_tables_is_followed():
    study = BASE + (
        "source(wards, 'wards.parquet').\ncolumn(wards, ward, ward(W)).\npublic(wards).\n"
        "observe(doctor, age(P)) :- patient(P), ward(W), W = north.\n"
    )
    spec = load(study)
    for wards, expected in ((["north"], 1), (["south"], 0)):
        tables = {"wards": pa.table({"ward": wards})}
        assert len(check_observations(Network.from_spec(spec, tables), tables)) == expected
    with pytest.raises(SfumatoError):
        check_observations(Network.from_spec(spec, {"wards": pa.table({"ward": ["north"]})}))
