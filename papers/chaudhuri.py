"""Chaudhuri, Monteleoni & Sarwate 2011, Tables 1 and 2, again: test error by Λ at ε = 0.1, Adult and KDD Cup 1999.

In:   StudySettings; the data sets of chaudhuri_data.py.
Out:  the studies TABLE1 and TABLE2.
Not here: the paper's numbers (chaudhuri_settings.py), training (chaudhuri_trials.py), Figs 2 to 5
(chaudhuri_tradeoff.py, chaudhuri_curves.py).

The tables' best entries are chosen on the test data. Beside them stand choices that are paid for from the same ε
(Alg. 4; a random number of runs on all records) and this project's defaults, which look at no data to choose Λ.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.chaudhuri_data import read_records
from papers.chaudhuri_report import (
    LOSS_NAMES,
    REFERENCE,
    SERIES,
    Point,
    contest,
    draw_series,
    notes,
    pick,
    rows_of,
    seeds_of,
)
from papers.chaudhuri_settings import ADULT, CANDIDATES, EPSILON, KDD, Setting, with_one_thread
from papers.chaudhuri_trials import DELTA, LOSSES, LossName, Recipe, Split, interval
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict
from sfumato.learn import NothingLearnedWarning, PrivateLogisticRegression, PrivateSearch, PrivateSVC

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TABLE1", "TABLE2"]

_EXPECTED_RUNS = 5
_TABLE = ("non-private", "output", "objective")
#: The series whose Λ is not chosen on the test data.
_HONEST = ("default", "default, delta", "split", "random stopping", "random stopping, delta")


# Trials.


def _run(settings: StudySettings, setting: Setting) -> StudyResult:
    records = read_records(setting.name, 3000 if settings.quick else setting.rows, settings.seed)
    splits = Split.folds(records, 10, 2 if settings.quick else 10)
    points: list[Point] = []
    for loss in LOSSES:
        points += _by_strength(settings, setting, splits, loss)
        points += _defaults(settings, splits, loss)
        points += _tuned(settings, splits[:2] if settings.quick else splits[:5], loss)
    columns, rows = rows_of(points)
    return StudyResult(
        columns,
        rows,
        _verdicts(setting, points, records.constant_error),
        partial(_draw, setting=setting, points=points, constant=records.constant_error),
        notes(settings, setting.differences, _TUNING_NOTE),
        {
            "rows": len(records.signs),
            "columns": records.schema.width,
            "folds": f"{len(splits)} of 10",
            "epsilon": EPSILON,
            "delta": DELTA,
            "huber_h": 0.5,
            "candidates": list(CANDIDATES),
            "expected_runs": _EXPECTED_RUNS,
        },
        _numbers(setting, points, records.constant_error),
        _shown(setting, points),
    )


_TUNING_NOTE = (
    "Tuning chooses among Λ = 10^-3.5 … 10^-1.5 for objective perturbation; Alg. 4 by permute-and-flip, random "
    f"stopping with {_EXPECTED_RUNS} runs on average. Defaults use this project's coding of columns and its rule for Λ."
)


def _by_strength(settings: StudySettings, setting: Setting, splits: list[Split], loss: LossName) -> list[Point]:
    """The paper's table: three series by Λ."""
    draws = {"non-private": 1, "output": 5 if settings.quick else 20, "objective": 1 if settings.quick else 2}
    found = {series: np.empty((len(setting.powers), len(splits), count)) for series, count in draws.items()}
    for number, split in enumerate(settings.track(splits, f"{LOSS_NAMES[loss]}, Λ by Λ")):
        seeds = {series: seeds_of(settings, number, count) for series, count in draws.items()}
        exact = split.training.non_private(loss, setting.strengths)
        known: dict[float, np.ndarray] = {}  # Alg. 2 raises every small Λ to the same one
        for at, strength in enumerate(setting.strengths):
            found["non-private"][at, number] = split.error(exact[strength])
            output = Recipe(loss, "output", EPSILON, strength=strength)
            found["output"][at, number] = split.private_errors(output, seeds["output"], exact[strength])
            objective = Recipe(loss, "objective", EPSILON, strength=strength)
            used = objective.plan(split.training.size, split.records.schema).regularization
            if used not in known:
                known[used] = split.private_errors(objective, seeds["objective"])
            found["objective"][at, number] = known[used]
    size = splits[0].training.size
    return [
        Point(loss, series, EPSILON, strength, size, errors[at], paper=setting.paper[loss, series][at])
        for series, errors in found.items()
        for at, strength in enumerate(setting.strengths)
    ]


def _defaults(settings: StudySettings, splits: list[Split], loss: LossName) -> list[Point]:
    points, size = [], splits[0].training.size
    for series, delta in (("default", 0.0), ("default, delta", DELTA)):
        recipe = Recipe(loss, "objective", EPSILON, delta)
        tracked = settings.track(splits, f"{LOSS_NAMES[loss]}, {series}")
        draws = 1 if settings.quick else 2
        errors = [split.private_errors(recipe, seeds_of(settings, at, draws)) for at, split in enumerate(tracked)]
        strength = recipe.plan(size, splits[0].records.schema).regularization
        points.append(Point(loss, series, EPSILON, strength, size, np.array(errors), delta))
    return points


