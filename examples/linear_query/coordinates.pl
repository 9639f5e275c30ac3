% The same two queries y = A x + b with the neighbours of the thesis (section 3.3.2): three holders with one input each,
% known by name, and one of them changes. What everybody gets to see is the pair of answers.

source(inputs, 'inputs.parquet').
column(inputs, holder, holder(K)).
column(inputs, value, x(K)).

holder(x1). holder(x2). holder(x3).
query(1). query(2).
coefficient(1, x1, 1.0). coefficient(1, x2, 0.5). coefficient(1, x3, 0.25).
coefficient(2, x1, 0.0). coefficient(2, x2, 2.0). coefficient(2, x3, 1.0).
constant(1, 0.0). constant(2, 3.0).

random(x(K)) :- holder(K).
random(y(J)) :- query(J).
range(x(K), 0, 1).

depends(y(J), Inputs, sum(Terms) + B) :-
    findall(x(K), coefficient(J, K, _), Inputs),
    findall(W * x(K), coefficient(J, K, W), Terms),
    constant(J, B).

dataset(inputData, domain(K, holder(K))).
privacy_requirement(inputPrivacy(observer), inputData, dp(1.0, 0.00001)).
dp_rv(inputPrivacy(observer), y(J)) :- query(J).
