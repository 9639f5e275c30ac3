"""How to randomise: every mechanism, and nothing else draws privacy noise."""

from sfumato.mechanisms.box import Box
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.finite_channel import FiniteChannel
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.gaussian_shares import GaussianShares
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.laplace_shares import LaplaceShares
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.norm_gamma import NormGamma
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.tailored import TailoredNoise
from sfumato.mechanisms.tailored_choice import TailoredChoice, tailor
from sfumato.mechanisms.tailored_grid import PrivateQuantiles, PublicEdges
from sfumato.mechanisms.tailored_regression import tailor_for_regression

__all__ = [
    "Box",
    "Exponential",
    "FiniteChannel",
    "Gaussian",
    "GaussianShares",
    "Laplace",
    "LaplaceShares",
    "Mechanism",
    "NormGamma",
    "PermuteAndFlip",
    "PrivateQuantiles",
    "PublicEdges",
    "RandomizedResponse",
    "TailoredChoice",
    "TailoredNoise",
    "tailor",
    "tailor_for_regression",
]
