"""Whole-table releases: the promise holds on the worst records, and the files are all or nothing."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy.linalg import eigh_tridiagonal

from called import called
from sfumato.core import (
    ApproxDP,
    Categories,
    GaussianDP,
    Interval,
    NoGuarantee,
    PureDP,
    Schema,
    gaussian_mu,
)
from sfumato.core.noise import BoxNoise
from sfumato.errors import (
    DataError,
    InputError,
    OverspendError,
    PrivacyParameterError,
    SchemaError,
    UndeclaredCellWarning,
)
from sfumato.evidence import audit, verify
from sfumato.ledger import Ledger
from sfumato.release import BoxRelease, GaussianRelease, LaplaceRelease, NoiseAwareMoments, WeakGuaranteeWarning
from sfumato.release.gaussian import _largest_square
from sfumato.release.noise import TableNoise
from sfumato.run.tables import release_file

NUMBERS = Schema({"age": Interval(0, 100), "dose": Interval(-5, 5), "cost": Interval(0, 1e4)})
MIXED = Schema(
    {
        "age": Interval(0, 100, null=0),
        "sex": Categories(["f", "m"], unknown="f", null="f"),
        "job": Categories(["a", "b", "c", "d"], unknown="a", null="a"),
        "ill": Categories(["no", "yes"], unknown="no", null="no"),
    }
)


def people(count: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(4)
    return {
        "age": generator.uniform(-10, 130, count),
        "sex": generator.choice(["f", "m", "x"], count),
        "job": generator.choice(["a", "b", "c", "d"], count),
        "ill": generator.choice(["no", "yes"], count),
    }


class Released:
    """A released record as something an audit can attack: the worst case is a whole corner of the box."""

    def __init__(self, release, claim=None):
        self.prepared = release.prepare()
        self.claim = claim or self.prepared.guarantee

    def sample(self, value, trials):
        table = pa.table({name: np.full(trials, number) for name, number in zip(NUMBERS.columns, value, strict=True)})
        out = self.prepared.apply(table)
        return np.column_stack([out[name].to_numpy() for name in NUMBERS.columns])

    def log_likelihood(self, outputs, value):
        inverse = np.linalg.inv(self.prepared.noise.covariance)
        residual = outputs - np.asarray(value)
        return -0.5 * np.einsum("ij,jk,ik->i", residual, inverse, residual)

    def guarantee(self):
        return self.claim


DENSE = np.array([[1.0, 0.4, -0.2], [0.4, 2.0, 0.1], [-0.2, 0.1, 0.5]])


@pytest.mark.parametrize("weights", [None, {"age": 9.0}, DENSE], ids=["plain", "diagonal", "dense"])
def test_no_attacker_beats_a_released_record(weights):
    release = GaussianRelease(NUMBERS, epsilon=2.0, delta=1e-3, weights=weights)
    signs = max(itertools.product((0, 1), repeat=3), key=lambda s: _spread(release, s))
    corner = [(d.high if s else d.low) for d, s in zip(NUMBERS.columns.values(), signs, strict=True)]
    opposite = [(d.low if s else d.high) for d, s in zip(NUMBERS.columns.values(), signs, strict=True)]
    result = audit(Released(release), (corner, opposite), trials=60_000, confidence=0.9999)
    assert not result.refuted
    assert result.tightness > 0.8
    wide = GaussianRelease(NUMBERS, epsilon=4.0, delta=1e-3, weights=weights)
    assert audit(Released(wide, release.prepare().guarantee), (corner, opposite), trials=60_000).refuted


def _spread(release, signs):
    """Squared distance of a corner from its opposite, in units of the noise."""
    inverse = np.linalg.inv(release.prepare().noise.covariance)
    step = np.array([d.width * (1 if s else -1) for d, s in zip(NUMBERS.columns.values(), signs, strict=True)])
    return step @ inverse @ step


@pytest.mark.paper("000", "Thm 2.5", "release/gaussian.py")
def test_calibration_is_exact_on_the_box():
    """The iff-condition: the whitened corner-to-corner distance equals μ*, to the rounding of the grid."""
    for weights in (None, {"dose": 0.1}, DENSE):
        prepared = GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, weights=weights).prepare()
        assert prepared.guarantee.implies(ApproxDP(1.0, 1e-6)) is True
        widths = np.diag([d.width for d in NUMBERS.columns.values()])
        whitened = widths @ np.linalg.inv(prepared.noise.covariance) @ widths
        assert np.sqrt(_largest_square(whitened)) == pytest.approx(gaussian_mu(1.0, 1e-6), rel=2e-3)


def test_the_vertex_bound_is_safe():
    generator = np.random.default_rng(1)
    for size in (1, 2, 5):
        matrix = generator.normal(size=(size, size))
        matrix = matrix @ matrix.T
        corners = np.array(list(itertools.product((-1, 1), repeat=size)))
        assert _largest_square(matrix) == pytest.approx(np.einsum("vi,ij,vj->v", corners, matrix, corners).max())
    big = generator.normal(size=(18, 18))
    big = big @ big.T
    random = generator.choice([-1, 1], size=(4000, 18))
    assert _largest_square(big) >= np.einsum("vi,ij,vj->v", random, big, random).max()


@pytest.mark.parametrize("categorical", ["response", "one-hot", "auto"])
def test_mixed_tables_keep_the_budget_and_use_it(categorical):
    prepared = GaussianRelease(MIXED, epsilon=1.5, delta=1e-5, categorical=categorical).prepare()
    assert prepared.guarantee.implies(ApproxDP(1.5, 1e-5)) is True
    assert prepared.guarantee.epsilon(1e-5) > 1.45
    assert verify(prepared.certificate()).ok


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.by_day(1)
def test_same_columns_and_container(make):
    table = make(people(50))
    out = GaussianRelease(MIXED, epsilon=2.0, delta=1e-6, label="ill", label_epsilon=1.0).release(table)
    assert type(out.table) is type(table)
    names = getattr(out.table, "column_names", getattr(out.table, "columns", out.table))
    assert list(names) == list(MIXED.columns)
    assert set(np.asarray(out.table["job"]).tolist()) <= set("abcd")
    assert verify(out.certificate).ok
    assert TableNoise.from_json(out.noise.to_json()) == out.noise


def test_raw_labels_say_so_and_randomised_ones_pay():
    raw = GaussianRelease(MIXED, epsilon=2.0, delta=1e-6, label="ill").release(people(30))
    assert "features" in str(raw.guarantee)
    assert any("published as it is" in note for note in raw.notes)
    assert list(raw.table["ill"]) == list(people(30)["ill"])
    paid = GaussianRelease(MIXED, epsilon=2.0, delta=1e-6, label="ill", label_epsilon=1.0).prepare()
    assert paid.guarantee.adjacency is not None
    assert paid.guarantee.adjacency.unit == "record"
    assert paid.guarantee.epsilon(1e-6) > 2.5
    numeric = GaussianRelease(NUMBERS, epsilon=2.0, delta=1e-6, label="cost", label_epsilon=0.5).prepare()
    assert numeric.noise.laws[-1].variance() == pytest.approx(2 * (1e4 / 0.5) ** 2, rel=1e-3)


@pytest.mark.paper("000", "Prop 2.2", "release/gaussian.py")
def test_adversary_error_and_trade_off():
    per_column = GaussianRelease(NUMBERS, adversary_error={"age": 400.0, "dose": 1.0, "cost": 2.5e5}).prepare()
    assert per_column.attacker["age"].unbiased == pytest.approx(400.0)
    assert isinstance(per_column.guarantee, GaussianDP)
    total = GaussianRelease(NUMBERS, adversary_error=12.0).prepare()
    widths = np.array([d.width for d in NUMBERS.columns.values()])
    assert (np.diag(total.noise.covariance) / widths**2).sum() == pytest.approx(12.0)
    by_lambda = GaussianRelease(NUMBERS, trade_off=0.25, weights={"age": 4.0}).prepare()
    assert np.diag(by_lambda.noise.covariance) / widths**2 == pytest.approx([1.0, 2.0, 2.0])
    literal = GaussianRelease(NUMBERS, trade_off=0.25, weights=DENSE).prepare()
    root = np.linalg.inv(np.linalg.cholesky(DENSE))  # Π^(-1/2) by another road: eigenvalues agree
    scaled = np.diag(1 / widths) @ literal.noise.covariance @ np.diag(1 / widths)
    assert np.linalg.eigvalsh(scaled @ scaled) == pytest.approx(np.linalg.eigvalsh(root.T @ root) / 0.25)


@pytest.mark.paper("000", "Thm 2.4", "release/gaussian.py")
def test_noise_is_what_the_law_says():
    table = {"age": np.full(40_000, 30.0), "dose": np.zeros(40_000), "cost": np.full(40_000, 5e3)}
    for release in (
        GaussianRelease(NUMBERS, epsilon=3.0, delta=1e-6, weights=DENSE),
        LaplaceRelease(NUMBERS, epsilon=3.0),
        LaplaceRelease(NUMBERS, epsilon=3.0, delta=1e-6, equalise="fisher"),
    ):
        out = release.release(table)
        noise = np.column_stack([out.table[name] - table[name] for name in NUMBERS.columns])
        spread = np.sqrt(np.diag(out.noise.covariance))
        measured = np.cov(noise.T) / np.outer(spread, spread)
        assert measured == pytest.approx(out.noise.covariance / np.outer(spread, spread), abs=0.05)


@pytest.mark.slow
def test_laplace_equalisations():
    pure = LaplaceRelease(NUMBERS, epsilon=1.0).prepare()
    assert pure.guarantee.implies(PureDP(1.0)) is True
    many = Schema({f"c{i}": Interval(0, 1) for i in range(40)})
    approximate = LaplaceRelease(many, epsilon=1.0, delta=1e-4).prepare()
    assert approximate.guarantee.implies(ApproxDP(1.0, 1e-4)) is True
    assert approximate.noise.laws[0].variance() < LaplaceRelease(many, epsilon=1.0).prepare().noise.laws[0].variance()
    gaussian = GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6).prepare()
    fisher = LaplaceRelease(NUMBERS, epsilon=1.0, delta=1e-6, equalise="fisher").prepare()
    for one, other in zip(gaussian.noise.laws, fisher.noise.laws, strict=True):
        assert one.fisher_information() == pytest.approx(other.fisher_information())
        assert other.variance() == pytest.approx(2 * one.variance())


def test_box_stays_in_its_box_and_warns():
    table = {"age": np.linspace(0, 100, 500), "dose": np.zeros(500), "cost": np.full(500, 5e3)}
    with pytest.warns(WeakGuaranteeWarning, match="Gaussian noise of the same variance"):
        out = BoxRelease(NUMBERS, half_width=30.0, clip=True).release(table)
    assert out.table["age"].min() >= 0
    assert out.table["age"].max() <= 100
    assert 0 < out.guarantee.delta(1.0) < 0.01
    assert out.guarantee.epsilon(1e-9) == np.inf
    assert verify(out.certificate).ok
    with warnings.catch_warnings(action="ignore"):
        stiff = BoxRelease(NUMBERS, half_width=30.0, trade_off=0.01).prepare()
        loose = BoxRelease(NUMBERS, half_width=30.0).prepare()
    assert stiff.noise.laws[0].variance() < loose.noise.laws[0].variance()


@pytest.mark.paper("000", "Thm 2.6", "release/box.py")
@pytest.mark.slow
def test_boxes_of_columns_may_differ_and_lean():
    """Noise stays in each column's own box; its mean is public; the promise is that of the box moved to the middle."""
    table = {"age": np.full(4000, 40.0), "dose": np.zeros(4000), "cost": np.full(4000, 5e3)}
    with warnings.catch_warnings(action="ignore"):
        lean = BoxRelease(NUMBERS, 30.0, boxes={"age": (-5.0, 35.0), "dose": 25.0}, trade_off=1e-4)
        even = BoxRelease(NUMBERS, 30.0, boxes={"age": 20.0, "dose": 25.0}, trade_off=1e-4)
        out, promised = lean.release(table), even.release(table).guarantee
    widths = {name: NUMBERS.columns[name].width for name in table}
    noise = {name: (np.asarray(out.table[name]) - table[name]) / widths[name] for name in table}
    assert -5 <= noise["age"].min() < 10
    assert 20 < noise["age"].max() <= 35
    assert np.abs(noise["dose"]).max() <= 25
    assert np.abs(noise["cost"]).max() <= 30
    assert out.noise.shifts == {"age": 15.0 * widths["age"]}
    assert abs(noise["age"].mean() - 15.0) < 5 * noise["age"].std() / math.sqrt(4000)
    assert out.guarantee.delta(1.0) == promised.delta(1.0)
    assert TableNoise.from_json(out.noise.to_json()) == out.noise
    with pytest.raises(InputError, match=r"Subtract noise\.shifts"):
        NoiseAwareMoments(out.noise).fit(out.table)


