"""The protocol within one process: for statistics over many rounds, and for tests of what a party may not do.

In:   a Round, participants.
Out:  Aggregate, or RoundFailedError.
Not here: real processes (processes.py) and networks (network.py), which drive the same two classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.aggregator import Aggregator
from sfumato.centres.messages import Message
from sfumato.centres.outcome import Aggregate, aggregate_of
from sfumato.centres.participant import Participant
from sfumato.centres.round import Centre, Round
from sfumato.errors import MessageError

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
    gone, absent = dict(leaves or {}), {}
    members = {
        name: Participant(agreed, name, keys[name], vector, random_state=_seed(random_state, place))
        for place, (name, vector) in enumerate(cells.items())
    }
    coordinator = Aggregator(agreed)

    def collect(say: Callable[[str, Participant], Message]) -> None:
        for name in list(members):
            if gone.get(name) == coordinator.step:
                absent[name] = f"left before step {coordinator.step!r}"
                del members[name]
                continue
            try:
                coordinator.accept(say(name, members[name]))
            except MessageError as error:
                absent[name] = str(error)
                del members[name]
        coordinator.advance()

    collect(lambda _, member: member.keys())
    collect(lambda _, member: member.shares(coordinator.public_keys()))
    collect(lambda name, member: member.masked(coordinator.parcels_for(name)))
    included = coordinator.included()
    collect(lambda _, member: member.agreed(included))
    collect(lambda _, member: member.unmask(coordinator.signatures()))
    return aggregate_of(agreed, coordinator.total(), included, absent, publishable=random_state is None)


def _seed(random_state: int | None, place: int) -> int | None:
    return None if random_state is None else random_state * 10_007 + place
