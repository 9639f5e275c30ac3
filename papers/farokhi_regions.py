"""Farokhi 2020, Figs 1 and 2, again: which (ε, δ) a noise meets, and how wrong an unbiased attacker must be.

In:   StudySettings; nothing random.
Out:  the studies FIG1, FIG2.
Not here: data (farokhi.py), the toy (farokhi_toy.py).

With features in [0, 1] the noise of Thm 2.4 is μ-Gaussian with μ = λ^(1/4)·‖Π^(1/4)‖ (from largest entry to length).
The paper asks for μ(1 + √(2 ln 1/δ)) ≤ ε; exactly (ε, δ) is met where δ is at least the Gaussian profile of μ at ε.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.farokhi import REFERENCE
from papers.study import Study, StudyResult, StudySettings, Verdict
from sfumato.core.gaussian import gaussian_delta, gaussian_mu

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIG1", "FIG2", "printed_mu"]

_MU = 0.1
_EPSILONS = np.geomspace(0.1, 1.0, 25)
_DELTAS = np.geomspace(1e-6, 0.3, 25)
#: Beyond the paper's picture, where its condition first fails (δ = 1e-5).
_FAR = (20.5, 1e-5)


def printed_mu(epsilon: float, delta: float) -> float:
    """The largest μ that the paper's condition allows.

    >>> round(printed_mu(1.0, 1e-5), 3), round(gaussian_mu(1.0, 1e-5), 3)
    (0.172, 0.268)
    """
    return epsilon / (1 + math.sqrt(2 * math.log(1 / delta)))


def _first(_: StudySettings) -> StudyResult:
    rows = [
        (float(e), float(d), int(printed_mu(e, d) >= _MU), int(gaussian_delta(_MU, e) <= d))
        for e in _EPSILONS
        for d in _DELTAS
    ]
    claimed, exact = (sum(row[place] for row in rows) for place in (2, 3))
    wrong = sum(row[2] > row[3] for row in rows)
    far = gaussian_delta(printed_mu(*_FAR), _FAR[0])
    verdicts = (
        Verdict("every (ε, δ) of the grey region is met", wrong == 0, f"{wrong} of {claimed} points are not"),
        Verdict(
            "the condition of Thm 2.5 suffices for all ε",
            far <= _FAR[1],
            f"at ε = {_FAR[0]:g} it allows noise with δ = {far:.3g} for {_FAR[1]:g}",
        ),
        Verdict(
            "the exact region is larger",
            exact > claimed,
            f"{exact} points of {len(rows)}, the paper's {claimed}",
            of="sfumato",
        ),
    )
    notes = (
        "Caption and text of Fig. 1 disagree; 0.1 is λ^(1/4)·‖Π^(1/4)‖, as in the text.",
        "Features lie in [0, 1].",
    )
    return StudyResult(
        ("epsilon", "delta", "printed", "exact"),
        tuple(rows),
        verdicts,
        _draw_first,
        notes,
        {"mu": _MU},
        shown=(("points", "printed", "exact"), ((len(rows), claimed, exact),)),
    )


def _draw_first(figure: Figure) -> None:
    axes = figure.subplots()
    least = [min(1.0, math.exp(-0.5 * max(0.0, e / _MU - 1) ** 2)) for e in _EPSILONS]
    axes.fill_between(_EPSILONS, least, 1.0, color="0.8", label="Thm 2.5 (the paper's grey region)")
    axes.plot(
        _EPSILONS, [gaussian_delta(_MU, e) for e in _EPSILONS], color="#0072B2", label="exact: met above this line"
    )
    axes.set(xlabel="ε", ylabel="δ", yscale="log", ylim=(1e-6, 1.0))
    axes.legend()
    axes.set_title("Which (ε, δ) Gaussian noise with μ = 0.1 meets (Farokhi, Fig. 1)")


def _second(_: StudySettings) -> StudyResult:
    rows = tuple(
        (float(e), float(d), printed_mu(e, d) ** -2, gaussian_mu(e, d) ** -2) for e in _EPSILONS for d in _DELTAS
    )
    printed = np.array([row[2] for row in rows]).reshape(len(_EPSILONS), len(_DELTAS))
    growing = bool((np.diff(printed, axis=0) < 0).all() and (np.diff(printed, axis=1) < 0).all())
    squared = printed_mu(1.0, 1e-12) ** -2 / printed_mu(1.0, 1e-6) ** -2
    verdicts = (
        Verdict("the error grows as ε and δ fall", growing, "on the whole grid"),
        Verdict(
            "it grows like ln²(1/δ)",
            squared > 3.5,
            f"from δ = 1e-6 to 1e-12 by {squared:.2f}; ln² would give 4, ln gives 2",
        ),
        Verdict(
            "it bounds every attacker",
            False,
            "unbiased ones only: guessing 1/2 errs by at most 0.25 on [0, 1], and the bound at ε = 0.1, δ = 1e-6 is "
            f"{printed[0, 0]:.3g}",
        ),
    )
    note = (
        "Left: the paper's formula. Right: the least noise that meets (ε, δ), exactly: with less noise one errs less."
    )
    return StudyResult(
        ("epsilon", "delta", "printed", "exact"),
        rows,
        verdicts,
        partial(_draw_second, rows=rows),
        (note,),
        shown=(("epsilon", "delta", "printed", "exact"), (rows[0], rows[len(rows) // 2], rows[-1])),
    )


def _draw_second(figure: Figure, *, rows: tuple[tuple[float, ...], ...]) -> None:
    figure.set_size_inches(9, 4)
    shape = (len(_EPSILONS), len(_DELTAS))
    levels = np.geomspace(1, 3000, 20)
    drawn = None
    for axes, place, title in zip(figure.subplots(1, 2, sharey=True), (2, 3), ("printed", "exact"), strict=True):
        found = np.array([row[place] for row in rows]).reshape(shape)
        drawn = axes.contourf(
            _EPSILONS, _DELTAS, np.log10(found.T), levels=np.log10(levels), cmap="viridis", extend="both"
        )
        axes.set(xlabel="ε", yscale="log", title=title)
    assert drawn is not None
    figure.colorbar(drawn, ax=figure.axes, label="log₁₀ of the bound on E‖Π(x - x̂)‖²")
    figure.axes[0].set_ylabel("δ")
    figure.suptitle("How wrong an unbiased attacker must be (Farokhi, Fig. 2)")


FIG1 = Study("farokhi-fig1", "Which (ε, δ) the optimal noise meets", f"{REFERENCE}, Fig. 1", _first)
FIG2 = Study("farokhi-fig2", "How wrong an unbiased attacker must be", f"{REFERENCE}, Fig. 2", _second)
