% Fair hiring: a rule that proposes whom to interview, published for everybody, learned from people who must stay private.
% Women and men who were found suitable are to have the same chance of being proposed, but for 0.1; the plan and the
% README say what that costs in accuracy.

source(applicants, 'applicants.parquet').
column(applicants, id, applicant(A)).
rows_per_person(applicants, 1). missing(applicants, never).
column(applicants, test, test(A)).                      % points
column(applicants, years, years(A)).                    % of experience
column(applicants, sex, sex(A)).
column(applicants, suitable, suitable(A)).

random(test(A))     :- applicant(A).
random(years(A))    :- applicant(A).
random(sex(A))      :- applicant(A).
random(suitable(A)) :- applicant(A).
range(test(A), 0, 100).
range(years(A), 0, 40).
range(sex(A), [female, male]).
range(suitable(A), [no, yes]).                          % no first, yes second

dataset(applicants, domain(A, applicant(A))).
privacy_requirement(secrecy(public), applicants, dp(2.0, 1e-6)).
publish(interview, classifier(suitable(A), [test(A), years(A)]), secrecy(public)).

fairness_requirement(even, sex(A), equal_opportunity(0.1)).
fair_rv(even, interview).
fairness_holds(even, on(population), 0.95).
