"""What was published, at what privacy cost, and on which proofs: a record somebody else can check.

In:   the events of a publication, its plan, the proofs it rests on.
Out:  Certificate, and its JSON on disk.
Not here: checking one (evidence/verify.py), composing costs (core/compose.py), keeping a budget (ledger/ledger.py).

A certificate says what is claimed; only `verify` says whether it is true. `files` binds it to what was published: the
SHA-256 of each file named there. The digest tells of careless edits, not of a forger: whoever can write the file can
also write its digest.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from sfumato.card import Card, Shown
from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import round_up
from sfumato.core.compose import ComposedDP, compose
from sfumato.core.dependence import Dependence, Known
from sfumato.core.digest import canonical, digest_of, plan_digest
from sfumato.core.events.event import Event, GaussianEvent, LaplaceEvent, Repeated
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP
from sfumato.core.pufferfish import Pufferfish
from sfumato.core.records import event_from_dict, guarantee_from_dict
from sfumato.core.whole_file import write_whole_file
from sfumato.errors import CertificateError, CertificateVersionError, InputError, UnprovedError

__all__ = ["NOT_FOR_PUBLICATION", "SCHEMA_VERSION", "Certificate", "Claims"]

SCHEMA_VERSION = 2
#: Before this version a certificate named no files.
_FIRST_WITH_FILES = 2
NOT_FOR_PUBLICATION = "A random_state was used: this result can be repeated and is not for publication."

_DELTAS = (1e-8, 1e-6, 1e-5)
_EXACT = (PureDP, ApproxDP, GaussianDP, Pufferfish)
_STATABLE = (*_EXACT, ZCDP, ComposedDP)
_MALFORMED = (ArithmeticError, AttributeError, InputError, LookupError, RecursionError, TypeError, ValueError)
_PACKAGES = ("dp-accounting", "numpy", "scipy", "sfumato")


@dataclass(frozen=True)
class Claims:
    """A guarantee made concrete: (δ, ε) pairs, the best attacker's advantage, and μ where it is Gaussian.

    Every number is rounded up: by a relative 1e-9 where the law is exact, by 1e-3 where it was computed on a grid.

    >>> Claims.of(GaussianDP(1.0)).pairs[-1]
    (1e-05, 4.377178...)
    >>> Claims.of(NoGuarantee("margins are exact"))
    Claims(pairs=(), advantage=None, mu=None)
    """

    pairs: tuple[tuple[float, float], ...] = ()
    advantage: float | None = None
    mu: float | None = None

    @classmethod
    def of(cls, guarantee: Guarantee) -> Claims:
        if isinstance(guarantee, NoGuarantee):
            return cls()
        relative = 1e-9 if isinstance(guarantee, _EXACT) else 1e-3
        deltas = set(_DELTAS)
        if isinstance(guarantee, ApproxDP | Pufferfish):
            deltas.add(guarantee.delta_)
        if math.isfinite(guarantee.epsilon(0.0)):
            deltas.add(0.0)
        return cls(
            tuple((delta, round_up(guarantee.epsilon(delta), relative)) for delta in sorted(deltas)),
            min(1.0, round_up(guarantee.advantage(), relative)),
            round_up(guarantee.mu, relative) if isinstance(guarantee, GaussianDP) else None,
        )

    def to_dict(self) -> dict[str, Any]:
        pairs = [{"delta": delta, "epsilon": epsilon} for delta, epsilon in self.pairs]
        return {"pairs": pairs, "advantage": self.advantage, "mu": self.mu}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Claims:
        _exactly(record, {"pairs", "advantage", "mu"}, "claims")
        pairs = []
        for pair in _listed(record["pairs"], "claims.pairs"):
            _exactly(pair, {"delta", "epsilon"}, "claims.pairs")
            epsilon = math.inf if pair["epsilon"] == "infinity" else _number(pair["epsilon"], "claims.pairs")
            pairs.append((_number(pair["delta"], "claims.pairs"), epsilon))
        optional = [None if record[name] is None else _number(record[name], name) for name in ("advantage", "mu")]
        return cls(tuple(pairs), *optional)


@dataclass(frozen=True)
class Certificate(Shown):
    """The events of a publication and what they cost, with the proofs that say so. Made by `issue` or `read`.

    `composed` is what the events cost together; `guarantee` is what is promised, the same or something weaker.

    >>> from sfumato.core import REPLACE_ONE, GaussianEvent
    >>> noise = GaussianEvent(sensitivity=1.0, scale=2.0, adjacency=REPLACE_ONE)
    >>> certificate = Certificate.issue(subject="mean age", events=[noise], proofs=["gaussian"])
    >>> print(certificate.guarantee)
    0.5-Gaussian DP, under replacing one record
    >>> Certificate.from_json(certificate.to_json()) == certificate
    True
    """

    subject: str
    events: tuple[Event | Repeated, ...]
    composed: Guarantee
    guarantee: Guarantee
    adjacency: Adjacency | None
    claims: Claims
    proofs: tuple[str, ...]
    plan_hash: str | None
    versions: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    publishable: bool
    created: str
    digest: str = field(default="")
    schema_version: int = SCHEMA_VERSION
    files: tuple[tuple[str, str], ...] = ()

    @classmethod
    def issue(
        cls,
        *,
        subject: str,
        events: Iterable[Event | Repeated],
        proofs: Iterable[str],
        plan: Mapping[str, Any] | str | None = None,
        notes: Iterable[str] = (),
        publishable: bool = True,
        guarantee: Guarantee | None = None,
    ) -> Certificate:
        """The certificate for all `events` together; raises UnprovedError where a proof or an implication is missing.

        `plan` is the record that was followed, or its digest (core/digest.py) where somebody computed that already.
        `guarantee` may state less than the events cost, or NoGuarantee. `publishable=False`, for a result drawn with
        a `random_state`, adds a note that says so.
        """
        acts, proofs, notes = tuple(events), tuple(proofs), tuple(notes)
        composed, promised = _costs(acts, guarantee)
        if not isinstance(promised, NoGuarantee):
            _check_proofs(acts, promised, proofs)
        if isinstance(promised, Pufferfish):
            _check_one_number(acts, promised.dependence)
        if not publishable and NOT_FOR_PUBLICATION not in notes:
            notes = (*notes, NOT_FOR_PUBLICATION)
        if publishable and NOT_FOR_PUBLICATION in notes:
            raise InputError("A result drawn with a random_state is not publishable. Pass publishable=False.")
        unsigned = cls(
            subject=_text(subject, "subject"),
            events=acts,
            composed=composed,
            guarantee=promised,
            adjacency=promised.adjacency,
            claims=Claims.of(promised),
            proofs=tuple(_text(proof, "a proof") for proof in proofs),
            plan_hash=None if plan is None else _plan_hash(plan),
            versions=_versions(),
            notes=tuple(_text(note, "a note") for note in notes),
            publishable=bool(publishable),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return replace(unsigned, digest=digest_of(unsigned._body()))

    def _card(self) -> Card:
        facts = {
            "promise": str(self.guarantee),
            "random acts": str(sum(getattr(event, "count", 1) for event in self.events)),
            "proofs": ", ".join(self.proofs),
            "plan": (self.plan_hash or "none")[:12],
            "issued": self.created,
        }
        notes = [*self.notes, "Anybody can check it without the data: sfumato.verify(certificate)."]
        return Card(self.subject, facts, notes=notes, kind="certificate" if self.publishable else "NOT FOR PUBLICATION")

    def bound_to(self, files: Mapping[str, str]) -> Certificate:
        """The same certificate for these files: path, relative to the certificate's folder, to SHA-256 in hex.

        >>> from sfumato.core import REPLACE_ONE, LaplaceEvent
        >>> noise = LaplaceEvent(1.0, 2.0, adjacency=REPLACE_ONE)
        >>> one = Certificate.issue(subject="count", events=[noise], proofs=["laplace"])
        >>> one.bound_to({"result.json": "0" * 64}).files[0][0]
        'result.json'
        """
        named = tuple(sorted((_path(path), _sha256(digest)) for path, digest in files.items()))
        unsigned = replace(self, files=named, schema_version=SCHEMA_VERSION, digest="")
        return replace(unsigned, digest=digest_of(unsigned._body()))

    @property
    def is_whole(self) -> bool:
        """Whether nothing was edited: digest, composition, promise and claims are what the events give.

        The full check, by another road, is `evidence.verify`.
        """
        if self.digest != digest_of(replace(self, digest="")._body()):
            return False
        if isinstance(self.guarantee, NoGuarantee) or not self.events:
            return isinstance(self.guarantee, NoGuarantee) and self.composed == self.guarantee
        composed = compose(self.events)
        kept = self.guarantee == composed or composed.implies(self.guarantee) is True
        return kept and composed == self.composed and Claims.of(self.guarantee) == self.claims

    def is_of_plan(self, plan: Any) -> bool:
        """Whether this is the plan that was certified."""
        return self.plan_hash == plan_digest(plan)

    def _body(self) -> dict[str, Any]:
        """Everything but the digest."""
        bound = {"files": dict(self.files)} if self.schema_version >= _FIRST_WITH_FILES else {}
        return {
            **bound,
            "schema_version": self.schema_version,
            "subject": self.subject,
            "plan_hash": self.plan_hash,
            "events": [event.to_dict() for event in self.events],
            "composed": self.composed.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "adjacency": self.adjacency.to_dict() if self.adjacency else None,
            "claims": self.claims.to_dict(),
            "proofs": list(self.proofs),
            "versions": dict(self.versions),
            "notes": list(self.notes),
            "publishable": self.publishable,
            "created": self.created,
        }

    def to_json(self) -> str:
        """The canonical text: keys sorted, infinity written as the string "infinity", a newline at the end."""
        return canonical({**self._body(), "digest": self.digest}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """The certificate in `text`, true or not; CertificateError if it is none.

        >>> Certificate.from_json("no certificate")
        Traceback (most recent call last):
        sfumato.errors.CertificateError: This is not a certificate: Expecting value: line 1 column 1 (char 0).
        """
        try:
            record = json.loads(text, object_pairs_hook=_unique)
            _check_version(record)
            certificate = _from_record(record)
            if json.loads(certificate.to_json()) != record:
                raise CertificateError("This is not a certificate: it has entries that mean nothing.")
            hash(certificate)
            return certificate
        except _MALFORMED as error:
            raise CertificateError(f"This is not a certificate: {error}.") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON so that a crash leaves the old file or the new one, never half of one."""
        write_whole_file(path, self.to_json())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """The certificate in the file; CertificateError if there is none."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CertificateError(f"{path}: the certificate cannot be read: {error}.") from error
        return cls.from_json(text)


def _costs(events: tuple[Event | Repeated, ...], stated: Guarantee | None) -> tuple[Guarantee, Guarantee]:
    """What the events cost together, and what is promised."""
    for event in events:
        if not isinstance(event, Event | Repeated):
            raise InputError(f"A certificate lists events, not a {type(event).__name__}.")
    if isinstance(stated, NoGuarantee):
        adjacency = compose(events).adjacency if events else stated.adjacency
        none = stated.under(adjacency)
        return none, none
    if not events:
        raise UnprovedError("No event, no guarantee: list what was drawn, or pass guarantee=NoGuarantee(reason).")
    composed = compose(events)
    if stated is None:
        return composed, composed
    promised = stated if stated.adjacency else stated.under(composed.adjacency)
    if not isinstance(promised, _STATABLE) or composed.implies(promised) is not True:
        raise UnprovedError(
            f"The events give {composed}; that this implies {promised} is not proved. State a weaker guarantee under "
            "the same adjacency as PureDP, ApproxDP, GaussianDP or ZCDP, or leave it out. Nothing was certified."
        )
    return composed, promised


def _check_one_number(acts: tuple[Event | Repeated, ...], dependence: Dependence) -> None:
    """A known law is about one number with noise added to it: of another act of that ε its distance says nothing."""
    if not isinstance(dependence, Known):
        return
    act = acts[0] if len(acts) == 1 else None
    added = isinstance(act, GaussianEvent | LaplaceEvent) and act.dimension == 1
    if not added or act.sensitivity < dependence.move:  # type: ignore[union-attr]  # an event with a sensitivity
        raise UnprovedError(
            f"A promise for {dependence.words} is kept by Gaussian or Laplace noise on that number, which one unit "
            f"moves by {dependence.move:g}, and by no other act. No certificate was issued."
        )


def _check_proofs(events: tuple[Event | Repeated, ...], promised: Guarantee, proofs: tuple[str, ...]) -> None:
    missing = frozenset[str]().union(*(event.proof_ids() for event in events)) - set(proofs)
    if isinstance(promised, Pufferfish) and "pufferfish" not in proofs:
        missing |= {"pufferfish"}
    if missing:
        raise UnprovedError(
            f"The events rest on proofs that are not named: {', '.join(sorted(missing))}. Name them in proofs=, each "
            "the stem of a file in docs/proofs. Nothing was certified."
        )


@lru_cache  # what is installed does not change while a process runs, and reading it takes longer than issuing
def _versions() -> tuple[tuple[str, str], ...]:
    found = [("python", platform.python_version())]
    for package in _PACKAGES:
        try:
            found.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:  # a source tree that was never installed
            found.append((package, "unknown"))
    return tuple(sorted(found))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise CertificateError("This is not a certificate: an entry is given twice.")
    return dict(pairs)


def _check_version(record: Any) -> None:
    version = record["schema_version"]
    if type(version) is not int or version < 1:
        raise CertificateError("This is not a certificate: its schema_version is not a whole number from 1 on.")
    if version > SCHEMA_VERSION:
        raise CertificateVersionError(
            f"This certificate has schema version {version} and this sfumato reads {SCHEMA_VERSION}. Upgrade sfumato."
        )


def _from_record(record: dict[str, Any]) -> Certificate:
    names = set(Certificate.__dataclass_fields__)
    bound = record["schema_version"] >= _FIRST_WITH_FILES
    _exactly(record, names if bound else names - {"files"}, "the certificate")
    if type(record["publishable"]) is not bool:
        raise CertificateError("publishable must be true or false.")
    stated = record["adjacency"]
    return Certificate(
        subject=_text(record["subject"], "subject"),
        events=tuple(map(event_from_dict, _listed(record["events"], "events"))),
        composed=_guarantee(record["composed"]),
        guarantee=_guarantee(record["guarantee"]),
        adjacency=None if stated is None else Adjacency.from_dict(stated),
        claims=Claims.from_dict(record["claims"]),
        proofs=tuple(_text(proof, "a proof") for proof in _listed(record["proofs"], "proofs")),
        plan_hash=None if record["plan_hash"] is None else _text(record["plan_hash"], "plan_hash"),
        versions=tuple(sorted((name, _text(version, name)) for name, version in record["versions"].items())),
        notes=tuple(_text(note, "a note") for note in _listed(record["notes"], "notes")),
        publishable=record["publishable"],
        created=_text(record["created"], "created"),
        digest=_text(record["digest"], "digest"),
        schema_version=record["schema_version"],
        files=tuple(sorted((_path(path), _sha256(one)) for path, one in record["files"].items())) if bound else (),
    )


def _path(value: Any) -> str:
    """A path below the certificate's folder, written alike on every system."""
    parts = _text(value, "a file").split("/")
    if any(part in ("", ".", "..") or "\\" in part for part in parts):
        raise InputError("A file of a certificate lies below its folder.")
    return value


def _plan_hash(plan: Mapping[str, Any] | str) -> str:
    return _sha256(plan, "A plan") if isinstance(plan, str) else plan_digest(plan)


def _sha256(value: Any, what: str = "A file") -> str:
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise InputError(f"{what} of a certificate is named with its SHA-256 in hex.")
    return value


def _guarantee(record: Any) -> Guarantee:
    guarantee = guarantee_from_dict(record)
    if isinstance(guarantee, ComposedDP):
        for part in guarantee.parts:
            _text(part.kind, "a part of the guarantee")
            _number(part.value, "a part of the guarantee")
            _number(part.extra, "a part of the guarantee")
            if type(part.count) is not int:
                raise CertificateError("A part of the guarantee has a count that is not a whole number.")
    return guarantee


def _exactly(record: Any, names: set[str], what: str) -> None:
    if not isinstance(record, dict) or set(record) != names:
        raise CertificateError(f"This is not a certificate: {what} has unknown or missing entries.")


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise CertificateError(f"This is not a certificate: {what} must be a list.")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CertificateError(f"This is not a certificate: {what} must hold numbers.")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be words.")
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise InputError(f"{what} holds half of a character (a lone surrogate), which no file can hold. Leave it out.")
    return value
