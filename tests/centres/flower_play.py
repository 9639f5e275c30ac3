"""Nodes of a Flower simulation: what each of them brings. Run in workers, so all is made from the node's number."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres import Round
from sfumato.centres.flower import Institution
from sfumato.errors import RefusedError


def key_of(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number + 1] * 32))


def institution(context, path: str, refusing: tuple[int, ...] = ()) -> Institution:
    number = int(context.node_config["partition-id"])
    if number in refusing:
        raise RefusedError("This centre stays at home.")
    agreed = Round.from_dict(json.loads(Path(path).read_text()))
    cells = np.full(agreed.length, 1000 * (number + 1), dtype=np.int64)
    return Institution(agreed, agreed.centres[number].name, key_of(number), cells)


def institution_from(path: str, refusing: tuple[int, ...] = ()):
    return functools.partial(institution, path=path, refusing=refusing)
