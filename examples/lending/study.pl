% Lending: how the interest rate follows from income and debt, told to the regulator; a classifier of defaults for the
% analysts of the bank.

source(loans, 'loans.parquet').
column(loans, id, borrower(P)).
rows_per_person(loans, 1). missing(loans, never).
column(loans, income, income(P)).                       % thousands a year
column(loans, debt, debt(P)).                           % debt service as a share of income, in per cent
column(loans, term, term(P)).                           % months
column(loans, rate, rate(P)).                           % interest rate in per cent
column(loans, outcome, outcome(P)).

random(income(P)) :- borrower(P).
random(debt(P)) :- borrower(P).
random(term(P)) :- borrower(P).
random(rate(P)) :- borrower(P).
random(outcome(P)) :- borrower(P).
range(income(P), 0, 200).
range(debt(P), 0, 50).
range(term(P), 12, 84).
range(rate(P), 0, 30).
range(outcome(P), [repaid, defaulted]).

dataset(borrowers, domain(P, borrower(P))).
privacy_requirement(lending(regulator), borrowers, dp(1.0, 0.000001)).
privacy_requirement(lending(analyst), borrowers, dp(2.0, 0.000001)).

publish(rateModel, regression(rate(P), [income(P), debt(P), term(P)]), lending(regulator)).
mean(meanRate, rate(P), borrower(P)).
publish(averageRate, meanRate, lending(regulator)).

publish(defaults, classifier(outcome(P), [income(P), debt(P), term(P), rate(P)]), lending(analyst)).
