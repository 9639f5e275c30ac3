% University: what may be said about grades when every student's record is protected.
% The printed network (section 2.8.2.8) with distributions, data, and a promise. Which courses exist and who takes
% them is public here: both shape the network.

source(students, 'students.parquet').
column(students, id, student(S)).
rows_per_person(students, 1). missing(students, never).
column(students, iq, iq(S)).

source(courses, 'courses.parquet').
column(courses, id, course(C)).
public(courses).

random(iq(S)) ← student(S).
random(grade(S, C)) ← student(S), course(C).
random(diff(C)) ← course(C).
random(ranking(S)) ← student(S).

range(iq(S), [low, high]).
range(diff(C), [low, middle, high]).
range(grade(S, C), ['A', 'B', 'C']).
range(ranking(S), ['A', 'B', 'C']).

grade(S, C) | iq(S), diff(C) ← course(C).
ranking(S) | iq(S).

cpd(diff(C), discrete([low: 0.3, middle: 0.5, high: 0.2])).
cpd(ranking(S), lookup([iq(S)], [row([low],  discrete(['A': 0.2, 'B': 0.5, 'C': 0.3])),
                                row([high], discrete(['A': 0.6, 'B': 0.3, 'C': 0.1]))])).
cpd(grade(S, C), lookup([iq(S), diff(C)],
    [row([low,  low],    discrete(['A': 0.3, 'B': 0.5, 'C': 0.2])),
     row([low,  middle], discrete(['A': 0.2, 'B': 0.4, 'C': 0.4])),
     row([low,  high],   discrete(['A': 0.1, 'B': 0.3, 'C': 0.6])),
     row([high, low],    discrete(['A': 0.8, 'B': 0.15, 'C': 0.05])),
     row([high, middle], discrete(['A': 0.6, 'B': 0.3, 'C': 0.1])),
     row([high, high],   discrete(['A': 0.4, 'B': 0.4, 'C': 0.2]))])).

dataset(studentBody, domain(S, student(S))).
adjacency(studentBody, replace_one).
privacy_requirement(studentPrivacy(dean), studentBody, dp(0.5)).
privacy_requirement(studentPrivacy(student), studentBody, dp(1.0)).

personal_rv(S, ranking(S)) :- student(S).
dp_rv(studentPrivacy(dean), ranking(S)) :- student(S).

count(brightStudents, (student(S), iq(S) = high)).
publish(bright, brightStudents, studentPrivacy(student)).
