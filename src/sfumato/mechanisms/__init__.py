"""How to randomise: every mechanism, and nothing else draws privacy noise."""

from sfumato.mechanisms.box import Box
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.norm_gamma import NormGamma
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.randomized_response import RandomizedResponse

__all__ = [
    "Box",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "NormGamma",
    "PermuteAndFlip",
    "RandomizedResponse",
]
