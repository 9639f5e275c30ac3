"""Basu, Ch. 5, Figs 5.9 to 5.15, again: does it matter how the domain is cut into bins, and how finely?

In:   StudySettings.
Out:  the study DISCRETISATION.
Not here: the methods (basu_methods.py).

Equal frequency needs quantiles. Those of the records publish order statistics, so here they are those of the public
(uniform) law: for the attribute equal frequency is then equal width, and for a feature it is equal width of the
attribute.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.basu_channels import QUICK, REFERENCE
from papers.basu_methods import FOLDS, Errors, cross_validate
from papers.basu_parties import BUDGETS, DATASETS, PARTIES, Dataset
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict
from sfumato.mechanisms import TailoredNoise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DISCRETISATION"]

_SINGLE = ("ds1a", "ds2a", "ds3a")
_DOUBLE = ("ds1b", "ds2b", "ds3b")
_COLUMNS = ("dataset", "order", "bins", "cut", "epsilon", "excess", "excess_error")
#: dataset, order, bins, cut
Setting = tuple[str, str, int, str]


def _settings() -> list[Setting]:
    cuts = [(name, "dp∘tns", 20, cut) for name in _SINGLE for cut in ("equal distance", "equal frequency")]
    fine = [(name, "tns∘dp", bins, "equal frequency") for name in (*_DOUBLE, "misra1d") for bins in (20, 41)]
    scale = [(name, "tns∘dp", 20, "scale of the feature") for name in _SINGLE]
    return [*cuts, *fine, *scale, *((name, "tns∘dp", 20, "equal distance") for name in _SINGLE)]


def _features(data: Dataset, setting: Setting, epsilon: float, attributes: np.ndarray, seed: int) -> np.ndarray:
    """Published features. Bins of a feature are bins of the attribute on the feature's scale, or of equal width."""
    _, order, bins, cut = setting
    if order == "tns∘dp":
        rule = "transformed" if cut == "scale of the feature" else "width"
        channel = TailoredNoise(
            data.domain, epsilon, uses=data.uses, bins=bins, outputs=bins, binning=rule, random_state=seed
        )
        return data.features(channel(attributes))
    features = data.features(attributes)
    for column, use in enumerate(data.uses, start=1):
        rule = "transformed" if cut == "equal distance" else "width"
        share = epsilon / len(data.uses)
        channel = TailoredNoise(
            data.domain, share, uses=(use,), bins=bins, outputs=bins, binning=rule, random_state=seed + column
        )
        features[:, column] = use(channel(attributes))
    return features


def _measure(
    settings: StudySettings, budgets: tuple[float, ...], repetitions: int, parties: int
) -> dict[Setting, np.ndarray]:
    found: dict[Setting, np.ndarray] = {}
    for setting in settings.track(_settings(), "bins"):
        data = DATASETS[setting[0]]
        excess = np.empty((repetitions, len(budgets)))
        for repetition in range(repetitions):
            generator = np.random.default_rng((settings.seed, 59, repetition))
            sample = data.draw(parties, generator)
            folds = generator.permutation(parties) % FOLDS
            base: Errors = cross_validate(data, sample, data.features(sample.attributes), folds)
            for at, epsilon in enumerate(budgets):
                features = _features(data, setting, epsilon, sample.attributes, 1000 * repetition + 10 * at)
                errors = cross_validate(data, sample, features, folds)
                excess[repetition, at] = (errors.excess.mean() - base.excess.mean()) / sample.targets.var()
        found[setting] = excess
    return found


def _compared(found: dict[Setting, np.ndarray], better: Setting, worse: Setting) -> tuple[int, int, float]:
    """At how many budgets the first is better, of how many, and the median ratio of their excess errors."""
    first, second = found[better].mean(axis=0), found[worse].mean(axis=0)
    ratio = float(np.median(np.maximum(second, 1e-9) / np.maximum(first, 1e-9)))
    return int((first < second).sum()), len(first), ratio


