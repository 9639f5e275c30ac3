"""Whatever is taken out of a plan, or changed in it, is found before anything is reserved, and by whoever verifies it.

The studies are those of tests/laws/truth.py, which share no code with the planner, and a few for what these do not ask
for: random answers, tables and classifiers, acts over centres. Every part of a plan is edited alone, and once more by
somebody who makes the promises' own numbers fit.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from laws.test_truth import arrow_tables
from laws.truth import make_case
from run.centre_studies import CENTRES
from sfumato.core import Adjacency, PureDP, compose
from sfumato.core.events.centre import SharedEvent, SharedGaussianEvent
from sfumato.core.events.event import GaussianEvent, Repeated
from sfumato.errors import InputError, PlanError, SfumatoError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.ledger.ledger import Ledger
from sfumato.plan import derive as derive_module
from sfumato.plan.act import Act
from sfumato.plan.draw import Draw
from sfumato.plan.draw_law import draw_law
from sfumato.plan.plan import Plan
from sfumato.run.derived import derive_plan
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1).
column(t, c, c(P)). random(c(P)) :- p(P). range(c(P), [u, v]). missing(c(P), u).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10). missing(x(P), 0).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
"""
QUESTIONS = {
    "a random answer": "publish(a, sample(c(P)), o(pub)) :- p(P).",
    "an answer under two names": "publish(a, sample(c(P)), o(pub)) :- p(P). publish(b, sample(c(P)), o(pub)) :- p(P).",
    "a level": "publish(a, c(P), o(pub)) :- p(P).",
    "a level beside a sum": "publish(a, c(P), o(pub)) :- p(P). sum(s, x(P), p(P)). publish(b, s, o(pub)).",
    "a number": "publish(a, x(P), o(pub)) :- p(P).",
    "sums": "sum(s, x(P), p(P)). mean(m, x(P), p(P)). publish(a, s, o(pub)). publish(b, m, o(pub)).",
    "a table": "publish(a, table([c(P), x(P)]), o(pub)).",
    "a table beside a sum": "publish(a, table([c(P), x(P)]), o(pub)). sum(s, x(P), p(P)). publish(b, s, o(pub)).",
    "a classifier": "publish(a, classifier(c(P), [x(P)]), o(pub)).",
    "a regression": "publish(a, regression(x(P), [c(P)]), o(pub)).",
    "outliers": "publish(a, outliers([x(P)]), o(pub)).",
    "a channel": "publish(a, channel(x(P), [identity]), o(pub)).",
    "quantiles": "quantile(m, x(P), p(P), [0.9]). publish(a, m, o(pub)).",
}
#: The same towards three observers, two of them with one promise.
OBSERVERS = "privacy_requirement(o(twin), d, dp(1)). privacy_requirement(o(more), d, dp(2)).\n"
#: Acts that are made from sums, with events that are known beforehand (bounds, invented rows) and without.
OVER_CENTRES = {
    "bought bounds": """
        column(t, y, y(P)). random(y(P)) :- p(P). range(y(P), private(0.1)). missing(y(P), 0).
        mean(m, y(P), p(P)). publish(a, m, o(pub)).""",
    "invented rows": "publish(a, synthetic([c(P), x(P)], for(c(P))), o(pub)).",
    "a model of sums": "publish(a, regression(x(P), [c(P)]), o(pub)).",
    "a model of steps": "publish(a, classifier(c(P), [x(P)]), o(pub)). prefer(a, [logistic_steps]).",
}
#: How the noise is shared: by all, by two of three, at every centre; or drawn where all rows are.
SHARED = {
    "masks": CENTRES,
    "two honest centres": CENTRES + "colluders(1).\n",
    "noise at each": CENTRES + "prefer(a, each_centre).\n",
    "one place": "",
}
TABLE = {"t": pa.table({"id": [1, 2, 3], "c": ["u", "v", "v"], "x": [1.0, 5.0, 9.0]})}

_STRANGER = Adjacency("stranger", "replace-one")


