"""Park's thesis, Figs 1.1 and 5.2 and Table 7.1, again: what support vectors betray, points and regions, settings.

In:   StudySettings; two made tables; the files of the eight data sets where they are.
Out:  the studies FIG1_1, FIG5_2, TABLE7_1.
Not here: accuracies (park.py), regions with and without noise (park_regions.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.park_data import ALL, REFERENCE, SETTINGS, present, read_records
from papers.study import Study, StudyResult, StudySettings, Verdict
from sfumato.learn import EquilibriumClassifier
from sfumato.release import RegularisedSVM

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIG1_1", "FIG5_2", "TABLE7_1"]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
#: Columns and classes as Table 7.1 prints them; it has those of iris and wine the wrong way round.
_PRINTED = {"iris": (3, 4), "wine": (3, 13)}


def _betrayal(settings: StudySettings) -> StudyResult:
    generator = np.random.default_rng(settings.seed)
    rows = np.vstack([generator.normal(scale=0.5, size=(20, 2)) + side for side in ((-1.0, 0.0), (1.0, 0.0))])
    labels = np.repeat([-1, 1], 20)
    whole = RegularisedSVM(0.01, 1.0).fit(rows, labels)
    turned = []
    for left_out in range(len(rows)):
        kept = np.arange(len(rows)) != left_out
        without = RegularisedSVM(0.01, 1.0).fit(rows[kept], labels[kept])
        turned.append(float(np.linalg.norm(whole.alpha_ - without.alpha_) + abs(whole.beta_ - without.beta_)))
    moved = np.array(turned)
    inside = labels * (rows @ whole.alpha_ + whole.beta_) > 1 + 1e-6
    verdicts = (
        Verdict(
            "leaving out one support vector moves the boundary",
            bool((moved[~inside] > 1e-4).all()),
            f"by {moved[~inside].min():.2g} to {moved[~inside].max():.2g}, {int((~inside).sum())} records",
        ),
        Verdict(
            "leaving out another record does not",
            bool((moved[inside] < 1e-6).all()),
            f"by at most {moved[inside].max(initial=0):.1g}, {int(inside.sum())} records",
        ),
    )
    table = tuple(
        (float(x), float(y), int(label), float(move)) for (x, y), label, move in zip(rows, labels, moved, strict=True)
    )
    draw = partial(_draw_betrayal, rows=rows, labels=labels, moved=moved, machine=whole)
    shown = (("records", "largest move"), ((len(rows), float(moved.max())),))
    return StudyResult(("x", "y", "label", "move without it"), table, verdicts, draw, shown=shown)


def _draw_betrayal(
    figure: Figure, *, rows: np.ndarray, labels: np.ndarray, moved: np.ndarray, machine: RegularisedSVM
) -> None:
    axes = figure.subplots()
    for label, colour, marker in ((-1, _COLOURS[0], "o"), (1, _COLOURS[1], "s")):
        here = labels == label
        axes.scatter(
            *rows[here].T, s=20 + 400 * moved[here], color=colour, marker=marker, alpha=0.7, label=f"y = {label:+d}"
        )
    height = np.array([-2.0, 2.0])
    axes.plot(-(machine.beta_ + machine.alpha_[1] * height) / machine.alpha_[0], height, "k-", label="boundary")
    axes.set_title("How far the boundary moves without a record: its area (Park, Fig. 1.1)")
    axes.legend()


def _points(settings: StudySettings) -> StudyResult:
    generator = np.random.default_rng(settings.seed)
    centres = np.array([[-0.5, -0.5], [0.5, -0.4], [0.0, 0.5]])
    labels = generator.integers(3, size=900)
    rows = centres[labels] + generator.normal(scale=0.14, size=(900, 2))
    models = {
        "published points alone": EquilibriumClassifier(
            1.0, 1e-5, "points", random_state=settings.seed, merge_radius=0.4
        ),
        "support functions": EquilibriumClassifier(1.0, 1e-5, random_state=settings.seed),
    }
    shares = {name: float(model.fit(rows, labels).score(rows, labels)) for name, model in models.items()}
    verdicts = (
        Verdict(
            "points alone classify two columns",
            shares["published points alone"] > 0.9,
            f"{shares['published points alone']:.3f} rightly, ε = 1",
        ),
    )
    table = tuple((name, share, len(models[name].points_)) for name, share in shares.items())
    return StudyResult(
        ("what is published", "rightly", "points"),
        table,
        verdicts,
        partial(_draw_points, models=models, rows=rows, labels=labels),
    )


def _draw_points(
    figure: Figure, *, models: dict[str, EquilibriumClassifier], rows: np.ndarray, labels: np.ndarray
) -> None:
    figure.set_size_inches(9, 4.5)
    axis = np.linspace(-1, 1, 120)
    places = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    for axes, (name, model) in zip(figure.subplots(1, 2), models.items(), strict=True):
        axes.contourf(
            axis,
            axis,
            model.predict(places).reshape(120, 120),
            levels=[-0.5, 0.5, 1.5, 2.5],
            colors=_COLOURS[:3],
            alpha=0.3,
        )
        axes.scatter(*rows.T, c=[_COLOURS[one] for one in labels], s=2)
        axes.scatter(
            *model.points_.T, c=[_COLOURS[one] for one in model.point_labels_], s=60, marker="*", edgecolors="black"
        )
        axes.set(title=name, aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
    figure.suptitle("Equilibrium points from public starts and their regions, ε = 1 (Park, Fig. 5.2)")


def _settings_table(settings: StudySettings) -> StudyResult:
    here, absent = present(ALL)
    rows = []
    for name in settings.track(here, "tables"):
        records = read_records(name, settings.seed)
        width, classes = records.rows.shape[1], len(np.unique(records.labels))
        setting = SETTINGS[name]
        rows.append((name, setting.size, width, classes, *setting.proposed, str(setting.radius)))
    swapped = [row[0] for row in rows if row[0] in _PRINTED and _PRINTED[row[0]] == (row[3], row[2])]
    verdicts = (
        Verdict(
            "Table 7.1 prints columns and classes of every set",
            not swapped,
            f"of {' and '.join(swapped)} they are exchanged" if swapped else "as they are",
        ),
    )
    notes = (f"Not here: {', '.join(absent)}.",) if absent else ()
    names = ("data", "records", "columns", "classes", "C/n", "gamma", "r_max")
    return StudyResult(names, tuple(rows), verdicts, partial(_draw_settings, rows=tuple(rows)), notes)


def _draw_settings(figure: Figure, *, rows: tuple[tuple, ...]) -> None:
    axes = figure.subplots()
    axes.barh([row[0] for row in rows], [row[1] for row in rows], color=_COLOURS[0])
    axes.set(xscale="log", xlabel="records", title="The eight data sets (Park, Table 7.1)")


FIG1_1 = Study("park-fig1.1", "What a support vector machine betrays", f"{REFERENCE}, Fig. 1.1", _betrayal)
FIG5_2 = Study("park-fig5.2", "Labelled points and their regions", f"{REFERENCE}, Fig. 5.2", _points)
TABLE7_1 = Study("park-table7.1", "The data sets and the thesis' settings", f"{REFERENCE}, Table 7.1", _settings_table)
