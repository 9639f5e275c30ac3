"""A private classifier that treats groups alike: learn on one portion of people, measure on another, give way.

In:   a private classifier of yes or no, the groups, the largest gap and a confidence.
Out:  FairClassifier: chances of yes, drawn answers, the measured gap, the price, a certificate of both portions.
Not here: the arithmetic of gaps (core/fairness.py), the base classifier.
Proof: docs/proofs/fairness.md

The rule learned on portion A is fixed before portion B is looked at. On B its answers are summed by group with Gaussian
noise. Everything after that is post-processing: the rule is mixed with a constant until its gap is small enough. There
is no failing branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.cell import name_of
from sfumato.core.compose import compose
from sfumato.core.events.disjoint import DisjointEvent
from sfumato.core.fairness import Fairness, Measure, MeasuredGap, Where
from sfumato.core.guarantee import ApproxDP
from sfumato.core.tables import at_rest
from sfumato.errors import DataError, InputError, UnprovedError
from sfumato.learn.fitting import PrivateEstimator, say_it_stays
from sfumato.learn.row_parts import row_count, rows_at
from sfumato.learn.same_rows import row_sources
from sfumato.learn.table import checked_matrix
from sfumato.mechanisms.gaussian import Gaussian

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["FairClassifier", "drawn_answers", "portions_of"]

_KEY = b"sfumato portions 1"
#: What must be true of the rows where a population is spoken of.
_DRAWN = (
    "the rows are independent draws from the population, one a person, and the rule was not chosen by what was "
    "published from them before"
)


def portions_of(names: Sequence[Any], share: float) -> tuple[np.ndarray, np.ndarray]:
    """Places of portion A and of portion B, which has this share of people: by a keyed hash of public names.

    >>> a, b = portions_of(range(10), 0.3)
    >>> len(a), len(b), sorted([*a, *b]) == list(range(10))
    (7, 3, True)
    """
    order = sorted(range(len(names)), key=lambda place: (_hash(names[place]), place))
    measured = min(max(round(share * len(names)), 1), len(names) - 1)
    return np.sort(np.array(order[measured:], dtype=int)), np.sort(np.array(order[:measured], dtype=int))


def _hash(name: Any) -> bytes:
    text = str(name_of(name)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=_KEY, digest_size=16).digest()


def drawn_answers(chances: np.ndarray, classes: Any, random_state: int | None = None) -> np.ndarray:
    """No or yes for each chance of yes. Whoever decides draws: this hides nothing, and nothing is paid for it."""
    drawn = np.random.default_rng(random_state).random(len(chances)) < chances
    return np.asarray(classes)[drawn.astype(int)]


def _next_seed(seed: Any) -> int:
    """A seed for the measurement, other than the base's."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**31 - 1))
    return int(seed.randint(2**31 - 1)) if isinstance(seed, np.random.RandomState) else int(seed) + 1


def _is_label(cell: Any, label: Any) -> bool:
    """Whether a cell is this label; what cannot be compared, an absent cell or a list, is none."""
    with suppress(Exception):
        return bool(cell == label)
    return False


