"""Laws over random studies: what check passes is planned and run, what is run verifies, what is published is true.

The studies and their truth come from tests/laws/truth.py, which shares no code with the product.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from laws.truth import Case, Distributions, Number, make_case
from sfumato.cli.app import app
from sfumato.errors import InputError
from sfumato.evidence import verify
from sfumato.lang.problem import Problem
from sfumato.network import cells
from sfumato.network.network import Network
from sfumato.plan.plan import Plan
from sfumato.plan.request import requests_of
from sfumato.run.checking import examine_study
from sfumato.run.planning import make_plan
from sfumato.run.study import Release, run_plan
from sfumato.run.view import Draws, View

#: At ε = 10⁶ noise is below this part of a number's scale.
_TOLERANCE = 1e-3
#: What may be random in a study whose numbers are compared.
_DISTRIBUTIONS: Distributions = "all"


@dataclass
class Outcome:
    """What became of one study."""

    case: Case
    errors: list[Problem] = field(default_factory=list)
    plan: Plan | None = None
    release: Release | None = None


def arrow_tables(case: Case) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in case.tables.items()}


def carried_out(case: Case) -> Outcome:
    """Check, plan, run. Whatever is raised after a check without errors is a broken law.

    A check makes the plan itself: it is the one that is run, and in every tenth study another is made to be the same.
    """
    checked: list[Plan] = []

    def kept(*given, **named):
        checked.append(make_plan(*given, **named))
        return checked[-1]

    with mock.patch("sfumato.run.planning.make_plan", kept):
        spec, problems = examine_study(case.text)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors or spec is None:
        return Outcome(case, errors)
    (plan,) = checked
    if case.seed % 10 == 0:
        assert make_plan(spec).to_dict() == plan.to_dict()
    return Outcome(case, [], plan, run_plan(plan, arrow_tables(case), None))


def distance(value: float, number: Number, drawn: bool) -> float:
    """How far a published value is from what it may be."""
    low, high = number.ends if drawn and number.ends is not None else (number.value, number.value)
    return max(low - value, value - high, 0.0)


def reach(error: float, scale: float) -> float:
    """How far off a number may be: a thousandth of its scale, or eight deviations of the little noise there is, which
    one number in a hundred thousand exceeds; but never half a percent, whatever is stated."""
    return max(_TOLERANCE * scale, min(8 * error, 5 * _TOLERANCE * scale))


def false_numbers(case: Case, plan: Plan, release: Release) -> list[str]:
    """Every published number that is not the truth."""
    found, acts = [], {(act.name, observer) for act in plan.acts for observer in act.observers}
    for key, numbers in case.expected.items():
        rows = release[key].to_pylist()
        if [row["node"] for row in rows] != [number.node for number in numbers]:
            found.append(f"{case.seed} {key}: {len(rows)} numbers where {len(numbers)} are expected")
            continue
        for row, number in zip(rows, numbers, strict=True):
            named = number.part in ("", row["part"]) or number.part.startswith("#")
            off = distance(row["value"], number, key in acts)
            if number.known and not (named and off <= reach(row["standard_error"], number.scale)):
                found.append(f"{case.seed} {key}: {row['part']} {row['value']!r} for {number}")
    for key, (node, values, span) in case.each.items():
        table = release[key].to_pandas()
        shown = table.set_index(next(name for name in table.columns if name != node))[node]
        shown.index = shown.index.astype(values.index.dtype)
        if not (shown.sort_index() - values.sort_index()).abs().max() <= _TOLERANCE * span:
            found.append(f"{case.seed} {key}: one of {len(values)} individuals' values")
    return found


def unverified(outcome: Outcome) -> list[str]:
    """Every certificate of a release that the verifier does not accept."""
    assert outcome.plan is not None
    assert outcome.release is not None
    record = outcome.plan.to_dict()
    results = {name: verify(one, plan=record) for name, one in outcome.release.certificates.items()}
    return [f"{outcome.case.seed} {name}: {one.failures[0]}" for name, one in results.items() if not one.ok]


# ── check ⇒ plan ⇒ run ⇒ verify ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def thirty() -> list[Outcome]:
    return [carried_out(make_case(seed, most_people=600, models=seed % 5 == 0)) for seed in range(30)]


def test_what_check_passes_is_planned_and_run(thirty):
    assert sum(outcome.release is not None for outcome in thirty) >= 28  # the generator makes studies, not refusals


def test_every_honest_release_verifies(thirty):
    assert [finding for outcome in thirty if outcome.release is not None for finding in unverified(outcome)] == []


@pytest.mark.parametrize("seed", [3, 11])
@pytest.mark.by_day(1)
def test_the_command_line_agrees(tmp_path, seed):
    """check, plan, run and verify exit with 0, from files to files."""
    case = make_case(seed, most_people=200)
    study = _on_disk(case, tmp_path)
    out, ledger = tmp_path / "out", tmp_path / "ledger.db"
    for arguments in (
        ["check", study],
        ["plan", study],
        ["run", study, "--data", tmp_path, "--out", out, "--ledger", ledger, "--grant"],
        ["verify", out, "--study", study],
    ):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, (arguments, result.output, result.exception)


def _on_disk(case: Case, folder: Path) -> Path:
    for name, frame in case.tables.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    (folder / "study.pl").write_text(case.text, encoding="utf-8")
    return folder / "study.pl"


# ── the truth ────────────────────────────────────────────────────────────────────────────────────────────────────────


def planned(seeds: range, most_people: int, generous: bool) -> Iterator[tuple[Case, Plan]]:
    """The studies of some seeds with their plans; no more than one in twenty may be refused by the planner."""
    refused = []
    for seed in seeds:
        case = make_case(seed, generous=generous, most_people=most_people, distributions=_DISTRIBUTIONS)
        try:
            plan = make_plan(case.text)
        except InputError as refusal:
            refused.append(f"{seed}: {refusal}")
            continue
        yield case, plan
    assert len(refused) <= len(seeds) / 20, refused


def published_falsehoods(seeds: range, most_people: int) -> Iterator[str]:
    """One study after the other: who looks for one falsehood need not run them all."""
    for case, plan in planned(seeds, most_people, True):
        yield from false_numbers(case, plan, run_plan(plan, arrow_tables(case), None))


def test_without_noise_the_truth_is_published():
    assert list(published_falsehoods(range(100, 130), 600)) == []


def test_the_generator_covers_what_studies_ask():
    """Every question, both adjacencies, every kind of promise, several observers, groups of nobody, absent cells."""
    cases = [make_case(seed, generous=seed >= 100, most_people=60) for seed in [*range(50), *range(100, 150)]]
    text = "\n".join(case.text for case in cases)
    for word in (
        "count(",
        "sum(",
        "mean(",
        "moment2(",
        "histogram(",
        "add_remove",
        "replace_one",
        "collude(",
        "weight(",
    ):
        assert text.count(word) >= 5, word
    for word in (
        "gdp(",
        "zcdp(",
        ", 0.000001)",
        "dp(1000000.0)",
        "missing(",
        "treated(P, d",
        "treated(P, _)",
        "), drug(D",
        "lookup(",
        "\\+ ",
        " ; ",
    ):
        assert text.count(word) >= 3, word
    kinds = {number.kind for case in cases for numbers in case.expected.values() for number in numbers}
    spreads = {"variance", "covariance", "correlation"}
    assert kinds == {"count", "sum", "mean", "moment2", "histogram", "quantile", "shared", *spreads}
    assert any(not number.known for case in cases for numbers in case.expected.values() for number in numbers)
    assert max(len({observer for _, observer in case.expected}) for case in cases) == 3
    assert sum(bool(case.each) for case in cases) >= 5


# ── planted relatives ────────────────────────────────────────────────────────────────────────────────────────────────


def _lost_person(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """A reader that loses the last row."""
    return {name: table.slice(0, max(table.num_rows - 1, 0)) for name, table in tables.items()}


def _first_level(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """A reader that gives absent numbers the least value of their column."""
    filled = {name: table.to_pandas() for name, table in tables.items()}
    return {name: pa.Table.from_pandas(frame.fillna(frame.min(numeric_only=True))) for name, frame in filled.items()}


def _sorted_cells(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """A reader that joins one column in another order."""
    found = {}
    for name, table in tables.items():
        frame = table.to_pandas()
        first = frame.columns[1]
        moved = frame[first].sort_values().to_numpy()
        found[name] = pa.Table.from_pandas(frame.assign(**{first: moved}), preserve_index=False)
    return found


@pytest.mark.parametrize("defect", [_lost_person, _first_level, _sorted_cells])
def test_a_planted_defect_of_the_runner_is_found(monkeypatch, defect):
    honest = Network.evaluate
    monkeypatch.setattr(
        Network, "evaluate", lambda self, tables, *more, **named: honest(self, defect(tables), *more, **named)
    )
    assert any(published_falsehoods(range(100, 106), 60))


def test_a_reader_that_believes_rows_without_a_thing_is_found(monkeypatch):
    monkeypatch.setattr(cells, "among", lambda *_: "TRUE")
    assert any(published_falsehoods(range(100, 130), 60))


def test_a_planted_wrong_cost_is_not_verified(thirty):
    """A certificate whose guarantee is a tenth smaller than what was drawn does not verify."""
    outcome = next(one for one in thirty if one.release is not None and unverified(one) == [])
    assert outcome.release is not None
    stated = [
        (name, certificate, word)
        for name, certificate in outcome.release.certificates.items()
        for word in ("eps", "mu", "rho")
        if hasattr(certificate.guarantee, word)
    ]
    name, certificate, word = stated[0]
    smaller = copy.copy(certificate.guarantee)
    object.__setattr__(smaller, word, 0.9 * getattr(smaller, word))
    false = replace(outcome.release, certificates={name: replace(certificate, guarantee=smaller)})
    assert unverified(replace(outcome, release=false)) != []


# ── nightly ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 10_500, 50))
def test_five_hundred_studies_are_planned_run_and_verified(start):
    sizes = [100_000 if seed % 25 == 0 else 3000 for seed in range(start, start + 50)]
    outcomes = [
        carried_out(make_case(start + place, most_people=size, models=place % 4 == 0))
        for place, size in enumerate(sizes)
    ]
    assert sum(outcome.release is not None for outcome in outcomes) >= 47
    assert [finding for outcome in outcomes if outcome.release is not None for finding in unverified(outcome)] == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(20_000, 20_500, 50))
def test_five_hundred_studies_publish_the_truth(start):
    assert list(published_falsehoods(range(start, start + 49), 3000)) == []
    assert list(published_falsehoods(range(start + 49, start + 50), 100_000)) == []


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def intervals(seeds: range, most_people: int, repeats: int) -> pd.DataFrame:
    """Every published number of many studies at ordinary budgets, each study drawn several times.

    `act` says which numbers may have noise in common: those of one study that were drawn together.
    """
    found = []
    for case, plan in planned(seeds, most_people, False):
        values = plan.network.evaluate(arrow_tables(case))  # type: ignore[union-attr]
        requests = {(one.name, one.observer): one for one in requests_of(plan.network)}  # type: ignore[arg-type]
        acts = {(one.name, who) for one in plan.acts for who in one.observers}  # tests/laws/test_quantile_coverage.py
        for repeat in range(repeats):
            drawn = Draws(1000 * (case.seed * repeats + repeat))
            for one in plan.publications:
                key = one.name, one.observer
                view = View(plan, plan.network, values, drawn, one.observer)  # type: ignore[arg-type]
                if key not in case.expected or key in acts:
                    continue
                rows = view.published(one, requests[key]).values.to_pylist()
                for row, number in zip(rows, case.expected[key], strict=True):
                    if number.known and row["standard_error"] > 0:
                        act = case.seed * repeats + repeat
                        found.append((act, number.kind, row["low"], row["high"], row["standard_error"], number.value))
    return pd.DataFrame(found, columns=["act", "kind", "low", "high", "error", "truth"])


def rates_of(table: pd.DataFrame) -> pd.DataFrame:
    """Of every kind, and of all: which share of intervals holds the truth, and the standard error of that share.

    Numbers drawn together are not independent: the entries of one matrix, one draw shown to three observers. The error
    is that of a mean over clusters, Σ(Σ_cluster (inside - share))²/n², which makes no assumption about them; but not
    less than that of independent numbers at 95 %, since few numbers that are all inside would seem to be certain.
    """
    slack = 1e-9 * table["error"]  # an end that is the truth itself, but for the last digit
    inside = ((table["low"] - slack <= table["truth"]) & (table["truth"] <= table["high"] + slack)).astype(float)
    found = {}
    for kind in ("all", *sorted(table["kind"].unique())):
        own = table["kind"].eq(kind) | (kind == "all")
        share = inside[own].mean()
        size = int(own.sum())
        clusters = (inside[own] - share).groupby(table["act"][own]).sum()
        error = max((clusters**2).sum() ** 0.5 / size, (0.95 * 0.05 / size) ** 0.5)
        found[kind] = {"share": share, "size": size, "error": error}
    return pd.DataFrame(found).T


#: Published = exact + noise: the interval is exact. The others are cut to ranges, or hold to first order.
_EXACT = ("count", "histogram", "moment2", "sum")


#: Kinds whose intervals end where what is possible ends, or at public places that lie around what rows may have
#: (tests/laws/test_quantile_coverage.py), and hold the truth more often where they do.
_CUT = ("mean", "shared", "variance", "covariance", "correlation", "quantile")


def off_the_mark(rates: pd.DataFrame) -> list[str]:
    """Kinds of which another share than 95 % is inside, by more than four standard errors.

    Means and what is computed from them end at the ends of declared ranges, and hold the truth more often where they
    do (tests/laws/test_coverage.py); those of quantiles promise at least 95 %: they have the lower bar alone, which is
    two percent where that is more.
    """
    wrong = []
    for kind, share, error in zip(rates.index, rates["share"], rates["error"], strict=True):
        reach = 4 * error if kind in _EXACT else max(4 * error, 0.02)
        if share < 0.95 - reach or (share > 0.95 + reach and kind not in _CUT):
            wrong.append(f"{kind}: {share:.4f} ± {error:.4f}")
    return wrong


@pytest.mark.slow
def test_stated_intervals_cover_the_truth_of_random_studies():
    table = pd.concat([intervals(range(30_000, 30_510), 3000, 5), intervals(range(31_000, 31_010), 100_000, 5)])
    assert len(table) >= 20_000
    rates = rates_of(table)
    assert off_the_mark(rates) == [], rates
    sure = rates["error"] < 0.005  # the bar of 93 to 97 percent, of kinds with numbers enough to tell
    assert rates.loc[sure & ~rates.index.isin(_CUT), "share"].between(0.93, 0.97).all(), rates


@pytest.mark.slow
def test_intervals_that_are_too_narrow_are_found():
    table = intervals(range(30_000, 30_015), 200, 5)
    assert off_the_mark(rates_of(table)) == []
    cut = 0.25 * (table["high"] - table["low"])
    assert off_the_mark(rates_of(table.assign(low=table["low"] + cut, high=table["high"] - cut))) != []


def test_the_truth_is_of_the_same_people():
    """The tables of a case are those its truth was computed from."""
    case = make_case(5, generous=True)
    again = make_case(5, generous=True)
    assert case.text == again.text
    for name, frame in case.tables.items():
        pd.testing.assert_frame_equal(frame, again.tables[name])


@pytest.mark.parametrize("metric", ["dp(1e12)", "dp(1e12, 0.00001)", "gdp(1e12)", "zcdp(1e20)"])
def test_a_promise_without_bounds_publishes_the_truth(metric):
    """Noise of 1e-12 and a count of 189: more cells of the grid than a machine integer counts."""
    text = f"""
source(people, 'people.parquet'). column(people, id, person(P)). missing(people, never). rows_per_person(people, 1).
column(people, a, a(P)). random(a(P)) :- person(P). range(a(P), 0, 1).
dataset(everybody, domain(P, person(P))). privacy_requirement(openness(public), everybody, {metric}).
count(c, (person(P), a(P) > 0.2)). mean(m, a(P), (person(P), a(P) > 0.2)).
publish(pc, c, openness(public)). publish(pm, m, openness(public)).
"""
    table = pa.table({"id": list(range(200)), "a": [0.0] * 11 + [0.75] * 189})
    plan = make_plan(text)
    release = run_plan(plan, {"people": table}, None)
    assert abs(release["pc", "public"].to_pylist()[0]["value"] - 189) < 1e-6
    assert abs(release["pm", "public"].to_pylist()[0]["value"] - 0.75) < 1e-6
    assert all(verify(one, plan=plan.to_dict()).ok for one in release.certificates.values())
