"""Safe noise at table speed: ours, numpy's plain generator, OpenDP's exact sampler, in one run on the same values."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from sfumato.core import REPLACE_ONE
from sfumato.mechanisms import Gaussian, Laplace

VALUES = 10_000_000
PEER_VALUES = 20_000
ROUNDS = 5


def nanoseconds(action: Callable[[], object], count: int) -> float:
    """Best of a few rounds, per value: the machine's other work only ever adds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e9


def opendp_nanoseconds(kind: str, values: np.ndarray) -> float | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib", "floating-point")
    space = (
        dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        (dp.l2_distance if kind == "gaussian" else dp.l1_distance)(T=float),
    )
    make = dp.m.make_gaussian if kind == "gaussian" else dp.m.make_laplace
    measurement = make(*space, scale=3.0)
    data = values.tolist()
    return nanoseconds(lambda: measurement(data), len(data))


def main() -> None:
    generator = np.random.default_rng()
    values = generator.random(VALUES)
    print(f"{'law':10}{'ours':>10}{'numpy':>10}{'opendp':>12}   bars: ours/numpy speed ≥ 1/8 (aim 1/4), ≥ 50 × opendp")
    laws = (
        ("gaussian", Gaussian(3.0, 1.0, REPLACE_ONE), lambda: generator.normal(0.0, 3.0, VALUES)),
        ("laplace", Laplace(3.0, 1.0, REPLACE_ONE), lambda: generator.laplace(0.0, 3.0, VALUES)),
    )
    for name, mechanism, plain in laws:
        ours, numpy_time = nanoseconds(lambda m=mechanism: m(values), VALUES), nanoseconds(plain, VALUES)
        peer = opendp_nanoseconds(name, values[:PEER_VALUES])
        against = "OpenDP is not installed" if peer is None else f"{peer / ours:.0f} × OpenDP's speed"
        shown = "-" if peer is None else f"{peer:.0f} ns"
        ratio = f"{numpy_time / ours:.2f} of numpy's speed, {against}"
        print(f"{name:10}{ours:7.1f} ns{numpy_time:7.1f} ns{shown:>12}   {ratio}")


if __name__ == "__main__":
    main()
