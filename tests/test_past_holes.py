"""Holes that were found by attacking the system, each with the attack that found it."""

from __future__ import annotations

import dataclasses
import decimal
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ApproxDP,
    Categories,
    GaussianDP,
    GaussianEvent,
    Interval,
    LaplaceEvent,
    Partition,
    PureDP,
    RenyiDP,
    Repeated,
    Schema,
    compose,
    parallel,
)
from sfumato.core.certificate import Certificate
from sfumato.errors import DataError, InputError, LedgerError, PrivacyParameterError, SchemaError
from sfumato.evidence import verify
from sfumato.ledger import Ledger
from sfumato.mechanisms import Box, Exponential, Laplace, NormGamma, PermuteAndFlip, RandomizedResponse
from sfumato.mechanisms.box import _cumulative
from sfumato.release import GaussianRelease, LaplaceRelease
from sfumato.release.acts import seeded
from sfumato.run.tables import release_file

CODES = Schema({"smoker": Categories([0, 1], null=0, unknown=0), "age": Interval(0, 100, null=0)})


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table])
def test_the_published_type_does_not_depend_on_a_record(make):
    """One missing value turns a column of whole numbers into floats before it reaches us."""
    release = GaussianRelease(CODES, epsilon=1.0, delta=1e-6)
    whole = release.release(make({"smoker": [0, 1, 1], "age": [1.0, 2.0, 3.0]})).table["smoker"]
    holed = release.release(make({"smoker": [0, 1, None], "age": [1.0, 2.0, 3.0]})).table["smoker"]
    kinds = [getattr(column, "type", getattr(column, "dtype", None)) for column in (whole, holed)]
    assert kinds[0] == kinds[1]


def test_raw_labels_of_two_releases_do_not_add_up_to_a_promise():
    schema = Schema({name: Categories(["n", "y"]) for name in "ab"} | {"c": Interval(0, 1)})
    first = GaussianRelease(schema, epsilon=1.0, delta=1e-6, label="a").prepare().guarantee
    second = GaussianRelease(schema, epsilon=1.0, delta=1e-6, label="b").prepare().guarantee
    with pytest.raises(PrivacyParameterError, match="different adjacencies"):
        compose([first, second])


@pytest.fixture
def people(tmp_path):
    table = pa.table({"age": np.arange(200.0) % 100, "ill": ["no", "yes"] * 100})
    parquet.write_table(table, tmp_path / "people.parquet")
    schema = Schema({"age": Interval(0, 100, null=0), "ill": Categories(["no", "yes"], unknown="no", null="no")})
    return tmp_path, schema, Ledger(tmp_path / "ledger.db")


def test_another_unit_is_no_way_around_the_ledger(people):
    folder, schema, ledger = people
    whole = GaussianRelease(schema, epsilon=1.0, delta=1e-6).prepare()
    release_file(folder / "people.parquet", whole, folder / "one", ledger, "people", grant=True)
    raw = GaussianRelease(schema, epsilon=50.0, delta=1e-6, label="ill").prepare()
    with pytest.raises(LedgerError, match="ledger grant"):
        release_file(folder / "people.parquet", raw, folder / "two", ledger, "people")


def test_protecting_records_is_charged_to_features_too(people):
    folder, schema, ledger = people
    raw = GaussianRelease(schema, epsilon=1.0, delta=1e-6, label="ill").prepare()
    release_file(folder / "people.parquet", raw, folder / "one", ledger, "people", grant=True)
    ledger.grant("people", ApproxDP(9.0, 1e-5))
    whole = GaussianRelease(schema, epsilon=1.0, delta=1e-6).prepare()
    with pytest.raises(LedgerError):  # the features' account is spent
        release_file(folder / "people.parquet", whole, folder / "two", ledger, "people")
    assert ledger.balance("people").reserved is None


@pytest.mark.parametrize(("columns", "epsilon"), [(30, 0.001), (5, 0.001), (10, 0.01)])
@pytest.mark.by_day(1)
def test_tiny_budgets_are_kept_or_refused(columns, epsilon):
    schema = Schema({f"c{i}": Categories(["a", "b", "c"]) for i in range(columns)} | {"x": Interval(0, 1)})
    for release, wanted in (
        (GaussianRelease(schema, epsilon=epsilon, delta=1e-6), ApproxDP(epsilon, 1e-6)),
        (LaplaceRelease(schema, epsilon=epsilon), PureDP(epsilon)),
    ):
        assert release.prepare().guarantee.implies(wanted) is True


