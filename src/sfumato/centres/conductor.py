"""The coordinator of a round as a state machine: whom to ask what, and what comes of the answers. No input or output.

In:   who joined or declined; the answers to each step, as they came or did not come.
Out:  the questions of the next step; at the end an Outcome for the centres, and an Aggregate or a RoundFailedError.
Not here: how questions travel (memory.py, network.py, flower.py: three transports of this one machine), the sums
(aggregator.py).

    joining ── begin() ──▶ questions() ──▶ answered(…) ──▶ questions() … {} ──▶ farewell(), result()

Whoever answers wrongly, late or not at all is absent from then on. If the round fails before anything was opened, the
last question asks all who are there to refuse: their signed refusals prove to the others that nobody can open it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.centres.aggregator import Aggregator
from sfumato.centres.messages import DECLINE, Message, write_json
from sfumato.centres.node import refusal_of
from sfumato.centres.outcome import Aggregate, Outcome, aggregate_of
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame
from sfumato.errors import MessageError, RefusedError, RoundFailedError

__all__ = ["Answer", "Conductor"]

#: What a centre said, or in words why there is nothing.
Answer = Message | str
_LATE = "did not answer in time"
_MASKED = ("keys", "parcels", "included", "signatures")
_PLAIN = ("parcels",)


class Conductor:
    """One round from joining to its end; lives for one attempt."""

    def __init__(self, agreed: Round) -> None:
        self.round = agreed
        self.aggregator = Aggregator(agreed)
        #: Who is not in the round (any more), and why; `declined` are those of them who said so themselves.
        self.absent: dict[str, str] = {}
        self.declined: dict[str, str] = {}
        self.members: list[str] = []
        self.joining = True
        self._asking = list(_MASKED if agreed.masked else _PLAIN)
        self._refusals: list[Message] | None = None
        self._refusals_asked = False
        self._included: list[str] = []
        self._found: Aggregate | None = None
        self._failure: RoundFailedError | None = None

    # ── joining ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def hear_first(self, name: str, message: Message) -> str:
        """A centre's first word, signed by it: it joins, or it declines, and then why; CentreError if it is neither."""
        if message.step != DECLINE:
            self.admit(name, message)
            return ""
        if message.sender != name or name not in self.round.places:
            raise MessageError(f"{name} spoke for somebody else.")
        message.check(self.round.identity(name), self.round.hash, DECLINE)
        reason = refusal_of(message)
        self.decline(name, reason)
        return reason

    def admit(self, name: str, message: Message) -> None:
        """A centre's first message; CentreError if it does not join by it."""
        if not self.joining:
            raise RefusedError("The round has begun; nobody joins any more. Nothing was spent.")
        if message.sender != name:
            raise MessageError(f"{name} spoke for somebody else.")
        self.aggregator.accept(message)
        self.members.append(name)
        self.absent.pop(name, None)
        self.declined.pop(name, None)

    def decline(self, name: str, reason: str) -> None:
        """A centre of the round says that it does not take part. It may think again while others join."""
        if self.joining and name in self.round.places and name not in self.members:
            self.absent[name] = self.declined[name] = f"refused: {reason}"

    @property
    def awaited(self) -> list[str]:
        """Who has said nothing yet."""
        return [name for name in self.round.places if name not in self.members and name not in self.declined]

    @property
    def is_settled(self) -> bool:
        """Whether waiting any longer changes nothing: everybody spoke, or too many refused."""
        return not self.awaited or len(self.round.centres) - len(self.declined) < self.round.quorum

    def begin(self) -> None:
        """Nobody joins any more."""
        self.joining = False
        for name in self.awaited:
            self.absent[name] = self.round.why_awaited
        self._advance()

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def questions(self) -> dict[str, Frame]:
        """What to ask whom now; nobody anything when the round is over."""
        if self._refusals is not None and not self._refusals_asked:
            # Whoever has given its key shares cannot take them back.
            silent = [name for name in self.members if not self.aggregator.has_unmasked(name)]
            return {name: Frame({"kind": "refuse"}, b"") for name in silent}
        if self._found is not None or self._failure is not None:
            return {}
        kind = self._asking[0]
        return {name: Frame({"kind": kind}, self._body(kind, name)) for name in self.members}

    def _body(self, kind: str, name: str) -> bytes:
        match kind:
            case "keys":
                return write_json([message.to_dict() for message in self.aggregator.public_keys()])
            case "parcels":
                return write_json(self.aggregator.parcels_for(name) if self.round.masked else {})
            case "included":
                return write_json(self.aggregator.included())
        return write_json([message.to_dict() for message in self.aggregator.signatures()])

    def answered(self, answers: Mapping[str, Answer]) -> None:
        """What came back until the deadline: the step is over."""
        asked = self.questions()
        for name in asked:
            try:
                self._hear(name, answers.get(name, _LATE))
            except MessageError as error:
                self.absent[name] = str(error)
                self.members.remove(name)
        if self._refusals is not None:
            self._refusals_asked = True
            return
        self._asking.pop(0)
        if self.aggregator.step == "masked":
            self._included = self.aggregator.included()
        self._advance()
        if not self._asking and self._failure is None:
            self._open()

    def _hear(self, name: str, answer: Answer) -> None:
        if isinstance(answer, str):
            raise MessageError(answer)
        if answer.sender != name:
            raise MessageError(f"{name} spoke for {answer.sender!r}.")
        if self._refusals is None:
            self.aggregator.accept(answer)
            return
        answer.check(self.round.identity(name), self.round.hash, "refuse")
        self._refusals.append(answer)

    def _advance(self) -> None:
        try:
            self.aggregator.advance()
        except RoundFailedError as error:
            self._fail(error)

    def _open(self) -> None:
        try:
            self._found = aggregate_of(self.round, self.aggregator.total(), self._included, self.absent)
        except RoundFailedError as error:
            self._fail(error)

    def _fail(self, error: RoundFailedError) -> None:
        self._failure = RoundFailedError(self._told(str(error)), revealed=error.revealed)
        if not error.revealed and self.round.masked:
            self._refusals = []

    def _told(self, reason: str) -> str:
        gone = ", ".join(f"{name} ({why})" for name, why in self.absent.items())
        return f"{reason} Absent: {gone}." if gone else reason

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def outcome(self) -> Outcome:
        """What every centre that is still there is told."""
        if self._found is not None:
            return Outcome(True, "", tuple(self._found.values.tolist()), tuple(self._included))
        assert self._failure is not None
        if self._failure.revealed:
            return Outcome(True, str(self._failure), None, tuple(self._included))
        return Outcome(False, str(self._failure), None, (), tuple(self._refusals or ()))

    def farewell(self) -> dict[str, Frame]:
        """The last message to everybody who is still there."""
        body = write_json(self.outcome.to_dict())
        return {name: Frame({"kind": "outcome"}, body) for name in self.members}

    def result(self) -> Aggregate:
        """The sum; or RoundFailedError."""
        if self._found is None:
            assert self._failure is not None
            raise self._failure
        return self._found
