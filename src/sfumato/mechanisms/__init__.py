"""How to randomise: every mechanism, and nothing else draws privacy noise.

Each is imported when it is first used: most studies need no tailored channel and none of its solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.lazy import lazily

if TYPE_CHECKING:
    from sfumato.mechanisms.box import Box
    from sfumato.mechanisms.exponential import Exponential
    from sfumato.mechanisms.finite_channel import FiniteChannel
    from sfumato.mechanisms.gaussian import Gaussian
    from sfumato.mechanisms.gaussian_shares import GaussianShares
    from sfumato.mechanisms.group_counts import GroupCounts
    from sfumato.mechanisms.joint_quantiles import JointQuantiles
    from sfumato.mechanisms.laplace import Laplace
    from sfumato.mechanisms.laplace_shares import LaplaceShares
    from sfumato.mechanisms.mechanism import Mechanism
    from sfumato.mechanisms.norm_gamma import NormGamma
    from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
    from sfumato.mechanisms.randomized_response import RandomizedResponse
    from sfumato.mechanisms.tailored.choice import TailoredChoice, tailor
    from sfumato.mechanisms.tailored.grid import PrivateQuantiles, PublicEdges
    from sfumato.mechanisms.tailored.noise import TailoredNoise
    from sfumato.mechanisms.tailored.pair import TailoredPair
    from sfumato.mechanisms.tailored.regression import tailor_for_regression

__all__ = [
    "Box",
    "Exponential",
    "FiniteChannel",
    "Gaussian",
    "GaussianShares",
    "GroupCounts",
    "JointQuantiles",
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
    "TailoredPair",
    "tailor",
    "tailor_for_regression",
]

#: Where each name lives.
_HOME = {
    "Box": "box",
    "Exponential": "exponential",
    "FiniteChannel": "finite_channel",
    "Gaussian": "gaussian",
    "GaussianShares": "gaussian_shares",
    "GroupCounts": "group_counts",
    "JointQuantiles": "joint_quantiles",
    "Laplace": "laplace",
    "LaplaceShares": "laplace_shares",
    "Mechanism": "mechanism",
    "NormGamma": "norm_gamma",
    "PermuteAndFlip": "permute_and_flip",
    "PrivateQuantiles": "tailored.grid",
    "PublicEdges": "tailored.grid",
    "RandomizedResponse": "randomized_response",
    "TailoredChoice": "tailored.choice",
    "TailoredNoise": "tailored.noise",
    "TailoredPair": "tailored.pair",
    "tailor": "tailored.choice",
    "tailor_for_regression": "tailored.regression",
}

__getattr__ = lazily(__name__, _HOME)
