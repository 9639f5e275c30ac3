"""No chooser beats a grant: acts and their costs may be chosen by what earlier acts showed.

Random trees of acts: each act's outcome decides the next act, its kind, and how much of the grant it takes. The two
laws of the whole history, for a pair of neighbours, are enumerated here with numpy alone: the four outcomes of the
worst (ε, δ) act (Kairouz, Oh & Viswanath 2015), and cells of a Gaussian, which as post-processing can only understate.
"""

from __future__ import annotations

from math import erf, exp, inf, sqrt

import numpy as np
import pytest

from sfumato.core import ZCDP, ApproxDP, GaussianDP, PureDP, compose
from sfumato.ledger.balance import charge, fits, remaining

LEAST = 1e-9
EDGES = np.linspace(-3.5, 4.5, 33)


def _normal(x):
    return 0.5 * (1 + erf(x / sqrt(2)))


def outcomes(cost):
    """The masses of the worst pair of an act: (first law, second law), likelier under the first to the left."""
    match cost:
        case GaussianDP(mu=mu):
            cells = [np.diff([0.0, *(_normal(edge - shift) for edge in EDGES), 1.0]) for shift in (mu, 0.0)]
            return cells[0][::-1], cells[1][::-1]
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            delta = 0.0
        case ApproxDP(eps=eps, delta_=delta):
            pass
    high = (1 - delta) * exp(eps) / (1 + exp(eps))
    low = (1 - delta) / (1 + exp(eps))
    return np.array([delta, high, low, 0.0]), np.array([0.0, low, high, delta])


def joint_rule(history, cost, grant):
    """What a ledger must not do: compose the losses of whatever happened to be chosen."""
    return compose([*history, cost]).implies(grant) is True


def filter_rule(history, cost, grant):
    charges = []
    for one in (*history, cost):
        charges.append(charge([one], grant, charges))
    return fits(charges, grant)


def largest(kind, history, grant, accepts):
    """The largest act of a kind that is accepted after `history`, by bisection; None if none is."""
    low, high = 0.0, 4.0
    for _ in range(18):
        middle = (low + high) / 2
        if accepts(history, kind(middle), grant):
            low = middle
        else:
            high = middle
    return kind(low) if low > 0 else None


def kinds(grant):
    found = [GaussianDP, PureDP]
    if isinstance(grant, ApproxDP):
        found.append(lambda size: ApproxDP(LEAST, min(0.999, grant.delta_ * size)))
    return found


def history_laws(random, grant, accepts, depth, history=()):
    """The two laws of everything that is seen, over all outcomes."""
    if depth == 0:
        return np.ones(1), np.ones(1)
    kind = kinds(grant)[random.integers(len(kinds(grant)))]
    cost = largest(kind, history, grant, accepts)
    if cost is None:
        return np.ones(1), np.ones(1)
    if depth > 1:  # leave something for later
        share = random.uniform(0.2, 1.0)
        number = cost.mu if isinstance(cost, GaussianDP) else cost.eps if isinstance(cost, PureDP) else None
        cost = kind(share * number) if number else cost
    first, second = outcomes(cost)
    split = random.integers(1, len(first))
    chosen = np.arange(len(first)) < split
    pieces = []
    for side in (chosen, ~chosen):
        later = history_laws(random, grant, accepts, depth - 1, (*history, cost))
        pieces.append([np.outer(law[side], then).ravel() for law, then in zip((first, second), later, strict=True)])
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def hockey_stick(first, second, epsilon):
    return max(np.maximum(a - exp(epsilon) * b, 0).sum() for a, b in ((first, second), (second, first)))


def excess(first, second, grant):
    """By how much the history breaks the grant, at many ε."""
    points = [grant.eps] if isinstance(grant, ApproxDP) else np.linspace(0.0, 3.0, 13)
    return max(hockey_stick(first, second, eps) - grant.delta(eps) for eps in points)


GRANTS = [ApproxDP(1.0, 0.01), ApproxDP(0.5, 1e-4), GaussianDP(0.8), ZCDP(0.3), ApproxDP(2.0, 0.05)]


