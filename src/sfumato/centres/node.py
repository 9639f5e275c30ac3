"""What an institution checks before it takes part, and what it pays afterwards.

In:   the round and certificates that a coordinator sends, the round that the institution agreed to, its own ledger.
Out:  RefusedError, or a reservation that ends committed, released or open.
Not here: the ledger itself (run/ledger.py; handed in by the caller), the protocol (participant.py).
Proof: docs/proofs/secure_aggregation.md, "Charging"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sfumato.centres.outcome import Outcome, proves_silence
from sfumato.centres.round import Round
from sfumato.core.certificate import Certificate
from sfumato.errors import MessageError, RefusedError, SfumatoError

__all__ = ["Account", "Charge", "check_agreement"]

Verify = Callable[[Certificate], Any]


class Book(Protocol):
    """The part of a ledger that is used here."""

    def reserve(self, dataset: str, cost: Any, *, purpose: str = "", key: str | None = None) -> Any: ...
    def commit(self, reservation: Any) -> None: ...
    def release(self, reservation: Any) -> None: ...


@dataclass(frozen=True)
class Account:
    """Where an institution books what its patients spend."""

    ledger: Book
    dataset: str


def check_agreement(offered: Round, approved: Round, certificates: Sequence[str], verify: Verify | None = None) -> None:
    """RefusedError unless the coordinator offers exactly what was approved, and its certificates say what that costs.

    The numbers are derived again from the round; `verify` (evidence.verify, where there is one) checks them
    independently.
    """
    if offered.description() != approved.description():
        changed = [name for name, value in offered.description().items() if approved.description()[name] != value]
        raise RefusedError(
            f"The coordinator offers a round that differs from the approved one in {', '.join(changed)}. Nothing left "
            "the centre and nothing was spent. Approve the new round first, if it is acceptable."
        )
    if len(offered.nonce) < 32:
        raise RefusedError("The round has no fresh number: it could be a replay. Nothing left the centre.")
    own = approved.certificates()
    try:
        given = [Certificate.from_json(text) for text in certificates]
    except SfumatoError as error:
        raise RefusedError("The coordinator's certificates cannot be read. Nothing left the centre.") from error
    if [_claims(one) for one in given] != [_claims(one) for one in own]:
        raise RefusedError("The certificates do not say what this round costs. Nothing left the centre.")
    if verify is not None and not all(verify(one) for one in given):
        raise RefusedError("A certificate does not hold. Nothing left the centre and nothing was spent.")


def _claims(certificate: Certificate) -> tuple[object, ...]:
    return certificate.events, certificate.guarantee, certificate.claims, certificate.proofs, certificate.plan_hash


@dataclass
class Charge:
    """The cost of one round at one centre: reserved before anything is sent, settled when its end is known."""

    agreed: Round
    name: str
    account: Account | None
    #: Whether a message that depends on the data has left.
    sent: bool = False
    _open: list[Any] = field(default_factory=list)

    def reserve(self) -> None:
        """Sets the cost aside for every kind of unit; raises what the ledger raises, with nothing left reserved."""
        if self.account is None:
            return
        try:
            for event in self.agreed.events:
                purpose = f"{self.agreed.subject} (several centres)"
                book = self.account.ledger
                self._open.append(book.reserve(self.account.dataset, event, purpose=purpose, key=self.agreed.hash))
        except SfumatoError:
            self._each("release")
            raise

    def settle(self, outcome: Outcome | None) -> str:
        """Commit, release or keep; the word for it."""
        word = self._word(outcome)
        if word != "open":
            self._each(word)
        return word

    def _word(self, outcome: Outcome | None) -> str:
        if not self.sent:
            return "release"
        if outcome is None:
            return "open"
        curious = self.agreed.coordinator == "curious"
        if outcome.revealed:
            # A coordinator that follows the protocol left out whom it says it left out.
            return "release" if curious and self.name not in outcome.included else "commit"
        if curious:
            return "release"
        try:
            return "release" if proves_silence(self.agreed, outcome.refusals) else "open"
        except MessageError:
            return "open"

    def _each(self, word: str) -> None:
        if self.account is not None:
            for reservation in self._open:
                getattr(self.account.ledger, word)(reservation)
        self._open = []
