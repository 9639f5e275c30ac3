% Hospitals: potassium levels in three hospitals, for their doctors and for the public. Each hospital keeps its own table.
% The doctors' figures are finer; whoever holds both learns no more than the doctors.

centre(northHospital). centre(southHospital). centre(westHospital).
holds(northHospital, north). holds(southHospital, south). holds(westHospital, west).

source(north, 'north.parquet').
column(north, id, patient(P)).
column(north, kalium, kalium(P)).                       % mmol/l
column(north, age, age(P)).
source(south, 'south.parquet').
column(south, id, patient(P)).
column(south, kalium, kalium(P)).
column(south, age, age(P)).
source(west, 'west.parquet').
column(west, id, patient(P)).
column(west, kalium, kalium(P)).
column(west, age, age(P)).

random(kalium(P)) :- patient(P).
random(age(P)) :- patient(P).
range(kalium(P), 2, 8).
range(age(P), 0, 110).

dataset(patients, domain(P, patient(P))).
privacy_requirement(care(doctor), patients, dp(1.0, 0.000001)).
privacy_requirement(care(public), patients, dp(0.3, 0.000001)).

mean(meanKalium, kalium(P), patient(P)).
count(high, (patient(P), kalium(P) > 5.5)).
histogram(levels, kalium(P), patient(P), [2, 3.5, 4.5, 5.5, 8]).

publish(average, meanKalium, care(doctor)).
publish(average, meanKalium, care(public)).
publish(highKalium, high, care(public)).
publish(spread, levels, care(doctor)).
collude([doctor, public]).
