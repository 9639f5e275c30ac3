"""range(RV, private(Share)): bounds are bought, what follows is exact, private and said to be clipped."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Interval, Schema, Study, verify
from sfumato.errors import SchemaError, SfumatoError, StudyError
from sfumato.ledger.ledger import Ledger
from sfumato.plan.draw_law import LAWS
from sfumato.plan.settle import ARITHMETIC
from sfumato.questions.axis import Axis
from sfumato.questions.bought import Bought, power_axis
from sfumato.run import publish_bought
from sfumato.run.planning import make_plan
from sfumato.run.publish import columns_for, perform
from sfumato.run.study import run_plan

WIDEST = Interval.WIDEST
HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), private({share})).
column(t, y, y(P)). random(y(P)) :- p(P). range(y(P), 0, 1).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, {promise}).
"""
SHAPES = {
    "lognormal": lambda g, n: np.exp(g.normal(8, 1, n)),
    "normal": lambda g, n: g.normal(0, 50, n),
    "zeros": lambda g, n: np.where(g.random(n) < 0.9, 0.0, g.exponential(1000, n)),
    "tiny": lambda g, n: g.normal(0, 1e-4, n),
    "far": lambda g, n: np.concatenate([g.normal(-1e8, 1e7, n - 3), [np.inf, -1e300, 5e9]]),
}


def study(body: str, share: float = 0.2, promise: str = "dp(1)") -> str:
    return HEAD.format(share=share, promise=promise) + body


MEAN = "mean(m, x(P), p(P)). publish(a, m, o(pub)).\n"
SUM = "sum(m, x(P), (p(P), y(P) > 0.5)). publish(a, m, o(pub)).\n"


