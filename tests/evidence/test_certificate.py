"""Laws of certificates: what `issue` states, that JSON loses nothing, and that nothing else is ever read as one."""

from __future__ import annotations

import hashlib
import json
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    ApproxDP,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NoGuarantee,
    NormGammaEvent,
    PureDP,
    RandomizedResponseEvent,
    RenyiDP,
    Repeated,
    SelectionEvent,
    WorstOf,
    compose,
)
from sfumato.core.certificate import NOT_FOR_PUBLICATION, Claims
from sfumato.errors import (
    CertificateError,
    CertificateVersionError,
    InputError,
    PrivacyParameterError,
    UnprovedError,
)
from sfumato.evidence import Certificate, verify

NOISE = GaussianEvent(1.0, 2.0, grid=0.01, dimension=4, adjacency=REPLACE_ONE)
COUNT = LaplaceEvent(1.0, 2.0, adjacency=REPLACE_ONE)
ANSWERS = RandomizedResponseEvent(3, 7, 2, adjacency=REPLACE_ONE)
CHOICE = SelectionEvent("permute-and-flip", 1.0, 5.0, adjacency=REPLACE_ONE)
VECTOR = NormGammaEvent(1.0, 4.0, grid=0.1, dimension=9, adjacency=REPLACE_ONE)
PROOFS = ("gaussian", "laplace", "norm_gamma", "permute_and_flip", "randomized_response")


def issue(*events, **options) -> Certificate:
    return Certificate.issue(**{"subject": "mean age", "events": events, "proofs": PROOFS, **options})


CERTIFICATES = {
    "exact": issue(NOISE, Repeated(NOISE, 3)),
    "pure": issue(COUNT, plan={"strategy": "output noise", "scale": math.inf, "parts": [1, 2.5, None]}),
    "mixture": issue(NOISE, Repeated(ANSWERS, 5), notes=["labels were published as they are", "naïve µ"]),
    "several": issue(COUNT, CHOICE, VECTOR),
    "weaker": issue(NOISE, guarantee=ApproxDP(3.0, 1e-6)),
    "concentrated": issue(NOISE, guarantee=ZCDP(0.2)),
    "none": issue(NOISE, guarantee=NoGuarantee("every margin is published exactly"), proofs=()),
    "nothing": issue(guarantee=NoGuarantee("as published"), proofs=()),
    "experiment": issue(NOISE, publishable=False),
}
each_certificate = pytest.mark.parametrize("certificate", CERTIFICATES.values(), ids=CERTIFICATES.keys())


@each_certificate
def test_json_loses_nothing(certificate):
    text = certificate.to_json()
    again = Certificate.from_json(text)
    assert again == certificate
    assert again.to_json() == text


@each_certificate
def test_the_text_is_canonical(certificate):
    text = certificate.to_json()
    record = json.loads(text, parse_constant=pytest.fail)
    assert text.endswith("}\n")
    assert list(record) == sorted(record)
    assert "NaN" not in text
    assert "Infinity" not in text


def test_infinity_is_a_word_and_text_stays_readable():
    assert '"epsilon": "infinity"' in issue(NOISE, guarantee=ApproxDP(3.0, 1e-3)).to_json()
    assert "naïve µ" in CERTIFICATES["mixture"].to_json()


