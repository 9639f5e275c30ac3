"""Counts of the cells of one table, as they are published: with the public number of rows, where it is public.

In:   the noisy counts of all cells, the law of the noise in each.
Out:  figures, predictions, squared error, words: shared by histograms and counts of groups.
Not here: several tables together (questions/family.py, questions/marginals.py).
Proof: docs/proofs/marginals.md
"""

from __future__ import annotations

import numpy as np

from sfumato.questions.consistency import DrawnTables
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.question import Numbers
from sfumato.questions.residual import Workload

__all__ = ["counted_error", "counted_figures", "counted_words", "left_in_a_cell"]


def left_in_a_cell(law: NoiseLaw, cells: int, total_is_public: bool) -> NoiseLaw:
    """Of the noise in a published cell, when each drawn number carries `law`.

    >>> left_in_a_cell(NoiseLaw(1.0), 4, True).variance
    0.75
    """
    one = ((0,),)
    return DrawnTables(Workload((cells,), one), one, (1.0,), total_is_public).law((0,), {(0,): law})


def counted_figures(
    noisy: Numbers, law: NoiseLaw, total_is_public: bool, count: float | None = None
) -> tuple[Figure, ...]:
    """Where the number of rows is public, what the noise added to it is taken off again, from every cell alike."""
    values = np.ravel(noisy).astype(np.float64)
    if total_is_public:
        values = values + ((count or 0.0) - values.sum()) / values.size
    own = left_in_a_cell(law, values.size, total_is_public)
    return tuple(Figure.around(value, own) for value in values.tolist())


def counted_error(variance: float, cells: int, total_is_public: bool) -> float:
    """Expected squared error of all cells together: a public total takes one cell's worth of it away."""
    return variance * (cells - total_is_public)


def counted_words(noise: str, drawn: float, error: float) -> str | None:
    """What was done to the noise of a table whose numbers were made consistent; None where nothing was."""
    if not error < drawn * (1 - 1e-9):
        return None
    return (
        f"Published = exact + noise. The noise is {noise} with mean 0 and standard deviation {drawn:.4g} for each "
        f"number; cells were then made consistent with what is known of their sums, which leaves {error:.4g}. "
        "Errors of different cells are correlated. Numbers may be negative or fractional: that is the noise."
    )
