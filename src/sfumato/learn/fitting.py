"""What every private fit does around its training: charge a ledger, count, leave nothing behind when it fails.

In:   an estimator's own `_fit`, a ledger and the name of a dataset.
Out:  PrivateEstimator (abstract), with `fit(X, y, ledger=…, dataset=…)`; `fitting`, for fits by other doors.
Not here: the training (the estimators), the ledger itself (ledger/ledger.py, handed in by the caller).

The cost is reserved before the first draw and committed after the last; results are handed out after that. A fit that
fails or is interrupted in between leaves its reservation counted, since nobody can know what was seen, says so, and
leaves the estimator as it was before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self

from sklearn.base import BaseEstimator

from sfumato.core.adjacency import Adjacency
from sfumato.core.events.event import Event, Repeated
from sfumato.core.guarantee import ApproxDP, Guarantee, PureDP
from sfumato.core.tables import at_rest
from sfumato.errors import InputError, SfumatoError, UnprovedError
from sfumato.learn.arrays import is_device_array
from sfumato.learn.asked import as_fitted, forget_parameters, keep_parameters
from sfumato.learn.lineage import cloned, count_fit, lineage_of
from sfumato.learn.published import fitted_names, refuse_unpublishable, withheld_names
from sfumato.learn.same_rows import row_sources
from sfumato.learn.shown import FittedShown
from sfumato.learn.table import checked_matrix, label_above_zero, refuse_extras

__all__ = [
    "SCORES",
    "Cost",
    "LedgerLike",
    "PrivateEstimator",
    "fit_inside",
    "fitting",
    "is_charged",
    "pay",
    "say_it_stays",
    "sentence",
]

#: How a refusal ends that knows of no reservation, which may be that of a fit around it.
_NOTHING = re.compile(r"\s*Nothing was (\w+ and nothing was |\w+ or )?\w+\.")

Cost = Sequence[Event | Guarantee | Repeated] | Guarantee


class LedgerLike(Protocol):
    """What a fit asks of a ledger; sfumato.ledger.Ledger is one."""

    def reserve(
        self,
        dataset: str,
        cost: Any,
        *,
        adjacency: Adjacency | None = None,
        purpose: str = "",
        promised: Guarantee | None = None,
        sources: Sequence[str] = (),
    ) -> Any: ...
    def commit(self, reservation: Any) -> None: ...


class _Charge:
    """The reservation of one fit."""

    def __init__(self, ledger: Any, dataset: Any, purpose: str, rows: Any) -> None:
        self.ledger, self._dataset, self._purpose, self._rows = ledger, dataset, purpose, rows
        self._reservation: Any = None

    def reserve(self, cost: Callable[[], Cost], promise: Guarantee) -> None:
        if self.ledger is None:
            return
        items = cost()
        self._reservation = self.ledger.reserve(
            self._dataset,
            items if isinstance(items, Guarantee) else list(items),
            purpose=self._purpose,
            promised=promise if isinstance(promise, ApproxDP | PureDP) else None,
            sources=() if self._rows is None else row_sources(self._rows),
        )

    def commit(self) -> None:
        if self.ledger is None:
            return
        if self._reservation is None:
            raise UnprovedError("This fit drew without reserving its cost. No model is handed out.")
        self.ledger.commit(self._reservation)

    def tell(self, error: BaseException) -> None:
        """Let the error of a fit that has reserved its cost say that the cost stays."""
        if self._reservation is not None:
            say_it_stays(error, self._dataset)


def say_it_stays(error: BaseException, dataset: Any) -> None:
    """Let an error that ends a fit after its cost was reserved say that the cost stays; once."""
    stays = (
        f"The cost of this fit was reserved for {dataset!r} before that and stays charged: nobody can know what "
        "was seen."
    )
    if any(stays in str(said) for said in (*error.args, *getattr(error, "__notes__", ()))):
        return
    if isinstance(error, SfumatoError) and error.args:
        error.args = (f"{_NOTHING.sub('', str(error.args[0]))} {stays}", *error.args[1:])
    else:
        error.add_note(stays)


@contextmanager
def fitting(
    estimator: Any, ledger: LedgerLike | None = None, dataset: str | None = None, rows: Any = None
) -> Iterator[None]:
    """One fit of `estimator`, on `rows` where they are at hand: inside, `pay` is called once, before any draw."""
    if "_charge" in vars(estimator):  # a door within a door
        if ledger is not None:
            raise InputError(
                "The cost of this fit is reserved by the fit around it: pass the ledger to that one alone. Nothing was "
                "drawn and nothing was spent."
            )
        yield
        return
    if (ledger is None) != (dataset is None):
        raise InputError(
            "ledger and dataset belong together: fit(X, y, ledger=Ledger('ledger.db'), dataset='survey'). Nothing was "
            "drawn and nothing was spent."
        )
    if ledger is not None and not hasattr(ledger, "reserve"):
        raise InputError(
            "ledger must be a ledger and not the path of one: fit(X, y, ledger=sfumato.Ledger('ledger.db'), "
            "dataset='survey'). Nothing was drawn and nothing was spent."
        )
    lineage_of(estimator)
    before = dict(vars(estimator))
    forget_parameters(estimator)
    for name in fitted_names(estimator):
        del vars(estimator)[name]
    charge = estimator._charge = _Charge(ledger, dataset, f"{type(estimator).__name__}.fit", rows)
    try:
        yield
        charge.commit()
    except BaseException as error:
        state = vars(estimator)
        state.clear()
        state.update(before)
        charge.tell(error)
        raise
    del estimator._charge
    keep_parameters(estimator)
    count_fit(estimator)


def pay(estimator: Any, cost: Callable[[], Cost], promise: Guarantee) -> None:
    """Reserve what the fit will draw, where a ledger was given; a refusal passes through and nothing is drawn."""
    charge = vars(estimator).get("_charge")
    if charge is not None:
        charge.reserve(cost, promise)


def fit_inside(outer: Any, inner: Any, X: Any, y: Any) -> Any:
    """Fit an estimator that another one consists of: what it draws is reserved where the outer fit's cost is."""
    inner._charge, inner._inside = outer._charge, True
    try:
        inner.fit(X, y)
        keep_parameters(inner)
        return inner
    finally:
        for name in ("_charge", "_inside"):
            vars(inner).pop(name, None)


