% The oncology example as the thesis prints it (section 4.4), for the patient uma. `sfumato check` says what is wrong
% with it; study.pl is the repaired version.

% The world: one patient with cancer c, four drugs, six gene alterations.
patient(uma).
cancer(c).
patientHasCancer(uma, c).
drug(d1). drug(d2). drug(d3). drug(d4).
alteration(a1). alteration(a2). alteration(a3). alteration(a4). alteration(a5). alteration(a6).
weightGA(a1, d1, 0.5). weightGA(a2, d1, 0.3). weightGA(a3, d1, 0.2).
weightGA(a3, d2, 0.4). weightGA(a4, d2, 0.3). weightGA(a5, d2, 0.2). weightGA(a6, d2, 0.1).

% 4.4.1 Random variables
random(geneAlteration(P, A)) :- patient(P), alteration(A).
random(realSmokingStatus(P)) :- patient(P).
random(reportedSmoking(P)) :- patient(P).
random(age(P)) :- patient(P).
random(drugResistance(P, D)) :- patient(P), drug(D).
random(avgCancerSurvival(C)) :- cancer(C).
random(expectedSurvivalLength(P)) :- patient(P).
random(survivalMoreThan6Month(P)) :- patient(P).

% 4.4.2 Dependencies
depends(realSmokingStatus(P), ParentRVs, CPF) :-
    ParentRVs = [reportedSmoking(P)], % appends all the
    % parent RVs in a list and assign them to ParentRVs
    CPF = bernoulli(0.2 + 0.8 * reportedSmoking(P)).

weightGA_sum([V], W*V) :-
    V=geneAlteration(P, A), weightGA(A, D, W).
weightGA_sum([V1|RV], S1+RS) :-
    weightGA_sum([V1], S1), weightGA_sum(RV, RS).

depends(drugResistance(P, D), ParentRVs, CPF) :-
    findall(geneAlteration(P, A), random(geneAlteration(P, A)),
    ParentRVs),
    % puts all the parent RVs in the list ParentRVs
    weightGA_sum(ParentRVs, TotalWeight),
    CPF = exp(-TotalWeight).

depends(expectedSurvivalLength(P), ParentRVs, CPF) :-
    patientHasCancer(P, C),
    % every patient only has one cancer
    findall(drugResistance(P,D), random(drugResistance(P,D)),
    DRList),
    append([avgCancerSurvival(C), realSmokingStatus(P),
    age(P)], DRList, ParentRVs),
    CPF = poisson(1/(realSmokingStatus(P) * 0.5 +
    max(DRList) + avgCancerSurvival(C) * 0.02 +
    age(uma) * 0.01)).

% 4.4.3 Privacy specification
dataset(patientDataset, domain(P, patient(P))).
dataset_instance(patientDataset, patient_instance(P)) :- patient(P).
instance_rv(patientDataset, patient_instance(P), age(P)).
privacy_requirement(patientPrivacy(doctor), patientDataset, dp(0.25, 0.03)).
privacy_requirement(patientPrivacy(researcher), patientDataset, dp(0.2, 0.02)).
privacy_requirement(patientPrivacy(public), patientDataset, dp(0.1, 0.01)).
dp_rv(patientPrivacy(doctor), age(P)) :- patient(P).
dp_rv(patientPrivacy(doctor), expectedSurvivalLength(P)) :- patient(P).
personal_rv(P, age(P)) :- patient(P).
