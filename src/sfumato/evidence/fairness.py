"""A published rule's fairness checked again: the bound of its gap and the share of its answers, from the noisy numbers.

In:   the record beside a published rule; optionally the events of its certificate.
Out:  checks, as for a certificate; sentences for who reads a folder.
Not here: the issuer's own arithmetic (core/fairness.py), which is not called.
Proof: docs/proofs/fairness.md
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scipy.special import ndtri

from sfumato.wording import text

__all__ = ["FairnessCheck", "fairness_records", "fairness_words", "verify_fairness"]

Record = Mapping[str, Any]
#: Issuer and verifier round apart by no more.
_SAME = 1e-9


class FairnessCheck(NamedTuple):
    """One entry of the record and whether it holds."""

    field: str
    ok: bool
    sentence: str


def _compared(record: Record) -> list[tuple[int, int]]:
    groups = len(record["groups"])
    both = [(a, b) for a in range(groups) for b in range(a)]
    if record["measure"] == "demographic_parity":
        return both
    labels = {"equal_opportunity": [1], "equalized_odds": [0, 1]}[record["measure"]]
    return [(2 * a + y, 2 * b + y) for a, b in both for y in labels]


def _bound(record: Record) -> float:
    """U, from the noisy sums and sizes alone."""
    pairs = _compared(record)
    cells, missed = len({cell for pair in pairs for cell in pair}), 1 - record["confidence"]
    sigma = record["scale"] * (1 + 1e-5)
    largest = 0.0
    for a, b in pairs:
        sizes = record["sizes"][a], record["sizes"][b]
        surely = [size + 2 * sigma * float(ndtri(missed / (4 * cells))) for size in sizes]
        if min(*surely, *sizes) <= 0:
            return 1.0
        means = record["sums"][a] / sizes[0], record["sums"][b] / sizes[1]
        found = abs(means[0] - means[1])
        found += -math.sqrt(2) * sigma * float(ndtri(missed / (8 * cells))) * sum(1 / size for size in sizes)
        if record["where"] == "population":
            found += math.sqrt(0.5 * math.log(4 * len(pairs) / missed) * sum(1 / size for size in surely))
        largest = max(largest, found)
    return min(1.0, largest)


def verify_fairness(record: Record, events: Iterable[Record] | None = None) -> tuple[FairnessCheck, ...]:
    """Whether the gap that is claimed follows from what was measured; with `events`, by noise that was paid for.

    >>> from sfumato.core.fairness import Fairness, MeasuredGap
    >>> asked = Fairness("demographic_parity", 0.05, ("f", "m"), "rows", 0.95)
    >>> told = MeasuredGap(asked, (100.0, -100.0), (1000.0, 1000.0), 4.0).to_dict()
    >>> [all(check.ok for check in verify_fairness(one)) for one in (told, {**told, "share": 1.0})]
    [True, False]
    """
    return tuple(_checks(record, events))


def _checks(record: Record, events: Iterable[Record] | None) -> Iterator[FairnessCheck]:
    try:
        bound, gap = _bound(record), record["gap"]
        cells = len(record["groups"]) * (1 if record["measure"] == "demographic_parity" else 2)
        shape = len(record["sums"]) == len(record["sizes"]) == cells and 0.5 <= record["confidence"] < 1
        shape = shape and record["where"] in ("population", "rows") and 0 < gap < 1 and record["scale"] > 0
        yield _check("fairness", shape, "The numbers are those of its groups.")
        yield _check(
            "fairness.bound", bound * (1 - _SAME) <= record["bound"] <= bound * (1 + 1e-6), f"The gap is ≤ {bound:.4g}."
        )
        kept = record["share"] * bound
        yield _check("fairness.share", 0 < record["share"] <= 1 and kept <= gap * (1 + _SAME), f"{kept:.4g} ≤ {gap:g}.")
        yield _check("fairness.constant", record["constant"] in (0, 1), "It is yes or no.")
        if "labels" in record:
            two = isinstance(record["labels"], list) and len(record["labels"]) == 2
            yield _check("fairness.labels", two, "They are two: no and yes.")
        if events is not None:
            yield _check("fairness.scale", _was_paid(record, events, cells), "The noise is one of the certificate's.")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        yield FairnessCheck("fairness", False, f"It cannot be verified: {type(error).__name__}: {error}.")


def _check(field: str, ok: bool, finding: str) -> FairnessCheck:
    return FairnessCheck(field, bool(ok), finding if ok else "It does not follow from what was measured.")


def _was_paid(record: Record, events: Iterable[Record], cells: int) -> bool:
    """Whether a portion of the certificate consists of this measurement: Gaussian noise of this scale, moves of 1."""
    measurements = [
        portion[0]
        for event in events
        if event["kind"] == "DisjointEvent"
        for portion in event["portions"]
        if len(portion) == 1 and portion[0]["kind"] == "GaussianEvent"
    ]
    return any(
        one["scale"] == record["scale"] and one["sensitivity"] >= 1 and one["dimension"] >= 2 * cells
        for one in measurements
    )


def fairness_records(folder: Path) -> dict[str, Record]:
    """The records beside published rules, by the name of their file."""
    found: dict[str, Record] = {}
    for path in sorted((folder / "results").glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and isinstance(record.get("fairness"), dict):
            found[f"results/{path.name}"] = record["fairness"]
    return found


def fairness_words(record: Record) -> str:
    """What a recipient must know of one."""
    return text("fairness.txt", record=record).strip()