def _tuned(settings: StudySettings, splits: list[Split], loss: LossName) -> list[Point]:
    """Λ chosen within the same ε."""
    kind = PrivateLogisticRegression if loss == "logistic" else PrivateSVC
    schemes = (("split", 0.0), ("random_stopping", 0.0), ("random_stopping", DELTA))
    errors = np.empty((len(schemes), len(splits), 1))
    for number, split in enumerate(settings.track(splits, f"{LOSS_NAMES[loss]}, private tuning")):
        places = split.training.places
        values, labels = split.records.plain[places], split.records.signs[places]
        for at, (scheme, delta) in enumerate(schemes):
            search = PrivateSearch(
                kind(EPSILON, delta, fit_intercept=False),
                {"regularization": list(CANDIDATES)},
                EPSILON,
                delta,
                scheme,  # type: ignore[arg-type]
                expected_runs=_EXPECTED_RUNS,
                random_state=seeds_of(settings, number, 1)[0],
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NothingLearnedWarning)
                search.fit(values, labels)
            wrong = search.predict(split.records.plain[split.test]) != split.records.signs[split.test]
            errors[at, number] = wrong.mean()
    size = splits[0].training.size
    return [
        Point(loss, _tuned_series(scheme, delta), EPSILON, "chosen", size, errors[at], delta)
        for at, (scheme, delta) in enumerate(schemes)
    ]


def _tuned_series(scheme: str, delta: float) -> str:
    return scheme.replace("_", " ") + (", delta" if delta else "")


# Judging.


def best(points: list[Point], loss: LossName, series: str) -> Point:
    """The least mean error, chosen on the test data as in the paper."""
    return min(pick(points, loss, series), key=lambda point: point.mean)


def _verdicts(setting: Setting, points: list[Point], constant: float) -> tuple[Verdict, ...]:
    objective: dict[LossName, Point] = {loss: best(points, loss, "objective") for loss in LOSSES}
    output: dict[LossName, Point] = {loss: best(points, loss, "output") for loss in LOSSES}
    where = [LOSS_NAMES[loss] for loss in LOSSES]
    tested, rivals = "at the best Λ of each", (objective["huber"], objective["logistic"])
    verdicts = [
        contest(f"objective beats output, {tested}", [(objective[loss], output[loss]) for loss in LOSSES], where),
        contest(f"Huber beats logistic under objective, {tested}", [rivals], ["Huber"]),
        _about(setting, points),
    ]
    if setting.name == "adult":
        verdicts += [
            _better_than_constant(output, constant),
            _too_small_to_tune(points, objective, constant),
        ]
    verdicts += [
        _defaults_against_paper(setting, points),
        contest(
            f"random stopping at δ = {DELTA:g} beats Alg. 4",
            [(pick(points, loss, "random stopping, delta")[0], pick(points, loss, "split")[0]) for loss in LOSSES],
            where,
            of="sfumato",
        ),
    ]
    return tuple(verdicts)


def _about(setting: Setting, points: list[Point]) -> Verdict:
    said, near = setting.non_private
    found = [best(points, loss, "non-private") for loss in LOSSES]
    texts = ", ".join(f"{LOSS_NAMES[point.loss]} {point.text}" for point in found)
    holds = all(abs(point.mean - said) <= near for point in found)
    return Verdict(f"without privacy both losses err by about {said:g}", holds, texts)


def _better_than_constant(output: dict[LossName, Point], constant: float) -> Verdict:
    highs = [interval(point.errors)[2] for point in output.values()]
    lows = [interval(point.errors)[1] for point in output.values()]
    holds = True if max(highs) < constant else False if min(lows) > constant else None
    texts = ", ".join(f"{LOSS_NAMES[loss]} {point.text}" for loss, point in output.items())
    return Verdict(
        "output perturbation is slightly better than always answering no", holds, f"{texts}; always no {constant:.4f}"
    )


def _too_small_to_tune(points: list[Point], objective: dict[LossName, Point], constant: float) -> Verdict:
    """As judged here: Alg. 4 loses more than half of what the best Λ gains over the constant answer."""
    claim, lost, texts = "Adult is too small for private tuning by Alg. 4", [], []
    for loss, point in objective.items():
        tuned = pick(points, loss, "split")[0]
        texts.append(f"{LOSS_NAMES[loss]} {tuned.text}, best Λ {point.text}, always no {constant:.4f}")
        if point.mean < constant:
            lost.append((tuned.mean - point.mean) / (constant - point.mean))
    if not lost:
        return Verdict(claim, None, f"nothing is gained at any Λ: {'; '.join(texts)}")
    finding = f"{'; '.join(texts)}: Alg. 4 loses {' and '.join(f'{share:.0%}' for share in lost)} of the gain"
    return Verdict(claim, min(lost) > 0.5, finding)