@pytest.mark.parametrize("boxes", [{"age": (1.0, 1.0)}, {"age": -2.0}, {"nobody": 3.0}, {"age": (0.0, np.inf)}])
def test_boxes_that_are_none_are_refused(boxes):
    with pytest.raises(PrivacyParameterError, match="Nothing was drawn"):
        BoxRelease(NUMBERS, 30.0, boxes=boxes).prepare()


def test_the_well_is_best_in_the_middle():
    """By another discretisation: information + λ·variance on [-1, 4] over wells c: 2.82 with the paper's, 2.33 here."""
    grid = np.linspace(-1, 4, 1202)[1:-1]
    step, costs = grid[1] - grid[0], {}
    for well in (0.0, 1.0, 1.5, 2.0):
        diagonal = 2 / step**2 + (grid - well) ** 2 / 4
        beside = np.full(len(grid) - 1, -1 / step**2)
        state = eigh_tridiagonal(diagonal, beside, select="i", select_range=(0, 0))[1][:, 0] / math.sqrt(step)
        slope = np.diff(np.concatenate([[0], state, [0]])) / step
        mean = step * (state**2 @ grid)
        costs[well] = 4 * step * float(slope @ slope) + step * float(state**2 @ (grid - mean) ** 2)
    assert min(costs, key=lambda well: costs[well]) == 1.5
    assert abs(costs[0.0] - 2.82) < 0.01
    assert abs(costs[1.5] - 2.33) < 0.01
    assert abs(BoxNoise(2.5, 1.0).fisher_information() + BoxNoise(2.5, 1.0).variance() - costs[1.5]) < 1e-3


