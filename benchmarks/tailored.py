"""Tailored channels: time of a design and of 10⁷ draws, the optimality gap after repair, and what peers make of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.core import Interval
from sfumato.core.events.channel import exp_below, largest_ratio
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.tailored.solver import WantedMeans, optimal_channel

BARS = {20: 0.1, 100: 1.0, 400: 15.0}
DRAWS, DRAW_BAR = 10_000_000, 2.0
PEER_SIZE = 60


def seconds(action: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall and processor time of one run: on a busy machine only the second is ours."""
    wall, own = time.perf_counter(), time.process_time()
    result = action()
    return time.perf_counter() - wall, time.process_time() - own, result


def designs() -> None:
    print(f"{'k':>5}{'ε':>6}{'bias':>10}{'wall':>10}{'own':>10}{'bar':>8}{'outputs':>9}{'gap':>10}   certified")
    for size, bar in BARS.items():
        for epsilon in (1.0, 4.0):
            for bias in ("none", "soft"):
                wall, own, channel = seconds(
                    lambda size=size, epsilon=epsilon, bias=bias: TailoredNoise(
                        Interval(0.01, 1), epsilon, uses=["identity", "log"], bins=size, outputs=size, bias=bias
                    )
                )
                ratio = largest_ratio(channel.weights.tolist())
                held = ratio is not None and ratio <= exp_below(epsilon)
                print(
                    f"{size:5}{epsilon:6}{bias:>10}{wall:9.3f}s{own:9.3f}s{bar:7.1f}s{len(channel.outputs):9}"
                    f"{channel.table.gap:10.1e}   {held}"
                )


def drawing() -> None:
    values = np.random.default_rng(0).uniform(0, 1, DRAWS)
    for size in (20, 400):
        channel = TailoredNoise(Interval(0, 1), 4.0, bins=size, outputs=size)
        channel([0.5])  # the alias table is built once
        wall, own, _ = min((seconds(lambda channel=channel: channel(values)) for _ in range(3)), key=lambda run: run[0])
        print(f"10⁷ draws, k = {size}: {wall:.2f} s wall, {own:.2f} s own (bar {DRAW_BAR:g} s)")


def peers() -> None:
    """The same program in general solvers: how long, and how private their answer is as it stands."""
    try:
        import cvxpy
    except ImportError:
        print("cvxpy is not installed: no peers")
        return
    epsilon, inputs = 2.0, np.linspace(0.01, 1, 2 * PEER_SIZE + 1)[1::2]
    costs = (np.log(inputs)[:, None] - np.log(inputs)) ** 2 / PEER_SIZE
    penalty = np.full((1, PEER_SIZE), 2 / PEER_SIZE)
    wall, own, ours = seconds(lambda: optimal_channel(costs, epsilon, WantedMeans(inputs[None], inputs[None], penalty)))
    print(f"k = {PEER_SIZE}: ours {wall:.3f} s ({own:.3f} own), value {ours.value:.9f}, gap {ours.gap:.1e}")
    f, top = cvxpy.Variable((PEER_SIZE, PEER_SIZE)), cvxpy.Variable((1, PEER_SIZE))
    every = np.ones((PEER_SIZE, 1))
    value = cvxpy.sum(cvxpy.multiply(costs, f)) + cvxpy.sum_squares(f @ inputs - inputs) / PEER_SIZE
    limits = [cvxpy.sum(f, axis=1) == 1, f <= every @ top, f >= np.exp(-epsilon) * (every @ top)]
    for solver in ("CLARABEL", "PIQP"):
        if solver not in cvxpy.installed_solvers():
            continue
        problem = cvxpy.Problem(cvxpy.Minimize(value), limits)
        wall, own, _ = seconds(lambda problem=problem, solver=solver: problem.solve(solver=solver))
        table = np.maximum(np.asarray(f.value), 0)
        with np.errstate(divide="ignore"):
            loss = float(np.log(table.max(axis=0) / table.min(axis=0)).max())
        print(
            f"k = {PEER_SIZE}: {solver} {wall:.2f} s ({own:.2f} own, modelling included), value {problem.value:.9f}; "
            f"its answer as it stands has ε = {loss:.3g} instead of {epsilon:g}"
        )


def main() -> None:
    designs()
    drawing()
    peers()


if __name__ == "__main__":
    main()
