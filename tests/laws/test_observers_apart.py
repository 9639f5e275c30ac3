"""Observers who do not collude hardly harm each other: of what each sees, the error is on average at most so many times
what it would be alone as there are of them.

Versions of one sum are refinements of each other. With Laplace noise the k-th observer's version is made of k
independent ones with parts e₁, …, e_k of ε, whose best combination has 1/Σeᵢ² where 1/(Σeᵢ)² is the least: at most k
times it, by Cauchy and Schwarz. What is drawn by itself for several of them is taken where it halves the loss.
"""

from __future__ import annotations

import random

import pytest

from sfumato.plan import request
from sfumato.run.planning import make_plan

QUESTIONS = (
    "mean(q{i}, x(P), p(P)).",
    "sum(q{i}, x(P), p(P)).",
    "count(q{i}, (p(P), x(P) > 30)).",
    "variance(q{i}, x(P), p(P)).",
    "histogram(q{i}, x(P), p(P), [10, 40, 70]).",
    "mean(q{i}, x(P), p(P), by([g(P)])).",
    "median(q{i}, x(P), p(P)).",
    "quantile(q{i}, x(P), p(P), [0.1, 0.5, 0.9]).",
)


def drawn(seed: int) -> tuple[list[str], dict[str, str]]:
    """Questions, and who is promised what."""
    source = random.Random(seed)
    asked = [source.choice(QUESTIONS).format(i=place) for place in range(source.randint(1, 2))]
    promises = {}
    for place in range(source.randint(2, 3)):
        epsilon = round(10 ** source.uniform(-1, 0.6), 3)
        promises[f"r{place}"] = f"dp({epsilon})" if source.random() < 0.5 else f"dp({epsilon}, 0.000001)"
    return asked, promises


def errors(asked: list[str], promises: dict[str, str]) -> dict[tuple[str, str], float]:
    lines = [f"privacy_requirement(o({who}), d, {promise})." for who, promise in promises.items()]
    lines += [f"publish(p{place}, q{place}, o({who}))." for who in promises for place in range(len(asked))]
    text = """
        table(t, 't.csv', p(P) = id, [x: 0..100, g: [a, b]]). rows_per_person(t, 1). missing(t, never).
        dataset(d, domain(P, p(P))).
    """
    plan = make_plan("\n".join([text, *asked, *lines]), sizes={"d": 5000})
    return {(one.observer, one.name): one.error for one in plan.publications}


def harmed(seed: int) -> dict[str, float]:
    """By how much more observers err than alone, where it is more than the law allows."""
    asked, promises = drawn(seed)
    together, found = errors(asked, promises), {}
    for who, promise in promises.items():
        alone = errors(asked, {who: promise})
        ratio = sum(together[key] / error for key, error in alone.items()) / len(alone)
        if ratio > len(promises) * 1.1:  # shares of publications may shift a little
            found[who] = ratio
    return found


@pytest.mark.by_day(12)
@pytest.mark.parametrize("seed", range(150))
def test_observers_hardly_harm_each_other(seed):
    assert harmed(seed) == {}


def test_quantiles_that_are_drawn_for_one_observer_only_are_found(monkeypatch):
    """As it was: with a second observer a quantile was read off noisy counts, with 16 times the squared error."""
    monkeypatch.setattr(request, "are_apart", lambda network, requests: len({one.observer for one in requests}) == 1)
    assert any(harmed(seed) for seed in range(30) if any("quantile" in one for one in drawn(seed)[0]))
