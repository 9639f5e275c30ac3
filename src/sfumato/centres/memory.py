"""The protocol within one process: for statistics over many rounds, and for tests of what a party may not do.

In:   a Round, participants.
Out:  Aggregate, or RoundFailedError.
Not here: real processes (processes.py) and networks (network.py), which drive the same machine (conductor.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.conductor import Answer, Conductor
from sfumato.centres.node import said_by
from sfumato.centres.outcome import Aggregate
from sfumato.centres.participant import Participant
from sfumato.centres.round import Centre, Round
from sfumato.errors import MessageError, RefusedError

__all__ = ["aggregate_in_memory", "new_centres"]


def new_centres(names: Iterable[str]) -> tuple[tuple[Centre, ...], dict[str, Ed25519PrivateKey]]:
    """Centres with new keys, for tests and demonstrations: in earnest every centre makes its own key at home."""
    keys = {name: Ed25519PrivateKey.generate() for name in names}
    centres = tuple(Centre(name, key.public_key().public_bytes_raw().hex()) for name, key in keys.items())
    return centres, keys


def aggregate_in_memory(
    agreed: Round,
    cells: Mapping[str, np.ndarray],
    keys: Mapping[str, Ed25519PrivateKey],
    *,
    random_state: int | None = None,
    leaves: Mapping[str, str] | None = None,
) -> Aggregate:
    """Run the whole protocol; `leaves` says before which step a centre goes away without a word.

    With a `random_state` the noise can be repeated and the result is not for publication.
    """
    gone = dict(leaves or {})
    members = {
        name: Participant(agreed, name, keys[name], vector, random_state=_seed(random_state, place))
        for place, (name, vector) in enumerate(cells.items())
    }
    conductor = Conductor(agreed)

    def answer(name: str, kind: str, body: bytes) -> Answer:
        if gone.get(name) == conductor.aggregator.step:
            return f"left before step {conductor.aggregator.step!r}"
        try:
            return said_by(members[name], kind, body)
        except (MessageError, RefusedError) as error:
            return str(error)

    for name, member in members.items():
        if gone.get(name) == conductor.aggregator.step:
            conductor.absent[name] = f"left before step {conductor.aggregator.step!r}"
        else:
            conductor.admit(name, member.keys())
    conductor.begin()
    while asked := conductor.questions():
        conductor.answered({name: answer(name, frame.head["kind"], frame.body) for name, frame in asked.items()})
    return dataclasses.replace(conductor.result(), publishable=random_state is None)


def _seed(random_state: int | None, place: int) -> int | None:
    return None if random_state is None else random_state * 10_007 + place