def _of_draws(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for place, draw in enumerate(plan.draws):
        others = (*plan.draws[:place], *plan.draws[place + 1 :])
        yield f"draw {place} removed", dataclasses.replace(plan, draws=others)
        yield f"draw {place} twice", dataclasses.replace(plan, draws=(*plan.draws, draw))
        changes: dict[str, Any] = {
            "observers": ("stranger",),
            "adjacency": _STRANGER,
            "dataset": "elsewhere",
            "group": 0 if draw.group is None else len(plan.network.groups),
        }
        yield from _divided(plan, place)
        quieter = {"epsilon": draw.epsilon * 2} if hasattr(draw, "epsilon") else {"scale": draw.scale / 2}
        if isinstance(draw, Draw):
            quieter |= {"sensitivity": draw.sensitivity / 2, "dimension": draw.dimension + 1, "node": "nothing"}
        for field, value in (changes | quieter).items():
            edited = dataclasses.replace(draw, **{field: value})
            yield f"draw {place}: {field}", dataclasses.replace(plan, draws=(*others, edited))


def _divided(plan: Plan, place: int) -> Iterator[tuple[str, Plan]]:
    """One draw as two that cost the same: of half the cost each, or one for each observer."""
    draw = plan.draws[place]
    others = (*plan.draws[:place], *plan.draws[place + 1 :])
    if hasattr(draw, "epsilon"):
        half: Any = dataclasses.replace(draw, epsilon=draw.epsilon / 2)
    else:
        half = dataclasses.replace(draw, scale=draw.scale * (2 if draw.noise == "laplace" else math.sqrt(2)))
    yield f"draw {place} in halves", dataclasses.replace(plan, draws=(*others, half, half))
    if len(draw.observers) > 1:
        each = [dataclasses.replace(draw, observers=(who,)) for who in draw.observers]
        yield f"draw {place} for each observer", dataclasses.replace(plan, draws=(*others, *each))


def _of_acts(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for place, act in enumerate(plan.acts):
        others = (*plan.acts[:place], *plan.acts[place + 1 :])
        yield f"act {place} removed", dataclasses.replace(plan, acts=others)
        changes = [("name", "other"), ("dataset", "elsewhere"), ("kind", "other")]
        changes += [("observers", who) for who in ((), ("stranger",), (*act.observers, "stranger"), act.observers * 2)]
        for field, value in changes:
            edited = dataclasses.replace(act, **{field: value})
            yield f"act {place}: {field}", dataclasses.replace(plan, acts=(*others, edited))
        for change, parameters in _other_parameters(act.parameters):
            edited = dataclasses.replace(act, parameters=parameters)
            yield f"act {place}: {change}", dataclasses.replace(plan, acts=(*others, edited))
        ways = [("strategy", "nobody's"), ("strategy", ""), ("strategy", None), ("events", (*act.events, _faint(act)))]
        ways += [("events", events) for events in _other_events(act.events)]
        ways += [("guarantee", guarantee) for guarantee in _other_guarantees(act)]
        for field, value in ways:
            edited = dataclasses.replace(act, **{field: value})
            yield f"act {place}: {field}", dataclasses.replace(plan, acts=(*others, edited))


def _other_guarantees(act: Act) -> Iterator[Any]:
    """Of half and twice the ε; and the δ, unless nothing of it is drawn or charged."""
    epsilon, delta = act.guarantee.stated
    pure = delta == 0 or (act.events and math.isfinite(compose(act.events).epsilon(0.0)))
    for factor in (0.5, 2.0):
        others = [(epsilon * factor, delta)] + ([] if pure else [(epsilon, delta * factor)])
        for other in others:
            yield type(act.guarantee)(*other[: 1 + (delta > 0)], adjacency=act.guarantee.adjacency)


def _other_parameters(parameters: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Without one of them, with one more, and with another word or number for each."""
    yield "one more word", {**parameters, "other": 1.0}
    for word, value in parameters.items():
        yield f"no {word}", {name: other for name, other in parameters.items() if name != word}
        others: list[Any] = ["other", None] if value is not None else ["other", 1.0]
        if isinstance(value, float):
            others += [value * 0.7, value * (1 + 1e-4), -value, math.inf, math.nan, 0.0]
        if isinstance(value, int):
            others += [value + 1, -value - 1, str(value)]
        for changed in (other for other in others if other != value):
            yield f"{word} = {changed!r}", {**parameters, word: changed}


def _faint(act: Act) -> GaussianEvent:
    """One that next to nothing is charged for."""
    return GaussianEvent(adjacency=act.guarantee.adjacency, sensitivity=1.0, scale=1e9, grid=2.0**-10)


def _other_events(events: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Without one of them, with one twice, and with every number of each of them another."""
    for place, event in enumerate(events):
        before, after = events[:place], events[place + 1 :]
        yield from ((*before, *after), (*before, event, event, *after))
        one = event.event if isinstance(event, Repeated) else event
        for edited in (*_other_numbers(one), *_told_safer(one)):
            yield (*before, dataclasses.replace(event, event=edited) if one is not event else edited, *after)


def _other_numbers(event: Any) -> Iterator[Any]:
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        changed = (value / 2, value * 2, value * (1 + 1e-4)) if isinstance(value, float) else ()
        changed = (value - 1, value + 1) if isinstance(value, int) and not isinstance(value, bool) else changed
        for number in changed:
            with suppress(SfumatoError):
                yield dataclasses.replace(event, **{field.name: number})


def _told_safer(event: Any) -> Iterator[Any]:
    """The same noise, said to be drawn by several, or to protect from more colluders."""
    if isinstance(event, GaussianEvent):
        facts = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
        yield SharedGaussianEvent(**{**facts, "grid": event.scale * 2.0**-20}, honest=2, centres=3, colluders=1)
    if isinstance(event, SharedEvent):
        for colluders in {*range(1, event.centres)} - {event.colluders}:
            yield dataclasses.replace(event, honest=event.centres - colluders, colluders=colluders)


def _of_promises(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for place, promise in enumerate(plan.promises):
        others = (*plan.promises[:place], *plan.promises[place + 1 :])
        yield f"promise {place} removed", dataclasses.replace(plan, promises=others)
        large = PureDP(1e9, adjacency=promise.asked.adjacency)
        changes = {"observers": ("stranger",), "dataset": "elsewhere", "asked": large, "kept": large}
        for field, value in changes.items():
            edited = dataclasses.replace(promise, **{field: value})
            yield f"promise {place}: {field}", dataclasses.replace(plan, promises=(*others, edited))


def _of_publications(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for place, planned in enumerate(plan.publications):
        others = (*plan.publications[:place], *plan.publications[place + 1 :])
        yield f"publication {place} removed", dataclasses.replace(plan, publications=others)
        yield f"publication {place} twice", dataclasses.replace(plan, publications=(*plan.publications, planned))
        edited = dataclasses.replace(planned, observer="stranger")
        yield f"publication {place}: observer", dataclasses.replace(plan, publications=(*others, edited))


def edits(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Every part of a plan, removed or changed alone."""
    yield from _of_draws(plan)
    yield from _of_acts(plan)
    yield from _of_promises(plan)
    yield from _of_publications(plan)


def fitted(plan: Plan) -> Plan | None:
    """The plan whose promises say what its draws and acts cost, as somebody who edits with care writes it."""
    try:
        kept = [compose(plan.events(one.dataset, one.observers)) for one in plan.promises]
    except (SfumatoError, ValueError):
        return None  # nothing is drawn, or under two adjacencies
    promises = zip(plan.promises, kept, strict=True)
    return dataclasses.replace(plan, promises=tuple(dataclasses.replace(one, kept=cost) for one, cost in promises))


def careful(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Edits of acts by somebody who makes the promises fit."""
    for name, forged in _of_acts(plan):
        if (fine := fitted(forged)) is not None:
            yield f"{name}, with care", fine


def accepted(plan: Plan) -> list[str]:
    """The edits that follow from the study, as far as `derive` can tell."""
    assert plan.network is not None
    assert all(finding.ok for finding in derive_plan(plan, plan.network))
    both = itertools.chain(edits(plan), careful(plan))
    return [name for name, forged in both if all(finding.ok for finding in derive_plan(forged, plan.network))]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.by_day(5)
def test_every_edit_of_each_kind_of_question_is_found(question):
    assert accepted(make_plan(HEAD + QUESTIONS[question])) == []


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.by_day(3)
def test_every_edit_of_what_several_observers_see_is_found(question):
    text = QUESTIONS[question]
    shown = "".join(line.strip() + ".\n" for line in text.split(". ") if line.startswith("publish"))
    for who in ("twin", "more"):
        text += "\n" + shown.replace("..", ".").replace("o(pub)", f"o({who})")
    assert accepted(make_plan(HEAD + OBSERVERS + text)) == []


@pytest.mark.parametrize("sharing", SHARED)
@pytest.mark.parametrize("question", OVER_CENTRES)
@pytest.mark.by_day(4)
def test_every_edit_of_an_act_of_sums_is_found(question, sharing):
    """Over centres a plan could claim colluders that its noise does not bear."""
    plan = make_plan(HEAD.replace("dp(1)", "dp(3, 0.000001)") + SHARED[sharing] + OVER_CENTRES[question])
    assert len(plan.acts) == 1
    assert accepted(plan) == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.by_day(2)
def test_every_edit_of_a_random_study_is_found(seed):
    assert accepted(make_plan(make_case(seed, most_people=60, models=seed == 5).text)) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(40_000, 40_200, 20))
def test_every_edit_of_two_hundred_studies_is_found(start):
    for seed in range(start, start + 20):
        assert accepted(make_plan(make_case(seed, most_people=60, models=seed % 5 == 0).text)) == [], seed


# ── run and verify ask the same question ─────────────────────────────────────────────────────────────────────────────


def refused_by_both(plan: Plan, forged: Plan, tables, folder) -> None:
    ledger = Ledger(folder / "ledger.db")
    with pytest.raises(PlanError, match=r"Nothing was read, drawn or spent\."):
        run_plan(forged, tables, ledger, grant=True, out=folder / "none")
    assert ledger.datasets() == []
    assert not (folder / "none").exists()
    checks = verify_folder(_published(plan, forged, tables, folder), folder / "s.pl")
    # That the certificates are of another plan is seen as well; it is the study that says what is wrong with this one.
    assert [check for check in checks if not check.ok and "certificate" not in check.field]


def _published(plan: Plan, forged: Plan, tables, folder):
    """A folder in which everything is honest except the plan, as somebody who changed the program would publish it."""
    out = folder / "out"
    run_plan(plan, tables, None, out=out)
    (out / "plan.json").write_text(forged.to_json(), encoding="utf-8")
    return out


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.by_day(2)
def test_a_plan_without_its_random_acts_is_neither_run_nor_verified(tmp_path, question):
    (tmp_path / "s.pl").write_text(HEAD + QUESTIONS[question], encoding="utf-8")
    plan = make_plan(tmp_path / "s.pl")
    refused_by_both(plan, dataclasses.replace(plan, draws=(), acts=()), TABLE, tmp_path)


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.by_day(1)
def test_a_model_of_another_epsilon_is_neither_run_nor_verified(tmp_path, factor):
    (tmp_path / "s.pl").write_text(HEAD + QUESTIONS["a regression"], encoding="utf-8")
    plan = make_plan(tmp_path / "s.pl")
    (act,) = plan.acts
    parameters = {**act.parameters, "epsilon": act.parameters["epsilon"] * factor}
    refused_by_both(
        plan, dataclasses.replace(plan, acts=(dataclasses.replace(act, parameters=parameters),)), TABLE, tmp_path
    )


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.by_day(1)
def test_random_studies_without_a_draw_are_neither_run_nor_verified(tmp_path, seed):
    case = make_case(seed, most_people=60)
    (tmp_path / "s.pl").write_text(case.text, encoding="utf-8")
    plan = make_plan(tmp_path / "s.pl")
    refused_by_both(plan, dataclasses.replace(plan, draws=plan.draws[1:]), arrow_tables(case), tmp_path)


def test_what_is_shown_is_checked_a_second_time(monkeypatch):
    """Were the plan not derived again, no value of a person would be shown without noise either."""
    monkeypatch.setattr("sfumato.run.study.derive_plan", lambda plan, network: iter(()))
    for question in ("a random answer", "a level", "a number"):
        plan = make_plan(HEAD + QUESTIONS[question])
        with pytest.raises(PlanError, match="without noise"):
            run_plan(dataclasses.replace(plan, draws=()), TABLE, None)


def test_the_law_finds_a_derivation_that_looks_only_at_what_is_there(monkeypatch):
    """A planted relative: random answers are compared where there are some, and not missed where there are none."""
    monkeypatch.setattr(derive_module, "_answers", lambda *given: iter(()))
    monkeypatch.setattr(derive_module, "_same_cost", lambda stated, cost: True)
    assert "draw 1 removed" in accepted(make_plan(HEAD + QUESTIONS["a level beside a sum"]))


@pytest.mark.parametrize("name", ["cauchy", "", None, 1, ["laplace"]])
def test_a_law_of_noise_that_is_none_ends_in_words(name):
    with pytest.raises(InputError, match="laplace"):
        draw_law(name)
