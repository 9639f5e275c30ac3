"""Every diagnosis: found at its place, with a way out, and gone when the mistake is mended."""

from __future__ import annotations

import pytest

from sfumato.errors import InputError, StudyError
from sfumato.lang import Problem, examine, load
from sfumato.lang.vocabulary import METRICS

BASE = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
source(visits, 'visits.parquet').
column(visits, patient, patient(P)). rows_per_person(visits, 9).
column(visits, ward, ward(W)).
relation(visits, visited(P, W)).
source(wards, 'wards.parquet').
column(wards, id, openWard(W)).
public(wards).
random(age(P)) :- patient(P).
random(risk(P)) :- patient(P).
range(age(P), 0, 110).
depends(risk(P), [age(P)], tanh(age(P) / 50)).
dataset(people, domain(P, patient(P))).
privacy_requirement(privacy(doctor), people, dp(0.5, 0.001)).
dp_rv(privacy(doctor), risk(P)) :- patient(P).
mean(meanRisk, risk(P), (patient(P), visited(P, W), age(P) > 18)) :- openWard(W).
publish(average, meanRisk, privacy(doctor)).
"""


def problems_of(text: str) -> list[Problem]:
    return list(examine(text)[1])


def codes(text: str, severity: str = "error") -> set[str]:
    return {problem.code for problem in problems_of(text) if problem.severity == severity}


def changed(old: str, new: str) -> str:
    assert old in BASE
    return BASE.replace(old, new, 1)


def test_the_base_is_fine():
    # meanRisk leaves W to the conditions: one aggregate, defined for every ward, is what the next test is about.
    assert codes(BASE) == set()


#: (what is changed, into what, the diagnosis, a piece of the message or suggestion)
MISTAKES = [
    ("patient(P).\nrandom(risk", "paitent(P).\nrandom(risk", "unknown-predicate", "patient/1"),
    ("depends(risk(P)", "depends(rsk(P)", "unknown-variable", "risk/1"),
    ("[age(P)], tanh", "[aeg(P)], tanh", "unknown-variable", "age("),
    ("tanh(age(P)", "tahn(age(P)", "unknown-function", "did you mean: tan"),
    ("[age(P)], tanh", "[], tanh", "not-a-parent", "not among its parents"),
    ("[age(P)], tanh", "[age(Q)], tanh", "unbound", "Q"),
    ("range(age(P), 0, 110).", "", "no-range", "no declared range"),
    ("range(age(P), 0, 110)", "range(aeg(P), 0, 110)", "unknown-variable", "age/1"),
    ("range(age(P), 0, 110)", "range(age(P), 110, 0)", "declaration", "low must be below high"),
    ("range(age(P), 0, 110)", "range(age(P), 0)", "declaration", "list"),
    ("dataset(people,", "dataset(poeple,", "unknown-dataset", "poeple"),
    ("domain(P, patient(P))", "domain(P, client(P))", "unknown-predicate", "client/1"),
    ("domain(P, patient(P))", "patient(P)", "declaration", "domain(P"),
    ("domain(P, patient(P))", "domain(P, patient(Q))", "declaration", "must speak of P"),
    ("dp(0.5, 0.001)", "dp(-0.5, 0.001)", "metric", "dp(Epsilon, Delta)"),
    ("dp(0.5, 0.001)", "dp(0.5, 2)", "metric", "dp(Epsilon, Delta)"),
    ("dp(0.5, 0.001)", "pd(0.5, 0.001)", "metric", "dp/2"),
    ("dp(0.5, 0.001)", "dp(e, 0.001)", "declaration", "number"),
    ("dp(0.5, 0.001)", "renyi_dp(1, 0.5)", "metric", "greater than 1"),
    ("dp_rv(privacy(doctor)", "dp_rv(privacy(docotr)", "unknown-requirement", "privacy(doctor)"),
    ("publish(average, meanRisk", "publish(average, meanRsik", "unknown-variable", "meanRisk/0"),
    (
        "publish(average, meanRisk, privacy(doctor))",
        "publish(average, meanRisk, privacy(X)) :- X = x",
        "unknown-requirement",
        "x",
    ),
    ("column(patients, age", "column(pateints, age", "unknown-table", "patients"),
    ("public(wards)", "public(wrads)", "unknown-table", "wards"),
    ("column(patients, age, age(P))", "column(patients, age, age(Q))", "table-variable", "who Q is"),
    ("relation(visits, visited(P, W))", "relation(visits, visited(P, X))", "table-variable", "who X is"),
    ("random(risk(P)) :- patient(P).", "random(risk(P)) :- patient(P), visited(P, _).", "leak", "public(visits)"),
    ("[age(P)], tanh(age(P) / 50))", "L, sum(L)) :- findall(age(Q), patient(Q), L)", "leak", "aggregate"),
    ("random(risk(P)) :- patient(P).", "random(risk(P)) :- h(P). h(P) :- visited(P, _).", "leak", "visits"),
    ("random(risk(P)) :- patient(P).", "random(risk(P)) :- patient(P), \\+ visited(P, _).", "leak", "visits"),
    ("random(risk(P)) :- patient(P).", "random(risk(P)) :- patient(P), q(_). q(W) :- ward(W).", "leak", "ward/1"),
    (
        "dp_rv(privacy(doctor), risk(P)) :- patient(P)",
        "dp_rv(privacy(doctor), risk(uma)) :- patient(P)",
        "leak",
        "head",
    ),
    (
        "random(risk(P)) :- patient(P).",
        "random(risk(P)) :- patient(P). random(pair(P,Q)) :- patient(P), patient(Q).",
        "two-individuals",
        "P and Q",
    ),
    ("tanh(age(P) / 50)", "tanh(age(uma) / 50)", "constant-individual", "age(uma)"),
    ("depends(risk(P), [age(P)], tanh(age(P) / 50)).", "", "no-cpf", "neither a CPF nor a column"),
    (
        "depends(risk(P), [age(P)], tanh(age(P) / 50)).",
        "depends(risk(P), [age(P)], age(P)) :- fail.",
        "no-cpf",
        "the condition fail fails",
    ),
    ("depends(risk(P),", "depends(risk(P), [], 1). depends(risk(P),", "several-cpfs", "2 CPFs"),
    (
        "depends(risk(P), [age(P)], tanh(age(P) / 50))",
        "depends(risk(P), [risk(P)], risk(P))",
        "cycle",
        "depends on itself",
    ),
    (
        "random(risk(P)) :- patient(P).",
        "random(risk(P)) :- patient(P). depends(age(P), [], 3).",
        "two-meanings",
        "a column and also a CPF",
    ),
    ("mean(meanRisk, risk(P)", "mean(meanRisk, rsik(P)", "unknown-variable", "risk/1"),
    (
        "mean(meanRisk, risk(P), (patient(P), visited",
        "mean(meanRisk, risk(P), (patient(P), vistied",
        "unknown-predicate",
        "visited/2",
    ),
    ("(patient(P), visited(P, W), age(P) > 18)", "age(P) > 18", "aggregate-domain", "patient(P)"),
    ("publish(average,", "weight(avrage, 3). publish(average,", "unknown-publication", "average"),
    ("publish(average,", "weight(average, -3). publish(average,", "declaration", "above zero"),
    ("publish(average,", "collude([doctor, nurse]). publish(average,", "unknown-observer", "nurse"),
    ("publish(average,", "adjacency(people, sideways). publish(average,", "declaration", "add_remove"),
    ("publish(average,", "adjacency(peple, add_remove). publish(average,", "unknown-dataset", "people"),
    ("publish(average,", "missing(age(P), 200). publish(average,", "declaration", "declared range"),
    ("publish(average,", "rows_per_person(visits, 0). publish(average,", "declaration", "at least 1"),
    ("publish(average,", "holds(rome, patients). publish(average,", "unknown-centre", "rome"),
    ("publish(average,", "source(patients, 'x.csv'). publish(average,", "twice", "two sources"),
    ("publish(average,", "random(a, b). publish(average,", "arity", "random(rv(P))"),
    (
        "publish(average,",
        "privacy_requirment(privacy(nurse), people, dp(1)). publish(average,",
        "unused-predicate",
        "privacy_requirement/3",
    ),
    ("publish(average,", "range(age(P), 0, 5) :- patient(P). publish(average,", "conditions", "no conditions"),
    ("tanh(age(P) / 50)", "discrete([low: 0.5, high: 0.6])", "cpf", "1.1"),
    ("tanh(age(P) / 50)", "lookup([age(P)], [row([1, 2], 3)])", "cpf", "1 values"),
    ("tanh(age(P) / 50)", "max([])", "cpf", "empty list"),
    ("tanh(age(P) / 50)", "max(age(P))", "cpf", "needs a list"),
]


@pytest.mark.parametrize(("old", "new", "code", "fragment"), MISTAKES, ids=[f"{m[2]}: {m[1][:30]}" for m in MISTAKES])
def test_a_planted_mistake_is_diagnosed(old, new, code, fragment):
    text = changed(old, new)
    found = [problem for problem in problems_of(text) if problem.code == code and problem.severity == "error"]
    assert found, [problem.describe() for problem in problems_of(text)]
    assert any(fragment in problem.describe() for problem in found), [problem.describe() for problem in found]
    lines = text.splitlines()
    for problem in found:
        assert problem.way_out or problem.expected
        assert problem.clause or code == "declaration"
        assert 1 <= problem.position.line <= len(lines)
        assert 1 <= problem.position.column <= len(lines[problem.position.line - 1])


def test_asking_for_a_named_individual_is_a_leak():
    text = changed(
        "publish(average, meanRisk, privacy(doctor)).", "publish(average, meanRisk, privacy(doctor)) :- patient(uma)."
    )
    (problem,) = [one for one in problems_of(text) if one.severity == "error"]
    assert problem.code == "leak"
    assert "patient(uma)" in problem.message


def test_exact_observation_is_pointed_out():
    text = BASE + "observe(nurse, age(P)) :- patient(P).\n"
    (problem,) = [one for one in problems_of(text) if one.code == "exact"]
    assert problem.severity == "warning"
    assert "nurse learns age(patient) exactly" in problem.message


def test_the_first_failing_condition_is_named():
    text = changed(
        "depends(risk(P), [age(P)], tanh(age(P) / 50)).",
        "depends(risk(P), [age(P)], W * age(P)) :- kind(P, K), factor(K, W).\nkind(_, adult). factor(child, 2).",
    )
    (problem,) = [one for one in problems_of(text) if one.severity == "error"]
    assert problem.code == "no-cpf"
    assert "the condition factor(adult, W) fails" in problem.message


def test_everything_is_said_at_once():
    text = changed("range(age(P), 0, 110)", "range(aeg(P), 0, 110)").replace("dp(0.5, 0.001)", "dp(0.5, 2)")
    text = text.replace("column(wards, id", "column(wrads, id") + "f(a b).\n"
    assert {"unknown-variable", "metric", "unknown-table", "syntax"} <= codes(text)


def test_warnings_do_not_stop_a_study():
    text = BASE + "cancer(c). random(months(C)) :- cancer(C).\n"
    text += "depends(months(c), [], 24). publish(known, months(c), privacy(doctor)).\n"
    spec = load(text)
    assert {problem.code for problem in spec.problems} == {"nobody-protected"}


def test_a_requirement_nothing_refers_to_is_an_error():
    assert codes(BASE + "privacy_requirement(privacy(public), people, dp(0.1)).\n") == {"unused-requirement"}


def test_a_variable_without_a_meaning_is_an_error_where_something_is_published():
    """Nothing can use it; a range says what it may be and not what it is."""
    text = BASE + "random(mood(P)) :- patient(P).\n"
    assert codes(text) == {"no-cpf"}
    assert codes(text + "dp_rv(privacy(doctor), mood(P)) :- patient(P). range(mood(P), 0, 10).\n") == {"no-cpf"}
    assert codes("patient(uma). random(mood(P)) :- patient(P).\n", "warning") == {"no-cpf"}


def test_a_table_the_study_lists_itself_feeds_nothing():
    """drug(D) beside the facts drug(d1), drug(d2): the structure is what the study says, so nothing leaks."""
    text = BASE + "ward(w1). ward(w2). random(stay(P, W)) :- patient(P), ward(W). depends(stay(P, W), [], 1).\n"
    assert codes(text) == set()
    assert "ward/1" not in load(text).table_predicates


def test_private_rows_are_welcome_inside_an_aggregates_goal():
    spec = load(BASE)
    assert spec.table_predicates["visited/2"] == ("visits", False)
    assert spec.table_predicates["openWard/1"] == ("wards", True)


def test_endless_clauses_are_named():
    text = BASE + "random(x(N)) :- natural(N).\nnatural(z).\nnatural(s(N)) :- natural(N).\n"
    (problem,) = [problem for problem in problems_of(text) if problem.severity == "error"]
    assert problem.code == "limit"
    assert "natural" in problem.message
    assert "600000 steps" in problem.message
    assert problem.clause == "random(x(N)) :- natural(N)."


def test_arithmetic_on_public_rows_is_left_for_the_plan():
    text = BASE + "random(x(W)) :- openWard(W), W > 3.\n"
    assert codes(text) == set()
    assert "not-checked" in codes(text, "warning")


def test_rows_of_public_tables_are_not_missed():
    """A condition on a public table may hold once its rows are read: no error, and no error where symbols join."""
    factors = "source(factors, 'f.parquet'). column(factors, ward, openWard(W)). column(factors, f, factorValue(F)).\n"
    factors += "relation(factors, factor(W, F)). public(factors).\n"
    joined = "random(load(W)) :- openWard(W). depends(load(W), [], 2 * F) :- factor(W, F).\n"
    assert codes(BASE + factors + joined) == set()
    assert codes(BASE + factors + joined, "warning") <= {"nobody-protected"}
    listed = "bed(b1). random(load(B)) :- bed(B). depends(load(B), [], 2 * F) :- factor(B, F).\n"
    assert codes(BASE + factors + listed) == set()
    assert "not-checked" in codes(BASE + factors + listed, "warning")


def test_the_error_carries_its_problems():
    with pytest.raises(StudyError) as raised:
        load(changed("dp(0.5, 0.001)", "dp(0)"))
    assert isinstance(raised.value, InputError)
    assert raised.value.problems[0].code == "metric"
    assert "Nothing was run and nothing was spent" in str(raised.value)
    assert "text:17:" in str(raised.value)


PUFFERFISH = ["pufferfish(0.5)", "pufferfish(0.5, 1e-6)"]
METRIC_TEXTS = ["dp(0.5)", "dp(0.5, 1e-17)", "renyi_dp(2, 0.5)", "gdp(0.7)", "zcdp(0.1)", *PUFFERFISH]


@pytest.mark.parametrize("metric", METRIC_TEXTS)
def test_every_metric_becomes_a_guarantee_under_the_datasets_adjacency(metric):
    tied = "correlated(people, group, at_most(2)). " if metric in PUFFERFISH else ""
    spec = load(changed("dp(0.5, 0.001)", metric) + tied)
    guarantee = spec.requirements[0].guarantee
    assert str(guarantee.adjacency) == "replacing one patient"
    assert type(guarantee).__name__ in {"PureDP", "ApproxDP", "RenyiDP", "GaussianDP", "ZCDP", "Pufferfish"}
    if metric == "dp(0.5, 1e-17)":
        assert guarantee.delta(0.5) == 1e-17
    assert len(METRICS) == len(METRIC_TEXTS)


def test_presence_is_protected_on_request():
    spec = load(BASE + "adjacency(people, add_remove).")
    assert str(spec.requirements[0].guarantee.adjacency) == "adding or removing one patient"


def test_observers():
    spec = load(
        changed("privacy(doctor), people", "privacy(doctor), people, dp(1)). privacy_requirement(plain, people")
        + "dp_rv(plain, age(P)) :- patient(P).\n"
    )
    assert [requirement.observer for requirement in spec.requirements] == ["doctor", "everyone"]


def test_several_rows_and_absent_cells_are_spoken_of():
    """Neither is decided in silence: the line to write stands in the message, and with it the study is fine."""
    text = changed(" rows_per_person(patients, 1). missing(patients, never).", "")
    found = {problem.code: problem for problem in problems_of(text) if problem.severity == "error"}
    assert set(found) == {"rows-per-person", "missing"}
    assert "rows_per_person(patients, 1)." in found["rows-per-person"].way_out
    assert "each_person(patients, mean)." in found["rows-per-person"].way_out
    assert "missing(age(P), Value)." in found["missing"].way_out
    assert "missing(patients, never)." in found["missing"].way_out
    for mended in (
        "rows_per_person(patients, 1). missing(patients, never).",
        "each_person(patients, mean). missing(age(P), 40).",
    ):
        assert not codes(text + mended)


def test_only_sums_leave_people_out():
    text = changed("missing(patients, never).", "missing(age(P), skip).")
    (problem,) = [problem for problem in problems_of(text) if problem.severity == "error"]
    assert problem.message == "people without age(P) are skipped, and what is published here has a row for everybody"
    assert "missing(age(P), never)" in problem.way_out
    assert not codes(text.replace("dp_rv(privacy(doctor), risk(P)) :- patient(P).", ""))


@pytest.mark.parametrize("what", ["regression(age(P), [age(P)])", "outliers([age(P)])", "synthetic([age(P)])"])
def test_a_model_is_made_from_everybody_and_shows_no_row(what):
    text = changed("missing(patients, never).", "missing(age(P), skip).")
    text = text.replace("dp_rv(privacy(doctor), risk(P)) :- patient(P).", f"publish(made, {what}, privacy(doctor)).")
    (problem,) = [problem for problem in problems_of(text) if problem.code == "missing"]
    assert problem.message == (
        "people without age(P) are skipped, and what is published here is made from a whole row of everybody"
    )


def test_no_problem_names_a_symbolic_individual():
    for wrong in ("depends(risk(P), [agge(P)], agge(P)) :- patient(P).", "publish(x, agge(P), privacy(doctor))."):
        for problem in problems_of(changed("missing(patients, never).", "") + wrong):
            assert "$" not in str(problem)


@pytest.mark.parametrize("rule", ["skip", "never"])
@pytest.mark.parametrize(("word", "close"), [("patietns", "patients"), ("patient", "patients"), ("zzz", None)])
def test_a_mistyped_table_of_absent_cells_is_told_as_a_table(word, close, rule):
    _, problems = examine(f"""
        source(patients, 'patients.parquet'). column(patients, id, patient(P)). rows_per_person(patients, 1).
        column(patients, age, age(P)). random(age(P)) :- patient(P). range(age(P), 0, 110). missing(age(P), 50).
        missing({word}, {rule}).
        dataset(people, domain(P, patient(P))). privacy_requirement(openness(public), people, dp(0.5)).
        mean(m, age(P), patient(P)). publish(average, m, openness(public)).
    """)
    (problem,) = [one for one in problems if one.severity == "error"]
    assert (problem.code, problem.nearest) == ("unknown-table", close)
    assert f"missing(patients, {rule})" in problem.way_out
