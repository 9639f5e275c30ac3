"""Farokhi 2020, Figs 3 and 4, again: two clouds of points, noise that moves the classifier and noise that does not.

In:   StudySettings; the data are drawn from the paper's two normal laws.
Out:  the study TOY.
Not here: the sweep over λ (farokhi_curves.py), real data (farokhi.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from papers.farokhi import (
    QUICK,
    REFERENCE,
    RHO,
    THETA,
    Obfuscation,
    classification,
    obfuscate,
    obfuscation_numbers,
    obfuscation_verdicts,
)
from papers.farokhi_curves import Curves, approach, draw_curves, rivalry, sweep, unit_noise
from papers.study import Study, StudyResult, StudySettings, Verdict
from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.mechanisms import Gaussian
from sfumato.release.gaussian import GaussianRelease
from sfumato.release.svm import RegularisedSVM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TOY"]

_SCHEMA = Schema({"x1": Interval(-10, 10), "x2": Interval(-10, 15), "y": Categories((-1, 1))})
_CENTRES = np.array([[0.0, 0.0], [0.0, 5.0]])
#: The paper's λ; the bound on an unbiased attacker is 2/√λ = 200, 20, 2.
_TRADE_OFFS = (1e-4, 1e-2, 1.0)
_VARIANCE = 100.0
_COLOURS = {1: "#0072B2", -1: "#D55E00"}
_MARKERS = {1: "o", -1: "s"}


def _points(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    values = np.vstack([generator.normal(centre, 1.0, (50, 2)) for centre in _CENTRES])
    return values, np.repeat([1, -1], 50)


def _table(values: np.ndarray, labels: np.ndarray) -> pa.Table:
    return pa.table({"x1": values[:, 0], "x2": values[:, 1], "y": labels})


def _matrix(table: pa.Table) -> np.ndarray:
    return np.column_stack([table["x1"].to_numpy(), table["x2"].to_numpy()])


def _machine(values: np.ndarray, labels: np.ndarray) -> RegularisedSVM:
    return RegularisedSVM(RHO, THETA).fit(values, labels)


def _noisy_tables(values: np.ndarray, labels: np.ndarray, seed: int) -> list[tuple[float, float, np.ndarray]]:
    """Fig. 3: λ, the attacker's bound as the release states it, the noisy points."""
    found = []
    for trade_off in _TRADE_OFFS:
        each = trade_off**-0.5
        out = GaussianRelease(_SCHEMA, adversary_error={"x1": each, "x2": each}, label="y", random_state=seed).release(
            _table(values, labels)
        )
        bound = sum(1 / law.fisher_information() for law in out.noise.laws)
        found.append((trade_off, float(bound), _matrix(out.table)))
    return found


def _angles(values: np.ndarray, labels: np.ndarray, settings: StudySettings) -> np.ndarray:
    """Degrees between the noisy and the original classifier, averaged over draws, for each λ of Fig. 3."""
    original = _machine(values, labels).alpha_
    angles = []
    for draw in settings.track(range(5 if settings.quick else 100), "turning of the classifier"):
        noise = unit_noise(Gaussian, values.shape, 11_000_003 + settings.seed * 1009 + draw)
        found = [_machine(values + trade_off**-0.25 * noise, labels).alpha_ for trade_off in _TRADE_OFFS]
        angles.append([_angle(original, normal) for normal in found])
    return np.mean(angles, axis=0)


def _angle(first: np.ndarray, second: np.ndarray) -> float:
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return float(np.degrees(np.arccos(np.clip(first @ second / lengths, -1, 1)))) if lengths > 0 else 90.0


def _shrinking_errors(values: np.ndarray, tables: list[tuple[float, float, np.ndarray]]) -> list[float]:
    """Mean squared error of an attacker who knows the law of the population and pulls towards its mean."""
    mean = _CENTRES.mean(axis=0)
    spread = 1.0 + _CENTRES.var(axis=0)
    errors = []
    for trade_off, _, noisy in tables:
        guess = mean + (noisy - mean) * spread / (spread + trade_off**-0.5)
        errors.append(float(((guess - values) ** 2).sum(axis=1).mean()))
    return errors


def _run(settings: StudySettings) -> StudyResult:
    values, labels = _points(settings.seed)
    tables = _noisy_tables(values, labels, settings.seed)
    hidden = obfuscate(_SCHEMA, values, labels, settings.seed, _VARIANCE)
    angles = _angles(values, labels, settings)
    errors = _shrinking_errors(values, tables)
    grid = _TRADE_OFFS if settings.quick else tuple(10.0**k for k in range(-4, 4))
    widths = np.array([20.0, 25.0])
    curves = sweep(settings, classification(values, labels, widths), grid, 5 if settings.quick else 100)
    columns, rows = curves.rows()
    bounds = [bound for _, bound, _ in tables]
    return StudyResult(
        columns,
        rows,
        (*_verdicts(bounds, errors, angles, hidden), *rivalry(curves), approach(curves)),
        partial(_draw, values=values, labels=labels, tables=tables, hidden=hidden, curves=curves),
        (*_NOTES, *([QUICK] if settings.quick else [])),
        {"rows": 100, "draws": curves.draws, "rho": RHO, "theta": THETA, "lambdas": list(grid), "m": _VARIANCE},
        {
            "non_private": curves.clean,
            "attacker_bounds": bounds,
            "shrinking_attacker_errors": errors,
            "angles_degrees": [float(angle) for angle in angles],
            **obfuscation_numbers(hidden),
        },
        curves.shown(),
    )