def test_a_seed_repeats_across_batches_without_repeating_noise():
    release = GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, random_state=3)
    table = pa.table({"age": np.zeros(10), "dose": np.zeros(10), "cost": np.zeros(10)})
    prepared = release.prepare()
    assert prepared.apply(table, 1) == prepared.apply(table, 1)
    assert prepared.apply(table, 1) != prepared.apply(table, 2)
    columns = prepared.apply(table, 1)
    assert not np.allclose(columns["age"].to_numpy() / 100, (columns["dose"].to_numpy() + 5) / 10)
    assert not prepared.certificate().publishable


BAD = {
    "nothing said": lambda: GaussianRelease(NUMBERS),
    "two said": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, trade_off=1.0),
    "no delta": lambda: GaussianRelease(NUMBERS, epsilon=1.0),
    "zero delta": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=0.0),
    "epsilon": lambda: GaussianRelease(NUMBERS, epsilon=-1.0, delta=1e-6),
    "unknown label": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, label="agee"),
    "label epsilon without label": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, label_epsilon=1.0),
    "weights not positive definite": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, weights=np.ones((3, 3))),
    "weights of the wrong shape": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, weights=np.eye(2)),
    "weights not symmetric": lambda: GaussianRelease(
        NUMBERS, epsilon=1.0, delta=1e-6, weights=np.triu(np.ones((3, 3)))
    ),
    "weight of a stranger": lambda: GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6, weights={"agee": 1.0}),
    "categories without budget": lambda: GaussianRelease(MIXED, trade_off=1.0),
    "box without category budget": lambda: BoxRelease(MIXED),
    "laplace epsilon": lambda: LaplaceRelease(NUMBERS, epsilon=0.0),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_bad_parameters(make):
    with pytest.raises(InputError):
        make().prepare()


