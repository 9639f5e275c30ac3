% Sensors: every household's meter publishes its own reading through a channel, so that nobody has to be trusted with the
% truth. The collector will average readings and their logarithms: the channel is made for these two uses.

source(meters, 'meters.parquet').
column(meters, id, household(H)).
rows_per_person(meters, 1). missing(meters, never).
column(meters, load, load(H)).                          % kilowatts

random(load(H)) :- household(H).
range(load(H), 0.05, 10).

dataset(homes, domain(H, household(H))).
privacy_requirement(metering(grid), homes, dp(2.0)).

publish(readings, channel(load(H), [identity, log]), metering(grid)).
