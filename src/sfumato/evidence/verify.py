"""Checks a certificate again, without the data and along a second road.

In:   a certificate as an object, JSON text, a dict or a path; optionally the plan it says it followed.
Out:  Verification: one (field, ok, sentence) per entry that was checked.
Not here: issuing and storing certificates (core/certificate.py), composing guarantees (core/compose.py).
Proof: docs/proofs/composition.md

Nothing is taken over from the issuer: the JSON is parsed here, costs are derived from the event records in
evidence/losses.py, profiles in evidence/laws.py, and neither `core.compose` nor the views of a Guarantee are called.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.records import event_from_dict, guarantee_from_dict
from sfumato.core.threads import calm_threads
from sfumato.errors import SfumatoError, VerificationError
from sfumato.evidence.dependences import keeps_pufferfish
from sfumato.evidence.laws import Concentrated, Law, law_of
from sfumato.evidence.losses import (
    Part,
    all_same,
    event_parts,
    guarantee_parts,
    required_proofs,
    rule_for,
    unrepeated,
    written,
)
from sfumato.evidence.plain_sums import concentrated, pure_sum, square_of_mu

__all__ = ["Check", "Verification", "verify"]

_SCHEMA_VERSIONS = (1, 2)
_NOT_FOR_PUBLICATION = "A random_state was used: this result can be repeated and is not for publication."
_FIELDS = {"adjacency", "claims", "composed", "created", "digest", "events", "guarantee", "notes", "plan_hash"}
_FIELDS |= {"proofs", "publishable", "schema_version", "subject", "versions"}
_FIELDS_OF = {1: _FIELDS, 2: _FIELDS | {"files"}}
_DELTAS = (1e-8, 1e-6, 1e-5)
_ARITHMETIC = 1e-10  # what floating point may cost δ in this file
_FAINT = 1e-9  # an issuer who cuts off far tails adds them to the advantage
_FAR = 1e4  # an ε beyond every loss that is known
_POINTS = ("two-point", "three-point")
_MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    SfumatoError,
    TypeError,
    ValueError,
)

Record = Mapping[str, Any]


class Check(NamedTuple):
    """One entry of a certificate and whether it holds; or files of which no certificate says anything."""

    field: str
    ok: bool
    sentence: str
    covered: bool = True


@dataclass(frozen=True)
class Verification:
    """What was checked and what was found. True in a condition only if everything holds."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.ok)

    def __bool__(self) -> bool:
        return self.ok


@calm_threads()
def verify(certificate: Any, *, plan: Record | None = None, strict: bool = False) -> Verification:
    """Re-derives every number of `certificate` from its events; with `plan`, also that the plan is the one hashed.

    A false or unreadable certificate gives a Verification with failures; with `strict` it raises VerificationError,
    whose `field` is the first wrong entry. An edit that no other check explains is named "digest".

    >>> verify("{}").failures[0][:3]
    ('adjacency', False, 'The entry is missing.')
    """
    try:
        with np.errstate(all="ignore"):  # far tails underflow to the zeros they are; a NaN fails every check
            result = Verification(tuple(_all_checks(_read(certificate), plan)))
    except _MALFORMED as error:
        result = Verification((Check("certificate", False, f"It cannot be read as a certificate: {error}."),))
    if strict and result.failures:
        first = result.failures[0]
        raise VerificationError(f"The certificate does not hold. {first.field}: {first.sentence}", field=first.field)
    return result


def _hash(record: Any) -> str:
    canonical = json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("an entry is given twice")
    return dict(pairs)


def _read(certificate: Any) -> dict[str, Any]:
    text = certificate.to_json() if hasattr(certificate, "to_json") else certificate
    if isinstance(text, Mapping):
        text = json.dumps(text, allow_nan=False)
    elif not (isinstance(text, str) and text.lstrip().startswith("{")):
        text = Path(os.fspath(text)).read_text(encoding="utf-8")
    record = json.loads(text, object_pairs_hook=_unique)
    _hash(record)  # refuses NaN, infinity and broken Unicode
    return record


