"""Noise made to measure for one statistic: the channel, its solver, its choice and its file."""
