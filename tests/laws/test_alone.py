"""Where the form of a study's clauses says that nobody minds the others, running them beside somebody else says so too.

The first half is a list of ways in which one individual can matter to another; the second one draws clauses at random,
runs them for one individual and for two, and compares. Both ways of finding out share nothing but the clauses.
Where public structure tells people apart, all of them are looked at: what a class is called decides nothing.
"""

from __future__ import annotations

import random
from itertools import permutations

import pandas as pd
import pytest

from sfumato.errors import SfumatoError
from sfumato.lang import load
from sfumato.lang.alone import stand_alone
from sfumato.lang.ground import ground
from sfumato.lang.limits import Limits
from sfumato.lang.load import examine
from sfumato.lang.term import Compound, walk
from sfumato.network import build
from sfumato.network.network import Network

HEAD = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
drug(a). drug(b). count(n, p(P)). publish(many, n, o(pub)).
"""
TOLD = frozenset({"p/1"})
ALONE = [
    "mean(m, x(P), p(P)). publish(a, m, o(pub)).",
    "random(y(P)) :- p(P). depends(y(P), [x(P)], x(P) / 2).",
    "random(y(P)) :- p(P). depends(y(P), [x(P)], x(P) / 2) :- p(P).",
    "random(y(P)) :- known(P). known(P) :- p(P). depends(y(P), [x(P)], x(P) / 2).",
    "random(y(P)) :- p(P). y(P) | x(P). cpd(y(P), x(P) / 2).",
    "sum(s, x(P), p(P)). random(twice). depends(twice, [s], 2 * s).",
]
RELATED = [
    "random(y(P, Q)) :- p(P), p(Q).",
    "random(y(P)) :- p(P), p(Q).",
    "random(y(P)) :- p(P), other(P). other(P) :- p(Q).",
    "random(y(P)) :- p(P), other(P). other(P) :- p(P), p(Q), P \\= Q.",
    "random(y(P)) :- p(P), \\+ crowd. crowd :- p(P), p(Q), P \\= Q.",
    "random(y(P)) :- p(P), findall(Q, p(Q), L), length(L, 1).",
    "random(y(P)) :- p(P), lonely. lonely :- findall(P, p(P), [P]).",
    "random(y(P)) :- known(P). known(u) :- p(P).",
    "random(y) :- p(P).",
    "random(y). depends(y, [], P) :- p(P).",
    "random(y). depends(y, [x(P)], x(P)) :- p(P).",
    "random(y). y | x(P) :- p(P).",
    "random(y(P)) :- p(P). depends(y(P), [x(Q)], x(Q)) :- p(Q).",
    "mean(m, x(P), p(P)) :- p(Q).",
    "pair(P, Q) :- p(P), p(Q). random(y(P)) :- pair(P, P).",
    "random(y(P)) :- p(P), other(P). other(_) :- p(_).",
]


@pytest.mark.parametrize("clauses", ALONE)
def test_these_speak_of_one_individual(clauses):
    assert stand_alone(load(HEAD + clauses), TOLD)


@pytest.mark.parametrize("clauses", RELATED)
def test_of_these_their_form_shows_nothing(clauses):
    spec, _ = examine(HEAD + clauses)
    assert not stand_alone(spec, TOLD)


# ── by running them ──────────────────────────────────────────────────────────────────────────────────────────────────

FEW = Limits(steps=20_000, depth=500)
GOALS = (*["p(P)"] * 5, "p(Q)", "drug(P)", "drug(D)", "h(P)", "h(P)", "k(P)", "g", "pair(P, Q)", "pair(P, P)")
RARE = ("\\+ h(P)", "\\+ g", "P \\= Q", "findall(Q, h(Q), [_])")
HEADS = ("h(P)", "h(P)", "k(P)", "k(P)", "g", "pair(P, Q)", "pair(P, f(P))", "h(D)")
DECLARED = (
    "random(y(P))", "random(z(P))", "random(y(P, Q))", "random(w)", "depends(y(P), [x(P)], x(P))",
    "depends(z(P), [y(P)], y(P))", "depends(w, [], 1)", "depends(w, [x(P)], x(P))", "depends(z(P), [x(Q)], x(Q))",
    "z(P) | y(P)", "z(P) | x(Q)", "cpd(z(P), y(P))", "cpd(w, P)",
)  # fmt: skip


def drawn_clauses(chance: random.Random) -> str:
    """A few clauses; in half of the studies most of them are about P alone."""
    tame = chance.random() < 0.5

    def one_of(texts: tuple[str, ...]) -> str:
        own = [text for text in texts if "P" in text and "Q" not in text and "D" not in text]
        return chance.choice(own if tame and chance.random() < 0.95 else texts)

    def body(sizes: tuple[int, ...]) -> str:
        goals = [one_of(RARE if chance.random() < 0.03 else GOALS) for _ in range(chance.choice(sizes))]
        return f" :- {', '.join(goals)}." if goals else "."

    helpers = [one_of(HEADS) + body((1, 1, 2)) for _ in range(chance.randint(1, 3))]
    # What every goal above may call is there.
    helpers += ["h(u).", "k(u).", "pair(u, v).", "g :- drug(c)."]
    return "\n".join([*helpers, *(one_of(DECLARED) + body((0, 1, 1, 2)) for _ in range(3))])


def names(term, person: Compound) -> bool:
    return any(part == person for part in walk(term))


def is_moved(spec) -> bool:
    """Whether somebody else changes what follows for one individual, or is related to them."""
    one, other = spec.symbolic("d"), spec.symbolic("d", 2)
    before = ground(spec, [Compound("p", (one,))], FEW)
    beside = ground(spec, [Compound("p", (one,)), Compound("p", (other,))], FEW)
    related = any(names(variable, one) and names(variable, other) for variable in beside.variables)
    variables = {variable for variable in beside.variables if not names(variable, other)}
    laws = {one for one in beside.dependencies if not names(one.child, other)}
    return related or variables != set(before.variables) or laws != set(before.dependencies)


def test_what_the_form_says_holds_for_clauses_drawn_at_random():
    chance, alone, moved = random.Random(7), 0, 0
    for _ in range(200):
        text = HEAD + drawn_clauses(chance)
        spec, _ = examine(text, FEW)
        try:
            found = is_moved(spec)
        except SfumatoError:
            continue  # an engine that cannot answer refuses the study
        said = stand_alone(spec, TOLD)
        assert not (said and found), text
        alone, moved = alone + said, moved + found
    assert min(alone, moved) > 20  # both kinds were drawn


@pytest.mark.parametrize("text", [HEAD + one for one in ALONE], ids=range(len(ALONE)))
def test_the_second_look_finds_nothing_where_it_is_left_out(text, monkeypatch):
    network = Network.from_spec(load(text), {})
    monkeypatch.setattr(build, "stand_alone", lambda spec, told: False)
    assert Network.from_spec(load(text), {}).nodes == network.nodes


# ── in every public structure ────────────────────────────────────────────────────────────────────────────────────────

CLASSES = ("a", "b", "c", "d")
TOLD_APART = """
source(m, 'm.csv'). public(m). column(m, id, p(P)). column(m, cls, cls(C)). relation(m, in(P, C)).
random(k(P)) :- in(P, C). range(k(P), 0, 100). mean(mean, k(P), p(P)). publish(mean, mean, o(pub)).
"""
CROWD = "crowd :- p(P), p(Q), P \\= Q."
#: Clauses of the people of class ONE, of whom some also speak of those of class TWO.
MINDFUL = [
    "depends(k(P), [x(P)], N * x(P)) :- in(P, ONE), findall(Q, in(Q, ONE), L), length(L, N).",
    "depends(k(P), [x(P)], N * x(P)) :- in(P, ONE), findall(Q, in(Q, TWO), L), length(L, N).",
    "depends(k(P), [x(P)], N * x(P)) :- in(P, ONE), findall(Q, p(Q), L), length(L, N).",
    "depends(k(P), [x(P)], x(P)) :- in(P, ONE), \\+ crowd. depends(k(P), [], 50) :- in(P, ONE), crowd." + CROWD,
    "depends(k(P), [x(P)], x(P)) :- in(P, ONE), \\+ two. depends(k(P), [], 50) :- in(P, ONE), two. two :- in(Q, TWO).",
    "depends(k(P), [x(P)], x(Q)) :- in(P, ONE), in(Q, TWO).",
    "depends(k(P), [x(P)], x(P)) :- in(P, ONE). random(j(P)) :- in(P, ONE), in(Q, TWO).",
    "depends(k(P), [x(P)], x(P)) :- in(P, ONE). random(j(P, Q)) :- in(P, ONE), in(Q, TWO).",
]
UNMINDFUL = [
    "depends(k(P), [x(P)], x(P)) :- in(P, ONE).",
    "depends(k(P), [x(P)], x(P)) :- in(P, C), \\+ C = TWO, \\+ other(C). other(C) :- cls(C), \\+ C = ONE.",
    "depends(k(P), [x(P)], N * x(P)) :- in(P, ONE), findall(C, cls(C), L), length(L, N).",
]
PAIRS = list(permutations(CLASSES, 2))
IN_CLASSES = pd.DataFrame({"id": [str(place) for place in range(9)], "cls": [*CLASSES, *CLASSES, "a"]})


def refused(clauses: str, one: str, two: str) -> bool:
    plain = [f"depends(k(P), [x(P)], x(P)) :- in(P, {name})." for name in CLASSES if name != one]
    text = HEAD + TOLD_APART + "\n".join([*plain, clauses.replace("ONE", one).replace("TWO", two)])
    try:
        Network.from_spec(load(text), {"m": IN_CLASSES})
    except SfumatoError as error:
        return "nothing was spent" in str(error)
    return False


@pytest.mark.parametrize("names", PAIRS, ids="".join)
@pytest.mark.parametrize("clauses", MINDFUL, ids=range(len(MINDFUL)))
@pytest.mark.by_day(30)
def test_who_minds_others_is_refused_whatever_the_class_is_called(clauses, names):
    assert refused(clauses, *names)


@pytest.mark.parametrize("names", PAIRS, ids="".join)
@pytest.mark.parametrize("clauses", UNMINDFUL, ids=range(len(UNMINDFUL)))
@pytest.mark.by_day(8)
def test_who_minds_nobody_is_answered_whatever_the_class_is_called(clauses, names):
    assert not refused(clauses, *names)