def _cells(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def _label_column(cells: list[Any], labels: tuple[Any, Any]) -> np.ndarray:
    """Labels as they were given, in a column of the declared labels' kind where all are declared."""
    column = np.asarray(list(labels) + [labels[0]] * len(cells))[2:]
    if all(_is_label(cell, labels[0]) or _is_label(cell, labels[1]) for cell in cells):
        column[:] = cells
        return column
    found = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found


class _Paid:
    """The ledger as the base sees it: what it reserves before it draws is the promise of both portions.

    So a base that refuses its rows has reserved nothing. It is committed when the other portion is measured.
    """

    def __init__(self, ledger: Any, promise: ApproxDP, rows: Any) -> None:
        self._ledger, self._promise, self._rows = ledger, promise, rows
        self._held: Any = None

    def reserve(self, dataset: str, cost: Any, **_: Any) -> Any:
        whole = row_sources(self._rows)  # of both portions: the base knows its own alone
        self._held = self._ledger.reserve(dataset, self._promise, purpose="FairClassifier.fit", sources=whole)
        return self._held

    def commit(self, reservation: Any) -> None:
        """Not yet: the noise of the measurement is still to come."""

    @property
    def reserved(self) -> bool:
        """Whether the base came as far as drawing."""
        return self._held is not None

    def settle(self) -> None:
        """Everything was drawn."""
        self._ledger.commit(self._held)


class FairClassifier(ClassifierMixin, BaseEstimator):
    """`base`, a private classifier, with a gap of at most `gap` between groups; costs what `base` costs.

    `labels` are the public labels, no first and yes second; `groups` the public list of groups: whoever is in none of
    them is counted in none. `portion` of the people are kept for measuring, `on` them ("rows") or the "population" they
    are drawn from. One set of people serves one rule for a population: a rule chosen by what was measured on them
    before is not covered. Only chances are fair: `predict` draws an answer by its chance.

    >>> from sfumato.learn import PrivateLogisticRegression
    >>> generator = np.random.default_rng(0)
    >>> X, sex = generator.uniform(-1, 1, (4000, 2)), generator.choice(["f", "m"], 4000)
    >>> y = np.where(X[:, 0] + 0.3 * (sex == "m") > 0, "yes", "no")
    >>> base = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, norm=1.5, classes=["no", "yes"], random_state=0)
    >>> fair = FairClassifier(
    ...     base, measure="demographic_parity", gap=0.1, groups=["f", "m"], on="rows", confidence=0.95
    ... )
    >>> fair.fit(X, y, who=sex).measured_.bound < 0.4
    True
    """

    measure: Measure
    on: Where

    def __init__(
        self,
        base: Any,
        *,
        measure: Measure,
        gap: float,
        groups: Sequence[Any],
        on: Where,
        confidence: float,
        labels: Sequence[Any] | None = None,
        portion: float = 0.5,
        adjacency: Adjacency = REPLACE_ONE,
    ) -> None:
        self.base = base
        self.measure = measure
        self.gap = gap
        self.groups = groups
        self.labels = labels
        self.on = on
        self.confidence = confidence
        self.portion = portion
        self.adjacency = adjacency

    def _check_given(self, rows: int, *columns: Any) -> None:
        if {rows} != set(map(len, columns)) or rows < 4:
            raise DataError("X, y, who and names need the same number of rows, at least 4. Nothing was spent.")
        if not 0 < self.portion < 1:
            raise InputError("portion must lie between 0 and 1: the share of people that is measured.")

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        who: Any,
        names: Sequence[Any] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
    ) -> Self:
        """Learn and measure; `who` is each row's group, `names` public identifiers (without them a row's place).

        With a `ledger` the cost of both portions together is reserved before anything is drawn.
        """
        X, groups = at_rest(X), tuple(map(str, map(name_of, self.groups)))
        asked = Fairness(self.measure, self.gap, groups, self.on, self.confidence)
        labels = self._labels()
        epsilon, delta, noise = self._noise(asked)
        self._check_base()
        rows = row_count(X)
        self._check_given(rows, who, y, range(rows) if names is None else names)
        if (ledger is None) != (dataset is None):
            raise InputError("ledger and dataset belong together. Nothing was drawn and nothing was spent.")
        promise = ApproxDP(epsilon, delta, adjacency=self.adjacency)
        paid = _Paid(ledger, promise, X) if ledger is not None else None
        learned, measured = portions_of(range(rows) if names is None else names, self.portion)
        model: Any = clone(self.base)
        model.set_params(classes=list(labels))
        told_labels, groups = _cells(y), _cells(who)  # cell by cell: none decides how another is read
        told = _label_column([told_labels[place] for place in learned], labels)
        checked_matrix(clone(model), rows_at(X, measured), reset=True)  # before anything is drawn: rows it would refuse
        with self._whole_or_not(paid, dataset):
            model.fit(rows_at(X, learned), told, ledger=paid, dataset=dataset)
            self._check_promise(model, promise)
            answers = np.asarray(model.predict(rows_at(X, measured))) == labels[1]
            truth = np.array([_is_label(told_labels[place], labels[1]) for place in measured])
            sums = self._sums(asked, answers, [groups[place] for place in measured], truth)
            self.measured_ = MeasuredGap.of(asked, noise(sums), noise.scale)
            self.base_, self.labels_, self.classes_ = model, labels, np.asarray(labels)
            self.event_ = self._event(epsilon, delta, model, noise)
            self.guarantee_ = model.guarantee_  # the same promise; of all fits, where the base was fitted before
            self._publishable = noise.publishable and model.certificate_.publishable
            if paid is not None:
                paid.settle()
        return self

    @contextmanager
    def _whole_or_not(self, paid: _Paid | None, dataset: Any) -> Iterator[None]:
        """What breaks a fit leaves the rule as it was, and says that a cost which was reserved stays."""
        before = dict(vars(self))
        try:
            yield
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            if paid is not None and paid.reserved:
                say_it_stays(error, dataset)
            raise

    def _check_base(self) -> None:
        """Before anything is drawn: the base protects the same unit, against the same change, and promises it."""
        stated = getattr(self.base, "adjacency", None)
        if stated != self.adjacency:
            raise InputError(
                f"The base protects {'nobody it names' if stated is None else f'against {stated}'}, and the fair rule "
                f"against {self.adjacency}: state the same adjacency for both. Nothing was drawn and nothing was spent."
            )
        if not isinstance(self.base, PrivateEstimator):
            raise InputError("base must be a private classifier of sfumato.learn. Nothing was spent.")
        if getattr(self.base, "as_published", False):
            raise InputError("A base as it was published promises nothing: leave as_published out. Nothing was spent.")

    @staticmethod
    def _check_promise(model: Any, promise: ApproxDP) -> None:
        """The rule is measured only if what was drawn for it keeps its part: one without a promise leaves none."""
        if compose(model.certificate_.events).implies(promise) is not True:
            raise UnprovedError("The base drew more than it promises. No rule is published.")

    def _labels(self) -> tuple[Any, Any]:
        given = self.labels if self.labels is not None else getattr(self.base, "classes", None)
        if given is None or len(given) != 2:
            raise InputError(
                "Say which labels are public, no first and yes second: labels=['no', 'yes']. Nothing was spent."
            )
        return given[0], given[1]

    def _noise(self, asked: Fairness) -> tuple[float, float, Gaussian]:
        epsilon, delta = getattr(self.base, "epsilon", None), getattr(self.base, "delta", 0.0)
        if epsilon is None or not delta:
            raise InputError(
                "The gap is measured with Gaussian noise, which needs a δ: base=PrivateLogisticRegression(epsilon=1, "
                "delta=1e-6, …). Nothing was spent."
            )
        if self.adjacency.relation != "replace-one":
            raise InputError("Portions are by public places: state the adjacency as replacing one. Nothing was spent.")
        seed = getattr(self.base, "random_state", None)
        # One person moves (Σ(r-½), half the size) by 1 inside a cell and by √½·√2 from one cell to another.
        noise = Gaussian.for_guarantee(
            ApproxDP(float(epsilon), float(delta)),
            1.0,
            self.adjacency,
            dimension=2 * asked.cells,
            random_state=None if seed is None else _next_seed(seed),
        )
        return float(epsilon), float(delta), noise

    @staticmethod
    def _sums(asked: Fairness, answers: np.ndarray, who: Sequence[Any], truth: np.ndarray) -> np.ndarray:
        place = {name: number for number, name in enumerate(asked.groups)}
        sums, sizes = np.zeros(asked.cells), np.zeros(asked.cells)
        found = np.array([place.get(str(name_of(one)), -1) for one in who], dtype=int)
        cells = np.array([asked.cell(int(group), int(label)) for group, label in zip(found, truth, strict=True)], int)
        inside = found >= 0
        np.add.at(sums, cells[inside], answers[inside] - 0.5)
        np.add.at(sizes, cells[inside], 0.5)
        return np.concatenate([sums, sizes])

    def _event(self, epsilon: float, delta: float, model: Any, noise: Gaussian) -> DisjointEvent:
        portions = [list(model.certificate_.events), [noise.event()]]
        return DisjointEvent(epsilon, delta, portions, adjacency=self.adjacency)

    def chances(self, X: Any) -> np.ndarray:
        """The chance of a yes for each row: what is fair."""
        check_is_fitted(self, "measured_")
        own = (np.asarray(self.base_.predict(X)) == self.labels_[1]).astype(float)
        return self.measured_.share * own + (1 - self.measured_.share) * self.measured_.constant

    def predict(self, X: Any, random_state: int | None = None) -> np.ndarray:
        """An answer for each row, drawn by its chance."""
        return drawn_answers(self.chances(X), self.classes_, random_state)

    @property
    def price_(self) -> str:
        """What fairness costs in accuracy, in a sentence."""
        check_is_fitted(self, "measured_")
        return self.measured_.price(self.labels_)

    @property
    def notes_(self) -> tuple[str, ...]:
        """What a certificate says beside its numbers."""
        asked = self.measured_.asked
        drawn = (_DRAWN,) if asked.where == "population" else ()
        return (
            f"fairness: {asked}",
            f"price: {self.price_}",
            "people are in one of two portions by a keyed hash of public names; the rule was learned on one and "
            "measured on the other",
            *drawn,
        )

    @property
    def certificate_(self) -> Certificate:
        """What was drawn from both portions, and what it costs."""
        check_is_fitted(self, "measured_")
        from sfumato.core.certificate import Certificate

        return Certificate.issue(
            subject=f"FairClassifier of {type(self.base_).__name__}",
            events=[self.event_],
            proofs=sorted({*self.event_.proof_ids(), *self.base_.certificate_.proofs}),
            notes=[*self.base_.certificate_.notes[:1], *self.notes_],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )
