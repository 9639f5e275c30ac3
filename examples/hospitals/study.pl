% Hospitals: potassium levels of the patients of three hospitals, for their doctors and for the public.
% Which hospitals there are is public; which of them treats a patient is not.
% The doctors' figures are finer; whoever holds both learns no more than the doctors.

source(patients, 'patients.parquet').
column(patients, id, patient(P)).
rows_per_person(patients, 1). missing(patients, never).
column(patients, hospital, treatedIn(P)).
column(patients, kalium, kalium(P)).                    % mmol/l
column(patients, age, age(P)).

hospital(north). hospital(south). hospital(west).
% The registry may see all rows; a plan shows what it would cost if nobody could (docs/howto/hospitals.md).
centre(north). centre(south). centre(west). trusted(registry).

random(treatedIn(P)) :- patient(P).
random(kalium(P)) :- patient(P).
random(age(P)) :- patient(P).
range(treatedIn(P), [north, south, west]).
range(kalium(P), 2, 8).
range(age(P), 0, 110).

dataset(everybody, domain(P, patient(P))).
privacy_requirement(care(doctor), everybody, gdp(0.5)).
privacy_requirement(care(public), everybody, gdp(0.15)).

mean(meanKalium, kalium(P), patient(P)).
mean(kaliumIn(H), kalium(P), (patient(P), treatedIn(P) = H)) :- hospital(H).
count(highIn(H), (patient(P), treatedIn(P) = H, kalium(P) > 5.5)) :- hospital(H).
histogram(levels, kalium(P), (patient(P), age(P) > 65), [2, 3.5, 4.5, 5.5, 8]).

publish(average, meanKalium, care(doctor)).
publish(average, meanKalium, care(public)).
publish(byHospital, kaliumIn(H), care(doctor)) :- hospital(H).
publish(high, highIn(H), care(doctor)) :- hospital(H).
publish(elderly, levels, care(public)).
collude([doctor, public]).
