"""The norm bound of a row: public, from the schema, or paid for.

In:   what the user declared, the rows, a part of ε.
Out:  Bounds: the norm, where it comes from, and the event if it was bought.
Not here: clipping (learn/rows.py).
Proof: docs/proofs/permute_and_flip.md (the choice), docs/proofs/output_perturbation.md (the score)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive
from sfumato.core.events.event import Event
from sfumato.core.guarantee import PureDP
from sfumato.errors import PrivacyParameterError, SchemaError
from sfumato.learn.arrays import is_device_array, summed, to_host
from sfumato.learn.rows import canonical, row_norms
from sfumato.learn.seeds import Seeds
from sfumato.mechanisms import PermuteAndFlip

__all__ = ["NormBound", "norm_counts", "price_of_bounds", "public_norm", "settle_bounds"]

Counts = Callable[[], tuple[np.ndarray, int]]

#: Candidate norms when one is bought: powers of √2, the same for everybody.
_CANDIDATES = 2.0 ** (np.arange(-40, 61) / 2)
#: The bought norm should cover this share of the rows.
_COVERED = 0.9
#: Public norms below this, or above its inverse, are refused.
_LEAST_NORM = 1e-100


@dataclass(frozen=True)
class NormBound:
    """`norm`, its `origin` in words, and what was paid for it."""

    norm: float
    origin: str
    epsilon: float = 0.0
    events: tuple[Event, ...] = ()
    proofs: tuple[str, ...] = ()


def settle_bounds(
    matrix: Any, norm: Any, schema: Any, epsilon: float, spend: Any, adjacency: Adjacency, seeds: Seeds
) -> NormBound:
    """The declared norm; or, with norm=None, one chosen privately at the price `spend_on_bounds`.

    `matrix` may be a function that returns the `norm_counts` of a table that is not at hand.
    """
    priced = price_of_bounds(norm, schema, epsilon, spend, adjacency)
    if not priced.events:
        return priced
    choose = PermuteAndFlip.for_guarantee(PureDP(priced.epsilon), 1.0, adjacency)
    covered, rows = cast("Counts", matrix)() if callable(matrix) else norm_counts(matrix)
    chosen = _CANDIDATES[seeds.seeded(choose)(_scores(covered, rows))]
    return replace(priced, norm=float(chosen))


def price_of_bounds(norm: Any, schema: Any, epsilon: float, spend: Any, adjacency: Adjacency) -> NormBound:
    """What a norm will cost, before any row is seen: nothing where it is public; its value is then not known yet."""
    if norm is not None:
        return NormBound(public_norm(norm), "that bound is public")
    if schema is not None and schema.norm is not None:
        return NormBound(_usable(schema.norm), "that bound is the schema's")
    if spend is None:
        raise SchemaError(_NO_PUBLIC_BOUND)
    price = positive(spend, "spend_on_bounds")
    if price >= epsilon:
        raise PrivacyParameterError(
            f"spend_on_bounds={price:g} leaves nothing of epsilon={epsilon:g} for training. Nothing was spent."
        )
    choose = PermuteAndFlip.for_guarantee(PureDP(price), 1.0, adjacency)
    origin = f"that bound was chosen privately at epsilon {price:g}"
    return NormBound(math.nan, origin, price, (choose.event(),), (choose.proof,))


_NO_PUBLIC_BOUND = (
    "No public norm: a bound taken from the data would publish its largest row. Pass norm=…, a schema with a norm, or "
    "norm=None with spend_on_bounds=… (a part of epsilon). Nothing was spent."
)


def public_norm(norm: Any) -> float:
    """A norm that was declared, or a refusal of what is none.

    >>> public_norm(2)
    2.0
    """
    if isinstance(norm, str):
        raise SchemaError(_NO_PUBLIC_BOUND)
    return _usable(positive(norm, "norm"))


def _usable(norm: float) -> float:
    if not _LEAST_NORM <= norm <= 1 / _LEAST_NORM:
        raise SchemaError(
            f"norm must lie between {_LEAST_NORM:g} and {1 / _LEAST_NORM:g}: beyond, products of rows leave the range "
            "of floating point. Measure in another unit. Nothing was spent."
        )
    return norm


def _scores(covered: np.ndarray, rows: float) -> np.ndarray:
    """Minus how many rows the wanted share is missed by; one record moves every score by at most 1."""
    return -np.abs(covered - _COVERED * rows)


def norm_counts(matrix: Any) -> tuple[np.ndarray, int]:
    """How many rows are no longer than each candidate norm, and how many there are; they add up over tables."""
    if sparse.issparse(matrix):
        norms = row_norms(canonical(matrix))
    elif is_device_array(matrix):
        with np.errstate(over="ignore"):
            norms = np.sqrt(to_host(summed(matrix * matrix, 1)))
    else:
        with np.errstate(over="ignore"):  # an infinite norm is longer than every candidate, which is right
            norms = np.linalg.norm(matrix, axis=1)
    return np.searchsorted(np.sort(norms), _CANDIDATES, side="right"), norms.size
