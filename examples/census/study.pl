% Census: a whole table for everybody, one noisy row a person, made for training a classifier of income.
% Two counts beside it come from the same budget.

% --- where the data are --------------------------------------------------------------------------------------
source(people, 'people.parquet').
column(people, id, person(P)).
rows_per_person(people, 1). missing(people, never).
column(people, age, age(P)).
column(people, schooling, schooling(P)).                % years
column(people, hours, hours(P)).                        % of work a week
column(people, income, income(P)).

% --- what everybody may know ---------------------------------------------------------------------------------
random(age(P)) :- person(P).
random(schooling(P)) :- person(P).
random(hours(P)) :- person(P).
random(income(P)) :- person(P).
range(age(P), 16, 100).
range(schooling(P), 0, 20).
range(hours(P), 0, 100).
range(income(P), [low, high]).

% --- who may learn what --------------------------------------------------------------------------------------
% One promise for everything. Rows are costly: at this ε the table shows the large patterns, not the people.
dataset(population, domain(P, person(P))).
privacy_requirement(census(public), population, dp(8, 0.000001)).

publish(openTable, table([age(P), schooling(P), hours(P), income(P)], for(svm(income(P)))), census(public)).

histogram(ages, age(P), person(P), [16, 25, 35, 45, 55, 65, 100]).
publish(ageGroups, ages, census(public)).
count(longHours, (person(P), hours(P) > 50)).
publish(overworked, longHours, census(public)).
weight(openTable, 2).
forbid(openTable, obfuscation).                         % it promises nothing
