"""Small studies for the tests of plans and runs."""

from __future__ import annotations

HEAD = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
column(patients, bmi, bmi(P)).
random(age(P)) :- patient(P).
random(bmi(P)) :- patient(P).
range(age(P), 0, 110).
range(bmi(P), 10, 60).
dataset(people, domain(P, patient(P))).
"""

RISK = """
random(risk(P)) :- patient(P).
depends(risk(P), [age(P), bmi(P)], tanh(0.02 * age(P) + 0.01 * bmi(P))) :- patient(P).
"""

TWO_OBSERVERS = (
    HEAD
    + RISK
    + """
privacy_requirement(openness(public), people, dp(0.5, 0.000001)).
privacy_requirement(openness(doctor), people, dp(1.5, 0.000001)).
mean(meanAge, age(P), patient(P)).
mean(meanRisk, risk(P), (patient(P), age(P) > 65)).
histogram(ages, age(P), patient(P), [0, 20, 40, 60, 80, 110]).
publish(average, meanAge, openness(public)).
publish(average, meanAge, openness(doctor)).
publish(spread, ages, openness(public)).
publish(risky, meanRisk, openness(public)).
publish(each, risk(P), openness(doctor)) :- patient(P).
"""
)
COLLUDING = TWO_OBSERVERS + "collude([doctor, public]).\n"


def one(metric: str, body: str) -> str:
    """A study with one observer."""
    return f"{HEAD}{RISK}privacy_requirement(openness(public), people, {metric}).\n{body}"


MEAN = "mean(meanAge, age(P), patient(P)).\npublish(average, meanAge, openness(public)).\n"
EACH = "publish(each, risk(P), openness(public)) :- patient(P).\n"
