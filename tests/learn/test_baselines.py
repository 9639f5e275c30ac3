"""The published baselines with true scales: sensitivity, refusal after the last answer, the ledger."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, ApproxDP
from sfumato.errors import DataError, OverspendError, PrivacyParameterError
from sfumato.evidence.verify import verify
from sfumato.learn.baselines import OutputSVC, SemiSVC, WeightSVC
from sfumato.ledger.ledger import Ledger


def data(rows=800, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (rows, 2))
    return X, (X > 0).sum(axis=1)


@pytest.mark.paper("004", "§6.3", "learn/baselines.py")
def test_neighbours_stay_within_the_claimed_distance():
    """The kept weights of OutputSVC on random neighbours, opposite records included."""
    generator = np.random.default_rng(0)
    worst = 0.0
    for seed in range(40):
        X, y = data(8, seed)
        other, labels = X.copy(), y.copy()
        other[0], labels[0] = generator.uniform(-1, 1, 2), generator.integers(3)
        make = lambda: OutputSVC(1.0, 1e-5, C=4.0, gamma=3.0, n_components=10, classes=[0, 1, 2], random_state=0)  # noqa: E731
        first = make().fit(X, y)
        claimed = first.noise_.sensitivity
        worst = max(worst, float(np.linalg.norm(first._kept - make().fit(other, labels)._kept)) / claimed)
    assert 0.2 < worst <= 1.0


def test_each_learns_with_much_budget_and_certifies():
    X, y = data()
    semi = SemiSVC(50.0, 1e-5, public=data(200, 1)[0], n_components=60, random_state=0).fit(X, y)
    weight = WeightSVC(50.0, 1e-5, n_components=60, random_state=0).fit(X, y)
    output = OutputSVC(200.0, 1e-5, queries=len(X), n_components=60, random_state=0).fit(X, y)
    for model in (semi, weight, output):
        verify(model.certificate_)
        assert "svm_baselines" in model.certificate_.proofs
        assert "replacing one record" in model.explain()
        assert model.score(X, y) > 0.75


def test_answers_are_charged_and_refused(tmp_path):
    X, y = data()
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("records", ApproxDP(2.0, 1e-5, adjacency=WeightSVC(1.0).adjacency))
    model = OutputSVC(2.0, 1e-5, queries=6, ledger=ledger, n_components=20, random_state=0).fit(X, y)
    model.predict(X[:4])
    assert len([entry for entry in ledger.history("records") if entry.action == "commit"]) == 1
    with pytest.raises(OverspendError, match="left"):
        model.predict(X[:3])
    assert model.left_ == 2
    poor = Ledger(tmp_path / "poor.db")
    poor.grant("records", ApproxDP(0.1, 1e-6, adjacency=model.adjacency))
    model.ledger = poor
    with pytest.raises(OverspendError):
        model.predict(X[:1])
    assert model.left_ == 2


BAD = [
    (lambda X, y: SemiSVC(1.0, 1e-6).fit(X, y), DataError, "public"),
    (lambda X, y: SemiSVC(1.0, public=X).fit(X, y), PrivacyParameterError, "delta"),
    (lambda X, y: OutputSVC(1.0, queries=0).fit(X, y), PrivacyParameterError, "queries"),
    (lambda X, y: WeightSVC(1.0, C=-1).fit(X, y), PrivacyParameterError, "C"),
    (lambda X, y: WeightSVC(1.0, gamma=0).fit(X, y), PrivacyParameterError, "gamma"),
    (lambda X, y: WeightSVC(1.0, adjacency=ADD_REMOVE).fit(X, y), PrivacyParameterError, "replacing one"),
    (lambda X, y: WeightSVC(1.0).fit(X, np.ones(len(y))), DataError, "one class"),
    (lambda X, y: WeightSVC(1.0, n_components=20).fit(X, y).predict(X[:, :1]), DataError, "features"),
]


@pytest.mark.parametrize(("action", "error", "word"), BAD, ids=[f"{at}-{item[2]}" for at, item in enumerate(BAD)])
def test_bad_input_is_refused(action, error, word):
    with pytest.raises(error, match=word):
        action(*data(60))