def _defaults_against_paper(setting: Setting, points: list[Point]) -> Verdict:
    gaps, texts = [], []
    for loss in LOSSES:
        ours, theirs = pick(points, loss, "default")[0], min(setting.paper[loss, "objective"])
        _, low, high = interval(ours.errors)
        gaps.append(True if high < theirs else False if low > theirs else None)
        texts.append(f"{LOSS_NAMES[loss]} {ours.text} against {theirs:.4f}")
    holds = False if False in gaps else None if None in gaps else True
    claim = "the defaults (pure ε, nothing tuned) beat the paper's best entry, whose Λ was chosen on the test data"
    return Verdict(claim, holds, "; ".join(texts), of="sfumato")


def _numbers(setting: Setting, points: list[Point], constant: float) -> dict[str, Any]:
    numbers: dict[str, Any] = {"constant_error": constant}
    for loss in LOSSES:
        for series in _TABLE:
            key = f"{loss}_{series.replace('-', '_')}"
            chosen = best(points, loss, series)
            gaps = [abs(point.mean - (point.paper or 0.0)) for point in pick(points, loss, series)]
            numbers |= {
                f"{key}_best_error": chosen.mean,
                f"{key}_best_regularization": chosen.strength,
                f"{key}_best_regularization_in_paper": setting.best_in_paper(loss, series),
                f"{key}_median_gap_to_paper": float(np.median(gaps)),
                f"{key}_largest_gap_to_paper": max(gaps),
            }
    return numbers


# Showing.


def _shown(setting: Setting, points: list[Point]) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Λ down, series across, each "here (paper)"."""
    series: list[tuple[LossName, str]] = [(loss, name) for loss in LOSSES for name in _TABLE]
    rows: list[tuple[Cell, ...]] = []
    for at, power in enumerate(setting.powers):
        found = [pick(points, loss, name)[at] for loss, name in series]
        rows.append((f"10^{power:g}", *(f"{point.mean:.4f} ({point.paper:.4f})" for point in found)))
    for name in _HONEST:
        cells = {loss: pick(points, loss, name)[0].text for loss in LOSSES}
        rows.append((SERIES[name].label, "", "", cells["logistic"], "", "", cells["huber"]))
    return ("Λ", *(f"{loss} {name}: here (paper)" for loss, name in series)), tuple(rows)


def _draw(figure: Figure, setting: Setting, points: list[Point], constant: float) -> None:
    figure.set_size_inches(12.5, 6)
    handles: list[Any] = []
    panels = figure.subplots(1, 2, sharey=True)
    for axes, loss in zip(panels, LOSSES, strict=True):
        handles = [axes.axhline(constant, color="0.5", linestyle=(0, (1, 3)), label="constant classifier")]
        for series in _TABLE:
            found = pick(points, loss, series)
            handles.append(draw_series(axes, setting.strengths, found, series))
            printed = setting.paper[loss, series]
            look = {"color": SERIES[series].colour, "marker": SERIES[series].marker, "markersize": 8}
            handles += axes.plot(
                setting.strengths,
                printed,
                **look,
                fillstyle="none",
                linestyle="none",
                label=f"{SERIES[series].label}, as printed",
            )
        # Nothing on the Λ axis belongs to these: they stand to the right of it.
        for at, series in enumerate(_HONEST):
            found = pick(points, loss, series)
            handles.append(draw_series(axes, [10 ** (-0.9 + 0.35 * at)], found, series, linestyle="none", markersize=7))
        axes.axvline(10**-1.2, color="0.8", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([10.0**power for power in range(int(min(setting.powers)), -1, 2)])
        axes.minorticks_off()
        axes.set_xlabel("regularisation Λ")
        aside: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "top", "fontsize": 8}
        axes.text(10**-0.2, 0.98, "Λ not chosen\non test data", **aside)
        axes.set_title(LOSS_NAMES[loss])
        axes.grid(alpha=0.3)
    ticks = [tick for tick in (0.0001, 0.001, 0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.9) if tick > _least(points) / 2]
    panels[0].set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    panels[0].set_ylabel("test error")
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9, title="bars: 95 %")
    number = 1 if setting.name == "adult" else 2
    figure.suptitle(f"{setting.title}: test error by Λ at ε = {EPSILON:g} (Chaudhuri et al., Table {number})")


def _least(points: list[Point]) -> float:
    return min(point.mean for point in points)


TABLE1 = Study(
    "chaudhuri-table1",
    "Adult: error by Λ at ε = 0.1, beside the paper's",
    f"{REFERENCE}, Table 1",
    with_one_thread(partial(_run, setting=ADULT)),
)
TABLE2 = Study(
    "chaudhuri-table2",
    "KDD Cup 1999: error by Λ at ε = 0.1, beside the paper's",
    f"{REFERENCE}, Table 2",
    with_one_thread(partial(_run, setting=KDD)),
)
