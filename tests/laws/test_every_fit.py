"""Every estimator's fit: the cost is reserved before the first bit is drawn, is what the certificate says, and is told.

Draws are watched at the bits themselves, so no estimator can draw by a way that is not seen here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import ClassifierMixin

from laws.hostile import Hostile
from laws.test_ends import every_estimator, made
from sfumato import learn
from sfumato.core import ADD_REMOVE, REPLACE_ONE, compose
from sfumato.core.guarantee import ApproxDP, GaussianDP, Guarantee
from sfumato.errors import OverspendError, SfumatoError
from sfumato.learn import fitting
from sfumato.mechanisms import Gaussian
from sfumato.mechanisms.bits import Bits

ROWS = 300
X = np.random.default_rng(0).uniform(-0.5, 0.5, (ROWS, 2))
LABELS = (X[:, 0] > 0).astype(int)
#: Draws when it answers; a fit with a ledger is refused.
ANSWERS = learn.OutputSVC
KINDS = [kind for kind in every_estimator() if kind is not ANSWERS]


class Watch:
    """A ledger that writes down what happens, in order; it can refuse, and the power can fail at the nth draw."""

    def __init__(self, *, refuses: bool = False, fails_at: int | None = None) -> None:
        self.seen: list[str] = []
        self.cost: Any = None
        self.refuses, self.fails_at = refuses, fails_at

    def reserve(self, dataset: str, cost: Any, **words: Any) -> str:
        self.seen.append("reserve")
        self.cost = cost
        if self.refuses:
            raise OverspendError("too much", requested="1", remaining="0", difference="1")
        return "reservation"

    def commit(self, reservation: str) -> None:
        assert reservation == "reservation"
        self.seen.append("commit")

    def draw(self) -> None:
        self.seen.append("draw")
        if self.seen.count("draw") == self.fails_at:
            raise KeyboardInterrupt


@pytest.fixture
def watched(monkeypatch):
    """Fits an estimator under a Watch; returns the watch and what was raised."""
    whole = Bits.__init__

    def fit(estimator: Any, watch: Watch) -> BaseException | None:
        def counted(bits: Any, *given: Any, **named: Any) -> None:
            watch.draw()
            whole(bits, *given, **named)

        monkeypatch.setattr(Bits, "__init__", counted)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator.fit(X, LABELS, ledger=watch, dataset="people")
        except BaseException as error:
            return error
        finally:
            monkeypatch.setattr(Bits, "__init__", whole)
        return None

    return fit


def variants(kind: type) -> list[Any]:
    """With δ and without, both adjacencies, a bought norm and a given one: what the class knows of these."""
    found = []
    for adjacency in (REPLACE_ONE, ADD_REMOVE):
        for delta in (1e-6, 0.0):
            for norm in (1.0, None):
                estimator = made(kind, Hostile(X, LABELS, adjacency, ROWS, norm))
                found.append(estimator.set_params(delta=delta))
                if kind is learn.PrivateSVC:
                    paid = made(kind, Hostile(X, LABELS, adjacency, ROWS, norm))
                    found.append(paid.set_params(delta=delta, calibration=0.2))
    return found


def order_is_right(seen: list[str]) -> bool:
    """One reservation, then draws, then one commit."""
    return seen[:1] == ["reserve"] and seen[-1:] == ["commit"] and set(seen[1:-1]) == {"draw"}


def nothing_beyond(drawn: Any, reserved: Any) -> bool:
    """What was drawn is what was reserved, or costs no more at any ε: shares may be settled by what is published."""
    if tuple(drawn) == tuple(reserved):
        return True
    one, other = compose(drawn), compose(reserved)
    return all(one.delta(epsilon) <= other.delta(epsilon) * (1 + 1e-6) for epsilon in (0.0, 0.1, 0.5, 1.0))


def fitted_names(estimator: Any) -> set[str]:
    return set(vars(estimator)) - {"_lineage"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_reserve_draw_commit_and_the_cost_is_the_certificates(kind, watched):
    for estimator in variants(kind):
        watch, before = Watch(), fitted_names(estimator)
        error = watched(estimator, watch)
        if error is not None:  # what the class does not cover is refused before anything happens
            assert isinstance(error, SfumatoError)
            assert "draw" not in watch.seen
            assert fitted_names(estimator) == before
            continue
        assert order_is_right(watch.seen), watch.seen
        cost = watch.cost if isinstance(watch.cost, Guarantee) else compose(watch.cost)
        if isinstance(watch.cost, Guarantee):
            assert cost == estimator.guarantee_
        else:
            assert nothing_beyond(estimator.certificate_.events, watch.cost)
            assert cost.implies(estimator.guarantee_) is True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_refused_means_nothing_drawn_and_nothing_fitted(kind, watched):
    estimator = variants(kind)[0]
    watch, before = Watch(refuses=True), fitted_names(estimator)
    assert isinstance(watched(estimator, watch), OverspendError)
    assert watch.seen == ["reserve"]
    assert fitted_names(estimator) == before


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_interrupted_fit_keeps_its_reservation_and_leaves_no_model(kind, watched):
    for at in (1, 2):
        estimator = variants(kind)[0]
        watch, before = Watch(fails_at=at), fitted_names(estimator)
        if watched(estimator, watch) is None:  # it draws less often
            continue
        assert watch.seen == ["reserve", *["draw"] * at]
        assert fitted_names(estimator) == before


def test_a_fit_that_forgets_to_pay_is_found(watched, monkeypatch):
    """Planted: `pay` does nothing, or comes after the draw."""
    from sfumato.learn import kernel_base

    estimator = learn.KernelMeanClassifier(1.0, 1e-6, n_components=10)
    monkeypatch.setattr(kernel_base, "pay", lambda *_: None)
    watch = Watch()
    assert isinstance(watched(estimator, watch), SfumatoError)
    assert not order_is_right(watch.seen)

    def late(model: Any, cost: Any, promise: Any) -> None:
        np.asarray(model.noise_(np.zeros(20)))
        fitting.pay(model, cost, promise)

    monkeypatch.setattr(kernel_base, "pay", late)
    watch = Watch()
    assert watched(estimator, watch) is None
    assert not order_is_right(watch.seen)


def test_drawing_beyond_the_reservation_is_found():
    noise = [Gaussian.for_guarantee(GaussianDP(mu), 1.0, REPLACE_ONE).event() for mu in (0.2, 0.1)]
    assert nothing_beyond(noise[1:], noise[:1])
    assert not nothing_beyond(noise[:1], noise[1:])
    assert not nothing_beyond(noise, noise[:1])


def test_who_draws_when_answering_refuses_a_ledger_at_fit(watched):
    watch = Watch()
    error = watched(ANSWERS(1.0, 1e-6, n_components=10), watch)
    assert isinstance(error, SfumatoError)
    assert "charges every answer" in str(error)
    assert watch.seen == []


@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
def test_fits_of_a_family_add_up(kind):
    """The second fit of an estimator, or of its clone, tells what both cost; a new object does not."""
    from sklearn.base import clone

    for again in (lambda one: one, clone):
        first = made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", learn.NothingLearnedWarning)
            one = first.fit(X, LABELS).guarantee_
            assert one == ApproxDP(1.0, 1e-6, adjacency=REPLACE_ONE)
            with pytest.warns(learn.PrivacyLeakWarning, match="fit number 2"):
                second = again(first).fit(X, LABELS)
            assert second.guarantee_ == ApproxDP(2.0, 2e-6, adjacency=REPLACE_ONE)
            assert second.certificate_.guarantee == second.guarantee_
            fresh = made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0)).fit(X, LABELS)
            assert fresh.guarantee_ == one


CLASSIFIERS = [kind for kind in every_estimator() if issubclass(kind, ClassifierMixin)]


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("declared", [True, False])
def test_where_the_labels_come_from_is_told(kind, declared):
    """Declared or read off y: certificate, words and `not_covered_` agree, also of what a search hands out."""
    estimator = made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0))
    given = "estimator__classes" if kind is learn.PrivateSearch else "classes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.set_params(**{given: [0, 1] if declared else None}).fit(X, LABELS)
    for one in (model, getattr(model, "best_estimator_", model)):
        told = ["".join(one.certificate_.notes), one.explain()]
        assert [text.count("list of labels is public: it was declared") for text in told] == [int(declared)] * 2
        assert [text.count("list of labels was read from the training labels") for text in told] == [1 - declared] * 2
        assert ("they were read from y" in one.not_covered_[0]) is not declared