def test_bad_tables():
    release = GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6)
    good = {"age": [1.0], "dose": [0.0], "cost": [3.0]}
    with pytest.raises(SchemaError, match="weight"):
        release.release({**good, "weight": [1.0]})
    with pytest.raises(SchemaError, match="cost"):
        release.release({"age": [1.0], "dose": [0.0]})
    with pytest.raises(DataError, match="type string"):
        release.release({**good, "age": np.array(["1.0"])})
    with pytest.warns(UndeclaredCellWarning, match="null = "):
        release.release({**good, "age": [None]})
    with pytest.raises(DataError, match="no rows"):
        release.release({name: np.array([]) for name in NUMBERS.columns})
    with pytest.raises(SchemaError):
        Schema({"age": Interval(3, 3)})


# Files.


@pytest.fixture
def folder(tmp_path):
    table = pa.table({"age": np.arange(5000.0) % 100, "dose": np.zeros(5000), "cost": np.full(5000, 7.0)})
    parquet.write_table(table, tmp_path / "people.parquet")
    csv.write_csv(table, tmp_path / "people.csv")
    NUMBERS.write(tmp_path / "people.toml")
    return tmp_path


PREPARED = GaussianRelease(NUMBERS, epsilon=1.0, delta=1e-6).prepare()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_released_charged_and_certified(folder, suffix):
    ledger = Ledger(folder / "ledger.db")
    ledger.grant("people", ApproxDP(1.2, 1e-6))
    release_file(folder / f"people.{suffix}", PREPARED, folder / "out", ledger, "people")
    read = parquet.read_table if suffix == "parquet" else csv.read_csv
    assert read(folder / "out" / f"table.{suffix}").num_rows == 5000
    assert verify(folder / "out" / "certificate.json").ok
    assert TableNoise.from_json((folder / "out" / "noise.json").read_text()) == PREPARED.noise
    spent = ledger.balance("people").spent
    assert PREPARED.guarantee.delta(spent.eps) <= spent.delta_
    with pytest.raises(OverspendError, match="nothing was spent"):
        release_file(folder / f"people.{suffix}", PREPARED, folder / "again", ledger, "people")
    assert not (folder / "again").exists()


