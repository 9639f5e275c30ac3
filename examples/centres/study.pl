% Potassium over four hospitals: nobody sees the rows of another, and the public sees one table of all.
% Each hospital has its own patients.csv in its own folder (docs/howto/hospitals.md runs it, step by step).

source(patients, 'patients.csv').
column(patients, id, patient(P)). rows_per_person(patients, 1).
column(patients, kalium, kalium(P)). missing(kalium(P), skip).      % mmol/l
column(patients, age, age(P)). missing(age(P), 50).
column(patients, sex, sex(P)). missing(sex(P), f).
random(kalium(P)) :- patient(P). range(kalium(P), 2, 8).
random(age(P)) :- patient(P). range(age(P), 0, 110).
random(sex(P)) :- patient(P). range(sex(P), [f, m]).

centre(north). centre(south). centre(east). centre(west).
absences(1).                                                        % one of them may stay away

dataset(everybody, domain(P, patient(P))).
privacy_requirement(care(public), everybody, dp(1, 0.000001)).

mean(meanKalium, kalium(P), patient(P)).
mean(kaliumBySex, kalium(P), patient(P), by([sex(P)])).
count(high, (patient(P), kalium(P) > 5.5)).
histogram(ages, age(P), patient(P), [0, 30, 60, 110]).

publish(average, meanKalium, care(public)).
publish(bySex, kaliumBySex, care(public)).
publish(high, high, care(public)).
publish(ages, ages, care(public)).