_NOTES = (
    "λ and noise are in the points' own unit, as in the paper; ε is for the public box [-10, 10] × [-10, 15].",
    "ObfuscatedRelease gives no privacy guarantee of any kind.",
)


def _verdicts(bounds: list[float], errors: list[float], angles: np.ndarray, hidden: Obfuscation) -> tuple[Verdict, ...]:
    listed = ", ".join(f"{bound:.3g}" for bound in bounds)
    attacked = ", ".join(f"{error:.3g}" for error in errors)
    turned = ", ".join(f"{angle:.3g}°" for angle in angles)
    return (
        Verdict(
            "an unbiased attacker errs by at least 200, 20 and 2 at λ = 1e-4, 1e-2, 1",
            bool(np.allclose(bounds, (200, 20, 2), rtol=1e-6)),
            f"the releases state {listed}",
        ),
        Verdict(
            "this bound holds whatever the attacker does",
            all(error >= bound for error, bound in zip(errors, bounds, strict=True)),
            f"one who pulls towards the population's mean errs by {attacked}",
        ),
        Verdict(
            "the classifier approaches the original one as λ increases",
            bool(np.all(np.diff(angles) < 0)),
            f"the mean angle between them is {turned}",
        ),
        *obfuscation_verdicts(hidden, 80.5),
    )


# Drawing.


def _draw(
    figure: Figure,
    values: np.ndarray,
    labels: np.ndarray,
    tables: list[tuple[float, float, np.ndarray]],
    hidden: Obfuscation,
    curves: Curves,
) -> None:
    figure.set_size_inches(13.5, 9)
    grid = figure.add_gridspec(2, 3)
    original = _machine(values, labels)
    handles: list[Any] = []
    for at, (trade_off, bound, noisy) in enumerate(tables):
        axes = figure.add_subplot(grid[0, at])
        handles = _scatter(axes, values, noisy, labels, original, _machine(noisy, labels))
        axes.set_title(f"λ = {trade_off:g}\nunbiased attacker errs by ≥ {bound:.3g}", fontsize=10)
    axes = figure.add_subplot(grid[1, 0])
    _scatter(axes, values, hidden.noisy, labels, original, hidden.machine)
    axes.set_title(f"correlated noise, m = {_VARIANCE:g}\nsame classifier, no privacy", fontsize=10)
    below = figure.add_subplot(grid[1, 1:])
    series = draw_curves(curves, below)
    below.set_xlabel("λ (weight on utility; noise variance is 1/√λ)")
    title = f"curves: mean of {curves.draws} draws\nband: 95 % confidence of the mean"
    outside: dict[str, Any] = {"frameon": False, "fontsize": 9, "alignment": "left"}
    figure.legend(handles=handles, loc="outside right upper", title="points and classifiers", **outside)
    figure.legend(handles=series, loc="outside right lower", title=title, **outside)
    figure.suptitle("Two normal clouds, 100 points: what noise does to the support vector machine (Farokhi, Figs 3, 4)")


def _scatter(
    axes: Axes, values: np.ndarray, noisy: np.ndarray, labels: np.ndarray, original: Any, found: Any
) -> list[Any]:
    handles = []
    for label in (1, -1):
        here = labels == label
        faint = {"color": "0.7", "marker": _MARKERS[label], "s": 10, "linewidths": 0}
        axes.scatter(*values[here].T, **faint, label=f"original, y = {label:+d}")
        handles.append(
            axes.scatter(
                *noisy[here].T,
                facecolors="none",
                edgecolors=_COLOURS[label],
                marker=_MARKERS[label],
                s=18,
                linewidths=0.9,
                label=f"published, y = {label:+d}",
            )
        )
    reach = max(8.0, float(np.abs(noisy).max()))
    grey = axes.scatter([], [], color="0.7", marker="o", s=10, label="original points (grey)")
    lines = [
        _line(axes, original, reach, color="black", linewidth=2.5, label="classifier of the original"),
        _line(axes, found, reach, color="#E69F00", linewidth=1.5, linestyle="--", label="classifier of the published"),
    ]
    axes.set_xlim(-reach, reach)
    axes.set_ylim(2.5 - reach, 2.5 + reach)
    axes.set_aspect("equal")
    axes.set_xlabel("first coordinate")
    axes.set_ylabel("second coordinate")
    return [grey, *handles, *lines]


def _line(axes: Axes, machine: Any, reach: float, **style: Any) -> Any:
    """The points with α·x + β = 0, long enough to cross the panel whatever its slope."""
    normal = machine.alpha_
    foot = -machine.beta_ * normal / float(normal @ normal)
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    ends = np.array([foot - 4 * reach * along, foot + 4 * reach * along])
    return axes.plot(*ends.T, **style)[0]


TOY = Study("farokhi-toy", "Two clouds: attacker's bounds and an unchanged classifier", f"{REFERENCE}, Figs 3, 4", _run)