def test_parts_chosen_by_attribute_need_add_remove():
    """Mean of one's own region with noise for a public region size: one record moves, both sizes change."""
    with pytest.raises(PrivacyParameterError):
        parallel([PureDP(1.0, adjacency=REPLACE_ONE)] * 2, Partition("attribute", "region"))
    assert parallel([PureDP(1.0, adjacency=ADD_REMOVE)] * 2, Partition("attribute", "region")).epsilon(0.0) == 1.0


@pytest.mark.parametrize("kind", [PermuteAndFlip, Exponential])
def test_huge_scores_do_not_overflow(kind):
    choose = kind.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE)
    for scores in ([1.76e13, -8796093022208.0], [1e300, -1e300]):
        assert choose(scores) in (0, 1)


def test_tiny_deltas_do_not_vanish():
    assert compose([ApproxDP(1.0, 1e-17)] * 2).delta(2.0) >= 2e-17
    assert (
        compose([Repeated(LaplaceEvent(1.0, 1000.0, adjacency=REPLACE_ONE), 3), ApproxDP(1e-3, 1e-15)]).delta(3.0)
        >= 1e-15
    )
    assert compose([ApproxDP(1e-3, 1e-15)] * 1000).delta(1.0) >= 1e-12 * 0.999


@pytest.mark.parametrize(("half_width", "stiffness", "epsilon"), [(50, 1.0, 10.0), (20, 0.05, 5.0), (50, 0.01, 5.0)])
@pytest.mark.slow
def test_the_drawn_box_law_keeps_the_claimed_profile(half_width, stiffness, epsilon):
    """Hockey-stick divergence of the very whole-number weights that are drawn from."""
    box = Box(float(half_width), 1.0, REPLACE_ONE, stiffness)
    cumulative, _ = _cumulative(box.half_width, box.stiffness, box.grid)
    weights = np.diff(np.concatenate([[0], cumulative])).astype(float) / 2.0**62
    shift = math.ceil(1.0 / box.grid)
    padded = np.concatenate([weights, np.zeros(shift)])
    moved = np.concatenate([np.zeros(shift), weights])
    assert np.maximum(padded - math.exp(epsilon) * moved, 0).sum() <= box.guarantee().delta(epsilon)


def forged(certificate, **changes):
    import hashlib

    record = {**json.loads(certificate.to_json()), **changes}
    record.pop("digest")
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return {**record, "digest": hashlib.sha256(text.encode()).hexdigest()}


def issue(*events):
    return Certificate.issue(subject="x", events=events, proofs=sorted({event.proof_id() for event in events}))


def test_a_promise_without_acts_is_refused():
    honest = issue(LaplaceEvent(1.0, 2.0, adjacency=REPLACE_ONE))
    nothing = {"kind": "ComposedDP", "parts": [], "adjacency": REPLACE_ONE.to_dict()}
    small = PureDP(1e-9, adjacency=REPLACE_ONE).to_dict()
    assert not verify(forged(honest, events=[], composed=nothing, guarantee=small)).ok


def test_large_epsilon_as_gaussian():
    assert PureDP(36.5).implies(GaussianDP(16.2518)) is False
    honest = issue(LaplaceEvent(36.5, 1.0, adjacency=REPLACE_ONE))
    stated = GaussianDP(16.2518, adjacency=REPLACE_ONE).to_dict()
    assert "guarantee" in [check.field for check in verify(forged(honest, guarantee=stated)).failures]


def test_squares_of_tiny_numbers_do_not_vanish():
    tiny = GaussianEvent(1e-163, 1.0, adjacency=REPLACE_ONE)
    total = compose([Repeated(tiny, 10**300)])
    assert isinstance(total, GaussianDP)
    assert total.mu >= 1e-13
    mixed = compose([LaplaceEvent(1.0, 1.0, adjacency=REPLACE_ONE), dataclasses.replace(tiny, sensitivity=1e-200)])
    assert mixed.implies(PureDP(1.1)) is not True


