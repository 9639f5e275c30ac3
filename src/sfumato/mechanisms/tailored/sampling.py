"""Exact draws from rows of whole-number weights, at table speed.

In:   weights whose rows sum to a power of two, the row of every draw, random bits.
Out:  output numbers, each with probability weight/total exactly.
Not here: where the weights come from (tailored_repair.py), bits (bits.py).
Proof: docs/proofs/tailored_noise.md
Reference: Walker 1977 (alias method), here in whole numbers: the total and the number of slots are powers of two, so
every slot holds the same whole number and nothing is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato.errors import InputError
from sfumato.mechanisms.bits import Bits

__all__ = ["AliasTable", "alias_table"]

_CHUNK = 1 << 16


@dataclass(frozen=True)
class AliasTable:
    """For each row and slot: how much of the slot belongs to the output of its own number, and who gets the rest."""

    slot_bits: int
    rest_bits: int
    threshold: np.ndarray = field(repr=False)
    other: np.ndarray = field(repr=False)

    def draw(self, rows: np.ndarray, bits: Bits) -> np.ndarray:
        """One output number for every entry of `rows`."""
        result = np.empty(rows.size, dtype=self.other.dtype)
        for start in range(0, rows.size, _CHUNK):
            piece = rows[start : start + _CHUNK]
            words = bits.words(piece.size)
            slots = (words >> np.uint64(64 - self.slot_bits)).astype(np.int64) if self.slot_bits else np.int64(0)
            cells = (piece << self.slot_bits) + slots
            rest = (words & np.uint64((1 << self.rest_bits) - 1)).view(np.int64)
            own = rest < self.threshold.take(cells)
            result[start : start + _CHUNK] = np.where(own, slots, self.other.take(cells))
        return result


def alias_table(weights: np.ndarray, total_bits: int) -> AliasTable:
    """The table of a channel; `weights` are whole numbers and every row sums to 2^total_bits.

    >>> table = alias_table(np.array([[3, 1, 0], [0, 2, 2]]), 2)
    >>> bool(np.all(table.draw(np.ones(100, dtype=np.int64), Bits(seed=1)) > 0))
    True
    """
    outputs = weights.shape[1]
    slot_bits = max(0, (outputs - 1).bit_length())
    # Small totals are scaled up: the same probabilities, and room for every slot.
    extra = max(0, slot_bits - total_bits)
    rest_bits = total_bits + extra - slot_bits
    if slot_bits + rest_bits > 64 or rest_bits > 62:
        raise InputError("Weights of more than 62 bits cannot be drawn from.")
    slots, room = 1 << slot_bits, 1 << rest_bits
    threshold = np.zeros((len(weights), slots), dtype=np.int64)
    other = np.zeros((len(weights), slots), dtype=np.uint16 if slots <= 1 << 16 else np.uint32)
    for number, row in enumerate(weights.tolist()):
        if sum(row) != 1 << total_bits or min(row) < 0:
            raise InputError("Every row of weights must sum to the stated power of two.")
        _fill(threshold[number], other[number], [weight << extra for weight in row] + [0] * (slots - outputs), room)
    return AliasTable(slot_bits, rest_bits, threshold.reshape(-1), other.reshape(-1))


def _fill(threshold: np.ndarray, other: np.ndarray, left: list[int], room: int) -> None:
    """Walker's construction: a slot with too little is filled up from one with too much."""
    poor = [slot for slot, weight in enumerate(left) if weight < room]
    rich = [slot for slot, weight in enumerate(left) if weight >= room]
    while poor:
        slot, giver = poor.pop(), rich[-1]
        threshold[slot], other[slot] = left[slot], giver
        left[giver] -= room - left[slot]
        if left[giver] < room:
            poor.append(rich.pop())
    for slot in rich:  # exactly full
        threshold[slot], other[slot] = room, slot
