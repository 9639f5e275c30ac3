"""Classification by equilibrium points: interior points of the support decide, not its boundary.

In:   a table with a public box, labels, ε and δ.
Out:  EquilibriumClassifier, a scikit-learn classifier with a guarantee and a certificate, or, as published, with none.
Not here: the support function (learn/svdd.py), the dynamics (learn/basins.py).
Proof: docs/proofs/equilibrium.md

Phase I releases a private support function. Phase II follows its gradient from public starting points: post-processing.
Phase III counts the labels of every basin, empty ones included, with noise. As published (`as_published=True`), the
starting points are the records and the noise is half of what is needed: that has no guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.spatial import KDTree
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.events.event import Event
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.learn.arrays import is_device_array, to_host
from sfumato.learn.basins import Basins, follow, highest, nearest_points, public_starts
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.fitting import pay
from sfumato.learn.kernel_base import ARITHMETIC, KernelInput, check_row_count, even_components
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


class EquilibriumClassifier(ClassifierMixin, KernelInput):
    """Labels each basin of a private support function by a noisy vote of the records in it.

    Public starting points (a Sobol sequence in the box) look for basins; points that they reach within `merge_radius`
    of each other are one, and the `cells` highest are kept: "auto" is as many as the noise of votes allows, by n, ε and
    δ alone (`automatic_cells`). `split` is the share of the budget spent on the support function.
    `publish="support"` lets new points follow the same dynamics; with "points" only the labelled equilibrium points are
    meant to be published, and new points take the majority of the `n_neighbors` nearest. A basin without records gets
    the label that its noise favours. `starts` must be "public". `C`, `gamma`, `n_components`: see PrivateSVDD.

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
        n_components: int = 400,
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        merge_radius: float = 0.25,
        as_published: bool = False,
        classes: Any = None,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _fit(self, X: Any, y: Any) -> None:
        promise = self._budget()
        self._check()
        components = even_components(self.n_components)
        rows = self._rows(X, reset=True)
        check_row_count(int(rows.shape[0]))
        labels = to_host(y) if is_device_array(y) else y
        labels, self.classes_ = checked_labels(labels, int(rows.shape[0]), declared_classes(self.classes))
        seeds = seed_from(self.random_state)
        self._publishable = seeds.publishable
        for_support, self.votes_ = self._split()
        self.support_ = self._support(for_support, rows.shape)
        self.guarantee_: Guarantee = NoGuarantee(_NO_GUARANTEE) if self.as_published else promise
        support = self.support_._promise()
        self.support_._aim(rows.shape, support, components)
        pay(self, lambda: self.guarantee_ if self.as_published else self._events(), self.guarantee_)
        self.support_._fit_rows(rows, support, components, seeds)
        with calm_threads():
            self._find_basins(rows)
            self._vote(rows, labels, seeds)

    def _check(self) -> None:
        if not self._replaces():
            raise PrivacyParameterError("EquilibriumClassifier covers replacing one record only. Nothing was spent.")
        if self.publish not in ("support", "points"):
            raise InputError("publish must be 'support' or 'points'. Nothing was spent.")
        if self.starts != "public":
            raise InputError(
                "starts must be 'public': equilibrium points reached from records betray them. as_published=True runs "
                "the published variant, without a guarantee. Nothing was spent."
            )
        for name in ("cells", "n_neighbors"):
            value = getattr(self, name)
            if name == "cells" and isinstance(value, str) and value == "auto":
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1. Nothing was spent.")
        if self.split != "auto" and not (isinstance(self.split, int | float) and 0 < self.split < 1):
            raise InputError("split must be 'auto' or lie strictly between 0 and 1. Nothing was spent.")
        if not (isinstance(self.merge_radius, int | float) and 0 <= self.merge_radius < math.inf):
            raise InputError("merge_radius must be a number of at least 0. Nothing was spent.")

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
            n_components=self.n_components,
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

    def _home(self, places: Any, neighbours: int = 1) -> np.ndarray:
        """The nearest equilibrium points of each place."""
        if is_device_array(places):
            if neighbours == 1:
                return nearest_points(self.points_, places)
            places = to_host(places)
        tree = KDTree(self.points_)
        return np.asarray(tree.query(places, k=min(neighbours, len(self.points_)))[1])

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "points_")
        rows = self._rows(X, reset=False)
        if self.publish == "support":
            with calm_threads():
                return self.classes_[self.point_labels_[self._home(follow(self._basins, rows))]]
        nearest = self._home(rows, int(self.n_neighbors)).reshape(int(rows.shape[0]), -1)
        votes = np.zeros((int(rows.shape[0]), len(self.classes_)))
        for column in self.point_labels_[nearest].T:
            votes[np.arange(len(votes)), column] += 1
        return self.classes_[votes.argmax(axis=1)]

    def _events(self) -> list[Event]:
        return [self.support_.noise_.event(), self.votes_.event()]

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "points_")
        from sfumato.core.certificate import Certificate

        return Certificate.issue(
            subject="EquilibriumClassifier" + (" as published" if self.as_published else ""),
            events=[] if self.as_published else self._events(),
            proofs=[]
            if self.as_published
            else sorted({"svdd", "equilibrium", *(e.proof_id() for e in self._events())}),
            notes=["the number of records, the box, the labels and the starting points are public"],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "points_")
        origin = "the records, which betrays them" if self.as_published else f"{_STARTS} public starting points"
        lines = [
            f"EquilibriumClassifier: {self.guarantee_}.",
            f"{len(self.points_)} basins of a noisy support function were found from {origin}.",
            f"Every vote of every basin carries noise of standard deviation {math.sqrt(self.votes_.error()):.3g}.",
        ]
        if isinstance(self.guarantee_, ApproxDP | PureDP):
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
            low[part] = -2 * encoder._origin(domain)
            high[part] = low[part] + 2
    return low, high
