% Smart meters: was anybody at home, yes or no, once a day. A day is like the day before in nine of ten cases, so one day
% can be told from its neighbours, and noise for one day would hide nothing. What is protected is one day of one home,
% against somebody who may know all other days.

source(days, 'days.parquet').
each_row(days, day(D)). missing(days, never).           % one row is one home on one day
column(days, occupied, occupied(D)).
random(occupied(D)) :- day(D).
range(occupied(D), 0, 1).

dataset(presence, domain(D, day(D))).
correlated(presence, chain(T, at(D, T), 90), memory(4.394)).   % ln((0.9*0.9)/(0.1*0.1)); at most ninety days of each home
privacy_requirement(secrecy(grid), presence, pufferfish(2.0, 1e-6)).

mean(share, occupied(D), day(D)).
publish(share, share, secrecy(grid)).
