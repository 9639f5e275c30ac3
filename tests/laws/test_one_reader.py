"""Observers with one promise are answered like one observer: nobody errs more for the others, nothing is paid twice.

1. k observers who are promised the same and ask for the same see the same numbers, with the error and the cost of one.
2. Colluders who are promised the same see together what one observer who asks for all of it would see: with its error,
   at its cost.
3. Whoever asks, every observer and every group that colludes sees no more than was promised, by the verifier's road.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

from sfumato.evidence.verify_plan import verify_folder
from sfumato.plan import mixed, settle
from sfumato.plan.plan import Plan
from sfumato.plan.request import Request
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan
from sfumato.run.study_files import Published

HEAD = """
    table(t, 't.csv', p(P) = id, [x: 0..100, y: 0..10, g: [a, b]]). rows_per_person(t, 1). missing(t, never).
    dataset(d, domain(P, p(P))).
"""

#: What may be asked, and what is published of it.
QUESTIONS = (
    ("mean(q{i}, x(P), p(P)).", "q{i}"),
    ("histogram(q{i}, x(P), p(P), [10, 40, 70]).", "q{i}"),
    ("median(q{i}, x(P), p(P)).", "q{i}"),
    ("quantile(q{i}, y(P), p(P), [0.1, 0.5, 0.9]).", "q{i}"),
    ("median(q{i}, x(P), p(P), by([g(P)])).", "q{i}"),
    ("", "synthetic([x(P), g(P)])"),
    ("", "regression(y(P), [x(P)])"),
)


def asked(seed: int) -> list[tuple[str, str]]:
    source = random.Random(seed)
    chosen = [source.choice(QUESTIONS) for _ in range(source.randint(1, 2))]
    if all("mean" in text or "histogram" in text for text, _ in chosen):
        chosen.append(QUESTIONS[2])
    return [(text.format(i=place), term.format(i=place)) for place, (text, term) in enumerate(chosen)]


def promise(seed: int) -> str:
    source = random.Random(f"promise {seed}")
    epsilon = round(10 ** source.uniform(-0.5, 0.6), 3)
    return f"dp({epsilon})" if may_be_pure(seed) and source.random() < 0.5 else f"dp({epsilon}, 0.000001)"


def may_be_pure(seed: int) -> bool:
    """Invented rows need a δ."""
    return not any("synthetic" in term for _, term in asked(seed))


def planned(seed: int, promises: dict[str, str], shown: dict[str, list[int]], *more: str) -> Plan:
    """The study in which each observer is promised this and is shown these of the questions."""
    questions = asked(seed)
    lines = [text for text, _ in questions]
    lines += [f"privacy_requirement(o({who}), d, {promised})." for who, promised in promises.items()]
    lines += [f"publish(p{place}, {questions[place][1]}, o({who}))." for who, own in shown.items() for place in own]
    return make_plan("\n".join([HEAD, *lines, *more]), sizes={"d": 3000})


def errors(plan: Plan, who: str) -> dict[str, float]:
    return {one.name: one.error for one in plan.publications if one.observer == who}


def paid(plan: Plan) -> float:
    return plan.cost("d").epsilon(1e-6)


def alike(seed: int) -> list[str]:
    """What differs between observers with one promise and one of them alone."""
    everything = list(range(len(asked(seed))))
    names = [f"r{place}" for place in range(random.Random(seed).randint(2, 3))]
    promised = promise(seed)
    alone = planned(seed, {"r0": promised}, {"r0": everything})
    together = planned(seed, dict.fromkeys(names, promised), dict.fromkeys(names, everything))
    return compared(alone, together, names)


def compared(alone: Plan, together: Plan, names: list[str]) -> list[str]:
    found = []
    for who in names:
        own = errors(together, who)
        found += [
            f"{who}: {name} errs {own[name]}, alone {error}"
            for name, error in errors(alone, "r0").items()
            if name in own and own[name] > error * (1 + 1e-9)
        ]
    if paid(together) > paid(alone) * (1 + 1e-9):
        found.append(f"paid {paid(together)}, alone {paid(alone)}")
    return found


def pooled(seed: int) -> list[str]:
    """What differs between colluders who ask for some of it each and one observer who asks for all."""
    everything, source = list(range(len(asked(seed)))), random.Random(f"pooled {seed}")
    shown: dict[str, list[int]] = {"r0": [], "r1": []}
    for place in everything:
        for who in source.choice((("r0",), ("r1",), ("r0", "r1"))):
            shown[who].append(place)
    shown = {who: own for who, own in shown.items() if own}
    promised = promise(seed)
    alone = planned(seed, {"r0": promised}, {"r0": everything})
    more = ("collude([r0, r1]).",) if len(shown) == 2 else ()
    together = planned(seed, dict.fromkeys(shown, promised), shown, *more)
    return compared(alone, together, list(shown))


@pytest.mark.by_day(8)
@pytest.mark.parametrize("seed", range(120))
def test_observers_with_one_promise_are_answered_like_one(seed):
    assert alike(seed) == []


@pytest.mark.by_day(8)
@pytest.mark.parametrize("seed", range(120))
def test_colluders_with_one_promise_are_answered_like_one(seed):
    assert pooled(seed) == []


def _apart(network: object, requests: Sequence[Request]) -> dict[str, str]:
    return {one.observer: one.observer for one in requests}


def test_acts_for_each_observer_are_found(monkeypatch):
    """As it was: a median for two observers was drawn twice and paid twice."""
    for planner in (mixed, import_module("sfumato.plan.derive")):  # which would find out otherwise
        monkeypatch.setattr(planner, "read_as_one", _apart)
    assert any(alike(seed) for seed in range(8))


def test_colluders_whose_sums_are_divided_each_by_itself_are_found(monkeypatch):
    """As it was: a mean beside another colluder's median had 17 times its error."""
    monkeypatch.setattr(settle, "read_as_one", _apart)
    assert pooled(30)


