"""The oncology study with public structure per patient, and tables for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ONCOLOGY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
column(patients, smoking, reportedSmoking(P)).
column(patients, sex, sex(P)).
source(alterations, 'alterations.parquet').
column(alterations, patient, patient(P)). rows_per_person(alterations, 10). missing(alterations, never).
column(alterations, gene, alteration(A)).
column(alterations, present, geneAlteration(P, A)).
source(treatments, 'treatments.parquet').
column(treatments, patient, patient(P)). rows_per_person(treatments, 10). missing(treatments, never).
column(treatments, drug, drug(D)).
relation(treatments, treated(P, D)).
source(registry, 'registry.parquet').
public(registry).
column(registry, patient, patient(P)).
column(registry, cancer, cancer(C)).
relation(registry, patientHasCancer(P, C)).
source(cancers, 'cancers.parquet').
public(cancers).
column(cancers, name, cancer(C)).
column(cancers, survival, avgCancerSurvival(C)).

alteration(a1). alteration(a2). alteration(a3). alteration(a4). alteration(a5). alteration(a6).
drug(d1). drug(d2).
weightGA(a1, d1, 0.5). weightGA(a2, d1, 0.25). weightGA(a3, d1, 0.125).
weightGA(a3, d2, 0.3). weightGA(a4, d2, 0.2). weightGA(a5, d2, 0.1). weightGA(a6, d2, 0.4).

random(age(P)) :- patient(P).
random(sex(P)) :- patient(P).
random(reportedSmoking(P)) :- patient(P).
random(realSmokingStatus(P)) :- patient(P).
random(geneAlteration(P, A)) :- patient(P), alteration(A).
random(drugResistance(P, D)) :- patient(P), drug(D).
random(avgCancerSurvival(C)) :- cancer(C).
random(expectedSurvivalLength(P)) :- patient(P), patientHasCancer(P, _).

range(age(P), 0, 110).
range(sex(P), [f, m]).
range(reportedSmoking(P), 0, 1).
range(geneAlteration(P, A), 0, 1).
range(avgCancerSurvival(C), 1, 120).
missing(age(P), 50).

weighted([], _, 0).
weighted([geneAlteration(P, A)|Rest], D, W * geneAlteration(P, A) + S) :- weightGA(A, D, W), weighted(Rest, D, S).
depends(realSmokingStatus(P), [reportedSmoking(P)], bernoulli(0.2 + 0.8 * reportedSmoking(P))).
depends(drugResistance(P, D), Parents, exp(-W)) :-
    findall(geneAlteration(P, A), weightGA(A, D, _), Parents), weighted(Parents, D, W).
depends(expectedSurvivalLength(P), Parents, CPF) :-
    patientHasCancer(P, C),
    findall(drugResistance(P, D), drug(D), Resistances),
    append([avgCancerSurvival(C), realSmokingStatus(P), age(P)], Resistances, Parents),
    CPF = poisson(1 / (realSmokingStatus(P) * 0.5 + max(Resistances) + avgCancerSurvival(C) * 0.02 + age(P) * 0.01)).

dataset(patientDataset, domain(P, patient(P))).
privacy_requirement(patientPrivacy(doctor), patientDataset, dp(0.25, 0.03)).
privacy_requirement(patientPrivacy(public), patientDataset, dp(0.1, 0.01)).
dp_rv(patientPrivacy(doctor), expectedSurvivalLength(P)) :- patient(P).
personal_rv(P, age(P)) :- patient(P).
mean(survivalByDrug(D), expectedSurvivalLength(P), (patient(P), treated(P, D), age(P) > 40)) :- drug(D).
histogram(ages, age(P), patient(P), [0, 20, 40, 60, 110]).
count(untreatedWomen, (patient(P), sex(P) = f, \\+ treated(P, d1))).
moment2(moments, [age(P), reportedSmoking(P)], patient(P)).
publish(meanSurvival, survivalByDrug(D), patientPrivacy(public)) :- drug(D).
publish(histogramOfAges, ages, patientPrivacy(public)).
publish(women, untreatedWomen, patientPrivacy(public)).
publish(seconds, moments, patientPrivacy(public)).
"""


def oncology_tables(number: int, seed: int = 0) -> dict[str, pa.Table]:
    """Tables with cells outside of their ranges, absent cells, unlisted categories, double rows and unknown people."""
    generator = np.random.default_rng(seed)
    ids = np.array([f"p{place}" for place in range(number)])
    ages = [None if generator.random() < 0.1 else float(generator.uniform(-10, 130)) for _ in ids]
    pairs = [(person, f"a{g}") for person in ids for g in range(1, 8) if generator.random() < 0.8]
    pairs += [("nobody", "a1")]
    return {
        "patients": pa.table(
            {
                "id": ids,
                "age": pa.array(ages, pa.float64()),
                "smoking": generator.integers(0, 2, number),
                "sex": generator.choice(["f", "m", "x"], number),
            }
        ),
        "alterations": pa.table(
            {
                "patient": [person for person, _ in pairs],
                "gene": [gene for _, gene in pairs],
                "present": generator.integers(0, 3, len(pairs)).astype(float),
            }
        ),
        "treatments": pa.table(
            {"patient": [*ids, *ids[:2]], "drug": generator.choice(["d1", "d2", "d3"], number + min(2, number))}
        ),
        "registry": pa.table(
            {"patient": ids[: number - 1], "cancer": generator.choice(["c", "k"], max(number - 1, 0))}
        ),
        "cancers": pa.table({"name": ["c", "k"], "survival": [20.0, 44.0]}),
    }
