"""Fit any estimator that can be fitted by sums, over a table that is never in memory as a whole.

In:   an unfitted estimator and Passes: something that can sum a statistic over all its rows.
Out:  the estimator, fitted by its own `fit_by_sums`: the same plan, noise, certificate and words as in memory.
Not here: files and clusters (run/engine/fit.py), the statistics (learn/stream_sums.py), arrays (learn/passes.py).

Sums leave the passes exact. Noise is added once, after the last pass and after the table was found unchanged; a
pass that is repeated because a worker died repeats a sum and draws nothing.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from sfumato.errors import DataError, InputError
from sfumato.learn.arrays import is_device_array, to_device, to_host
from sfumato.learn.base import PrivateLinearClassifier
from sfumato.learn.fitting import LedgerLike, fitting
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.linear import PrivateLinearRegression
from sfumato.learn.passes import ArrayPasses, Passes, device_matrix, remember_columns
from sfumato.learn.table import checked_labels, declared_classes

__all__ = ["fit_by_sums", "fit_on_device", "streamed_classes", "sums_suffice"]

Estimator = TypeVar("Estimator")


def fit_by_sums(
    estimator: Estimator, passes: Passes, *, ledger: LedgerLike | None = None, dataset: str | None = None
) -> Estimator:
    """Fit a linear classifier or regression, or a KernelMeanClassifier, by passes over its table.

    Classifiers must declare `classes`. Costs what `fit` costs, charged to a `ledger` in the same way; raises with
    nothing spent if anything does not fit.
    """
    with fitting(estimator, ledger, dataset):
        return _fit_by_sums(estimator, passes)


def _fit_by_sums(estimator: Any, passes: Passes) -> Any:
    if getattr(estimator, "calibration", "public") != "public":
        raise InputError(
            "A curve of probabilities is paid for in memory only: pass calibration='public'. Nothing was spent."
        )
    if isinstance(estimator, PrivateLinearClassifier | KernelMeanClassifier):
        classes = streamed_classes(estimator)
        assert classes is not None
        remember_columns(estimator, passes)
        return estimator.fit_by_sums(passes, np.asarray(classes))
    if isinstance(estimator, PrivateLinearRegression):
        remember_columns(estimator, passes)
        return estimator.fit_by_sums(passes)
    raise InputError(
        f"{type(estimator).__name__} is not fitted by sums. Use PrivateLogisticRegression, PrivateSVC, "
        "PrivateLinearRegression or KernelMeanClassifier, or fit it in memory. Nothing was spent."
    )


def sums_suffice(estimator: Any) -> bool:
    """Whether an estimator is fitted by sums over its table; others need the rows in memory.

    >>> from sfumato.learn import PrivateLinearRegression, PrivateSVDD
    >>> sums_suffice(PrivateLinearRegression(1.0, target=(0, 1))), sums_suffice(PrivateSVDD(1.0, 1e-6))
    (True, False)
    """
    return isinstance(estimator, PrivateLinearClassifier | PrivateLinearRegression | KernelMeanClassifier)


def streamed_classes(estimator: Any) -> tuple[Any, ...] | None:
    """The declared labels, sorted; None for regressions."""
    if not hasattr(estimator, "classes"):
        return None
    declared = declared_classes(estimator.classes)
    if declared is None:
        raise DataError(
            "A table that is read in parts needs its labels declared: classes=[…]. Nothing was read and nothing was "
            "spent."
        )
    return tuple(declared.tolist())


def fit_on_device(estimator: Any, X: Any, y: Any) -> Any:
    """Fit a kernel classifier on a torch tensor or CuPy array where it lies; noise is drawn on the host."""
    if not sums_suffice(estimator):
        raise InputError(
            f"{type(estimator).__name__} learns on the host, and these rows lie on a device: pass them as a NumPy "
            "array, as x.cpu().numpy() makes of a torch tensor and x.get() of a CuPy array, or use "
            "KernelMeanClassifier or PrivateSVC, which learn there. Nothing was spent."
        )
    matrix = device_matrix(estimator, X)
    labels = to_host(y) if is_device_array(y) else y
    given = estimator.classes
    codes, classes = checked_labels(labels, int(matrix.shape[0]), declared_classes(given))
    estimator.classes = classes
    try:
        return fit_by_sums(estimator, ArrayPasses(matrix, to_device(codes, matrix)))
    finally:
        estimator.classes = given