def test_extra_entries_in_a_guarantee_are_seen():
    honest = issue(LaplaceEvent(1.0, 2.0, adjacency=REPLACE_ONE))
    record = json.loads(honest.to_json())
    assert not verify(forged(honest, guarantee={**record["guarantee"], "note": "in truth 0.001-DP"})).ok


@pytest.mark.parametrize("eps", [1e-7, 1e-10])
def test_unreachable_guarantees_are_refused(eps):
    try:
        made = Laplace.for_guarantee(PureDP(eps), 1.0, REPLACE_ONE)
    except PrivacyParameterError:
        return
    assert made.guarantee().implies(PureDP(eps)) is True


def test_the_application_may_set_its_own_decimal_precision(monkeypatch):
    from sfumato.mechanisms import norm_gamma

    monkeypatch.setattr(norm_gamma, "_GUARD", 1.0)  # everything through the exact path
    mechanism = NormGamma(1.0, 1.0, REPLACE_ONE, 3, random_state=8)
    usual = mechanism.sample(np.zeros(3), 20)
    with decimal.localcontext() as context:
        context.prec = 3
        assert np.array_equal(mechanism.sample(np.zeros(3), 20), usual)
        context.rounding = decimal.ROUND_UP
        assert RandomizedResponse.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE).event().eps <= 1.0


def test_renyi_curves_do_not_underflow():
    assert PureDP(1e-9).rdp(2.0) >= 0.9e-18
    assert PureDP(1e-9).implies(RenyiDP(2.0, 1e-30)) is False
    many = compose([Repeated(LaplaceEvent(1.0, 1e9, adjacency=REPLACE_ONE), 10**18), PureDP(1e-9)])
    assert many.rdp(2.0) >= 0.9


def test_a_failure_at_the_last_byte_is_a_failure(people, monkeypatch):
    folder, schema, ledger = people

    class Sink:
        def write_table(self, table):
            pass

        def close(self):
            raise OSError("no space left on device")

    monkeypatch.setattr("sfumato.run.files.new_sink", lambda *given: Sink())
    whole = GaussianRelease(schema, epsilon=1.0, delta=1e-6).prepare()
    with pytest.raises(DataError, match="could not be written"):
        release_file(folder / "people.parquet", whole, folder / "out", ledger, "people", grant=True)
    assert not (folder / "out").exists()
    assert ledger.balance("people").reserved is not None


def test_wrong_types_are_refused_before_the_charge(people):
    folder, schema, ledger = people
    ledger.grant("people", ApproxDP(9.0, 1e-5))
    parquet.write_table(pa.table({"age": ["old", "young"], "ill": ["no", "yes"]}), folder / "text.parquet")
    whole = GaussianRelease(schema, epsilon=1.0, delta=1e-6).prepare()
    with pytest.raises(DataError):
        release_file(folder / "text.parquet", whole, folder / "out", ledger, "people", grant=True)
    assert ledger.balance("people").reserved is None


def test_seeded_releases_are_not_written(people):
    folder, schema, ledger = people
    seeded = GaussianRelease(schema, epsilon=1.0, delta=1e-6, random_state=1).prepare()
    with pytest.raises(InputError, match="random_state"):
        release_file(folder / "people.parquet", seeded, folder / "out", ledger, "people", grant=True)


def test_seeds_of_columns_never_meet():
    """A column whose name spells a number must not share a seed with the block's column of that number."""
    mechanism = Laplace(1.0, 1.0, REPLACE_ONE, random_state=3)
    assert seeded(mechanism, 0, "block", 65).random_state != seeded(mechanism, 0, "column", "A").random_state


def test_meaningless_columns_are_refused():
    with pytest.raises(SchemaError, match="single category"):
        GaussianRelease(Schema({"a": Categories(["x"]), "b": Interval(0, 1)}), epsilon=1.0, delta=1e-6).prepare()
    with pytest.raises(SchemaError, match="too narrow"):
        GaussianRelease(Schema({"b": Interval(0, 5e-324)}), epsilon=1.0, delta=1e-6).prepare()
    clash = Schema({"s": Categories(["f", "m"]), "s=f": Interval(0, 1)})
    with pytest.raises(SchemaError, match="name"):
        GaussianRelease(clash, epsilon=1.0, delta=1e-6, categorical="one-hot").prepare()
