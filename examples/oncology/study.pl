% Oncology: how long patients survive, told to their doctors and to the public.
% The thesis' example (section 4.4), repaired: the drug is passed on to weightGA_sum, the sum of no alterations is 0,
% age(P) stands where age(uma) stood, and survivalMoreThan6Month has a CPF.

% --- where the data are --------------------------------------------------------------------------------------
source(patients, 'patients.parquet').
column(patients, id, patient(P)).
rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
column(patients, smoking, reportedSmoking(P)).

source(alterations, 'alterations.parquet').             % one row for each patient and alteration
column(alterations, patient, patient(P)).
missing(alterations, never).
column(alterations, alteration, alteration(A)).
column(alterations, present, geneAlteration(P, A)).
rows_per_person(alterations, 6).

source(treatments, 'treatments.parquet').               % who was given what: private
column(treatments, patient, patient(P)).
column(treatments, drug, drug(D)).
relation(treatments, treated(P, D)).
rows_per_person(treatments, 2).

% --- what everybody may know ---------------------------------------------------------------------------------
cancer(c).
patientHasCancer(P, c) :- patient(P).                   % the study is about one cancer
drug(d1). drug(d2). drug(d3). drug(d4).
alteration(a1). alteration(a2). alteration(a3). alteration(a4). alteration(a5). alteration(a6).
weightGA(a1, d1, 0.5). weightGA(a2, d1, 0.3). weightGA(a3, d1, 0.2).
weightGA(a3, d2, 0.4). weightGA(a4, d2, 0.3). weightGA(a5, d2, 0.2). weightGA(a6, d2, 0.1).

% --- random variables ----------------------------------------------------------------------------------------
random(geneAlteration(P, A)) :- patient(P), alteration(A).
random(realSmokingStatus(P)) :- patient(P).
random(reportedSmoking(P)) :- patient(P).
random(age(P)) :- patient(P).
random(drugResistance(P, D)) :- patient(P), drug(D).
random(avgCancerSurvival(C)) :- cancer(C).
random(expectedSurvivalLength(P)) :- patient(P).
random(survivalMoreThan6Month(P)) :- patient(P).

range(age(P), 0, 110).
range(reportedSmoking(P), 0, 1).
range(geneAlteration(P, A), 0, 1).
missing(reportedSmoking(P), 0).

% --- who depends on whom -------------------------------------------------------------------------------------
depends(avgCancerSurvival(c), [], 24).                  % months, from the literature

depends(realSmokingStatus(P), [reportedSmoking(P)], CPF) :-
    CPF = bernoulli(0.2 + 0.8 * reportedSmoking(P)).

weightGA_sum([], _, 0).
weightGA_sum([geneAlteration(P, A)|Others], D, W * geneAlteration(P, A) + Rest) :-
    weightGA(A, D, W),
    weightGA_sum(Others, D, Rest).

depends(drugResistance(P, D), Parents, exp(-TotalWeight)) :-
    findall(geneAlteration(P, A), weightGA(A, D, _), Parents),
    weightGA_sum(Parents, D, TotalWeight).

depends(expectedSurvivalLength(P), Parents, CPF) :-
    patientHasCancer(P, C),
    findall(drugResistance(P, D), random(drugResistance(P, D)), Resistances),
    append([avgCancerSurvival(C), realSmokingStatus(P), age(P)], Resistances, Parents),
    CPF = poisson(12 / (realSmokingStatus(P) * 0.5 + max(Resistances)
                        + avgCancerSurvival(C) * 0.02 + age(P) * 0.01)).

depends(survivalMoreThan6Month(P), [expectedSurvivalLength(P)], CPF) :-
    CPF = bernoulli(clip(expectedSurvivalLength(P) / 12, 0, 1)).

% --- who may learn what --------------------------------------------------------------------------------------
dataset(patientDataset, domain(P, patient(P))).
dataset_instance(patientDataset, patient_instance(P)) :- patient(P).
instance_rv(patientDataset, patient_instance(P), age(P)) :- patient(P).
instance_rv(patientDataset, patient_instance(P), reportedSmoking(P)) :- patient(P).
instance_rv(patientDataset, patient_instance(P), geneAlteration(P, A)) :- patient(P), alteration(A).
personal_rv(P, age(P)) :- patient(P).

privacy_requirement(patientPrivacy(doctor), patientDataset, dp(0.25, 0.03)).
privacy_requirement(patientPrivacy(public), patientDataset, dp(0.1, 0.001)).

dp_rv(patientPrivacy(doctor), expectedSurvivalLength(P)) :- patient(P).
dp_rv(patientPrivacy(doctor), survivalMoreThan6Month(P)) :- patient(P).

mean(survivalByDrug(D), expectedSurvivalLength(P), (patient(P), treated(P, D))) :- drug(D).
count(olderPatients, (patient(P), age(P) > 65)).
publish(meanSurvival, survivalByDrug(D), patientPrivacy(public)) :- drug(D).
publish(older, olderPatients, patientPrivacy(public)).
weight(meanSurvival, 3).
