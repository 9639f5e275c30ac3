"""Classification by noisy gradients on random features: all classes at once, in few steps.

In:   a table with a public box, labels, ε and δ.
Out:  KernelStepsClassifier, a scikit-learn classifier with a guarantee and a certificate; StepsPlan, plan_steps: how
      many steps of which length, at which bandwidth, by public numbers.
Not here: the shared fit (learn/kernel_base.py), steps on rows as they are, also over institutions (learn/stepped.py).
Proof: docs/proofs/kernel_mean.md, "Steps"

A record pulls the weights of all classes by s ⊗ φ, s its slopes, shortened to ½ in place of the √2 that they can reach:
the noise of a gradient is made for a third of what it would be, and little is lost of records on the wrong side. The
noise of a mean of T gradients is that of a single one that has the whole budget, so steps cost nothing while they all
point the same way.

The numbers were fixed on tables made by generators of correlated bands, cells around centres, smooth borders, trees of
thresholds, overlapping Gaussians and rare classes in skewed columns: 700 to 40,000 rows, 6 to 40 columns, 2 to 15
classes, ε = ½, 1 and 3. Satellite images, segments and the shuttle (benchmarks/learn_classes.py) were not looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import moderate, positive
from sfumato.core.events.event import Event
from sfumato.core.guarantee import GaussianDP, Guarantee, PureDP
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.learn.features import Kernel
from sfumato.learn.kernel_base import PrivateKernelClassifier, blocks
from sfumato.learn.kernel_rule import KernelPlan, Kind, class_signal, plan_kernel
from sfumato.learn.seeds import Seeds
from sfumato.learn.svc import TRAINED_WIDTH
from sfumato.mechanisms.gaussian import largest_mu
from sfumato.mechanisms.noisy_sums import clipped, slopes

__all__ = ["KernelStepsClassifier", "StepsPlan", "plan_steps"]

#: To what slopes are shortened; by how much the right score is to lead.
LONGEST, _MARGIN = 0.5, 1.5
#: Steps: this times the root of the signal, at least and at most.
_STEPS, _FEWEST, _MOST = 2.0, 8, 64
#: The length of a step at a signal of 60 and 6 classes, in mean gradients, and how it grows with either.
_RATE, _WITH_SIGNAL, _WITH_CLASSES, _SHORTEST, _LONGEST_STEP = 45.0, 0.25, 0.75, 8.0, 256.0
#: γ times the mean squared distance of two rows at a signal of 60, how it grows with it, the least and the most.
_WIDTH, _GROWTH, _WIDEST, _NARROWEST = 1.4, 0.15, 0.7, 2.8
_SIGNAL, _CLASSES = 60.0, 6
#: Features of all rows are kept between steps up to so many numbers, and made anew in each step beyond.
_KEPT_NUMBERS = 2**25
_MOST_STEPS = 1000
#: A part of the budget is left for rounding.
_ROOM = 1 - 1e-9
#: Weights of a class are shortened to this, several times what useful ones have, so that scores err by little; what
#: rounding may add to the sensitivity, as a share of it; up to how many rows, times √classes, it adds no more where
#: rows may shift (docs/proofs/kernel_mean.md).
_LONGEST_WEIGHTS, _ROUNDING, _MOST_SHIFTED = 300.0, 4e-3, 6e6


@dataclass(frozen=True)
class StepsPlan:
    """`rate`: the length of a step, in mean gradients. `width`: γ times the mean squared distance of two rows."""

    steps: int
    rate: float
    width: float


def plan_steps(signal: float, classes: int) -> StepsPlan:
    """By the records of a class for each standard deviation of noise (`class_signal`).

    >>> plan_steps(60.0, 6)
    StepsPlan(steps=15, rate=45.0, width=1.4)
    >>> plan_steps(1e6, 6).steps, plan_steps(0.1, 6).steps
    (64, 8)
    """
    share = signal / _SIGNAL
    rate = _RATE * share**_WITH_SIGNAL * (classes / _CLASSES) ** _WITH_CLASSES
    return StepsPlan(
        round(min(_MOST, max(_FEWEST, _STEPS * math.sqrt(signal)))),
        min(_LONGEST_STEP, max(_SHORTEST, rate)),
        min(_NARROWEST, max(_WIDEST, _WIDTH * share**_GROWTH)),
    )


class KernelStepsClassifier(PrivateKernelClassifier):
    """Softmax regression on random features by `steps` noisy gradients, each with its part of the budget.

    The right score is to lead by 1.5, slopes are shortened to ½, steps have momentum and the later half of the weights
    is averaged. `rate` is the length of a step in mean gradients. `gamma` is that of exp(-gamma·‖x - x'‖²) in the
    scaled box. "auto" settles each by public numbers (`plan_steps`). Under add-remove `public_size`, a rough count
    known without the data, stands for the number of records. The other parameters are those of KernelMeanClassifier.
    Made for δ > 0: pure noise grows with the number of features, and with that of steps twice as fast.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.uniform(-1, 1, (3000, 2))
    >>> y = (X > 0).sum(axis=1)
    >>> model = KernelStepsClassifier(1.0, 1e-6, random_state=0).fit(X, y)
    >>> model.steps_, model.score(X, y) > 0.85
    (22, True)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | Literal["auto", "spread", "wide"] = "auto",
        n_components: int | Literal["auto"] = "auto",
        steps: int | Literal["auto"] = "auto",
        rate: float | Literal["auto"] = "auto",
        box: Any = (-1.0, 1.0),
        schema: Schema | None = None,
        adjacency: Adjacency = REPLACE_ONE,
        random_state: Any = None,
        *,
        classes: Any = None,
        public_size: int | None = None,
        kernel: Kernel = "rbf",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.gamma = gamma
        self.n_components = n_components
        self.steps = steps
        self.rate = rate
        self.box = box
        self.schema = schema
        self.adjacency = adjacency
        self.random_state = random_state
        self.classes = classes
        self.public_size = public_size
        self.kernel = kernel

    # ── what is public ───────────────────────────────────────────────────────────────────────────────────────────────

    def _check(self) -> None:
        steps: Any = self.steps
        whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
        if steps != "auto" and not (whole and 1 <= steps <= _MOST_STEPS):
            raise InputError(f"steps must be 'auto' or a whole number from 1 to {_MOST_STEPS}. Nothing was spent.")
        if self.rate != "auto":
            moderate(self.rate, "rate")

    def _records(self, rows: int) -> int:
        """Their number under replace-one, what the public knows of it under add-remove."""
        if self._replaces():
            return rows
        if self.public_size is None:
            raise PrivacyParameterError(
                "Under adding or removing one record the number of records is private, and the length of a step must "
                "not depend on it: pass public_size, a rough count known without the data. Nothing was spent."
            )
        return max(1, int(positive(self.public_size, "public_size")))

    def _settle(self, promise: Guarantee, shape: tuple[int, ...], classes: int) -> Guarantee | None:
        records = self._records(shape[0])
        most = int(_MOST_SHIFTED / math.sqrt(classes))
        if not self._replaces() and shape[0] > most:
            raise DataError(
                f"More than {most} rows under add-remove: rounding of the gradients of {classes} classes is not proved "
                "beyond that. Fit a public sample of the rows, or use PrivateSVC. Nothing was drawn, nothing was spent."
            )
        course = self._course(records, classes)
        self.steps_ = course.steps if self.steps == "auto" else int(self.steps)
        self.rate_ = (course.rate if self.rate == "auto" else float(self.rate)) / records
        return super()._settle(promise, shape, classes)

    def _course(self, records: int, classes: int) -> StepsPlan:
        moved = 2.0 if self._replaces() else 1.0
        return plan_steps(class_signal(records, classes, float(self.epsilon), float(self.delta), moved), classes)

    def _plan(self, shape: tuple[int, ...], classes: int) -> KernelPlan:
        records, columns = self._records(shape[0]), shape[1]
        moved = 2.0 if self._replaces() else 1.0
        plan = plan_kernel(records, columns, classes, float(self.epsilon), float(self.delta), moved)
        by_spread = self._course(records, classes).width / columns
        return replace(plan, classifier="steps", gamma=TRAINED_WIDTH * plan.gamma, gamma_by_spread=by_spread)

    def _of_one_act(self, promise: Guarantee) -> Guarantee:
        """An equal part for each step: of ε where it is pure, else of μ²."""
        if isinstance(promise, PureDP):
            part: Guarantee = PureDP(promise.epsilon(0.0) / self.steps_ * _ROOM)
        else:
            part = GaussianDP(largest_mu(promise) * math.sqrt(_ROOM / self.steps_))
        return part if promise.adjacency is None else part.under(promise.adjacency)

    def _acts(self) -> tuple[Event, ...]:
        return (self.noise_.event(),) * self.steps_

    def _kind(self) -> Kind:
        return "steps"

    def _sensitivity(self) -> float:
        return (2.0 if self._replaces() else 1.0) * LONGEST * (1 + _ROUNDING)

    def _dimension(self, components: int, classes: int) -> int:
        return components * classes

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _learn(self, rows: np.ndarray, labels: np.ndarray, seeds: Seeds) -> None:
        classes, parts = len(self.classes_), blocks(rows)
        kept = rows.shape[0] * self.n_components_ <= _KEPT_NUMBERS
        features = [self.features_(rows[part, ...]) for part in parts] if kept else None
        weights = ahead = mean = np.zeros((classes, self.n_components_))

        def gradient() -> np.ndarray:
            total = np.zeros(ahead.size)
            with calm_threads():
                for place, part in enumerate(parts):
                    block = self.features_(rows[part, ...]) if features is None else features[place]
                    total += self._statistics(block, labels[part], classes, ahead)
            return total

        for step in range(1, self.steps_ + 1):
            pull = self._weights(seeds.released(self.noise_, gradient), classes)
            before, weights = weights, clipped(ahead - self.rate_ * pull, _LONGEST_WEIGHTS)
            ahead = clipped(weights + (step - 1) / (step + 2) * (weights - before), _LONGEST_WEIGHTS)
            if 2 * step > self.steps_:
                mean = mean + weights / (self.steps_ - self.steps_ // 2)
        self.weights_ = mean

    def _statistics(
        self, features: np.ndarray, labels: np.ndarray, classes: int, at: np.ndarray | None = None
    ) -> np.ndarray:
        """Σ of the records' gradients at these weights, each shortened; at weights of zero by default."""
        wanted, scores = np.eye(classes)[labels], np.zeros((len(features), classes))
        with np.errstate(over="ignore", invalid="ignore"):  # weights may be any finite numbers
            if at is not None:
                # A record more shifts the others, and a product of matrices may round a row by where it stands.
                scores = features @ at.T if self._replaces() else np.einsum("ij,kj->ik", features, at)
            pulls = clipped(slopes("logistic", scores + _MARGIN * (1 - wanted), wanted), LONGEST)
        return (pulls.T @ features).ravel()

    def _weights(self, released: np.ndarray, classes: int) -> np.ndarray:
        """A noisy gradient; slopes add up to 0 over the classes, and what noise says against that is noise."""
        pull = released.reshape(classes, -1)
        return pull - pull.mean(axis=0)

    def _how_often(self) -> str:
        return f"{self.steps_} times, each at the weights that followed from those before,"

    def _what(self) -> str:
        return "The sums of gradients of all classes"