def table(shape: str, n: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table({"id": range(n), "x": SHAPES[shape](generator, n), "y": generator.random(n)})


def bounds(row: dict) -> tuple[float, float]:
    """As numbers of their own, which the sentence tells too."""
    low, high = map(float, row["part"].partition("clipped to ")[2].strip("[]").split(", "))
    assert (row["clipped_from"], row["clipped_to"]) == (low, high)
    return low, high


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("body", [MEAN, SUM], ids=["mean", "sum"])
@pytest.mark.by_day(4)
def test_without_noise_it_is_what_numpy_clips(shape, body):
    data = table(shape, 3000)
    plan = make_plan(study(body, promise="dp(1000000)"), sizes={"d": 3000})
    (row,) = run_plan(plan, {"t": data}, None, random_state=3).published[0].values.to_pylist()
    low, high = bounds(row)
    x, y = data["x"].to_numpy(), data["y"].to_numpy()
    assert low <= np.clip(np.median(x), -WIDEST, WIDEST) <= high
    clipped = np.clip(x if body == MEAN else x[y > 0.5], low, high)
    expected = clipped.mean() if body == MEAN else clipped.sum()
    scale = max(abs(low), abs(high)) * (1 if body == MEAN else len(clipped))
    assert row["value"] == pytest.approx(expected, abs=2e-4 * scale + 1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["mean", "sum"])
@pytest.mark.by_day(3)
def test_groups_are_what_numpy_clips_to_one_pair_of_bounds(shape, kind):
    data = table(shape, 3000)
    body = f"{kind}(m, x(P), p(P), by([y(P): [0.2, 0.7]])). publish(a, m, o(pub)).\n"
    plan = make_plan(study(body, promise="dp(1000000)"), sizes={"d": 3000})
    rows = run_plan(plan, {"t": data}, None, random_state=3).published[0].values.to_pylist()
    ((low, high),) = {bounds(row) for row in rows}  # bought once
    x, y = data["x"].to_numpy(), data["y"].to_numpy()
    for place, row in enumerate(rows):
        clipped = np.clip(x[np.searchsorted([0.2, 0.7], y, side="right") == place], low, high)
        scale = max(abs(low), abs(high)) * (1 if kind == "mean" else len(clipped))
        assert row["value"] == pytest.approx(getattr(clipped, kind)(), abs=5e-4 * scale + 1e-6)
    assert len(rows) == 3


GROUPS = Axis("g(P)", ("a", "b"))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", ["mean", "sum"])
@pytest.mark.parametrize("everybody", [True, False])
@pytest.mark.parametrize("groups", [(), (GROUPS,)], ids=["all", "groups"])
@pytest.mark.by_day(3)
def test_nobody_moves_what_is_drawn_further_whatever_the_bounds(kind, relation, everybody, groups):
    """By hand, over pairs of values and many bounds; 1 is reached, so less would be a breach."""
    question = Bought(
        values=("x(P)",), ranges=((-WIDEST, WIDEST),), axes=(power_axis("x(P)"), *groups), kind=kind,
        relation=relation, everybody=everybody,
    )  # fmt: skip
    several = 2 if groups else 1
    generator = np.random.default_rng(1)
    values = [0.0, 1e-9, -1e-7, 2.0**-20, -0.75, 1.0, 3.0, -3.0, 4.0, 1000.0, -WIDEST, WIDEST]
    most = 0.0
    for _ in range(6):
        noisy = np.zeros(question.powers)
        noisy[generator.integers(0, question.powers, 2)] = 9.0
        low, high = question.bounds_of(noisy, 5.0)
        asked = question.between(low, high)
        for law in LAWS.values():
            moved, pure = publish_bought._moved(question, low, high, law), law.pure

            def drawn(people, pure=pure, low=low, high=high, asked=asked, moved=moved):
                units, counts = np.zeros(question.cells, dtype=object), np.zeros(question.cells, dtype=int)
                for one, group in people:
                    place = int(np.searchsorted(question.axes[0].cuts, one, side="right")) * several + group
                    units[place] += round(one * 2**31)
                    counts[place] += 1
                groups = question.clipped(low, high, list(units), [int(one) for one in counts])
                return question.encoded(asked, groups, pure) / moved

            others = [] if everybody and relation == "replace-one" else [[]]
            lists = [[(one, group)] for one in (*values, low, high) for group in range(several)] + others
            points = [drawn(one) for one in lists]
            if relation == "add-remove":
                apart = [one - drawn([]) for one in points]
            else:
                apart = [a - b for a in points for b in points]
            sizes = [np.abs(one).sum() if pure else np.linalg.norm(one) for one in apart]
            most = max(most, *sizes)
    assert 0.99 <= most <= ARITHMETIC


def act_of(body: str, data: pa.Table, **more):
    plan = make_plan(study(body, **more), sizes={"d": data.num_rows})
    from sfumato.network.evaluate import evaluate

    values = evaluate(plan.network, {"t": data})
    (columns,) = columns_for(plan, values)
    return columns


def test_nobody_moves_the_counts_of_powers_further_than_without_groups():
    """Bounds are bought over everybody: groups make them no dearer, and an individual is in one power."""
    alone = Bought(values=("x(P)",), axes=(power_axis("x(P)"),), rows=3)
    grouped = dataclasses.replace(alone, axes=(*alone.axes, GROUPS))
    assert grouped.counted_moves == alone.counted_moves
    counts = np.zeros(grouped.cells)
    counts[[2 * 40, 2 * 40 + 1, 2 * 60]] = 1, 2, 5
    by_power = grouped.by_power(counts)
    assert (by_power[40], by_power[60], by_power.sum()) == (3, 5, 8)


@pytest.mark.parametrize("promise", ["dp(1)", "dp(1, 0.000001)"])
@pytest.mark.by_day(1)
def test_the_interval_covers_the_clipped_mean(promise):
    data = table("lognormal", 2000)
    columns, x, held, runs = act_of(MEAN, data, promise=promise), data["x"].to_numpy(), 0, 400
    for seed in range(runs):
        (row,) = perform(columns, random_state=10 + 2 * seed).values.to_pylist()
        held += row["low"] <= np.clip(x, *bounds(row)).mean() <= row["high"]
    assert 0.92 * runs <= held <= 0.98 * runs  # four standard deviations of a binomial


def test_the_intervals_of_groups_cover_their_clipped_means():
    data = table("lognormal", 4000)
    body = "mean(m, x(P), p(P), by([y(P): [0.3]])). publish(a, m, o(pub)).\n"
    columns, x, held, runs = act_of(body, data), data["x"].to_numpy(), 0, 200
    groups = [data["y"].to_numpy() < 0.3, data["y"].to_numpy() >= 0.3]
    for seed in range(runs):
        for own, row in zip(groups, perform(columns, random_state=10 + 2 * seed).values.to_pylist(), strict=True):
            held += row["low"] <= np.clip(x[own], *bounds(row)).mean() <= row["high"]
    assert 0.91 * 2 * runs <= held <= 0.985 * 2 * runs  # two numbers of one draw may lean on each other


def test_powers_that_nobody_has_do_not_pass(monkeypatch):
    """Of data in [512, 1024) wrong bounds are found in less than 1 of 100 runs; with a low threshold in most."""
    data = pa.table({"id": range(2000), "x": np.full(2000, 700.0), "y": np.zeros(2000)})
    columns = act_of(MEAN, data, share=0.5)

    def wrong() -> int:
        found = [perform(columns, random_state=2 * seed).values["part"][0].as_py() for seed in range(150)]
        return sum(one != "clipped to [512, 1024]" for one in found)

    assert wrong() <= 1
    monkeypatch.setattr(publish_bought, "_WRONG", 20.0)
    assert wrong() >= 100


def test_where_nothing_is_found_it_says_so():
    data = pa.table({"id": range(20), "x": np.arange(20.0), "y": np.zeros(20)})
    (row,) = perform(act_of(MEAN, data, promise="dp(0.1)"), random_state=1).values.to_pylist()
    assert row["part"] == "no bounds were found, clipped to [-2147483648, 2147483648]"


def test_plan_ledger_certificate_and_verifier_know_of_it(tmp_path):
    from sfumato.evidence.verify_plan import verify_folder

    path = tmp_path / "study.pl"
    path.write_text(study(MEAN + "count(c, (p(P), y(P) > 0.5)). publish(b, c, o(pub)).\n", promise="dp(2, 0.000001)"))
    plan = make_plan(path)
    assert "bought with 0.2 of the budget" in plan.publication("a").seen[0].note
    ledger = Ledger(tmp_path / "ledger.db")
    release = run_plan(plan, {"t": table("normal", 3000)}, ledger, out=tmp_path / "out", grant=True)
    assert all(check.ok for check in verify_folder(tmp_path / "out", path))
    certificate = release.certificate
    assert verify(certificate).ok
    assert any("clipped to [" in note for note in certificate.notes)
    assert "private_ranges" in certificate.proofs
    # A plan whose bounds would cost nothing is found.
    (act,) = plan.acts
    edited = dataclasses.replace(plan, acts=(dataclasses.replace(act, events=act.events[1:]),))
    with pytest.raises(SfumatoError):
        run_plan(edited, {"t": table("normal", 3000)}, Ledger(tmp_path / "other.db"), grant=True)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("variance(m, x(P), p(P)). publish(a, m, o(pub)).", "private-range"),
        ("quantile(m, x(P), p(P), [0.5]). publish(a, m, o(pub)).", "private-range"),
        ("mean(m, y(P), p(P), by([x(P)])). publish(a, m, o(pub)).", "private-range"),
        ("mean(m, x(P), p(P), by([x(P)])). publish(a, m, o(pub)).", "private-range"),
        ("publish(a, x(P), o(pub)) :- p(P).", "private-range"),
        ("publish(a, table([x(P), y(P)]), o(pub)).", "private-range"),
        ("random(z(P)) :- p(P). depends(z(P), [x(P)], 2 * x(P)) :- p(P). mean(m, z(P), p(P)). publish(a, m, o(pub)).",
         "private-range"),
    ],
)  # fmt: skip
def test_what_needs_public_bounds_is_refused_by_name(body, code):
    with pytest.raises(StudyError) as told:
        make_plan(study(body))
    assert code in [problem.code for problem in told.value.problems]
    assert "mean(Atom, x(P), Goal)" in str(told.value)


