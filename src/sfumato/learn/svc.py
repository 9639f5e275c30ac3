"""Support vector machines under differential privacy, linear or with a kernel.

In:   a table with public bounds, labels, ε and δ.
Out:  PrivateSVC, a scikit-learn classifier with a guarantee and a certificate.
Not here: noise and strength (learn/calibration.py), the shared fit (learn/base.py), features (learn/features.py).
Proof: docs/proofs/objective_perturbation.md, docs/proofs/output_perturbation.md, docs/proofs/calibration.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import moderate
from sfumato.core.guarantee import PureDP
from sfumato.core.schema import Schema
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.learn.base import PrivateLinearClassifier, positive_codes
from sfumato.learn.bounds import NormBound, public_norm
from sfumato.learn.calibration import Method, TrainingPlan
from sfumato.learn.convex_loss import ConvexLoss
from sfumato.learn.features import (
    POLYNOMIALS,
    Kernel,
    check_kernel,
    even_components,
    kernel_scale,
    random_features,
)
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.kernel_rule import SPREAD_SHARE, plan_kernel
from sfumato.learn.kernel_spread import KernelSpread, PairSum
from sfumato.learn.losses import HuberLoss, Loss, SmoothedHinge
from sfumato.learn.passes import ArrayPasses, Passes
from sfumato.learn.penalties import Penalty
from sfumato.learn.probabilities import PUBLIC_CURVE, chances, counts_noise, fitted_curve, score_counts
from sfumato.learn.seeds import Seeds, seed_from

__all__ = ["TRAINED_WIDTH", "PrivateSVC"]

#: Training combines features where sums only add kernels up: it wants a bandwidth of a quarter of theirs. Fixed on
#: digits, vowels, Adult and made tables of 350 to 30,000 rows (learn/classifier_rule.py says more), and frozen.
TRAINED_WIDTH = 0.25


class PrivateSVC(PrivateLinearClassifier):
    """A support vector machine that costs `epsilon` and `delta` once, at `fit`.

    `loss` is the hinge with its corner rounded over ±`h`, or any `ConvexLoss`; more than two classes are trained
    together, with the hinge of the largest score rounded at temperature `h`. With `kernel="rbf"` rows are replaced by
    `n_components` random Fourier features of norm exactly 1 for exp(-gamma·‖x-x'‖²); the frequencies are drawn without
    the data and are part of the model (`features_`). Other kernels are those of KernelMeanClassifier. gamma="auto" is
    the rule of `plan_kernel` for a box whose corners have `norm`; "spread" spends 4 % of ε on how far rows lie apart
    and fits gamma to that (kernels of distances, rows in memory, replace-one). Probabilities come from a public curve,
    or from one that is fitted to noisy counts: `calibration=0.1` spends a tenth of the budget on them. The other
    parameters are those of
    PrivateLogisticRegression.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-0.5, 0.5, (5000, 2))
    >>> ring = np.linalg.norm(X, axis=1) < 0.4
    >>> model = PrivateSVC(2.0, 1e-6, kernel="rbf", gamma=8.0, n_components=50, random_state=0).fit(X, ring)
    >>> model.score(X, ring) > 0.85
    True
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        loss: Literal["huber", "smoothed_hinge"] | ConvexLoss = "huber",
        h: float = 0.5,
        kernel: Kernel | Literal["linear"] = "linear",
        gamma: float | Literal["auto", "spread"] = "auto",
        n_components: int = 100,
        method: Method = "objective",
        regularization: float | Literal["auto"] = "auto",
        schema: Schema | None = None,
        norm: float | None = 1.0,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        fit_intercept: bool | float | Literal["auto"] = "auto",
        rows: Literal["auto", "clip", "stretch"] = "auto",
        classes: Any = None,
        public_size: int | None = None,
        spend_on_bounds: float | None = None,
        calibration: float | Literal["public"] = "public",
        penalty: Penalty | Sequence[Penalty] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.h = h
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.method = method
        self.regularization = regularization
        self.schema = schema
        self.norm = norm
        self.adjacency = adjacency
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.rows = rows
        self.classes = classes
        self.public_size = public_size
        self.spend_on_bounds = spend_on_bounds
        self.calibration = calibration
        self.penalty = penalty

    def _begin(self, records: int) -> None:
        check_kernel(self.kernel, ("linear", *get_args(Kernel)))
        self.features_, self.spread_ = None, None
        if self.kernel != "linear" and not (isinstance(self.gamma, str) and self.gamma in ("auto", "spread")):
            moderate(self.gamma, "gamma")  # before a norm is bought, on which the bandwidth may rest
        if self.kernel != "linear" and not (self._buys_spread() or self._buys_norm()):
            self._make_features(self._bandwidth(records, self.norm), self.norm)

    def _make_features(self, gamma: float, norm: float | None) -> None:
        seeds = seed_from(self.random_state)
        shifts = self.adjacency.relation != "replace-one"
        self.features_ = random_features(self.kernel, gamma, self.n_components, norm, seeds, shifts=shifts)

    def _buys_norm(self) -> bool:
        """Whether the norm that rows are shortened to is paid for: features are made once it is known."""
        return self.norm is None and (self.schema is None or self.schema.norm is None)

    def _buys_spread(self) -> bool:
        """Whether a part of ε goes to how far rows lie apart."""
        wanted = self.kernel != "linear" and isinstance(self.gamma, str) and self.gamma == "spread"
        if wanted and self.adjacency.relation != "replace-one":
            raise PrivacyParameterError(
                "gamma='spread' pairs rows by position, which adding or removing a record would shift. Pass a number, "
                "or gamma='auto'. Nothing was spent."
            )
        if wanted and check_kernel(self.kernel, get_args(Kernel)) in POLYNOMIALS:
            raise InputError(
                f"gamma='spread' buys how far rows lie apart, and the {self.kernel} kernel goes by how long they are: "
                "pass a number, or gamma='auto'. Nothing was spent."
            )
        return wanted

    def _spread_promise(self, epsilon: float) -> PureDP:
        return PureDP(epsilon * SPREAD_SHARE * (1 - 1e-9), adjacency=self.adjacency)

    def _buy(self, passes: Passes | None, records: int, epsilon: float, seeds: Seeds, bounds: NormBound) -> None:
        norm = bounds.norm if self._buys_norm() else self.norm
        if self._buys_spread():
            self._make_features(self._bought_bandwidth(passes, records, epsilon, seeds, norm), norm)
        elif self.kernel != "linear" and self._buys_norm():
            self._make_features(self._bandwidth(records, norm), norm)

    def _bought_bandwidth(
        self, passes: Passes | None, records: int, epsilon: float, seeds: Seeds, norm: float | None
    ) -> float:
        """From how far rows lie apart, which is released here."""
        promise, reach = self._spread_promise(epsilon), self._reach(norm)
        if passes is None:
            self.spread_ = KernelSpread.of_nothing(promise)
        else:
            total, pairs = passes.total(PairSum(reach, norm))
            self.spread_ = KernelSpread.of_sum(float(total[0]), int(pairs[0]), promise, seeds)
        columns = self.n_features_in_
        rule = plan_kernel(records, columns, len(self.classes_), float(self.epsilon), float(self.delta))
        return TRAINED_WIDTH * rule.gamma_for(self.spread_.value) * columns / reach**2

    def _bought_words(self) -> tuple[str, ...]:
        spread, features = vars(self).get("spread_"), vars(self).get("features_")
        if spread is None or features is None:
            return ()
        words = f"Bandwidth gamma {features.gamma:.3g} from how far rows lie apart, {spread.value:.2g}, a noisy number"
        return (f"{words} paid for with {SPREAD_SHARE:.0%} of epsilon.",)

    def _check_passes(self, passes: Passes) -> None:
        if self._buys_spread() and not isinstance(passes, ArrayPasses):
            raise InputError(
                "gamma='spread' pairs rows by position, so they must be in memory: pass an array or a table, or a "
                "number for gamma. Nothing was spent."
            )

    def _reach(self, norm: float | None) -> float:
        """The length of a corner of the box that rows lie in."""
        return public_norm(norm) if norm is not None else math.sqrt(self.n_features_in_)

    def _bandwidth(self, records: int, norm: float | None) -> float:
        """As given; or by the kernel classifiers' public rule, for a box of width 2 whose corners have the norm."""
        if self.gamma != "auto":
            return moderate(self.gamma, "gamma")
        columns, reach = self.n_features_in_, self._reach(norm)
        rule = plan_kernel(records, columns, len(self.classes_), float(self.epsilon), float(self.delta))
        return kernel_scale(self.kernel, rule.gamma * columns / reach**2, reach)

    def _stretches_by_itself(self) -> bool:
        """Rows with a constant are left as they are: a hinge asks for margins of 1 and no more, at any width."""
        return self.schema is not None and not self._constant(self.schema.width)

    def _loss(self) -> Loss:
        if type(self.loss) is ConvexLoss:  # one of somebody else's making may have another slope than it states
            return self.loss
        if self.loss not in ("huber", "smoothed_hinge"):
            raise InputError("loss must be 'huber', 'smoothed_hinge' or a ConvexLoss. Nothing was spent.")
        return HuberLoss(self.h) if self.loss == "huber" else SmoothedHinge(self.h)

    def _joint_loss(self, classes: int, *, full: bool) -> JointLoss:
        if isinstance(self._loss(), ConvexLoss):
            raise InputError(
                "A ConvexLoss is of one margin, and several classes have several: train one class against the rest. "
                "Nothing was spent."
            )
        return JointLoss(classes, margin=1.0, temperature=self.h, full=full)

    def _columns(self, columns: int) -> int:
        return columns if self.kernel == "linear" else even_components(self.n_components)

    def _nonzeros(self) -> int | None:
        return super()._nonzeros() if self.kernel == "linear" else None

    def _row_norm(self, norm: float) -> float:
        return norm if self.kernel == "linear" else 1.0  # Fourier features have norm 1 whatever the rows are

    def _expanded(self, matrix: Any) -> Any:
        return matrix if self.features_ is None else self.features_(matrix)

    def _share(self) -> float:
        """The share of the budget that the curve of probabilities costs."""
        if isinstance(self.calibration, str) and self.calibration == "public":
            return 0.0
        if isinstance(self.calibration, int | float) and 0 < self.calibration < 1:
            return float(self.calibration)
        raise InputError("calibration must be 'public' or a share of the budget in (0, 1). Nothing was spent.")

    def _plan(self, epsilon: float, delta: float, rows: int, columns: int, classes: int) -> TrainingPlan:
        share, bought = self._share(), SPREAD_SHARE if self._buys_spread() else 0.0
        if share + bought >= 1:
            raise InputError("calibration leaves nothing of the budget for training. Nothing was spent.")
        plan = super()._plan(epsilon * (1 - share - bought), delta * (1 - share), rows, columns, classes)
        if bought:
            noise = KernelSpread.of_nothing(self._spread_promise(epsilon)).noise
            events, proofs = (noise.event(), *plan.events), (noise.proof, "kernel_mean", *plan.proofs)
            plan = replace(plan, events=events, proofs=proofs)
        if not share:
            return plan
        noise = counts_noise(epsilon * share, delta * share, self.adjacency, 1 if classes <= 2 else classes)
        return replace(plan, events=(*plan.events, noise.event()), proofs=(*plan.proofs, noise.proof, "calibration"))

    def _finish(self, table: Any, labels: np.ndarray, seeds: Any) -> None:
        share = self._share()
        if not share:
            return
        scores = self.decision_function(table)
        scores = scores[:, None] if scores.ndim == 1 else scores
        models = scores.shape[1]
        epsilon = float(self.epsilon) - self.bounds_.epsilon
        noise = counts_noise(epsilon * share, float(self.delta) * share, self.adjacency, models)
        positive = np.stack([labels == code for code in positive_codes(models)], axis=1)
        self.calibration_ = np.array([fitted_curve(one) for one in seeds.seeded(noise)(score_counts(scores, positive))])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Chances by the curve of `calibration`; several classes are scaled to add up to 1.

        A curve that was paid for may cross ½ elsewhere than at score 0, where `predict` changes its mind.
        """
        scores = self.decision_function(X)
        curve = vars(self).get("calibration_")
        return chances(scores, np.array([PUBLIC_CURVE]) if curve is None else curve)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        return np.log(self.predict_proba(X))
