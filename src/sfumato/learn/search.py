"""Choosing hyper-parameters under a budget that covers the choice.

In:   an estimator, a grid of parameters, ε, δ, a scheme.
Out:  PrivateSearch: the best of the tried models, at a total cost stated in guarantee_.
Not here: training (learn/base.py), the selection rule (mechanisms/permute_and_flip.py).
Proof: docs/proofs/private_search.md

"split": the rows are dealt by position into one part for each candidate and one for scoring. Training is parallel: a
record lies in one part. Scoring counts mistakes on the last part and chooses by permute-and-flip.
"random_stopping": a random number of runs on all rows, each with a candidate drawn at random and a noisy score of its
own; the best is kept. The price does not grow with the number of candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive, probability
from sfumato.core.events.event import Event, Repeated
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP, Guarantee, NoGuarantee, PureDP
from sfumato.errors import InputError, PrivacyParameterError, UnprovedError
from sfumato.learn.asked import as_fitted, keep_parameters
from sfumato.learn.fitting import PrivateEstimator, pay, sentence
from sfumato.learn.lineage import on_its_own
from sfumato.learn.pipeline import PrivatePipeline, front_of, shape_after, transformed
from sfumato.learn.row_parts import row_count, rows_at
from sfumato.learn.seeds import Seeds, seed_from
from sfumato.learn.steps import private_core, private_parts, refuse_uncovered
from sfumato.learn.stopping import RunCost, geometric, poisson, poisson_epsilon
from sfumato.learn.table import checked_labels, declared_classes, plain_cells
from sfumato.mechanisms import Gaussian, Laplace, PermuteAndFlip
from sfumato.mechanisms.bits import Bits

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate

__all__ = ["PrivateSearch"]

#: The noise of a score is at most one record in this many, where that is affordable.
_SCORE_PRECISION = 200.0


class _Price(NamedTuple):
    """What one run of random stopping pays for training, and the noise on its score."""

    epsilon: float
    scorer: Gaussian | Laplace


class PrivateSearch(ClassifierMixin, PrivateEstimator):
    """The best of `grid` for `estimator`, at a total cost of `epsilon` and `delta`.

    `estimator` is a private classifier of this package, or a Pipeline that ends in one and whose other steps are public
    (learn/steps.py); its own epsilon, delta and random_state are replaced. `grid` maps parameter names to lists of
    values, as in scikit-learn ("privatesvc__h" in a pipeline).

    >>> from sfumato.learn import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 2))
    >>> search = PrivateSearch(
    ...     PrivateLogisticRegression(1.0), {"regularization": [0.001, 10.0]}, 4.0, 1e-6, random_state=0
    ... ).fit(X, X[:, 0] > 0)
    >>> print(search.guarantee_)
    (4, 1e-06)-DP, under replacing one record
    >>> search.score(X, X[:, 0] > 0) > 0.8
    True
    """

    def __init__(
        self,
        estimator: Any,
        grid: Any,
        epsilon: float,
        delta: float = 0.0,
        scheme: Literal["split", "random_stopping"] = "split",
        *,
        expected_runs: int = 10,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.epsilon = epsilon
        self.delta = delta
        self.scheme = scheme
        self.expected_runs = expected_runs
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        epsilon, delta = positive(self.epsilon, "epsilon"), probability(self.delta)
        candidates = self._candidates()
        labels = np.asarray(plain_cells(y))
        declared = declared_classes(getattr(self._core, "classes", None))
        _, self.classes_ = checked_labels(labels, row_count(X), declared)
        seeds = seed_from(self.random_state)
        if self.scheme == "split":
            self._split(X, labels, candidates, epsilon, delta, seeds)
        elif self.scheme == "random_stopping":
            self._random_stopping(X, labels, candidates, epsilon, delta, seeds)
        else:
            raise InputError("scheme must be 'split' or 'random_stopping'. Nothing was spent.")

    def _promise(self, tried: Sequence[Any]) -> Guarantee:
        """(ε, δ), if every model that was tried keeps its share of it; none if one of them promises nothing.

        The choice looks at all of them, so one model without a guarantee leaves none to the whole.
        """
        for model in tried:
            stated = getattr(private_core(model)[0], "guarantee_", None)
            if not isinstance(stated, Guarantee) or isinstance(stated, NoGuarantee):
                reason = stated.reason if isinstance(stated, NoGuarantee) else "it states none"
                return NoGuarantee(f"a model that was tried promises nothing: {reason}")
        return self._budget()

    def _budget(self) -> Guarantee:
        epsilon, delta = float(self.epsilon), float(self.delta)
        return (ApproxDP(epsilon, delta) if delta else PureDP(epsilon)).under(self._adjacency)

    def _candidates(self) -> list[dict[str, Any]]:
        candidates = _listed(self.grid)
        if not hasattr(self.estimator, "get_params") or isinstance(self.estimator, type):
            raise InputError("estimator must be a private classifier of sfumato.learn. Nothing was spent.")
        for name in ("epsilon", "delta", "adjacency", "random_state", "classes"):
            if any(name in (key, key.rpartition("__")[2]) for candidate in candidates for key in candidate):
                raise PrivacyParameterError(f"{name} is not searched: it belongs to the promise. Nothing was spent.")
        if not isinstance(self._adjacency, Adjacency):
            raise PrivacyParameterError("The estimator needs an adjacency. Nothing was spent.")
        for candidate in candidates:
            refuse_uncovered(_settled(clone_alone(self.estimator), candidate))
        return candidates

    @property
    def _core(self) -> Any:
        """The private estimator itself: the last step of a pipeline."""
        return private_core(self.estimator)[0]

    @property
    def _adjacency(self) -> Adjacency:
        return getattr(self._core, "adjacency", REPLACE_ONE)

    def _model(self, candidate: dict[str, Any], epsilon: float, delta: float, seeds: Seeds) -> Any:
        """A fresh estimator. The declared classes are set, so that a part that lacks one does not betray it."""
        model = _settled(clone_alone(self.estimator), candidate)
        core, prefix = private_core(model)
        promise = {"epsilon": epsilon, "delta": delta, "classes": self.classes_, "random_state": seeds.next()}
        if getattr(core, "adjacency", None) != self._adjacency:
            raise PrivacyParameterError("The adjacency is not searched. Nothing was spent.")
        core.say_labels_were_read(self.reads_labels())
        return model.set_params(**{prefix + name: value for name, value in promise.items()})

    def _split(
        self, X: Any, labels: np.ndarray, candidates: list[dict[str, Any]], epsilon: float, delta: float, seeds: Seeds
    ) -> None:
        """Alg. 4 of Chaudhuri et al. A record lies in one part only, so every step may use the whole budget."""
        if self._adjacency.relation != "replace-one":
            raise PrivacyParameterError(
                "scheme='split' deals rows by position, which adding or removing a record would shift. "
                "Use replace-one, or scheme='random_stopping'. Nothing was spent."
            )
        parts = [np.arange(len(labels))[start :: len(candidates) + 1] for start in range(len(candidates) + 1)]
        scoring = parts.pop()
        if min(len(part) for part in parts) < 2 or not len(scoring):
            raise InputError("There are fewer rows than twice the candidates. Nothing was spent.")
        held_out, choose = rows_at(X, scoring), PermuteAndFlip.for_guarantee(PureDP(epsilon), 1.0, self._adjacency)
        for candidate, part in zip(candidates, parts, strict=True):
            _rehearse(self._model(candidate, epsilon, delta, Seeds(None)), rows_at(X, part), held_out, self.classes_)
        pay(self, self._budget, self._budget())
        models = [
            self._model(candidate, epsilon, delta, seeds).fit(rows_at(X, part), labels[part])
            for candidate, part in zip(candidates, parts, strict=True)
        ]
        right = [float(np.sum(model.predict(held_out) == labels[scoring])) for model in models]
        best = seeds.seeded(choose)(right)
        self.guarantee_ = self._promise(models)
        self._keep(models[best], candidates[best], len(candidates), choose.event())

    def _random_stopping(
        self, X: Any, labels: np.ndarray, candidates: list[dict[str, Any]], epsilon: float, delta: float, seeds: Seeds
    ) -> None:
        price = self._price(X, candidates, epsilon, delta)
        for candidate in candidates:
            _rehearse(self._model(candidate, price.epsilon, delta, Seeds(None)), X, None, self.classes_)
        pay(self, self._budget, self._budget())
        best, best_score, models = None, -math.inf, []
        bits = Bits(seeds.next())
        runs = (poisson if delta else geometric)(self._runs, bits)
        for _ in range(runs):
            candidate = candidates[int(bits.below(len(candidates), 1)[0])]
            model = self._model(candidate, price.epsilon, delta, seeds).fit(X, labels)
            _check_drawn(private_core(model)[0], self._events(candidate, price.epsilon, X))
            models.append(model)
            score = seeds.seeded(price.scorer)(float(np.sum(model.predict(X) == labels)))
            if score > best_score:
                best, best_score = (model, candidate), score
        if best is None:  # Poisson(0): the price includes it
            nothing = self._model(candidates[0], price.epsilon, delta, seeds)
            best = (_learned_nothing(nothing, X, self.classes_), candidates[0])
        self.run_epsilon_ = price.epsilon
        self.guarantee_ = self._promise(models)
        self._keep(*best, runs, price.scorer.event())

    @property
    def _runs(self) -> int:
        runs = self.expected_runs
        if not isinstance(runs, int | np.integer) or isinstance(runs, bool) or not 1 <= runs <= 100_000:
            raise InputError("expected_runs must be a whole number from 1 to 100,000. Nothing was spent.")
        return int(runs)

    def _price(self, X: Any, candidates: list[dict[str, Any]], epsilon: float, delta: float) -> _Price:
        """What one run may cost: the largest (ε₁, δ) for which the best of all runs stays within the budget."""
        adjacency = self._adjacency
        size = self._plan(candidates[0], epsilon, X).budget.size
        if delta == 0:
            one = epsilon / 3 * (1 - 1e-12)
            score = min(_SCORE_PRECISION / size, one / 10)
            return _Price(one - score, Laplace.for_guarantee(PureDP(score), 1.0, adjacency, dimension=1))
        scale = max(size / _SCORE_PRECISION, 10 / gaussian_mu(epsilon, delta))
        scorer = Gaussian(scale, 1.0, adjacency, dimension=1)
        least = max(self._for_bounds(candidate) for candidate in candidates)
        low, high = least, epsilon
        for _ in range(16):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self._affords(middle, X, candidates, epsilon, delta, scorer) else (low, middle)
            )
        if low == least:
            bought = f" that each pay {least:g} for a norm" if least else ""
            raise PrivacyParameterError(
                f"epsilon={epsilon:g} and delta={delta:g} do not pay for {self._runs} runs{bought}. Nothing was spent."
            )
        return _Price(low, scorer)

    def _for_bounds(self, candidate: dict[str, Any]) -> float:
        """What a run with this candidate pays for its norm before it trains."""
        model = private_core(self._model(candidate, 1.0, 0.0, Seeds(None)))[0]
        schema = getattr(model, "schema", None)
        public = getattr(model, "norm", 1.0) is not None or (schema is not None and schema.norm is not None)
        return 0.0 if public else float(getattr(model, "spend_on_bounds", None) or 0.0)

    def _affords(
        self, one: float, X: Any, candidates: list[dict[str, Any]], epsilon: float, delta: float, scorer: Gaussian
    ) -> bool:
        events = {self._events(candidate, one, X) for candidate in candidates}
        costs = [RunCost.of(each, scorer.event().guarantee().mu) for each in events]  # type: ignore[attr-defined]
        return max(poisson_epsilon(cost, delta, self._runs) for cost in costs) <= epsilon

    def _events(self, candidate: dict[str, Any], one: float, X: Any) -> tuple[Event | Repeated, ...]:
        """All that a run with this candidate draws, by the model's own account before it sees a row."""
        return tuple(self._plan(candidate, one, X).events)

    def _plan(self, candidate: dict[str, Any], one: float, X: Any) -> Any:
        model = self._model(candidate, one, float(self.delta), Seeds(None))
        core = private_core(model)[0]
        if not hasattr(core, "plan_for"):
            raise PrivacyParameterError(
                f"scheme='random_stopping' needs to know before a run what it will draw, and {type(core).__name__} "
                "does not say. Use scheme='split'. Nothing was spent."
            )
        return core.plan_for(shape_after(front_of(model), X), self.classes_)

    def _keep(self, model: Any, candidate: dict[str, Any], tried: int, scoring: Any) -> None:
        self.best_estimator_, self.best_params_ = model, candidate
        self.n_tried_, self._scoring = tried, scoring
        if self.scheme != "split":
            # One run costs less than the best of many: what is handed out states the cost of all.
            private_core(model)[0].become_best_of_many(self.guarantee_)

    @property
    def certificate_(self) -> Certificate:
        """For "split" that of the chosen model's training, with a word on the choice; none for "random_stopping".

        Candidates and the choice each had rows of their own, so the training's cost is the cost of all of it; the
        verifier re-derives the training and takes the partition on the word of the note.
        """
        check_is_fitted(self, "best_estimator_")
        from sfumato.core.certificate import NOT_FOR_PUBLICATION, Certificate

        if as_fitted(self).scheme != "split":
            raise UnprovedError(
                "The cost of random stopping is cited (docs/proofs/private_search.md) and not re-derived by the "
                "verifier: guarantee_ states it, no certificate does."
            )
        chosen = private_core(self.best_estimator_)[0].certificate_
        if isinstance(self.guarantee_, NoGuarantee):
            return Certificate.issue(
                subject=f"PrivateSearch by parts, chosen: {chosen.subject}",
                events=[],
                proofs=[],
                publishable=chosen.publishable,
                guarantee=self.guarantee_,
            )
        return Certificate.issue(
            subject=f"PrivateSearch by parts, chosen: {chosen.subject}",
            events=chosen.events,
            proofs=sorted({*chosen.proofs, "private_search"}),
            notes=[
                *(note for note in chosen.notes if note != NOT_FOR_PUBLICATION),
                "rows were dealt by position: every candidate was trained, and the choice made at the same cost by "
                "permute-and-flip, on rows of its own; that partition is stated here and not checked by the verifier",
            ],
            publishable=chosen.publishable,
            guarantee=self.guarantee_,
        )

    def decision_function(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def explain(self) -> str:
        """What was tried and what all of it cost, in words."""
        check_is_fitted(self, "best_estimator_")
        how = (
            f"{self.n_tried_} candidates were trained on parts of their own and compared on a further part"
            if as_fitted(self).scheme == "split"
            else "a random number of runs on all rows was made and the best noisy score kept"
        )
        return (
            f"PrivateSearch: {self.guarantee_}, the choice included; {how}. Chosen: {self.best_params_}.\n"
            + sentence(self.labels_note())
        )

    def reads_labels(self) -> bool:
        return private_core(as_fitted(self).estimator)[0].reads_labels()


def clone_alone(estimator: Any) -> Any:
    """A clone whose fits are paid for here, and are no refits of one estimator."""
    with on_its_own(private_parts(estimator)):
        return clone(estimator)


def _listed(grid: Any) -> list[dict[str, Any]]:
    """All combinations of a grid, at least one."""
    try:
        candidates = list(ParameterGrid(grid))
    except (TypeError, ValueError):
        candidates = []
    if candidates:
        return candidates
    raise InputError(
        "grid must map names of parameters to lists of values: {'regularization': [0.1, 1.0]}. Nothing was spent."
    )


def _settled(model: Any, candidate: dict[str, Any]) -> Any:
    """The model with the candidate's parameters; words of our own where a name is not known."""
    unknown = sorted(set(candidate) - set(model.get_params(deep=True)))
    if unknown:
        prefix = private_core(model)[1]
        hint = f" In a pipeline the last step's parameters begin with {prefix}." if prefix else ""
        raise InputError(f"{', '.join(unknown)}: no parameter of {type(model).__name__}.{hint} Nothing was spent.")
    model.set_params(**candidate)
    return PrivatePipeline(model.steps) if isinstance(model, Pipeline) else model


def _rehearse(model: Any, rows: Any, held_out: Any, classes: np.ndarray) -> None:
    """Refuse what a fit of this model on these rows would refuse, and its answers on others; draws nothing."""
    core, front = private_core(model)[0], front_of(model)
    core.check_table(transformed(front, rows), reset=True)
    if held_out is not None:
        core.check_table(transformed(front, held_out), reset=False)
    for name in ("plan_for", "learn_nothing"):
        if hasattr(core, name):
            getattr(core, name)(shape_after(front, rows), classes)


def _learned_nothing(model: Any, X: Any, classes: np.ndarray) -> Any:
    """A fitted model that saw the shape of the table alone."""
    core = private_core(model)[0]
    core.learn_nothing(transformed(front_of(model), X), classes)
    keep_parameters(core)
    return model


def _check_drawn(model: Any, priced: tuple[Event | Repeated, ...]) -> None:
    """What the fit drew, by its own certificate, is what the price of the run was computed from."""
    if tuple(model.certificate_.events) != priced:
        raise UnprovedError(
            "A run drew other noise than its price was computed from, so the search has no proof. No model is "
            "published."
        )
