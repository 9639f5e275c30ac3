% A ward publishes twice in a year, in between a patient asks to be forgotten. One account pays for both.
source(patients, 'patients.parquet').
column(patients, id, patient(P)).
column(patients, age, age(P)).
column(patients, bmi, bmi(P)).
rows_per_person(patients, 1).
random(age(P)) :- patient(P).
random(bmi(P)) :- patient(P).
random(risk(P)) :- patient(P).
range(age(P), 0, 110).
range(bmi(P), 10, 60).
missing(age(P), 58).
missing(bmi(P), 27).
depends(risk(P), [age(P), bmi(P)], age(P)/110 + bmi(P)/60).

dataset(people, domain(P, patient(P))).
personal_rv(P, age(P)) :- patient(P).
personal_rv(P, bmi(P)) :- patient(P).

% (1, 1e-6) is promised about both releases together: each of them gets its share.
privacy_requirement(openness(public), people, dp(1.0, 0.000001)).
privacy_requirement(care(doctor), people, dp(2.0, 0.000001)).

mean(meanAge, age(P), patient(P)).
mean(meanBmi, bmi(P), patient(P)).
publish(spring, meanAge, openness(public)).
publish(autumn, meanBmi, openness(public)).
publish(risks, risk(P), care(doctor)) :- patient(P).

step(1, publish(spring)).
step(2, reveal(doctor, age(P))) :- patient(P).   % from now on the doctor knows every age
step(2, publish(risks)).
step(3, forget(p0007)).                          % all of p0007
step(3, forget(p0011, bmi(p0011))).              % one cell of p0011
step(4, publish(autumn)).