def is_charged(estimator: Any) -> bool:
    """Whether the fit that is under way was given a ledger."""
    charge = vars(estimator).get("_charge")
    return charge is not None and charge.ledger is not None


def sentence(note: str) -> str:
    """A note of a certificate as a sentence.

    >>> sentence("the box is public")
    'The box is public.'
    """
    return f"{note[:1].upper()}{note[1:]}."


class PrivateEstimator(FittedShown, BaseEstimator):  # pyright: ignore[reportIncompatibleVariableOverride]
    """An estimator whose `fit` costs something once. Abstract: `_fit` trains, and calls `pay` before it draws."""

    #: While a fit is under way: what it reserved, and that it is part of another one's fit.
    _charge: _Charge
    _inside: bool

    def fit(
        self, X: Any, y: Any = None, *, ledger: LedgerLike | None = None, dataset: str | None = None, **refused: Any
    ) -> Self:
        """Train once; costs `epsilon` and `delta`. Raises with nothing spent if anything does not fit.

        With a `ledger` the cost is reserved there for `dataset` before anything is drawn and committed before the
        model is handed out; a cost that the grant does not cover is refused and nothing is trained. The ledger then
        knows these rows: under another name for them it refuses.
        """
        refuse_extras(refused)
        X = at_rest(X)
        with fitting(self, ledger, dataset, X):
            self._fit(X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def check_table(self, table: Any, *, reset: bool) -> None:
        """Refuse rows that `fit` (`reset`) or an answer would refuse, before anything is paid."""
        if not is_device_array(table):
            self._inside = True  # no guess about rows that are looked at again
            checked_matrix(self, table, reset=reset)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what may be published of the fitted model, with its certificate, as JSON; see sfumato.learn.load."""
        from sfumato.learn.saving import save_model

        save_model(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, joblib and deepcopy: without what was counted on private rows and may not be published."""
        refuse_unpublishable(self, "pickled")
        state: dict[str, Any] = super().__getstate__()  # pyright: ignore[reportAssignmentType]
        return {name: value for name, value in state.items() if name not in withheld_names(self)}

    def __sklearn_clone__(self) -> Self:
        return cloned(self)

    @property
    def not_covered_(self) -> tuple[str, ...]:
        """What `guarantee_` does not speak of: it covers what this fit drew from the rows it was handed."""
        return (*self.labels_not_covered(), _BEFORE, SCORES)

    def labels_not_covered(self) -> tuple[str, ...]:
        """That the list of labels is not covered, where it is not."""
        return (_LABELS,) if self.reads_labels() else ()

    def reads_labels(self) -> bool:
        """Whether the list of labels comes from the training labels, since none was declared."""
        return vars(self).get("_labels_read", getattr(as_fitted(self), "classes", ()) is None)

    def say_labels_were_read(self, read: bool) -> None:
        """For who declares `classes` on its behalf: whether the list was read from labels before."""
        self._labels_read = read

    def become_best_of_many(self, promise: Guarantee) -> None:
        """For who keeps it as the best of several fits: its promise is that of all of them, and no file tells less."""
        self.guarantee_, self._chosen_among_many = promise, True
        lineage_of(self).spent = [promise]  # fits of it that follow add to this

    @property
    def is_best_of_many(self) -> bool:
        """Whether its certificate, which is that of one fit, would state too little."""
        return vars(self).get("_chosen_among_many", False)

    def labels_note(self) -> str:
        """Where the list of labels comes from, for certificates and explanations."""
        return _READ if self.reads_labels() else _DECLARED

    def scores_words(self) -> tuple[str, ...]:
        """Which of two labels a score above 0 speaks for, for explanations; nothing where each label has its own."""
        label = label_above_zero(getattr(self, "classes_", None))
        return () if label is None else (f"A score above 0 speaks for {label!r}, and so does what adds to a score.",)


#: A person whose label nobody else has would show in the list of classes.
_LABELS = (
    "which labels occur: they were read from y. Pass classes=[…], the list that is public, and an unlisted label is "
    "refused instead"
)
_READ = (
    "the list of labels was read from the training labels and is not covered, unless it is public anyway: classes=[…] "
    "declares it"
)
_DECLARED = "the list of labels is public: it was declared"
#: What no estimator can see from inside a scikit-learn Pipeline.
_BEFORE = (
    "whatever was learned from the rows before fit was handed them: a fitted scaler, encoder, selection of columns. "
    "sfumato.learn.make_pipeline and uncovered(pipeline) know which steps are public"
)
SCORES = "scores and errors computed on private rows, and whatever is chosen by them"
