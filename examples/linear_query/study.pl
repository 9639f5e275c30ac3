% Two linear queries y = A x + b about three sensitive inputs in [0, 1] (thesis, section 3.3.2).
% Each individual holds three inputs; an observer sees the two answers.

source(people, 'people.parquet').
column(people, id, person(P)).
rows_per_person(people, 1). missing(people, never).
column(people, x1, input(P, 1)).
column(people, x2, input(P, 2)).
column(people, x3, input(P, 3)).

index(1). index(2). index(3).
query(1). query(2).
coefficient(1, 1, 1.0). coefficient(1, 2, 0.5). coefficient(1, 3, 0.25).
coefficient(2, 1, 0.0). coefficient(2, 2, 2.0). coefficient(2, 3, 1.0).
constant(1, 0.0). constant(2, 3.0).

random(input(P, K)) :- person(P), index(K).
random(answer(P, J)) :- person(P), query(J).
range(input(P, K), 0, 1).

depends(answer(P, J), Inputs, sum(Terms) + B) :-
    findall(input(P, K), coefficient(J, K, _), Inputs),
    findall(W * input(P, K), coefficient(J, K, W), Terms),
    constant(J, B).

dataset(inputs, domain(P, person(P))).
privacy_requirement(inputPrivacy(observer), inputs, dp(1.0, 0.00001)).
dp_rv(inputPrivacy(observer), answer(P, J)) :- person(P), query(J).