def _all_checks(record: dict[str, Any], plan: Record | None) -> Iterator[Check]:
    form = list(_checks_of_form(record))
    yield from form
    if not all(check.ok for check in form):
        return
    for name in _CHECKS:
        yield from _checks_of_entry(record, name)
    if plan is not None:
        yield Check("plan_hash", record["plan_hash"] == _hash(plan), "Compared with the plan that was given.")
    rest = {name: record[name] for name in record if name != "digest"}
    yield Check("digest", record["digest"] == _hash(rest), "Compared with the text; it tells of any edit.")


def _checks_of_form(record: dict[str, Any]) -> Iterator[Check]:
    """Whether the version is known, and what is missing or too much in a certificate of that version."""
    version = record.get("schema_version", _SCHEMA_VERSIONS[-1])
    known = type(version) is int and version in _SCHEMA_VERSIONS
    yield Check("schema_version", known, f"Version {version!r}; this verifier knows 1 and 2.")
    if not known:
        return
    fields = _FIELDS_OF[version]
    for name in sorted(fields ^ set(record)):
        yield Check(name, False, "The entry is missing." if name in fields else "No such entry is known.")


def _checks_of_entry(record: dict[str, Any], name: str) -> Iterator[Check]:
    check, wrong = _CHECKS[name]
    try:
        for field, holds in list(check(record)):
            yield Check(field, bool(holds), "It holds." if holds else wrong)
    except _MALFORMED as error:
        yield Check(name, False, f"It cannot be verified: {type(error).__name__}: {error}.")


Findings = Iterator[tuple[str, bool]]


def _claims_something(record: Record) -> bool:
    return record["guarantee"]["kind"] != "NoGuarantee"


def _check_events(record: Record) -> Findings:
    for position, event in enumerate(record["events"]):
        field = f"events[{position}]"
        try:
            yield field, event_from_dict(event).to_dict() == event and bool(rule_for(unrepeated(event)[0]))
        except _MALFORMED:
            yield field, False


def _check_adjacency(record: Record) -> Findings:
    places = {f"{name}.adjacency": record[name]["adjacency"] for name in ("composed", "guarantee")}
    places["adjacency"] = record["adjacency"]
    for position, event in enumerate(record["events"]):
        places[f"events[{position}].adjacency"] = unrepeated(event)[0]["adjacency"]
    # Where they differ, the rarest is named: it is the one that was changed.
    usual = Counter(map(_hash, places.values())).most_common(1)[0][0]
    for field, stated in places.items():
        yield field, _hash(stated) == usual and (_is_adjacency(stated) if stated else not _claims_something(record))


def _is_adjacency(stated: Record) -> bool:
    try:
        return Adjacency.from_dict(dict(stated)).to_dict() == stated
    except _MALFORMED:
        return False


def _check_composed(record: Record) -> Findings:
    if not _claims_something(record):
        yield "composed", record["composed"] == record["guarantee"]
        return
    if not record["events"]:
        yield "events", False  # a promise needs at least one act that keeps it
        return
    for name in ("composed", "guarantee"):
        yield name, guarantee_from_dict(record[name]).to_dict() == record[name]
    yield "composed", all_same(_parts_of(record), guarantee_parts(record["composed"]))


def _parts_of(record: Record) -> tuple[Part, ...]:
    """The acts' costs; a certificate that counts on no channel's silence, as once all did, is read without it."""
    stated = record["composed"].get("parts", ())
    return event_parts(record["events"], chances=any(kind == "three-point" for kind, *_ in stated))


