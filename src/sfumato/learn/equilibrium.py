"""Classification by equilibrium points: interior points of the support decide, not its boundary.

In:   a table with a public box, labels, ε and δ.
Out:  EquilibriumClassifier, a scikit-learn classifier with a guarantee and a certificate, or, as published, with none.
Not here: support functions (learn/kernel_mean.py, learn/svdd.py), dynamics (learn/basins.py, learn/class_points.py).
Proof: docs/proofs/equilibrium.md

By default each class has a support function of its own, from the noisy sums of its records' features and their
products: the equilibrium points of a class are its own, no votes are needed, and the whole budget goes to the supports.
support="all" is the thesis corrected: Phase I releases one support function. Phase II follows its gradient from public
starting points: post-processing. Phase III counts the labels of every basin, empty ones included, with noise. One
support knows no labels: where classes touch, its basins hold several, and votes share the budget.
As published (`as_published=True`), the starting points are the records and the noise is half of what is needed: that
has no guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.spatial import KDTree
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import at_least_zero
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.learn.arrays import is_device_array, to_host
from sfumato.learn.asked import as_fitted, keep_parameters
from sfumato.learn.basins import Basins, follow, highest, nearest_points, public_starts
from sfumato.learn.class_points import ClassScores, class_points, nearest_labels
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.features import even_components
from sfumato.learn.fitting import fit_inside, pay, sentence
from sfumato.learn.kernel_base import ARITHMETIC, KernelInput, check_row_count
from sfumato.learn.kernel_classifier import KernelClassifier
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_rule import plan_kernel
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.svdd import PrivateSVDD
from sfumato.learn.table import checked_labels, declared_classes
from sfumato.mechanisms import Gaussian, Laplace

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["EquilibriumClassifier", "automatic_cells"]

#: Public starting points of the dynamics.
_STARTS = 1024
#: Of each class, where there are many.
_LEAST_STARTS = 128
#: "auto" features of one support function for all.
_COMPONENTS = 400
#: Records for each basin, in standard deviations of a noisy vote.
_RECORDS_PER_DEVIATION = 2.0
#: "auto" bandwidth in units of that of scores, up to so many columns: a narrower kernel has more basins, and they hold
#: fewer classes; in many columns there are more of them than starting points find. Fixed on handwritten digits, breast
#: cancer and synthetic tables, with the two numbers above.
_NARROWER, _FEW_COLUMNS = 3.0, 10
#: Share of ε (of μ² with δ) for the support function when nobody says otherwise; see `_split`.
_SUPPORT_SHARE = 0.5
_NO_GUARANTEE = (
    "as published: equilibrium points are reached from the records themselves, and votes carry Lap(1/ε) where "
    "replacing a record moves two of them"
)


def _has_scores(estimator: EquilibriumClassifier) -> bool:
    """Points alone and votes have labels and no scores."""
    asked = as_fitted(estimator)
    return asked.publish == "support" and asked.support == "classes" and not asked.as_published


def _check_count(value: Any, name: str) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1. Nothing was spent.")


class EquilibriumClassifier(ClassifierMixin, KernelInput):
    """Labels a row by the equilibrium point that it reaches on private support functions.

    `support="classes"`: one support function for each class; a row follows the one that is highest where it is, and
    has that class. gamma="auto" spends 4 % of the budget on how far rows lie apart where that is worth it. `gamma`,
    `n_components`: see KernelClassifier, whose scores the supports are. `support="all"`: one for all, whose basins are
    labelled by noisy votes of the records in them; `split` is the share of the budget of the support function; `C`: see
    PrivateSVDD.
    Public starting points (a Sobol sequence in the box) look for equilibrium points; those within `merge_radius` of
    each other are one, and the `cells` highest are kept: "auto" is 1024, or with votes as many as their noise allows,
    by n, ε and δ alone (`automatic_cells`). `publish="points"` keeps and publishes the labelled points alone, without
    any support function, and new rows take the majority of the `n_neighbors` nearest: for tables of few columns, in
    which starting points reach every hill. `starts` must be "public".

    >>> generator = np.random.default_rng(0)
    >>> y = generator.integers(2, size=2000)
    >>> X = generator.normal(scale=0.12, size=(2000, 2)) + np.where(y == 1, 0.5, -0.5)[:, None]
    >>> model = EquilibriumClassifier(2.0, 1e-6, cells=64, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        publish: Literal["support", "points"] = "support",
        starts: Literal["public"] = "public",
        cells: int | Literal["auto"] = "auto",
        split: float | Literal["auto"] = "auto",
        n_neighbors: int = 1,
        C: float | Literal["auto"] = "auto",
        gamma: float | Literal["auto"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        merge_radius: float = 0.25,
        as_published: bool = False,
        classes: Any = None,
        support: Literal["classes", "all"] = "classes",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.publish = publish
        self.starts = starts
        self.cells = cells
        self.split = split
        self.n_neighbors = n_neighbors
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.merge_radius = merge_radius
        self.as_published = as_published
        self.classes = classes
        self.support = support

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _fit(self, X: Any, y: Any) -> None:
        self._check()
        if self._by_class():
            self._fit_classes(X, y)
        else:
            self._fit_votes(X, y)
        if self.publish == "points":
            for name in ("support_", "_basins", "counts_"):
                vars(self).pop(name, None)  # what is published is what is kept

    def _by_class(self) -> bool:
        return self.support == "classes" and not self.as_published

    def _fit_classes(self, X: Any, y: Any) -> None:
        """One release: the sums of features of each class. The rest follows from it."""
        self._budget()
        rows = self._rows(X, reset=True)
        seeds = seed_from(self.random_state)
        records = seeds.records(int(rows.shape[0]))
        check_row_count(records)
        self.support_ = self.class_supports((records, int(rows.shape[1])), on_device=is_device_array(X))
        fit_inside(self, self.support_, X, y)
        self.classes_, self._publishable = self.support_.classes_, seeds.publishable
        self.guarantee_, self.events_ = self.support_.guarantee_, tuple(self.support_.events())
        self.noise_ = self.support_.noise_
        each = max(_LEAST_STARTS, _STARTS // len(self.classes_))
        starts = public_starts(each, *self._start_box(int(rows.shape[1])))
        most = _STARTS if self.cells == "auto" else int(self.cells)
        with calm_threads():
            scores = ClassScores(self.support_.features_.frequencies, self.support_.weights_)
            self.points_, self.point_labels_ = class_points(scores, starts, float(self.merge_radius), most)

    def class_supports(self, shape: tuple[int, ...], *, on_device: bool = False) -> Any:
        """The unfitted estimator whose class scores are the support functions, for a table of this shape.

        Where the functions themselves are used, the best scores; for points alone, and on a device, sums of features:
        their hills are where records are.
        """
        sums = on_device or self.publish == "points"
        gamma: Any = self.gamma
        if sums and gamma == "auto" and self._replaces() and not on_device:
            plan = plan_kernel(shape[0], shape[1], 1, float(self.epsilon), float(self.delta))
            gamma = "spread" if plan.pays else "auto"
        kind: Any = KernelMeanClassifier if sums else KernelClassifier
        return kind(
            self.epsilon,
            self.delta,
            gamma,
            self.n_components,
            self.box,
            schema=self.schema,
            adjacency=self.adjacency,
            random_state=self.random_state,
            classes=self.classes,
        )

    def _fit_votes(self, X: Any, y: Any) -> None:
        promise = self._budget()
        components = even_components(self._components())
        rows = self._rows(X, reset=True)
        check_row_count(int(rows.shape[0]))
        labels = to_host(y) if is_device_array(y) else y
        labels, self.classes_ = checked_labels(labels, int(rows.shape[0]), declared_classes(self.classes))
        seeds = seed_from(self.random_state)
        self._publishable = seeds.publishable
        for_support, self.votes_ = self._split()
        self.support_ = self._support(for_support, rows.shape)
        keep_parameters(self.support_)
        self.guarantee_: Guarantee = NoGuarantee(_NO_GUARANTEE) if self.as_published else promise
        support = self.support_.promised()
        self.support_.aim(rows.shape, support, components)
        self.events_ = () if self.as_published else (self.support_.noise_.event(), self.votes_.event())
        pay(self, lambda: self.guarantee_ if self.as_published else self.events_, self.guarantee_)
        self.support_.fit_paid_rows(rows, support, components, seeds)
        with calm_threads():
            self._find_basins(rows)
            self._vote(rows, labels, seeds)

    def _components(self) -> int:
        return _COMPONENTS if self.n_components == "auto" else self.n_components

    def _check(self) -> None:
        self._budget()
        self._check_support()
        if self.publish not in ("support", "points"):
            raise InputError("publish must be 'support' or 'points'. Nothing was spent.")
        if self.starts != "public":
            raise InputError(
                "starts must be 'public': equilibrium points reached from records betray them. as_published=True runs "
                "the published variant, without a guarantee. Nothing was spent."
            )
        self._check_numbers()

    def _check_support(self) -> None:
        if self.support not in ("classes", "all"):
            raise InputError("support must be 'classes' or 'all'. Nothing was spent.")
        if self._by_class() and (self.C != "auto" or self.split != "auto"):
            raise InputError(
                "C and split belong to one support function for all classes and its votes: pass support='all', or "
                "leave them out. Nothing was spent."
            )
        if not self._by_class() and not self._replaces():
            raise PrivacyParameterError(
                "support='all' covers replacing one record only; support='classes' covers adding and removing one too. "
                "Nothing was spent."
            )

    def _check_numbers(self) -> None:
        if not (isinstance(self.cells, str) and self.cells == "auto"):
            _check_count(self.cells, "cells")
        _check_count(self.n_neighbors, "n_neighbors")
        if self.split != "auto" and not (isinstance(self.split, int | float) and 0 < self.split < 1):
            raise InputError("split must be 'auto' or lie strictly between 0 and 1. Nothing was spent.")
        at_least_zero(self.merge_radius, "merge_radius")

    def _split(self) -> tuple[tuple[float, float], Gaussian | Laplace]:
        """(ε, δ) for the support function, and the noise of votes.

        Half and half by default: a rule of thumb, not a proved optimum.
        With δ the two acts are Gaussian and squares of μ add up; (ε, δ) of the first is read off its μ.
        """
        share = _SUPPORT_SHARE if self.split == "auto" else float(self.split)
        epsilon, delta = float(self.epsilon), float(self.delta)
        if self.as_published:
            noise = Laplace(1 / epsilon, 1.0, self.adjacency)
            return (epsilon, delta), noise
        if not delta:
            rest = PureDP(epsilon * (1 - share) * (1 - 1e-9))
            return (epsilon * share * (1 - 1e-9), 0.0), Laplace.for_guarantee(rest, 2.0, self.adjacency)
        mu = gaussian_mu(epsilon, delta) * (1 - 1e-6)
        first = GaussianDP(mu * math.sqrt(share))
        rest = GaussianDP(mu * math.sqrt(1 - share))
        noise = Gaussian.for_guarantee(rest, math.sqrt(2) * (1 + ARITHMETIC), self.adjacency)
        return (first.epsilon(delta) * (1 - 1e-9), delta), noise

    def _support(self, budget: tuple[float, float], shape: tuple[int, ...]) -> PrivateSVDD:
        gamma = self.gamma
        if gamma == "auto":
            narrower = _NARROWER if shape[1] <= _FEW_COLUMNS else 1.0
            gamma = narrower * plan_kernel(shape[0], shape[1], 1, *budget).gamma
        return PrivateSVDD(
            *budget,
            C=self.C,
            gamma=gamma,
            n_components=self._components(),
            box=self.box,
            schema=self.schema,
            adjacency=self.adjacency,
            random_state=self.random_state,
        )

    def _find_basins(self, rows: Any) -> None:
        """Phase II: where the dynamics lead; from public points, or as published from the records."""
        frequencies = self.support_.features_.frequencies
        assert frequencies is not None  # the features were used in Phase I
        self._basins = Basins(frequencies, self.support_.centre_)
        if self.as_published:
            start, most = rows, int(rows.shape[0])
        else:
            start, most = public_starts(_STARTS, *self._start_box(rows.shape[1])), self._cells(int(rows.shape[0]))
        reached, radius = follow(self._basins, start), float(self.merge_radius)
        self.points_ = highest(self._basins, to_host(reached), radius, most, cubes=self.as_published)

    def _cells(self, records: int) -> int:
        if self.cells != "auto":
            return int(self.cells)
        return automatic_cells(records, len(self.classes_), math.sqrt(self.votes_.error()))

    def _start_box(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """Where encoded rows lie: [-1, 1], or what the schema's encoding fills."""
        if self.schema is None:
            return np.full(columns, -1.0), np.full(columns, 1.0)
        return _encoded_box(self.schema)

    def _vote(self, rows: Any, labels: np.ndarray, seeds: Seeds) -> None:
        """Phase III: noisy counts of every label in every basin."""
        self.counts_ = seeds.seeded(self.votes_)(self._count(rows, labels))
        self.point_labels_ = self.counts_.argmax(axis=1)

    def _count(self, rows: Any, labels: np.ndarray) -> np.ndarray:
        """How many records of each label lie in each basin: private."""
        counts = np.zeros((len(self.points_), len(self.classes_)))
        np.add.at(counts, (self._home(follow(self._basins, rows)), labels), 1.0)
        return counts

    def _home(self, places: Any) -> np.ndarray:
        """The nearest equilibrium point of each place."""
        if is_device_array(places):
            return nearest_points(self.points_, places)
        return np.asarray(KDTree(self.points_).query(places)[1])

    @available_if(_has_scores)
    def decision_function(self, X: Any) -> np.ndarray:
        """The support of each class; the difference of the two where there are two."""
        check_is_fitted(self, "points_")
        return self.support_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "points_")
        asked = as_fitted(self)
        if asked.publish == "support" and asked._by_class():
            return self.support_.predict(X)
        rows = self._rows(X, reset=False)
        if asked.publish == "support":
            with calm_threads():
                return self.classes_[self.point_labels_[self._home(follow(self._basins, rows))]]
        neighbours, classes = int(asked.n_neighbors), len(self.classes_)
        return self.classes_[nearest_labels(self.points_, self.point_labels_, to_host(rows), neighbours, classes)]

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "points_")
        from sfumato.core.certificate import Certificate

        asked = as_fitted(self)
        return Certificate.issue(
            subject="EquilibriumClassifier" + (" as published" if asked.as_published else ""),
            events=list(self.events_),
            proofs=[] if asked.as_published else asked._proofs(),
            notes=[asked._public_note(), self.labels_note()],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def _public_note(self) -> str:
        """The number of records is public only where records are replaced."""
        number = "the number of records, " if self._replaces() else ""
        return f"{number}the box and the starting points are public"

    def _proofs(self) -> list[str]:
        support = "kernel_mean" if self._by_class() else "svdd"
        return sorted({support, "equilibrium", *(event.proof_id() for event in self.events_)})

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "points_")
        asked = as_fitted(self)
        origin = "the records, which betrays them" if asked.as_published else "public starting points"
        found = "points of the classes' noisy support functions" if asked._by_class() else "basins of a noisy support"
        lines = [f"EquilibriumClassifier: {self.guarantee_}.", f"{len(self.points_)} {found} were found from {origin}."]
        noise, what = (self.noise_, "sum") if asked._by_class() else (self.votes_, "vote of every basin")
        lines.append(f"Every {what} carries noise of standard deviation {math.sqrt(noise.error()):.3g}.")
        lines += [sentence(self.labels_note()), *self.scores_words()]
        if asked.publish == "points":
            lines.append("Only the labelled points are kept: no support function is part of this model.")
        elif not asked._by_class() and isinstance(self.guarantee_, ApproxDP | PureDP):
            lines.append(self.support_.explain().splitlines()[1])
        if not self._publishable:
            lines.append("A random_state was used: for experiments, not for publication.")
        return "\n".join(lines)


def automatic_cells(records: int, classes: int, deviation: float) -> int:
    """How many basins leave each one several times as many records as a vote's noise deviates; at least two a class.

    >>> automatic_cells(5000, 6, 7.5), automatic_cells(5000, 6, 75.0), automatic_cells(10**7, 6, 7.5)
    (333, 33, 1024)
    """
    wanted = int(records / (_RECORDS_PER_DEVIATION * max(deviation, 1.0)))
    return min(max(wanted, 2 * classes), _STARTS)


def _encoded_box(schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of what the schema's encoding fills: intervals have width 2, categories lie in [0, 1]."""
    low, high = np.zeros(schema.width), np.ones(schema.width)
    encoder = SchemaEncoder(schema)
    for name, part in schema.slices.items():
        domain = schema.columns[name]
        if domain.kind == "interval":
            low[part] = -2 * encoder.origin_of(domain)
            high[part] = low[part] + 2
    return low, high
