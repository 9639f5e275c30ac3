"""Which steps of a scikit-learn model are public, which are private, and which learn from the rows unpaid.

In:   any scikit-learn estimator: a Pipeline, a ColumnTransformer, a search.
Out:  `uncovered`: one sentence for every part that no guarantee covers; `private_core`, the estimator that draws.
Not here: fitting them (learn/pipeline.py), what private fits cost (learn/fitting.py).

A step is public if its `fit` learns nothing from the rows: it says so itself by scikit-learn's tag
`requires_fit=False`, or it is one of the steps below with every number written down. A step that was frozen before is
public on the word of whoever froze it. Everything else learns from private rows, and nothing pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from sfumato.errors import PrivacyParameterError
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.fitting import PrivateEstimator

__all__ = ["private_core", "private_parts", "refuse_uncovered", "trusted", "uncovered"]


def _given(step: Any, *names: str) -> bool:
    """Whether these parameters are numbers or lists, and not a word for a rule that looks at the rows."""
    return all(getattr(step, name, None) is not None and not isinstance(getattr(step, name), str) for name in names)


def _listed(step: Any) -> bool:
    """An encoder whose categories are written down, that fails on none and counts none."""
    counted = getattr(step, "min_frequency", None), getattr(step, "max_categories", None)
    return _given(step, "categories") and step.handle_unknown != "error" and counted == (None, None)


def _filled(step: Any) -> bool:
    plain = step.strategy == "constant" and step.fill_value is not None
    return plain and not step.add_indicator and step.keep_empty_features


#: Steps of scikit-learn whose `fit` looks at the number of columns alone, and when.
_BY_SHAPE: dict[str, Callable[[Any], bool]] = {
    "GaussianRandomProjection": lambda step: _given(step, "n_components"),
    "OneHotEncoder": _listed,
    "OrdinalEncoder": _listed,
    "PolynomialCountSketch": lambda step: True,
    "PolynomialFeatures": lambda step: True,
    "RBFSampler": lambda step: _given(step, "gamma"),
    "SimpleImputer": _filled,
    "SkewedChi2Sampler": lambda step: True,
    "SparseRandomProjection": lambda step: _given(step, "n_components", "density"),
    "SplineTransformer": lambda step: _given(step, "knots"),
}
#: What to use in place of a step that learns.
_INSTEAD = {
    "OneHotEncoder": "OneHotEncoder(categories=[…], handle_unknown='ignore') without min_frequency or max_categories",
    "OrdinalEncoder": "OrdinalEncoder(categories=[…], handle_unknown='use_encoded_value', unknown_value=-1)",
    "RBFSampler": "RBFSampler(gamma=…) with a number",
    "SimpleImputer": "SimpleImputer(strategy='constant', fill_value=…, keep_empty_features=True)",
    "SplineTransformer": "SplineTransformer(knots=[…]) with the knots written down",
}
_SCALER = "SchemaEncoder(schema), which brings columns to one scale by public ranges"
_WAY_OUT = (
    "or freeze it on rows that are not private: sklearn.frozen.FrozenEstimator({name}(…).fit(public_rows)), or, if it "
    "is your own and learns nothing, let its __sklearn_tags__ say requires_fit=False"
)


def _learns_nothing(step: Any) -> bool:
    if isinstance(step, SchemaEncoder | FrozenEstimator):
        return True
    rule = _BY_SHAPE.get(type(step).__name__) if type(step).__module__.startswith("sklearn.") else None
    return rule(step) if rule is not None else not get_tags(step).requires_fit


def uncovered(model: Any) -> list[str]:
    """What of `model` learns from private rows without being paid for, one sentence each; [] if nothing does.

    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from sfumato.learn import PrivateLogisticRegression
    >>> private = PrivateLogisticRegression(1.0)
    >>> uncovered(Pipeline([("rows", Normalizer()), ("model", private)]))
    []
    >>> print(uncovered(Pipeline([("scale", StandardScaler()), ("model", private)]))[0][:50])
    the step 'scale' is a StandardScaler, which learns
    """
    return list(_findings(model, ""))


def _findings(model: Any, place: str) -> Iterator[str]:
    if model is None or isinstance(model, str | PrivateEstimator):  # words: "passthrough", "drop"
        return
    if isinstance(model, Pipeline | FeatureUnion):
        for name, step in model.steps if isinstance(model, Pipeline) else model.transformer_list:
            yield from _findings(step, _inside(place, name))
    elif isinstance(model, ColumnTransformer):
        yield from _findings_by_column(model, place)
    elif _predicts(model):
        yield _about_model(model, place)
    elif not _learns_nothing(model):
        name = type(model).__name__
        yield (
            f"the step {place!r} is a {name}, which learns from the rows. Use {_INSTEAD.get(name, _SCALER)}, "
            + _WAY_OUT.format(name=name)
        )


def _predicts(model: Any) -> bool:
    return isinstance(model, BaseEstimator) and not (hasattr(model, "transform") or isinstance(model, FrozenEstimator))


def _findings_by_column(model: ColumnTransformer, place: str) -> Iterator[str]:
    for name, step, columns in model.transformers:
        yield from _findings(step, _inside(place, name))
        if callable(columns):
            yield (
                f"the step {_inside(place, name)!r} chooses its columns by a function of the table: cells decide "
                "what type a column has. List the columns"
            )
    yield from _findings(model.remainder, _inside(place, "remainder"))


def _inside(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name


def _about_model(model: Any, place: str) -> str:
    name, inner = type(model).__name__, private_parts(model)
    where = f"the step {place!r}" if place else "the model"
    if inner:
        return (
            f"{where} is a {name} around {type(inner[0]).__name__}: every fit inside draws and adds to the cost, and "
            "what it chooses or calibrates on private rows is covered by nothing. Use sfumato.learn.PrivateSearch("
            "estimator, grid, epsilon)"
        )
    return f"{where} is a {name}, which promises nothing. Use an estimator of sfumato.learn"


def private_parts(model: Any) -> list[PrivateEstimator]:
    """Every private estimator inside, wherever a parameter holds one."""
    if isinstance(model, PrivateEstimator):
        return [model]
    if not hasattr(model, "get_params"):
        return []
    found = (value for value in model.get_params(deep=True).values() if isinstance(value, PrivateEstimator))
    return list({id(one): one for one in found}.values())


def private_core(model: Any) -> tuple[Any, str]:
    """The estimator that draws, and the prefix of its parameters: the model itself or a pipeline's last step."""
    prefix = ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        prefix += f"{name}__"
    return model, prefix


def trusted(model: Any) -> list[str]:
    """The steps that are public on somebody's word, one sentence each."""
    steps = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    words = {
        "FrozenEstimator": "was fitted before: that it was on rows that are not private is your word",
        "FunctionTransformer": "applies your function: that it looks at one row at a time is your word",
    }
    return [
        f"{name} {words[type(step).__name__]}" for name, step in sorted(steps.items()) if type(step).__name__ in words
    ]


def refuse_uncovered(model: Any) -> None:
    """PrivacyParameterError, with the complete way out, if some part of `model` learns unpaid or nothing draws."""
    found = uncovered(model)
    core, _ = private_core(model)
    if not found and not isinstance(core, PrivateEstimator):
        found = [_about_model(core, "")]
    if found:
        raise PrivacyParameterError(
            "; ".join(found) + ". The guarantee would not cover it. Nothing was drawn and nothing was spent."
        )
