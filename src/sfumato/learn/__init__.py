"""Learn under a budget: scikit-learn estimators with a guarantee and a certificate."""

from sfumato.learn.additive import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from sfumato.learn.base import NothingLearnedWarning
from sfumato.learn.baselines import OutputSVC, SemiSVC, WeightSVC
from sfumato.learn.classifier import PrivateClassifier
from sfumato.learn.classifier_rule import plan_classifier
from sfumato.learn.convex_loss import ConvexLoss
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.equilibrium import EquilibriumClassifier
from sfumato.learn.fair import FairClassifier
from sfumato.learn.fitting import PrivateEstimator
from sfumato.learn.kernel_classifier import KernelClassifier
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_moment import KernelMomentClassifier
from sfumato.learn.kernel_ridge import KernelRidgeClassifier
from sfumato.learn.kernel_rule import plan_kernel
from sfumato.learn.kernel_steps import KernelStepsClassifier
from sfumato.learn.lineage import PrivacyLeakWarning
from sfumato.learn.linear import PrivateLinearRegression, TargetAtEndWarning
from sfumato.learn.logistic import PrivateLogisticRegression
from sfumato.learn.penalties import ConvexPenalty, HuberPenalty, LogCoshPenalty, Penalty, SquaredPenalty
from sfumato.learn.pipeline import PrivatePipeline, make_pipeline
from sfumato.learn.sample_size import sample_size
from sfumato.learn.saving import load
from sfumato.learn.search import PrivateSearch
from sfumato.learn.steps import uncovered
from sfumato.learn.svc import PrivateSVC
from sfumato.learn.svdd import PrivateSVDD

__all__ = [
    "ConvexLoss",
    "ConvexPenalty",
    "EquilibriumClassifier",
    "FairClassifier",
    "HuberPenalty",
    "KernelClassifier",
    "KernelMeanClassifier",
    "KernelMomentClassifier",
    "KernelRidgeClassifier",
    "KernelStepsClassifier",
    "LogCoshPenalty",
    "NothingLearnedWarning",
    "OutputSVC",
    "Penalty",
    "PrivacyLeakWarning",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateClassifier",
    "PrivateEstimator",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivatePipeline",
    "PrivateSVC",
    "PrivateSVDD",
    "PrivateSearch",
    "SchemaEncoder",
    "SemiSVC",
    "SquaredPenalty",
    "TargetAtEndWarning",
    "WeightSVC",
    "load",
    "make_pipeline",
    "plan_classifier",
    "plan_kernel",
    "sample_size",
    "uncovered",
]