def _check_guarantee(record: Record) -> Findings:
    guarantee, parts = record["guarantee"], _parts_of(record) if _claims_something(record) else ()
    match guarantee["kind"]:
        case "NoGuarantee":
            holds = isinstance(guarantee["reason"], str)
        case "PureDP":
            holds = _is_pure(parts, guarantee["eps"])
        case "ApproxDP" if guarantee["delta"] == 0:
            holds = _is_pure(parts, guarantee["eps"])
        case "ApproxDP":
            holds = law_of(parts).delta(guarantee["eps"]) <= guarantee["delta"] * (1 + _ARITHMETIC)
        case "GaussianDP":
            holds = _is_gaussian(parts, guarantee["mu"])
        case "Pufferfish":
            holds = keeps_pufferfish(parts, guarantee, record["events"])
        case "ZCDP":
            holds = _is_concentrated(parts, guarantee["rho"])
        case _:
            holds = all_same(parts, guarantee_parts(guarantee))
    yield "guarantee", holds


def _is_pure(parts: tuple[Part, ...], epsilon: float) -> bool:
    """Σε in exact decimals, and no act that may fail: no grid decides about a promise without δ."""
    plain = pure_sum(parts)
    return plain is not None and not plain[1] and plain[0] <= written(epsilon)


def _is_gaussian(parts: tuple[Part, ...], mu: float) -> bool:
    square = square_of_mu(parts)
    return square is not None and square <= written(mu) ** 2


def _is_concentrated(parts: tuple[Part, ...], rho: float) -> bool:
    found = concentrated(parts)
    return found is not None and found <= written(rho)


def _check_claims(record: Record) -> Findings:
    claims, guarantee = record["claims"], record["guarantee"]
    if not _claims_something(record):
        yield "claims", claims == {"advantage": None, "mu": None, "pairs": []}
        return
    # The events imply the guarantee (checked above), and the claims are what the guarantee says of itself.
    stated = _stated_by(record)
    yield "claims", set(claims) == {"advantage", "mu", "pairs"}
    wanted = {*_DELTAS, *([0.0] if math.isfinite(stated.law.largest) else []), guarantee.get("delta", _DELTAS[0])}
    yield "claims.pairs", [sorted(pair) for pair in claims["pairs"]] == [["delta", "epsilon"]] * len(wanted)
    for position, (pair, delta) in enumerate(zip(claims["pairs"], sorted(wanted), strict=True)):
        yield f"claims.pairs[{position}].delta", pair["delta"] == delta
        yield f"claims.pairs[{position}].epsilon", stated.allows(pair["epsilon"], delta)
    least, most = stated.law.delta(0.0), stated.law.delta(-stated.rounding) * stated.slack + _FAINT
    yield "claims.advantage", least * (1 - _ARITHMETIC) <= claims["advantage"] <= min(1.0, most)
    if guarantee["kind"] == "GaussianDP":
        yield "claims.mu", guarantee["mu"] <= claims["mu"] <= guarantee["mu"] * stated.slack
    else:
        yield "claims.mu", claims["mu"] is None


class _Stated(NamedTuple):
    """What the guarantee says, and how far above it a number may lie and not be stale."""

    law: Law | Concentrated
    slack: float
    rounding: float = 0.0
    #: The same for δ: the curve of a box is flat at the mass near its walls, where no room in ε would do.
    walls: float = 1.0

    def allows(self, epsilon: Any, delta: float) -> bool:
        """Whether (ε, δ) is what the guarantee says: neither less nor noticeably more."""
        most = delta * (1 + _ARITHMETIC)
        # The same room in ε: the curve of an (ε, δ) promise falls to its δ by (1 - δ)/2 or more for each ε.
        room = self.rounding + (4 * _ARITHMETIC * delta / (1 - delta) if delta < 1 else math.inf)
        if epsilon == "infinity":  # the issuer may have cut the walls of a box more coarsely
            # An act that fails with just this δ, beside another, has no ε: far out nothing but the δ is left to see.
            return 0 < delta <= self.law.delta(_FAR) * self.walls * (1 + _ARITHMETIC)
        if delta == 0:
            return self.law.largest <= epsilon <= self.law.largest * self.slack
        true = epsilon >= 0 and self.law.delta(epsilon) <= most
        return true and (epsilon == 0 or self.law.delta(epsilon / self.slack - room) * self.walls > most)