def test_failures_leave_nothing_and_charge_only_for_noise(folder, monkeypatch):
    ledger = Ledger(folder / "ledger.db")
    ledger.grant("people", ApproxDP(9.0, 1e-5))
    source = folder / "people.parquet"
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(InputError, match="not an empty folder"):
        release_file(source, PREPARED, folder, ledger, "people")
    with pytest.raises(DataError):
        release_file(folder / "people.toml", PREPARED, folder / "out", ledger, "people")
    parquet.write_table(
        pa.table({"age": ["old", None], "dose": [0.0, 0.0], "cost": [1.0, 1.0]}), folder / "text.parquet"
    )
    with pytest.raises(DataError, match="type string"):
        release_file(folder / "text.parquet", PREPARED, folder / "out", ledger, "people")
    assert ledger.balance("people").spent is None
    assert ledger.balance("people").reserved is None

    def touch(rows):
        os.utime(source, (1, 1))

    with pytest.raises(DataError, match="changed while"):
        release_file(source, PREPARED, folder / "out", ledger, "people", progress=touch)
    reserved = ledger.balance("people").reserved
    assert PREPARED.guarantee.delta(reserved.eps) <= reserved.delta_  # noise was drawn
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "text.parquet"])


def interrupted(folder, place):
    """The exit code of a release that was interrupted in the middle, as far as this process was quick enough."""
    asked = "release big.parquet --schema people.toml --epsilon 1 --delta 1e-6 --grant"
    run = subprocess.Popen(
        [sys.executable, "-m", "sfumato", *asked.split(), "--out", f"{place}/out", "--ledger", f"{place}/ledger.db"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"SFUMATO_STATE": str(folder / place / "state")},
        # Whoever starts tests in the background may have made all of their children deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    for _ in range(2000):
        time.sleep(0.05)
        if run.poll() is not None or any(path.stat().st_size for path in (folder / place).glob(".out.*/table.parquet")):
            break
    run.send_signal(signal.SIGINT)
    return run.wait(timeout=60)


@pytest.mark.slow
def test_an_interrupted_run_keeps_the_charge_and_leaves_nothing(folder):
    """Stop the command in the middle: no output folder, the reservation stays counted."""
    big = pa.table({name: np.random.default_rng(0).random(3_000_000) for name in NUMBERS.columns})
    parquet.write_table(big, folder / "big.parquet")
    for place in ("first", "second", "third", "fourth"):  # on a busy machine the run may be over before it is seen
        (folder / place).mkdir()
        if interrupted(folder, place) != 0:
            break
    else:
        pytest.fail("every run ended before it could be interrupted")
    assert not (folder / place / "out").exists()
    assert not [path for path in (folder / place).iterdir() if path.name.startswith(".out.")]
    assert Ledger(folder / place / "ledger.db").balance("big").reserved is not None


def test_the_command(folder):
    arguments = ["release", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--delta", "1e-6", "--grant"]
    done = called(*arguments, "--out", "published", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "replacing one record" in done.stdout
    assert json.loads((folder / "published" / "certificate.json").read_text())["publishable"] is True
    assert "noise.json" in (folder / "published" / "README.txt").read_text()
    again = called(*arguments, "--out", "published-again", cwd=folder)
    assert again.returncode == 1
    assert "nothing was spent" in again.stderr.replace("\n", " ")


def test_nothing_promises_more_than_none():
    assert NoGuarantee("raw").implies(PREPARED.guarantee) is False
    with pytest.raises(PrivacyParameterError):
        GaussianRelease(NUMBERS, epsilon=float("nan"), delta=1e-6).prepare()
