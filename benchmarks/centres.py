"""5 and 50 centres, each a process, summing 10⁴ numbers; both designs; what the parts of the protocol cost."""

from __future__ import annotations

import os
import time

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres import (
    ClippedSums,
    Requirement,
    aggregate_in_memory,
    aggregate_locally,
    new_centres,
    plan_round,
)
from sfumato.centres.design import Speed, designs_of
from sfumato.centres.masks import mask, pair_key, private_key, public_bytes
from sfumato.centres.messages import Message
from sfumato.core import Adjacency, ApproxDP, PureDP
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.shares import draw_share

LENGTH = 10_000
BARS = {5: 10.0, 50: 60.0}
PATIENT = Adjacency("patient", "add-remove")


def seconds_of(action, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - start) / repeats


def parts() -> None:
    key, public = bytes([1] * 32), public_bytes(bytes([2] * 32))
    own = private_key(key)
    identity = Ed25519PrivateKey.generate()
    message = Message("0" * 64, "a", "keys", bytes(200)).sign(identity)
    known = identity.public_key().public_bytes_raw().hex()
    print(f"X25519 with HKDF        {seconds_of(lambda: pair_key(own, public, 'mask', 'r'), 500) * 1e6:8.1f} µs")
    print(f"Ed25519 verification    {seconds_of(lambda: message.check(known, '0' * 64, 'keys'), 500) * 1e6:8.1f} µs")
    print(f"mask, a number          {seconds_of(lambda: mask(key, 10**6), 10) * 1e3:8.2f} ns")
    for law, honest in (("gaussian", 4), ("laplace", 4), ("laplace", 40)):
        spent = seconds_of(lambda law=law, honest=honest: draw_share(law, 4.0, 2.0**-20, honest, 10**5, Bits()), 3)
        print(f"{law} share of 1/{honest:<3} a number {spent * 1e4:8.1f} ns")


def round_of(centres: int, requirement: Requirement) -> None:
    members, keys = new_centres(f"centre {number}" for number in range(centres))
    statistic = ClippedSums(LENGTH, 1.0, 1)
    agreed = plan_round("benchmark", members, statistic, [requirement], most_patients=1000, absences=centres // 5)
    generator = np.random.default_rng(0)
    cells = {one.name: statistic.cells(generator.normal(size=(20, LENGTH)), agreed.grid, 1000) for one in members}
    truth = sum(cells.values()) * agreed.grid
    start = time.perf_counter()
    found = aggregate_locally(agreed, cells, keys)
    spent = time.perf_counter() - start
    start = time.perf_counter()
    aggregate_in_memory(agreed.fresh(), cells, keys)
    alone = time.perf_counter() - start
    ratio = float(np.mean(np.square((found.values - truth) / found.deviation)))
    apart, together = designs_of(agreed, Speed(machines=2))
    print(
        f"{centres:3} centres, {agreed.law:8}: {spent:6.2f} s with processes (bar {BARS[centres]:g} s: "
        f"{'held' if spent <= BARS[centres] else 'MISSED'}), {alone:5.2f} s in one process; predicted on two cores "
        f"{together.seconds:.2f} s, {together.bytes / 2**20:.1f} MiB; squared error {ratio:.4f} of the planned one; "
        f"noisy sharing has {apart.deviation / together.deviation:.2f} times the deviation"
    )


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: the bars are for an idle machine")
    parts()
    for centres in BARS:
        round_of(centres, Requirement(PATIENT, ApproxDP(1.0, 1e-6)))
    round_of(5, Requirement(PATIENT, PureDP(1.0)))


if __name__ == "__main__":
    main()
