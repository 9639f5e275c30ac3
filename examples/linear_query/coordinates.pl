% The same two queries y = A x + b with the neighbours of the thesis (section 3.3.2): holders with one input each, of
% whom one changes. Each holder contributes coefficient * input to each answer; the coefficients are public.

source(inputs, 'inputs.parquet').
column(inputs, holder, holder(K)).
rows_per_person(inputs, 1). missing(inputs, never).
column(inputs, value, x(K)).

source(coefficients, 'coefficients.parquet').
column(coefficients, holder, holder(K)).
column(coefficients, query, query(J)).
column(coefficients, coefficient, coefficientValue(W)).
relation(coefficients, coefficient(J, K, W)).
public(coefficients).

query(1). query(2).
constant(1, 0.0). constant(2, 3.0).

random(x(K)) :- holder(K).
random(part(K, J)) :- holder(K), query(J).
random(y(J)) :- query(J).
range(x(K), 0, 1).

depends(part(K, J), [x(K)], W * x(K)) :- coefficient(J, K, W).
sum(total(J), part(K, J), holder(K)) :- query(J).
depends(y(J), [total(J)], total(J) + B) :- constant(J, B).

dataset(inputData, domain(K, holder(K))).
privacy_requirement(inputPrivacy(observer), inputData, dp(1.0, 0.00001)).
dp_rv(inputPrivacy(observer), y(J)) :- query(J).