def _verdict(
    claim: str, found: dict[Setting, np.ndarray], pairs: list[tuple[Setting, Setting]], share: float = 0.5
) -> Verdict:
    results = [_compared(found, *pair) for pair in pairs]
    words = [
        f"{pair[0][0]}: better at {wins} of {count} budgets (median ratio {ratio:.3g})"
        for pair, (wins, count, ratio) in zip(pairs, results, strict=True)
    ]
    return Verdict(claim, all(wins > share * count for wins, count, _ in results), "; ".join(words))


def _run(settings: StudySettings) -> StudyResult:
    budgets = (1.0, 8.0) if settings.quick else BUDGETS
    parties, repetitions = (2000, 1) if settings.quick else (PARTIES, 4)
    found = _measure(settings, budgets, repetitions, parties)
    frequency = [((n, "dp∘tns", 20, "equal frequency"), (n, "dp∘tns", 20, "equal distance")) for n in _SINGLE]
    fine = [((n, "tns∘dp", 41, "equal frequency"), (n, "tns∘dp", 20, "equal frequency")) for n in _DOUBLE]
    scale = [((n, "tns∘dp", 20, "scale of the feature"), (n, "tns∘dp", 20, "equal distance")) for n in _SINGLE]
    misra = _compared(found, ("misra1d", "tns∘dp", 41, "equal frequency"), ("misra1d", "tns∘dp", 20, "equal frequency"))
    verdicts = (
        _verdict("equal frequency mostly beats equal distance (dp∘tns)", found, frequency),
        _verdict("finer bins mostly beat coarser ones (tns∘dp, two features)", found, fine),
        Verdict(
            "on misra1d finer bins bring no significant gain",
            misra[2] < 1.5,
            f"better at {misra[0]} of {misra[1]} budgets, median ratio of excess errors {misra[2]:.3g}",
        ),
        _verdict("bins on the scale of the feature beat bins of equal width (tns∘dp)", found, scale, 0.5),
    )
    rows: list[tuple[Cell, ...]] = []
    for setting, excess in found.items():
        error = excess.std(axis=0, ddof=1) / repetitions**0.5 if repetitions > 1 else np.zeros(len(budgets))
        rows += [
            (*setting, eps, float(e), float(s)) for eps, e, s in zip(budgets, excess.mean(axis=0), error, strict=True)
        ]
    shown = [
        (*setting, *(f"{value:.2g}" for value in excess.mean(axis=0)[:: max(1, len(budgets) // 4)]))
        for setting, excess in found.items()
    ]
    heads = tuple(f"ε = {eps:.3g}" for eps in budgets[:: max(1, len(budgets) // 4)])
    return StudyResult(
        _COLUMNS,
        tuple(rows),
        verdicts,
        partial(_draw, found=found, budgets=budgets),
        (
            "Channels of this project (two-sided bias, exactly private), fitted at face value; excess over the "
            "regression without privacy, in units of the target's variance.",
            "Quantiles are those of the public uniform law: quantiles of the records are refused, since their top "
            "edge is somebody's value.",
            *([QUICK] if settings.quick else []),
        ),
        {"parties": parties, "repetitions": repetitions, "budgets": list(budgets), "folds": FOLDS},
        {},
        (("dataset", "order", "bins", "cut", *heads), tuple(shown)),
    )


def _draw(figure: Figure, found: dict[Setting, np.ndarray], budgets: tuple[float, ...]) -> None:
    figure.set_size_inches(13, 7)
    names = (*_SINGLE, *_DOUBLE, "misra1d")
    for axes, name in zip(figure.subplots(2, 4).ravel(), names, strict=False):
        for setting, excess in found.items():
            if setting[0] == name:
                axes.plot(
                    budgets, np.maximum(excess.mean(axis=0), 1e-7), label=f"{setting[1]}, {setting[2]}, {setting[3]}"
                )
        axes.set(xscale="log", yscale="log", title=name, xlabel="ε")
        axes.legend(fontsize=6)
    figure.axes[-1].set_visible(False)


DISCRETISATION = Study(
    "basu-discretisation", "How to cut a domain into bins, and how finely", f"{REFERENCE}, Figs 5.9-5.15", _run
)