def _stated_by(record: Record) -> _Stated:
    guarantee = record["guarantee"]
    match guarantee["kind"]:
        case "ComposedDP":
            parts = _parts_of(record)
            slack, boxed = 1 + _coarseness(parts), any(part.kind == "box" for part in parts)
            return _Stated(law_of(parts), slack, _rounding(parts), slack if boxed else 1.0)
        case "ZCDP":
            return _Stated(Concentrated(guarantee["rho"]), 1 + 3e-3)
        case "ObjectiveDP":
            return _Stated(law_of(guarantee_parts(guarantee)), 1 + 1e-2)
    return _Stated(law_of(guarantee_parts(guarantee)), 1 + 1e-6)


def _coarseness(parts: tuple[Part, ...]) -> float:
    """Issuer and verifier cut the box into different cells, and add one to the shift: much where the shift is small."""
    boxes = [1 / math.ceil(max(part.size, 2.0**-17) * 8192) for part in parts if part.kind == "box"]
    return 5e-2 + 4 * max(boxes) if boxes else 1e-2


def _rounding(parts: tuple[Part, ...]) -> float:
    """What an issuer may add to ε who rounds each two-point or box loss up to a grid of at most 1e-4."""
    reach = [40.0 if part.kind == "box" else part.size for part in parts]
    longest = sum(size * part.times for size, part in zip(reach, parts, strict=True)) + 40 * max(reach)
    finest = min(part.size / (400 if part.kind in _POINTS else 50) for part in parts)
    step = max(min(1e-4, finest), longest / 1e6)
    return step * sum(1 if part.kind in _POINTS else part.times for part in parts if part.kind in (*_POINTS, "box"))


def _check_proofs(record: Record) -> Findings:
    named = all(re.fullmatch(r"[a-z][a-z0-9_]*", proof) for proof in record["proofs"])
    missing = required_proofs(record["events"]) - set(record["proofs"]) if _claims_something(record) else set()
    if record["guarantee"]["kind"] == "Pufferfish":
        missing = missing | ({"pufferfish"} - set(record["proofs"]))
    yield "proofs", named and not missing


def _check_publishable(record: Record) -> Findings:
    yield "publishable", record["publishable"] is (_NOT_FOR_PUBLICATION not in record["notes"])


def _check_texts(record: Record) -> Findings:
    for field in ("subject", "created"):
        yield field, _is_words(record[field])
    yield "notes", isinstance(record["notes"], list) and all(map(_is_words, record["notes"]))
    yield "versions", isinstance(record["versions"], dict) and all(map(_is_words, record["versions"].values()))
    files = record.get("files", {})
    yield "files", isinstance(files, dict) and all(re.fullmatch(r"[0-9a-f]{64}", str(one)) for one in files.values())
    yield "plan_hash", record["plan_hash"] is None or bool(re.fullmatch(r"[0-9a-f]{64}", str(record["plan_hash"])))


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_CHECKS: dict[str, tuple[Callable[[Record], Findings], str]] = {
    "events": (_check_events, "It cannot be verified: the event is not known or means nothing."),
    "adjacency": (_check_adjacency, "The adjacency is missing or not the same everywhere."),
    "composed": (_check_composed, "The events add up to another cost."),
    "guarantee": (_check_guarantee, "The events do not imply it."),
    "claims": (_check_claims, "It is not what the events and the guarantee give."),
    "proofs": (_check_proofs, "A proof that the events rest on is not named."),
    "publishable": (_check_publishable, "It contradicts the notes."),
    "texts": (_check_texts, "It is not of the form it should have."),
}
