% Households: an infection that mostly takes a whole household or none of it. Who counts only what one person's own answer
% adds promises little here: the others at the table tell it as well. The promise below counts them too.

source(people, 'people.parquet').
column(people, id, person(P)).
rows_per_person(people, 1). missing(people, never).
column(people, infected, infected(P)).
column(people, age, age(P)).

source(homes, 'homes.parquet').                         % who lives where is in the public register
public(homes).
column(homes, person, person(P)).
column(homes, home, home(H)).
relation(homes, lives_in(P, H)).

random(infected(P)) :- person(P).
random(age(P))      :- person(P).
range(infected(P), [no, yes]).
range(age(P), 0, 100).

dataset(town, domain(P, person(P))).
correlated(town, group(H, lives_in(P, H)), at_most(5)).  % any law inside a household; households are independent
privacy_requirement(secrecy(public), town, pufferfish(1.0, 1e-6)).

histogram(infections, infected(P), person(P)).
mean(ageOfTown, age(P), person(P)).
publish(infections, infections, secrecy(public)).
publish(ages, ageOfTown, secrecy(public)).
