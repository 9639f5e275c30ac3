"""Which attributes of a fitted estimator may be published, and which stay with the curator.

In:   a fitted estimator.
Out:  the names that `save` writes and a pickle keeps; a refusal where a name is not known here.
Not here: the file (learn/saving.py).

An attribute that `fit` sets is listed here or it is not written: whether it was computed from the release alone is
decided by a person who adds it, and a law (tests/laws/test_saved_models.py) fails until somebody has.
"""

from __future__ import annotations

from typing import Any

from sfumato.core.guarantee import NoGuarantee
from sfumato.errors import UnprovedError
from sfumato.learn.asked import as_fitted

__all__ = ["fitted_names", "published_names", "refuse_unpublishable", "withheld_names"]

#: The shape of what was seen, which scikit-learn asks for: the list of labels and the names of columns are public.
_SEEN = frozenset({"classes_", "feature_names_in_", "n_features_in_"})
_PROMISE = frozenset({"_labels_read", "_publishable", "guarantee_"})
_LINEAR = frozenset(
    {
        "_norm",
        "_weights",
        "_weights_constant",
        "bounds_",
        "calibration_",
        "coef_",
        "features_",
        "intercept_",
        "plan_",
        "regularization_",
        "spread_",
    }
)
_REGRESSION = frozenset(
    {
        *("_constant", "_events", "_norm", "_shape", "_weights", "bounds_", "coef_", "intercept_", "mean_", "noise_"),
        *("regularization_", "share_"),
    }
)
_KERNEL = frozenset(
    {
        *("_model", "chosen_", "features_", "gamma_", "n_components_", "noise_", "plan_", "regularization_", "sizes_"),
        *("spread_", "weights_"),
    }
)
_BALL = frozenset({"cap_", "centre_", "features_", "gamma_", "noise_", "offset_", "sensitivity_"})
_BASINS = frozenset({"_basins", "counts_", "events_", "noise_", "point_labels_", "points_", "support_", "votes_"})
_WEIGHTS = frozenset({"features_", "gamma_", "noise_", "plan_", "weights_"})
_CHOICE = frozenset({"_scoring", "best_estimator_", "best_params_", "n_tried_", "run_epsilon_"})

_PUBLISHED: dict[str, frozenset[str]] = {
    "PrivateAdditiveClassifier": frozenset({"_model"}),
    "PrivateAdditiveRegressor": frozenset({"_model"}),
    "EquilibriumClassifier": _BASINS,
    "KernelClassifier": _KERNEL,
    "KernelMeanClassifier": _KERNEL,
    "KernelMomentClassifier": _KERNEL,
    "KernelRidgeClassifier": _KERNEL,
    "KernelStepsClassifier": _KERNEL | {"rate_", "steps_"},
    "PrivateClassifier": frozenset({"_model", "plan_"}),
    "PrivateLinearRegression": _REGRESSION,
    "PrivateLogisticRegression": _LINEAR,
    "PrivateSVC": _LINEAR,
    "PrivateSVDD": _BALL,
    "PrivateSearch": _CHOICE,
    "SemiSVC": _WEIGHTS,
    "WeightSVC": _WEIGHTS,
}

#: Counted on private rows without noise: for whoever holds the rows.
_WITHHELD = frozenset({"n_iter_"})
#: What a fit leaves beside that, of every kind.
_OF_A_FIT = frozenset({"_chosen_among_many", "_kept", "_publishable", "_seeds"})
#: What belongs to this object and to no file.
_OWN = frozenset({"_asked", "_even", "_lineage", "_place", "_solitary", "_charge", "_metadata_request"})


def fitted_names(estimator: Any) -> list[str]:
    """What earlier fits left on an estimator: the next one begins without, since its certificate speaks of it alone."""
    known = _PUBLISHED.get(type(estimator).__name__, frozenset()) | _OF_A_FIT
    found = {name for name in vars(estimator) if name in known or (name.endswith("_") and not name.startswith("_"))}
    return sorted(found - set(estimator.get_params(deep=False)))


def withheld_names(estimator: Any) -> frozenset[str]:
    """Attributes that leave with no copy: in random stopping the number of runs too, which no theorem covers."""
    runs = {"n_tried_"} if getattr(as_fitted(estimator), "scheme", None) == "random_stopping" else set()
    return _WITHHELD | runs


def published_names(estimator: Any) -> list[str]:
    """The fitted attributes that may be written, those that are there; UnprovedError if one is not known here."""
    kind = type(estimator).__name__
    known = _PUBLISHED.get(kind, frozenset()) | _SEEN | _PROMISE
    private = set(estimator.get_params(deep=False)) | withheld_names(estimator) | _OWN
    found = set(vars(estimator)) - private
    if kind not in _PUBLISHED or not found <= known:
        unknown = ", ".join(sorted(found - known)) or "its attributes"
        raise UnprovedError(
            f"Whether {unknown} of {kind} may be published is not decided (learn/published.py), so it is not written. "
            "Nothing was written."
        )
    return sorted(found)


def refuse_unpublishable(estimator: Any, act: str) -> None:
    """UnprovedError for an estimator that holds what it must not hand on: private weights, or no guarantee."""
    if "_kept" in vars(estimator):
        raise UnprovedError(
            f"{type(estimator).__name__} holds private weights: it answers and stays where the records are. It is not "
            f"{act}. WeightSVC publishes its weights with noise. Nothing was written."
        )
    guarantee = vars(estimator).get("guarantee_")
    if act == "saved" and isinstance(guarantee, NoGuarantee):
        raise UnprovedError(f"{guarantee.describe()}: what promises nothing is not saved. Nothing was written.")
