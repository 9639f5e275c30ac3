"""A joint law of a few people: the distance that noise must cover is that of the number the study really publishes.

Random laws and random sums, means and counts, with whatever a study can put beside them that tells people apart: public
tables of groups or weights, facts, several rows a person. Either the study is refused, or the distance is the one found
by enumerating the law over the real people in plain Python, every assignment of its places to them included.
"""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from functools import partial

import pandas as pd
import pytest

from sfumato import Certificate, verify
from sfumato.core import REPLACE_ONE, Known, LaplaceEvent, Pufferfish, RandomizedResponseEvent
from sfumato.errors import PrivacyParameterError, SfumatoError, UnprovedError
from sfumato.network import known
from sfumato.plan.make import make_plan

PEOPLE = ("a", "b", "c")
#: What tells people apart: lines of the study, a public table, the number of whoever has these values.
BESIDE = {
    "nothing": ("", None, "ill(C)", "contact(C)", lambda v: sum(v.values())),
    "above": ("", None, "ill(C)", "contact(C), ill(C) > 0.5", lambda v: sum(x for x in v.values() if x > 0.5)),
    "roster": (
        "source(roster, 'roster.csv'). public(roster). column(roster, id, contact(C)). column(roster, g, grp(G)). "
        "relation(roster, in(C, G)).",
        pd.DataFrame({"id": ["a"], "g": ["vip"]}),
        "ill(C)",
        "contact(C), in(C, vip)",
        lambda v: v["a"],
    ),
    "weights": (
        "source(roster, 'roster.csv'). public(roster). column(roster, id, contact(C)). column(roster, w, w(C)). "
        "random(w(C)) :- contact(C). range(w(C), 0, 10). random(x(C)) :- contact(C). "
        "depends(x(C), [ill(C), w(C)], w(C) * ill(C)).",
        pd.DataFrame({"id": ["a", "b", "c"], "w": [10.0, 0.0, 1.0]}),
        "x(C)",
        "contact(C)",
        lambda v: 10 * v["a"] + v["c"],
    ),
    "facts": (
        "vip(a). random(x(C)) :- contact(C). range(x(C), 0, 1). "
        "depends(x(C), [ill(C)], ill(C)) :- vip(C). depends(x(C), [ill(C)], 0 * ill(C)) :- contact(C), \\+ vip(C).",
        None,
        "x(C)",
        "contact(C)",
        lambda v: v["a"],
    ),
}


def law(draw: random.Random):
    """Rows of values with chances that add up to 1 as written."""
    tables = [values for values in itertools.product((0, 1), repeat=3) if draw.random() < 0.7] or [(0, 0, 0), (1, 1, 1)]
    weights = [draw.randint(1, 8) for _ in tables]
    rest = 2**10 - sum(weights)
    chances = [Fraction(weight, 2**10) for weight in weights]
    chances[0] += Fraction(rest, 2**10)
    return list(zip(tables, chances, strict=True))


def study(rows, kind: str, aggregate: str, limit: int) -> str:
    lines, _, value, goal, _ = BESIDE[kind]
    shown = ", ".join(f"row([{', '.join(map(str, values))}], {float(chance)!r})" for values, chance in rows)
    asked = f"count(m, ({goal}))" if aggregate == "count" else f"{aggregate}(m, {value}, ({goal}))"
    return f"""
source(contacts, 'contacts.csv'). column(contacts, id, contact(C)). column(contacts, ill, ill(C)).
rows_per_person(contacts, {limit}). missing(contacts, never).
random(ill(C)) :- contact(C). range(ill(C), 0, 1). {lines}
dataset(circle, domain(C, contact(C))).
correlated(circle, known, joint([{shown}])).
privacy_requirement(secrecy(public), circle, pufferfish(1.0, 1e-6)).
{asked}. publish(m, m, secrecy(public)).
"""


def planned(rows, kind: str, aggregate: str, limit: int):
    roster = BESIDE[kind][1]
    return make_plan(study(rows, kind, aggregate, limit), {} if roster is None else {"roster": roster})


def farthest(left, right) -> float:
    """The longest step of the coupling of equal quantiles, in fractions: two lists of (number, chance)."""
    left, right = ([[n, c / sum(c for _, c in one)] for n, c in sorted(one)] for one in (left, right))
    longest = 0.0
    while left and right:
        longest = max(longest, abs(left[0][0] - right[0][0]))
        moved = min(left[0][1], right[0][1])
        for one in (left, right):
            one[0][1] -= moved
            if one[0][1] == 0:
                one.pop(0)
    return longest