@each_certificate
def test_a_file_gives_back_what_was_written(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text("an older file")
    certificate.write(path)
    assert Certificate.read(path) == certificate
    assert os.listdir(tmp_path) == ["certificate.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "certificate.json"
    path.write_text("an older file")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        CERTIFICATES["exact"].write(path)
    assert path.read_text() == "an older file"
    assert os.listdir(tmp_path) == ["certificate.json"]


def test_the_guarantee_is_the_composition_of_the_events():
    assert CERTIFICATES["exact"].guarantee == compose([NOISE] * 4)
    assert CERTIFICATES["mixture"].guarantee == compose([NOISE] + [ANSWERS] * 5)
    assert CERTIFICATES["mixture"].adjacency == REPLACE_ONE
    assert CERTIFICATES["weaker"].composed == compose([NOISE])
    assert CERTIFICATES["weaker"].guarantee == ApproxDP(3.0, 1e-6, adjacency=REPLACE_ONE)


@pytest.mark.parametrize("name", ["exact", "pure", "mixture", "several", "weaker", "concentrated"])
def test_claims_round_up_and_by_little(name):
    certificate = CERTIFICATES[name]
    relative = 1e-9 if name in ("exact", "pure", "weaker") else 1e-3
    for delta, epsilon in certificate.claims.pairs:
        known = certificate.guarantee.epsilon(delta)
        assert known < epsilon <= known * (1 + 1.001 * relative) or epsilon == known == math.inf
    assert certificate.guarantee.advantage() < certificate.claims.advantage
    assert {1e-5, 1e-6, 1e-8} <= {delta for delta, _ in certificate.claims.pairs}


def test_a_pure_claim_stands_at_delta_zero_and_mu_only_where_it_is_gaussian():
    assert CERTIFICATES["several"].claims.pairs[0][0] == 0.0
    assert CERTIFICATES["exact"].claims.pairs[0][0] == 1e-8
    assert CERTIFICATES["exact"].claims.mu > CERTIFICATES["exact"].guarantee.mu
    assert CERTIFICATES["mixture"].claims.mu is None
    assert CERTIFICATES["none"].claims == Claims()


@pytest.mark.parametrize(
    "promise",
    [
        PureDP(5.0),
        ApproxDP(1.0, 1e-6),
        GaussianDP(0.4),
        ZCDP(0.01),
        GaussianDP(9.0, adjacency=ADD_REMOVE),
        RenyiDP(2.0, 9.0),
        WorstOf((GaussianDP(9.0),)),
    ],
    ids=str,
)
def test_what_the_events_do_not_imply_is_not_certified(promise):
    with pytest.raises(UnprovedError, match="not proved"):
        issue(NOISE, guarantee=promise)


def test_no_proof_no_certificate():
    with pytest.raises(UnprovedError, match="norm_gamma"):
        issue(NOISE, VECTOR, proofs=["gaussian"])
    with pytest.raises(UnprovedError, match="No event"):
        issue()


def test_inputs_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match="NaN"):
        issue(NOISE, plan={"scale": math.nan})
    with pytest.raises(InputError, match="plain values"):
        issue(NOISE, plan={"strategy": object()})
    with pytest.raises(InputError, match="keys"):
        issue(NOISE, plan={1: "one"})
    with pytest.raises(InputError, match="subject"):
        issue(NOISE, subject=" ")
    with pytest.raises(InputError, match="events"):
        issue(GaussianDP(1.0))
    with pytest.raises(PrivacyParameterError, match="adjacencies"):
        issue(NOISE, GaussianEvent(1.0, 1.0, adjacency=ADD_REMOVE))
    with pytest.raises(InputError, match="publishable=False"):
        issue(NOISE, notes=[NOT_FOR_PUBLICATION])


def test_a_plan_hash_depends_on_the_plan_alone():
    one, same, other = ({"a": 1, "b": [2.0]}, {"b": (2.0,), "a": 1}, {"a": 1, "b": [2.5]})
    hashes = [issue(NOISE, plan=plan).plan_hash for plan in (one, same, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert issue(NOISE).plan_hash is None


def test_a_random_state_is_noted():
    assert NOT_FOR_PUBLICATION in CERTIFICATES["experiment"].notes
    assert not CERTIFICATES["experiment"].publishable


def test_a_newer_certificate_asks_for_an_upgrade():
    record = {**json.loads(CERTIFICATES["exact"].to_json()), "schema_version": 3, "unheard": []}
    with pytest.raises(CertificateVersionError, match="Upgrade"):
        Certificate.from_json(json.dumps(record))


def test_an_entry_given_twice_is_refused():
    text = CERTIFICATES["exact"].to_json().replace('"subject"', '"subject": "median",\n  "subject"')
    with pytest.raises(CertificateError, match="twice"):
        Certificate.from_json(text)


def test_a_missing_or_binary_file_is_a_certificate_error(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "binary", tmp_path / "nowhere", tmp_path, "\0"):
        with pytest.raises(CertificateError):
            Certificate.read(path)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text()
    | st.sampled_from(["GaussianEvent", "WorstOf"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "adjacency", "parts", "eps"]), inner)
    ),
    max_leaves=6,
)


def paths(tree, here=()):
    """Every place in a JSON tree, leaves and branches."""
    yield here
    if isinstance(tree, dict | list):
        for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from paths(item, (*here, key))


def replaced(tree, path, value):
    """A copy of the tree with another value at one place."""
    copy = json.loads(json.dumps(tree))
    if not path:
        return value
    branch = copy
    for key in path[:-1]:
        branch = branch[key]
    branch[path[-1]] = value
    return copy


def read_or_refuse(text):
    try:
        certificate = Certificate.from_json(text)
    except CertificateError:
        return
    assert Certificate.from_json(certificate.to_json()) == certificate


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_arbitrary_text_is_refused_politely(text):
    read_or_refuse(text)


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_damaged_json_is_refused_politely(data):
    tree = json.loads(data.draw(st.sampled_from(list(CERTIFICATES.values()))).to_json())
    path = data.draw(st.sampled_from(list(paths(tree))))
    read_or_refuse(json.dumps(replaced(tree, path, data.draw(JSON_VALUES))))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_are_refused_politely(data):
    text = data.draw(st.sampled_from(list(CERTIFICATES.values()))).to_json()
    place = data.draw(st.integers(0, len(text) - 1))
    read_or_refuse(text[:place] + data.draw(st.text(max_size=3)) + text[place + data.draw(st.integers(0, 3)) :])


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, '"\\ud800"', "null", "[]", "{}", "1e999"]
)
def test_notorious_json_is_refused_politely(text):
    with pytest.raises(CertificateError):
        Certificate.from_json(text)


def test_a_certificate_that_names_files_reads_back_and_refuses_other_places():
    bound = CERTIFICATES["exact"].bound_to({"results/total.json": "ab" * 32})
    assert Certificate.from_json(bound.to_json()) == bound
    assert verify(bound).ok
    for path in ("../total.json", "/etc/passwd", "a//b", ".", "a\\b", ""):
        with pytest.raises(InputError):
            CERTIFICATES["exact"].bound_to({path: "ab" * 32})
    with pytest.raises(InputError):
        CERTIFICATES["exact"].bound_to({"total.json": "no hash"})


def test_a_certificate_of_the_first_version_still_holds():
    record = json.loads(CERTIFICATES["exact"].to_json())
    old = {name: value for name, value in record.items() if name not in ("files", "digest")} | {"schema_version": 1}
    canonical = json.dumps(old, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    text = json.dumps({**old, "digest": hashlib.sha256(canonical.encode()).hexdigest()})
    assert Certificate.from_json(text).files == ()
    assert verify(text).ok