# ── what is published ────────────────────────────────────────────────────────────────────────────────────────────────


def rows(size: int = 400) -> pa.Table:
    source = random.Random(5)
    return pa.table(
        {
            "id": range(size),
            "x": [source.uniform(0, 100) for _ in range(size)],
            "y": [source.uniform(0, 10) for _ in range(size)],
            "g": [source.choice("ab") for _ in range(size)],
        }
    )


def any_study(seed: int) -> Plan:
    """Two to four observers, promises that are equal or not, questions in common or not, who may collude."""
    source = random.Random(f"any {seed}")
    names = [f"r{place}" for place in range(source.randint(2, 4))]
    kinds = ["dp(2, 0.000001)", "dp(1)" if may_be_pure(seed) else "dp(1, 0.000001)"]
    everything = range(len(asked(seed)))
    shown = {who: [place for place in everything if source.random() < 0.7] or [0] for who in names}
    promises = {who: source.choice(kinds) for who in names}
    groups = [source.sample(names, source.randint(2, len(names))) for _ in range(source.randint(0, 2))]
    more = [f"collude([{', '.join(group)}])." for group in groups]
    return planned(seed, promises, shown, *more)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", range(60))
def test_whoever_asks_sees_no_more_than_promised(seed, tmp_path):
    """The folder verifies by its own road, and of an act that several see they see the same."""
    plan = any_study(seed)
    release = run_plan(plan, {"t": rows()}, None, out=tmp_path / "out")
    failed = [check for check in verify_folder(tmp_path / "out", tables={"t": rows()}) if not check.ok]
    assert failed == []
    for act in plan.acts:
        seen = [one for one in release.published if act.makes(one.name, one.observer)]
        assert [one.observer for one in seen] == list(act.observers)
        assert all((one.values, one.documents, one.tables) == same for one in seen for same in [shown_first(seen)])


def shown_first(seen: Sequence[Published]) -> tuple[Any, ...]:
    return seen[0].values, seen[0].documents, seen[0].tables
