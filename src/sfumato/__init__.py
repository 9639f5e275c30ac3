"""sfumato: publish something about people without exposing them.

The names below are what most people need; the rooms (`sfumato.core`, `sfumato.mechanisms`, …) hold the rest.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    Categories,
    GaussianDP,
    Guarantee,
    Interval,
    NoGuarantee,
    PureDP,
    RenyiDP,
    Schema,
    compose,
    gaussian_mu,
)
from sfumato.evidence import Certificate, audit, verify
from sfumato.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NormGamma,
    PermuteAndFlip,
    RandomizedResponse,
)
from sfumato.run import Ledger

if TYPE_CHECKING:
    from sfumato.lang import Spec

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Categories",
    "Certificate",
    "Exponential",
    "Gaussian",
    "GaussianDP",
    "Guarantee",
    "Interval",
    "Laplace",
    "Ledger",
    "NoGuarantee",
    "NormGamma",
    "PermuteAndFlip",
    "PureDP",
    "RandomizedResponse",
    "RenyiDP",
    "Schema",
    "audit",
    "compose",
    "gaussian_mu",
    "load",
    "verify",
]


def load(path_or_text: str | os.PathLike[str]) -> Spec:
    """The Spec of a study file or of a study's text; a StudyError says everything that is wrong with it.

    See `sfumato.lang.load`. The logic engine is imported when it is first needed.
    """
    from sfumato.lang import load as load_study

    return load_study(path_or_text)
