% The university network as it is printed (section 2.8.2.8), arrows and conditional statements included.

random(iq(S)) ← student(S).
random(ranking(S)) ← student(S).
random(diff(C)) ← course(C).
random(grade(S,C)) ← takes(S,C).

ranking(S) | grade(S,C) ← takes(S,C).
grade(S,C) | iq(S), diff(C).

range(iq(S), [low, high]).
range(diff(C), [low, middle, high]).
range(ranking(S), ['A', 'B', 'C']).
range(grade(S,C), ['A', 'B', 'C']).

student(john). course(ai). takes(john,ai). student(pete).
course(db). takes(john,db). takes(pete,ai).

p(iq(john)), low: 0.4, high: 0.6.