@pytest.mark.parametrize("share", ["0", "1", "2", "-0.5", "much"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(StudyError, match="share"):
        make_plan(study(MEAN, share=share))


def test_cut_points_and_comparisons_need_no_bounds():
    text = study("histogram(h, [x(P): [0, 10, 100]], (p(P), x(P) < 1000)). publish(a, h, o(pub)).", promise="dp(1000)")
    data = table("normal", 500)
    shown = run_plan(make_plan(text), {"t": data}, None, random_state=1).published[0].values["value"].to_numpy()
    assert np.round(shown) == pytest.approx(np.histogram(data["x"].to_numpy(), [-1e9, 0, 10, 100, 1000])[0])


def test_in_python():
    frame = pd.DataFrame({"who": range(5000), "balance": np.random.default_rng(0).lognormal(8, 1, 5000)})
    made = Study("Bank").table("bank", frame, person="who", columns={"balance": Interval.private(0.1)})
    made = made.promise("public", epsilon=5, delta=1e-6).mean("balance", to="public")
    assert "private(0.1)" in made.to_text()
    shown = made.plan(size=5000).run(ledger=None)["mean balance"].to_pandas()
    assert shown["clipped_from"].dtype == shown["clipped_to"].dtype == np.float64
    assert shown["clipped_from"][0] <= shown["value"][0] <= shown["clipped_to"][0]
    assert 0 < shown["value"][0] < 2 * frame["balance"].mean()
    with pytest.raises(SchemaError, match="only studies can buy"):
        Schema({"balance": Interval.private(0.1)})
