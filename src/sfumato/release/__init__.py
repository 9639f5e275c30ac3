"""Publish a whole table, and learn from one that was published."""

from sfumato.release.aware_kernel import NoiseAwareKernelClassifier
from sfumato.release.aware_linear import NoiseAwareLinearRegression, SwampedWarning
from sfumato.release.aware_logistic import NoiseAwareLogisticRegression
from sfumato.release.aware_moments import NoiseAwareMoments
from sfumato.release.aware_network import NoiseAwareNetworkClassifier, NoiseAwareNetworkRegressor
from sfumato.release.aware_svc import NoiseAwareSVC
from sfumato.release.box import BoxRelease, WeakGuaranteeWarning
from sfumato.release.gaussian import GaussianRelease
from sfumato.release.laplace import LaplaceRelease
from sfumato.release.noise import TableNoise
from sfumato.release.obfuscated import ObfuscatedRelease
from sfumato.release.owned import OwnedResult, OwnedTotal
from sfumato.release.result import TableRelease
from sfumato.release.svm import RegularisedSVM
from sfumato.release.synthetic import SyntheticRelease, SyntheticTable
from sfumato.release.tied import Constraint
from sfumato.release.utility import MachineBound, machine_bound

__all__ = [
    "BoxRelease",
    "Constraint",
    "GaussianRelease",
    "LaplaceRelease",
    "MachineBound",
    "NoiseAwareKernelClassifier",
    "NoiseAwareLinearRegression",
    "NoiseAwareLogisticRegression",
    "NoiseAwareMoments",
    "NoiseAwareNetworkClassifier",
    "NoiseAwareNetworkRegressor",
    "NoiseAwareSVC",
    "ObfuscatedRelease",
    "OwnedResult",
    "OwnedTotal",
    "RegularisedSVM",
    "SwampedWarning",
    "SyntheticRelease",
    "SyntheticTable",
    "TableNoise",
    "TableRelease",
    "WeakGuaranteeWarning",
    "machine_bound",
]
