"""A pipeline that knows which of its steps are public: nothing is learned from the rows but by its last step.

In:   public steps (SchemaEncoder, Normalizer, encoders with written categories …) and a private estimator.
Out:  PrivatePipeline, `make_pipeline`; guarantee_ and certificate_ are those of the last step, and cover all of it.
Not here: which steps are public (learn/steps.py).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as named_steps
from sklearn.utils.metaestimators import available_if

from sfumato.core.tables import at_rest
from sfumato.errors import DataError, InputError, PrivacyParameterError, SfumatoError, UnprovedError
from sfumato.learn.fitting import SCORES, LedgerLike, fitting
from sfumato.learn.row_parts import row_count, rows_at
from sfumato.learn.shown import SettingsShown
from sfumato.learn.steps import private_core, refuse_uncovered, trusted, uncovered

__all__ = ["PrivatePipeline", "make_pipeline"]


def _last_step_can(method: str) -> Callable[[Any], bool]:
    """Whether a pipeline's last step has this method: then the pipeline has what begins with fitting it."""

    def has(pipeline: Any) -> bool:
        last = pipeline.steps[-1][1]
        return last is None or last == "passthrough" or hasattr(last, method)

    return has


class PrivatePipeline(SettingsShown, Pipeline):
    """scikit-learn's Pipeline, of public steps and a private estimator; every other step is refused before a draw.

    >>> from sklearn.preprocessing import Normalizer
    >>> from sfumato.learn import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> model = make_pipeline(Normalizer(), PrivateLogisticRegression(1.0, 1e-6, random_state=0)).fit(X, X[:, 0] > 0)
    >>> print(model.guarantee_)
    (1, 1e-06)-DP, under replacing one record
    >>> model.score(X, X[:, 0] > 0) > 0.9
    True
    """

    def fit(
        self, X: Any, y: Any = None, *, ledger: LedgerLike | None = None, dataset: str | None = None, **params: Any
    ) -> Self:
        """Fit the last step on what the public steps make of the rows; `ledger` and `dataset` as in its own fit.

        They may have the last step's name before them, as scikit-learn writes parameters of a step's fit.
        """
        refuse_uncovered(self)
        core, prefix, X = *private_core(self), at_rest(X)
        last = {name.removeprefix(prefix): value for name, value in params.items()}
        charged = {"ledger": ledger, "dataset": dataset}
        for name in charged.keys() & last.keys():
            if charged[name] is not None:
                raise InputError(f"{name} is given twice, also as {prefix}{name}. Nothing was drawn or spent.")
            charged[name] = last.pop(name)
        with fitting(core, **charged, rows=X):
            front = front_of(self)
            check_row_by_row(front, X)
            core.fit(transformed(front, X), y, **last)
        return self

    @available_if(_last_step_can("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and ask about the same rows: which of them are typical. The answers show private rows."""
        return self.fit(X, y, **params).predict(X)

    @available_if(_last_step_can("transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """What public steps make of the rows; steps that learn are refused here too."""
        if found := uncovered(self):
            raise PrivacyParameterError(
                "; ".join(found) + ". No guarantee would cover it. Nothing was drawn and nothing was spent."
            )
        return super().fit_transform(X, y, **params)

    @property
    def guarantee_(self) -> Any:
        return private_core(self)[0].guarantee_

    @property
    def certificate_(self) -> Any:
        return private_core(self)[0].certificate_

    @property
    def not_covered_(self) -> tuple[str, ...]:
        """What guarantee_ does not speak of: labels nobody declared, steps that are public on your word, and scores."""
        return (*private_core(self)[0].labels_not_covered(), *trusted(self), SCORES)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refused: the steps before the last are code, and a file is data. Save the last step."""
        raise UnprovedError(
            f"The steps of a pipeline are code and are not written to a file: pipeline[-1].save({os.fspath(path)!r}) "
            "saves the model, sfumato.learn.load reads it, and make_pipeline puts the public steps before it again. "
            "Nothing was written."
        )

    def explain(self) -> str:
        """What the last step did, and which steps before it are public on whose word."""
        lines = [private_core(self)[0].explain(), "The steps before it are public: they learn nothing from the rows."]
        return "\n".join([*lines, *(f"{one}." for one in trusted(self))])


def make_pipeline(*steps: Any) -> PrivatePipeline:
    """A PrivatePipeline whose steps are named after their classes, as by scikit-learn's make_pipeline.

    >>> from sfumato.core import Interval, Schema
    >>> from sfumato.learn import PrivateSVC, SchemaEncoder
    >>> list(make_pipeline(SchemaEncoder(Schema({"age": Interval(0, 110)})), PrivateSVC(1.0)).named_steps)
    ['schemaencoder', 'privatesvc']
    """
    return PrivatePipeline(named_steps(*steps).steps)


def front_of(model: Any) -> list[tuple[str, Any]]:
    """The steps before the last one, those of an inner pipeline included."""
    front: list[tuple[str, Any]] = []
    while isinstance(model, Pipeline):
        front += model.steps[:-1]
        model = model.steps[-1][1]
    return front


def transformed(front: list[tuple[str, Any]], rows: Any) -> Any:
    """What public steps make of the rows; their `fit` learns nothing. Their errors are told without a cell."""
    for name, step in front:
        if step is None or step == "passthrough":
            continue
        made, failed = None, ""
        try:
            made = step.fit(rows).transform(rows)
        except SfumatoError:
            raise
        except Exception as error:  # other people's steps quote cells, in their context too
            failed = type(error).__name__
        if failed:
            raise DataError(
                f"The step {name!r} cannot read the rows ({failed}). Its own words may quote a cell: call its "
                "fit_transform alone to see them. Nothing was drawn and nothing was spent."
            )
        if row_count(made) != row_count(rows):
            raise DataError(
                f"The step {name!r} returns more or fewer rows than it was given: whose row is whose is then unknown. "
                "Nothing was drawn and nothing was spent."
            )
        rows = made
    return rows


def shape_after(front: list[tuple[str, Any]], rows: Any) -> Any:
    """Zeros in the shape that public steps give the rows: one row tells how wide it is."""
    if not front:
        return rows
    width = transformed([(name, _copy(step)) for name, step in front], rows_at(rows, [0])).shape[1]
    return np.broadcast_to(0.0, (row_count(rows), width))


def check_row_by_row(front: list[tuple[str, Any]], rows: Any) -> None:
    """Public steps make the same of a row whether it comes alone or with another; a function that mixes rows does not.

    Two rows are looked at, in copies of the steps: it finds a mean that is subtracted, not a function that hides.
    """
    if not front or row_count(rows) < 2:
        return
    together = _dense(
        transformed([(name, _copy(step)) for name, step in front], rows_at(rows, [0, row_count(rows) - 1]))
    )
    alone = _dense(transformed([(name, _copy(step)) for name, step in front], rows_at(rows, [0])))
    if together.shape[1:] != alone.shape[1:] or not _same(together[0], alone[0]):
        raise DataError(
            "The steps before the private estimator make something else of a row when other rows come with it, so they "
            "are not public: a mean or a maximum over rows must be a public number, written down. Nothing was drawn "
            "and nothing was spent."
        )


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind == "f" and other.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))
    return all(mine == yours or _absent(mine, yours) for mine, yours in zip(one, other, strict=True))


def _absent(*cells: Any) -> bool:
    return all(isinstance(cell, float) and math.isnan(cell) for cell in cells)


def _copy(step: Any) -> Any:
    return step if step is None or isinstance(step, str) else clone(step)


def _dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
