"""The laws of the random vector in objective perturbation: everything in which one differs from another.

In:   a law's name, as records write it.
Out:  ObjectiveNoise.
Not here: drawing it (learn/training_noise.py), what it costs (core/events/learning.py, core/events/joint.py).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from sfumato.errors import PrivacyParameterError

__all__ = ["ObjectiveNoise", "ObjectiveNoiseName", "objective_noise"]

ObjectiveNoiseName = Literal["gaussian", "norm-gamma", "laplace"]


class ObjectiveNoise(NamedTuple):
    """Whether it is normal, so that its cost is a curve and not a pure ε; how long p - e_y can be in its norm."""

    is_gaussian: bool
    longest: float


_LAWS = {
    "gaussian": ObjectiveNoise(True, math.sqrt(2)),
    "norm-gamma": ObjectiveNoise(False, math.sqrt(2)),
    "laplace": ObjectiveNoise(False, 2.0),
}


def objective_noise(name: str) -> ObjectiveNoise:
    """The law of a name; PrivacyParameterError where there is none.

    >>> objective_noise("laplace")
    ObjectiveNoise(is_gaussian=False, longest=2.0)
    """
    if not isinstance(name, str) or name not in _LAWS:
        raise PrivacyParameterError(f"Objective noise {name!r} is not known.")
    return _LAWS[name]
