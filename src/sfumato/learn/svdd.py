"""Support vector data description under differential privacy: how typical is a point?

In:   a table with a public box, ε and δ.
Out:  PrivateSVDD, a scikit-learn outlier detector with a guarantee and a certificate.
Not here: the optimisation (learn/svdd_solver.py), features (learn/features.py), basins (learn/equilibrium.py).
Proof: docs/proofs/svdd.md
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import moderate, positive
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import Guarantee
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.learn.arrays import is_device_array, to_host
from sfumato.learn.device_features import DeviceFeatures
from sfumato.learn.features import FourierFeatures, even_components
from sfumato.learn.fitting import pay
from sfumato.learn.kernel_base import KernelInput, blocks, check_row_count, noise_for
from sfumato.learn.kernel_rule import plan_kernel
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.svdd_solver import LEAST_TOLERANCE, is_mean, nearest_to_origin
from sfumato.mechanisms import Gaussian

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate
    from sfumato.mechanisms import NormGamma

__all__ = ["PrivateSVDD", "automatic_cap", "longest_noise"]

#: The expected length of the noise that "auto" aims at; the centre itself lies in the unit ball.
_WANTED_LENGTH = 0.2
#: The solver may be off by this share of the cap; it is paid for.
_OFF = 0.05
#: One record never carries more than this share of the centre.
_LARGEST_CAP = 0.1

#: Whether each kind of noise is for promises with a δ.
_WITH_DELTA = {"auto": (True, False), "gaussian": (True,), "norm-gamma": (False,)}


class PrivateSVDD(OutlierMixin, KernelInput):
    """The centre of the smallest soft ball around the records in feature space, released once with noise.

    `C`/n caps the weight of one record: C = 1 is the mean of all records, a larger C looks for the support and needs
    more noise. "auto" settles C by n, ε and δ (`automatic_cap`). Scores are ⟨centre, features of x⟩, high for typical
    points; `predict` gives -1 to those below `offset_`, the squared length of the centre, corrected for its noise.
    `noise` is "gaussian" (δ > 0), "norm-gamma" (δ = 0) or "auto". `box`, `gamma` and `schema` are those of
    KernelMeanClassifier. The number of records is public: only replacing a record is covered.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(scale=0.15, size=(2000, 2))
    >>> model = PrivateSVDD(1.0, 1e-6, random_state=0).fit(X)
    >>> inside, outside = model.score_samples([[0.0, 0.0], [0.9, -0.9]])
    >>> bool(inside > outside)
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        C: float | Literal["auto"] = "auto",
        gamma: float | Literal["auto"] = "auto",
        n_components: int = 400,
        noise: Literal["auto", "gaussian", "norm-gamma"] = "auto",
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.noise = noise
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        promise = self.promised()
        components = even_components(self.n_components)
        rows = self._rows(X, reset=True)
        check_row_count(int(rows.shape[0]))
        self.aim(rows.shape, promise, components)
        seeds = seed_from(self.random_state)
        pay(self, lambda: [self.noise_.event()], promise)
        self.fit_paid_rows(rows, promise, components, seeds)

    def aim(self, shape: tuple[int, ...], promise: Guarantee, components: int) -> None:
        """Settle the cap, the bandwidth and the noise for a table of this shape: public numbers."""
        number = int(shape[0])
        self.cap_ = self._cap(number, components)
        self.gamma_ = self._bandwidth(shape)
        self.sensitivity_ = 2 * self.cap_ + 2 * math.sqrt(self._tolerance(number))
        self.noise_ = noise_for(promise, self.sensitivity_, components)

    def _tolerance(self, number: int) -> float:
        """How far the solver may be off. The mean needs none, so nothing is left over."""
        return 0.0 if is_mean(number, self.cap_) else max((_OFF * self.cap_) ** 2, LEAST_TOLERANCE)

    def fit_paid_rows(self, rows: Any, promise: Guarantee, components: int, seeds: Seeds) -> None:
        """Draw, after `aim`, for whoever has reserved the cost: `fit`, or an estimator that consists of this one."""
        self._publishable = seeds.publishable
        number = int(rows.shape[0])
        self.features_ = FourierFeatures(self.gamma_, components, None, seeds)
        with calm_threads(number * components):
            features = self.features_(rows)
            there = DeviceFeatures(features) if is_device_array(features) else features
            found = nearest_to_origin(there, self.cap_, self._tolerance(number))
        released = seeds.seeded(self.noise_)(found.centre)
        length = float(released @ released)
        squares = length - components * self.noise_.error()
        # The true centre has norm at most 1: projecting to the ball, and correcting, use the release alone.
        shrunk = 1 / max(1.0, math.sqrt(length))
        self.centre_ = released * shrunk
        self.offset_ = min(max(squares, 0.0), 1.0) * shrunk
        self.guarantee_ = promise

    def promised(self) -> Guarantee:
        """What a fit will promise; PrivacyParameterError under an adjacency it cannot have."""
        promise = self._budget()
        if not self._replaces():
            raise PrivacyParameterError(
                "PrivateSVDD covers replacing one record only: the cap C/n depends on the number of records, which "
                "adding or removing one would change. Nothing was spent."
            )
        if not isinstance(self.noise, str) or self.noise not in _WITH_DELTA:
            raise InputError("noise must be 'auto', 'gaussian' or 'norm-gamma'. Nothing was spent.")
        if bool(self.delta) not in _WITH_DELTA[self.noise]:
            raise PrivacyParameterError(
                "Gaussian noise needs delta > 0 and norm-gamma noise gives delta = 0: choose one. Nothing was spent."
            )
        return promise

    def _cap(self, records: int, components: int) -> float:
        if self.C == "auto":
            return automatic_cap(records, float(self.epsilon), float(self.delta), components)
        cap = positive(self.C, "C") / records
        if cap * records < 1:
            raise DataError(
                f"{records} records of weight at most C/n = {cap:.3g} do not add up to 1: fewer points than n/C. "
                "Pass C of at least 1. Nothing was spent."
            )
        return min(cap, 1.0)

    def _bandwidth(self, shape: tuple[int, ...]) -> float:
        if self.gamma == "auto":
            return plan_kernel(shape[0], shape[1], 1, float(self.epsilon), float(self.delta)).gamma
        return moderate(self.gamma, "gamma")

    def score_samples(self, X: Any) -> np.ndarray:
        """How typical each row is: ⟨centre, features⟩, at most 1."""
        check_is_fitted(self, "centre_")
        rows = self._rows(X, reset=False)
        return np.concatenate([to_host(self.features_(rows[part, ...])) @ self.centre_ for part in blocks(rows)])

    def decision_function(self, X: Any) -> np.ndarray:
        """score_samples - offset_: negative for outliers."""
        scores = self.score_samples(X)
        return scores - self.offset_

    def error_bound(self, failure: float = 0.05) -> float:
        """How far the squared distance to the centre is off at any point, in all but a share `failure` of fits.

        4·(‖noise‖ + what the solver left over), and never more than 4, which says nothing: squared distances in the
        unit ball are at most 4. A number of public facts, known before the fit.

        >>> from sfumato.learn import PrivateSVDD
        >>> X = np.random.default_rng(0).normal(scale=0.2, size=(20_000, 2))
        >>> 0.5 < PrivateSVDD(1.0, 1e-6, C=1, n_components=100, random_state=0).fit(X).error_bound() * 100 < 10
        True
        """
        check_is_fitted(self, "noise_")
        if not 0 < failure < 1:
            raise InputError("failure must lie in (0, 1).")
        longest = longest_noise(self.noise_, len(self.centre_), failure)
        left = self.sensitivity_ / 2 - self.cap_
        return min(4.0, 4 * (longest + left))

    def predict(self, X: Any) -> np.ndarray:
        """1 for typical rows, -1 for outliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    @property
    def certificate_(self) -> Certificate:
        """The machine-checkable record of what was drawn, without the data. Made on demand."""
        check_is_fitted(self, "noise_")
        from sfumato.core.certificate import Certificate

        return Certificate.issue(
            subject="PrivateSVDD",
            events=[self.noise_.event()],
            proofs=sorted({"svdd", self.noise_.proof}),
            notes=["the number of records, the box and the frequencies of the features are public"],
            publishable=self._publishable,
            guarantee=self.guarantee_,
        )

    def explain(self) -> str:
        """What was done and what it promises, in words."""
        check_is_fitted(self, "noise_")
        lines = [
            f"PrivateSVDD: {self.guarantee_}.",
            f"One record carries at most {self.cap_:.3g} of the centre; replacing it moves the centre by at most "
            f"{self.sensitivity_:.3g}, what the solver may leave over included.",
            f"Noise of standard deviation {math.sqrt(self.noise_.error()):.3g} was added to each of "
            f"{len(self.centre_)} coordinates, and the result projected to the unit ball.",
        ]
        bound = self.error_bound()
        lines.append(
            f"Squared distances to the centre are off by at most {bound:.2g} with 95 % confidence."
            if bound < 4
            else "No bound can be given for how far squared distances to the centre are off: noise may be all there is."
        )
        if not self._publishable:
            lines.append("A random_state was used: for experiments, not for publication.")
        return "\n".join(lines)


def longest_noise(noise: Gaussian | NormGamma, dimension: int, failure: float) -> float:
    """A length that the noise vector exceeds with this probability; its grid is counted."""
    if isinstance(noise, Gaussian):
        squares = float(stats.chi2.isf(failure, dimension))
        return noise.scale * math.sqrt(squares) * (1 + 1e-6)
    return noise.scale * float(stats.gamma.isf(failure, dimension)) * (1 + 1e-6)


def automatic_cap(records: int, epsilon: float, delta: float, components: int) -> float:
    """C/n for which noise has a length of about 0.2, so that it does not drown the centre (of length at most 1).

    A rule of n, ε, δ and the number of features; at least 1/n, the mean of all records, and at most a tenth.

    >>> automatic_cap(100, 1.0, 1e-5, 400), automatic_cap(100_000, 1.0, 1e-5, 400) < 0.002
    (0.01, True)
    """
    length = math.sqrt(components) / gaussian_mu(epsilon, delta) if delta else components / epsilon
    wanted = _WANTED_LENGTH / (2 * length)
    return max(1 / records, min(wanted, _LARGEST_CAP))
