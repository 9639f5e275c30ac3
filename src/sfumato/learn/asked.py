"""What a fitted model was asked for: its parameters as the fit found them, whatever is set on the object afterwards.

In:   an estimator, once its fit is done.
Out:  `keep_parameters`, called by every fit and by `load`; `as_fitted`: the estimator with those parameters.
Not here: which fitted attributes there are (learn/published.py), fitting (learn/fitting.py).

scikit-learn lets everybody set parameters of a fitted estimator, for its next fit. What the model in hand answers, and
what its notes, its certificate and its file say, is about the fit it comes from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from sfumato.learn.lineage import on_its_own

__all__ = ["OF_THE_SESSION", "as_fitted", "forget_parameters", "keep_parameters"]

#: Parameters that belong to a session and to no model: seeds, ledgers, rows that were handed over.
OF_THE_SESSION = frozenset({"random_state", "ledger", "public"})


def keep_parameters(estimator: Any) -> None:
    """Note the parameters of a fit that is done."""
    parameters = estimator.get_params(deep=False)
    vars(estimator)["_asked"] = {name: _kept(value) for name, value in parameters.items() if name not in OF_THE_SESSION}


def forget_parameters(estimator: Any) -> None:
    """Called when a fit begins: it has the parameters that are set now."""
    vars(estimator).pop("_asked", None)


def as_fitted(estimator: Any) -> Any:
    """The estimator to be read, with the parameters of its fit; as it is where there was none, or while one runs."""
    asked = vars(estimator).get("_asked")
    if asked is None:
        return estimator
    view = object.__new__(type(estimator))
    vars(view).update(vars(estimator), **asked)
    return view


def _kept(value: Any) -> Any:
    """A copy of what could be changed in place."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        from sfumato.learn.steps import private_parts  # it imports the estimators, which import this

        with on_its_own(private_parts(value)):
            return clone(value)
    return clone(value, safe=False) if isinstance(value, dict | list | np.ndarray | set | tuple) else value
