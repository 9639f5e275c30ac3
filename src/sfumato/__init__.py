"""sfumato: publish something about people without exposing them.

The names below are what most people need; the rooms (`sfumato.core`, `sfumato.mechanisms`, …) hold the rest.
"""

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
    "verify",
]
