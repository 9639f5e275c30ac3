"""Learn under a budget: scikit-learn estimators with a guarantee and a certificate."""

from sfumato.learn.base import NothingLearnedWarning
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.linear import PrivateLinearRegression
from sfumato.learn.logistic import PrivateLogisticRegression
from sfumato.learn.sample_size import sample_size
from sfumato.learn.search import PrivateSearch
from sfumato.learn.svc import PrivateSVC

__all__ = [
    "NothingLearnedWarning",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateSVC",
    "PrivateSearch",
    "SchemaEncoder",
    "sample_size",
]