def check_trees(count, seed, depth=3, accepts=filter_rule):
    random = np.random.default_rng(seed)
    worst = -inf
    for place in range(count):
        grant = GRANTS[place % len(GRANTS)]
        laws = history_laws(random, grant, accepts, depth)
        assert sum(laws[0]) == pytest.approx(1.0)
        worst = max(worst, excess(*laws, grant) / grant.delta(1.0))
    return worst


def test_no_chooser_beats_the_grant():
    assert check_trees(20, seed=1) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_no_chooser_beats_the_grant_in_many_trees(seed):
    assert check_trees(300, seed=seed) <= 1e-9


@pytest.mark.parametrize(
    ("grant", "first", "continuations", "truth"),
    [
        (ApproxDP(1.0, 0.01), PureDP(0.5), (GaussianDP(0.354), ApproxDP(LEAST, 0.0099999)), 0.0138),
        (ApproxDP(1.0, 1e-5), GaussianDP(0.2), (GaussianDP(0.178), ApproxDP(LEAST, 9.98e-6)), 1.5e-5),
    ],
)
def test_the_checker_finds_what_joint_composition_admits(grant, first, continuations, truth):
    """A planted relative: a ledger that recomposes all events accepts both continuations, and the chooser gains."""
    for cost in continuations:
        assert joint_rule([first], cost, grant)
    assert not all(filter_rule([first], cost, grant) for cost in continuations)
    best = 0.0
    laws = outcomes(first)
    for split in range(1, len(laws[0])):
        sides = np.arange(len(laws[0])) < split
        for order in (continuations, continuations[::-1]):
            pieces = [
                [np.outer(law[side], then).ravel() for law, then in zip(laws, outcomes(cost), strict=True)]
                for side, cost in zip((sides, ~sides), order, strict=True)
            ]
            best = max(best, hockey_stick(*(np.concatenate(part) for part in zip(*pieces, strict=True)), grant.eps))
    assert best > 1.2 * grant.delta_
    assert best >= 0.9 * truth


# ── one reservation is charged what it costs ─────────────────────────────────────────────────────────────────────────


def _acts(random):
    """A handful of acts that are drawn together, some with an ε of their own and some without."""
    pure = [PureDP(float(random.uniform(0.05, 0.5))) for _ in range(random.integers(0, 4))]
    gaussian = [GaussianDP(float(random.uniform(0.02, 0.2))) for _ in range(random.integers(0 if pure else 1, 3))]
    return [*pure, *gaussian]


@pytest.mark.parametrize("seed", range(12))
def test_a_reservation_is_charged_what_it_costs_and_not_what_was_promised(seed):
    random = np.random.default_rng(seed)
    acts, delta = _acts(random), float(10 ** random.uniform(-9, -5))
    cost = compose(acts)
    kept = ApproxDP(cost.epsilon(delta) * float(random.uniform(1.0, 1.08)), delta)  # near enough to seem the same
    grant = ApproxDP(kept.eps * float(random.uniform(1, 20)), delta * float(random.uniform(1, 20)))
    charged = charge(acts, grant, promised=kept)
    eps, left_over = charged.stated
    assert cost.delta(eps) <= left_over or isinstance(charged, PureDP)  # never less than what is drawn costs
    assert isinstance(charged, ApproxDP) or eps >= cost.epsilon(0.0)
    smaller = 1 - 3e-5  # of a charge that is no smaller in both numbers, nothing may be left out
    assert not cost.delta(eps * smaller) <= left_over * smaller, (acts, kept, charged)
    if all(isinstance(one, PureDP) for one in acts):
        assert charged.stated[1] == 0 or eps < sum(one.eps for one in acts), "acts without a δ pay none"


def test_a_promise_that_is_used_up_but_for_crumbs_leaves_nothing():
    grant = ApproxDP(1.0, 1e-6)
    charged = charge([PureDP(0.5), PureDP(0.5 - 1e-13)], grant, promised=grant)
    assert charged == PureDP(1.0)
    assert remaining([charged], grant) is None