def true_distance(rows, number) -> float:
    """Over every way to say whose place is whose: the law names nobody."""
    longest = 0.0
    for order in itertools.permutations(range(3)):
        for unit in range(3):
            by_value = {}
            for values, chance in rows:
                people = {PEOPLE[person]: values[place] for person, place in enumerate(order)}
                by_value.setdefault(values[unit], []).append((number(people), chance))
            for one, other in itertools.combinations(by_value.values(), 2):
                longest = max(longest, farthest(one, other))
    return longest


def checked(seed: int) -> bool:
    """Whether the study was planned; if so its distance is not below the true one."""
    draw = random.Random(seed)
    rows, kind = law(draw), draw.choice(list(BESIDE))
    aggregate, limit = draw.choice(("sum", "sum", "count")), draw.choice((1, 1, 1, 3))
    number = BESIDE[kind][4]
    if aggregate == "count":
        counted = {"above": lambda v: sum(x > 0.5 for x in v.values())}
        number = counted.get(kind, lambda v: 0)
    try:
        plan = planned(rows, kind, aggregate, limit)
    except SfumatoError:
        return False
    stated = plan.promises[0].asked.dependence.distance
    assert limit * true_distance(rows, number) <= stated + 1e-9, (seed, kind, aggregate, limit)
    return True


@pytest.mark.parametrize("part", range(10))
@pytest.mark.by_day(2)
def test_the_distance_is_never_below_the_true_one(part):
    assert sum(checked(seed) for seed in range(30 * part, 30 * part + 30)) > 1


def test_a_law_that_is_tried_with_invented_people_alone_is_found(monkeypatch):
    monkeypatch.setattr(known, "_check_alike", lambda *given: None)
    with pytest.raises(AssertionError):
        list(map(checked, range(200)))


@pytest.mark.parametrize(
    ("kind", "limit", "said"),
    [
        ("roster", 1, "tells individuals"),
        ("weights", 1, "tells individuals"),
        ("facts", 1, "one number|tells individuals"),
        ("nothing", 3, "several rows"),
    ],
)
def test_the_refusal_says_why_and_what_to_do(kind, limit, said):
    rows = law(random.Random(1))
    with pytest.raises(SfumatoError, match=said):
        planned(rows, kind, "sum", limit)


def test_what_has_no_bounds_is_refused_for_that():
    text = study(law(random.Random(1)), "nothing", "sum", 1).replace("range(ill(C), 0, 1).", "")
    with pytest.raises(SfumatoError, match=r"range|bounds"):
        make_plan(text)


EVEN = [(values, Fraction(1, 4)) for values in itertools.product((0, 1), repeat=2)]


@pytest.mark.parametrize(
    ("act", "kept"),
    [
        (LaplaceEvent(1.0, 1.0, adjacency=REPLACE_ONE), True),
        (LaplaceEvent(0.5, 0.5, adjacency=REPLACE_ONE), False),
        (LaplaceEvent(1.0, 1.0, dimension=2, adjacency=REPLACE_ONE), False),
        (RandomizedResponseEvent(2, 19, 7, adjacency=REPLACE_ONE), False),
    ],
)
def test_core_and_verifier_take_noise_on_that_number_alone(act, kept):
    """The number moves by a tenth of what one unit may move it by; of another ε-DP act that says nothing."""
    promise = Pufferfish(0.2, 0.0, Known.of(EVEN, [0.0, 0.1, 0.1, 0.2], 1.0), adjacency=REPLACE_ONE)
    make = partial(Certificate.issue, subject="x", events=[act], proofs=sorted({*act.proof_ids(), "pufferfish"}))
    if kept:
        assert verify(make(guarantee=promise)).ok
        return
    with pytest.raises(UnprovedError):
        make(guarantee=promise)


@pytest.mark.parametrize("chances", [("0", "1"), ("3/2", "-1/2"), ("1/3", "1/3")])
def test_a_law_that_is_none_is_refused(chances):
    with pytest.raises(PrivacyParameterError, match="add up to 1"):
        Known.of([((place,), Fraction(one)) for place, one in enumerate(chances)], [0.0, 1.0], 1.0)
