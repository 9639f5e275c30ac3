"""Values of a fitted model as JSON, and back: numbers, words, arrays, schemas, guarantees, events, a few records.

In:   what an estimator holds, or what a file says.
Out:  plain JSON values; the same values again. Whatever is not on the list has no form and is refused.
Not here: which values are written (learn/published.py), the file (learn/saving.py).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.events.event import Event, Repeated
from sfumato.core.guarantee import Guarantee
from sfumato.core.records import event_from_dict, guarantee_from_dict
from sfumato.core.schema import Schema
from sfumato.errors import CertificateError, UnprovedError
from sfumato.learn.basins import Basins
from sfumato.learn.bounds import NormBound
from sfumato.learn.calibration import TrainingPlan
from sfumato.learn.classifier_rule import ClassifierPlan
from sfumato.learn.convex_loss import ConvexLoss
from sfumato.learn.features import FourierFeatures, SketchFeatures, random_features
from sfumato.learn.fitting import PrivateEstimator
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.kernel_rule import KernelPlan
from sfumato.learn.kernel_spread import KernelSpread
from sfumato.learn.losses import HuberLoss, LogisticLoss, SmoothedHinge
from sfumato.learn.penalties import ConvexPenalty, HuberPenalty, LogCoshPenalty, SquaredPenalty
from sfumato.learn.seeds import Seeds
from sfumato.learn.training_budget import TrainingBudget
from sfumato.mechanisms import Gaussian, Laplace, NormGamma, PermuteAndFlip

__all__ = ["ValueReader", "as_plain"]

_PENALTIES = (ConvexPenalty, HuberPenalty, LogCoshPenalty, SquaredPenalty)
_PLAIN = (
    ClassifierPlan,
    Gaussian,
    HuberLoss,
    JointLoss,
    KernelPlan,
    Laplace,
    LogisticLoss,
    NormGamma,
    PermuteAndFlip,
    SmoothedHinge,
)
#: Records that are rebuilt from their fields, by the words of saved files, which stay when a class gets another name.
#: The seed of a mechanism is no part of what it is.
_RECORDS: dict[str, type[Any]] = {
    "Bounds": NormBound,
    "Budget": TrainingBudget,
    "Spread": KernelSpread,
    **{kind.__name__: kind for kind in (*_PLAIN, *_PENALTIES, ConvexLoss, TrainingPlan)},
}
_WORDS = {kind: word for word, kind in _RECORDS.items()}
_SEED = "random_state"
_NUMBERS = re.compile(r"[<|][fiub][1248]")


def as_plain(value: Any, model: Callable[[Any], dict[str, Any]]) -> Any:
    """`value` as JSON knows it; `model` writes estimators inside estimators.

    >>> as_plain((1, 2.5, "a"), dict)
    {'tuple': [1, 2.5, 'a']}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.generic):
        return _scalar(value)
    if isinstance(value, list | tuple):
        items = [as_plain(item, model) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        return {"dict": [[as_plain(key, model), as_plain(item, model)] for key, item in value.items()]}
    return _labelled(value, model)


def _scalar(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and math.isnan(plain):
        raise UnprovedError("What is no number has no place in a saved model. Nothing was written.")
    if isinstance(plain, float) and math.isinf(plain):
        return {"infinite": 1 if plain > 0 else -1}
    return plain if isinstance(plain, float) else as_plain(plain, dict)


def _labelled(value: Any, model: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    match value:
        case np.ndarray():
            return {"array": _array_record(value)}
        case Schema():
            return {"schema": value.to_toml()}
        case Adjacency():
            return {"adjacency": value.to_dict()}
        case Guarantee():
            return {"guarantee": value.to_dict()}
        case Event() | Repeated():
            return {"event": value.to_dict()}
        case PrivateEstimator():
            return {"model": model(value)}
    label, kept = _kept(value)
    plain = {name: as_plain(item, model) for name, item in kept.items()}
    return {label: plain} if label in ("features", "basins") else {"record": label, "fields": plain}


def _kept(value: Any) -> tuple[str, dict[str, Any]]:
    """What makes such an object again, by name, under the label it is read by."""
    match value:
        case FourierFeatures():
            kept = {"gamma": value.gamma, "norm": value.norm, "frequencies": value.frequencies}
            kept |= {} if value.kernel == "rbf" else {"kernel": value.kernel}  # files of before name none
            return "features", kept
        case SketchFeatures():
            return "features", {"gamma": value.gamma, "norm": value.norm, "signs": value.signs, "kernel": value.kernel}
        case Basins():
            return "basins", vars(value)
    kind = _WORDS.get(type(value))
    if kind is None:
        raise UnprovedError(f"A {type(value).__name__} has no form in a saved model. Nothing was written.")
    fields = [item.name for item in dataclasses.fields(value) if item.init and item.name != _SEED]
    return kind, {name: getattr(value, name) for name in fields}


def _array_record(array: np.ndarray) -> dict[str, Any]:
    kind = array.dtype.newbyteorder("<").str
    if array.dtype.kind in "UO" and all(isinstance(item, str) for item in array.flat):
        kind = "words" if array.dtype.kind == "U" else "objects"
    elif not _NUMBERS.fullmatch(kind) or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise UnprovedError(
            "An array that is neither of finite numbers nor of words is not saved. Nothing was written."
        )
    return {"kind": kind, "shape": list(array.shape), "values": array.ravel().tolist()}


class ValueReader:
    """The inverse of `as_plain`; `model` reads estimators inside estimators. CertificateError on anything else.

    >>> ValueReader(dict)({"tuple": [1, 2.5, "a"]})
    (1, 2.5, 'a')
    """

    def __init__(self, model: Callable[[Any], Any]) -> None:
        self._model = model

    def __call__(self, plain: Any) -> Any:
        if plain is None or isinstance(plain, bool | int | str):
            return plain
        if isinstance(plain, float):
            if not math.isfinite(plain):
                raise CertificateError("A number of the model is not finite.")
            return plain
        if isinstance(plain, list):
            return [self(item) for item in plain]
        if not isinstance(plain, dict):
            raise CertificateError("The model holds something that is no value.")
        if set(plain) == {"record", "fields"}:
            return self._from_fields(plain["record"], plain["fields"])
        if len(plain) != 1:
            raise CertificateError("A value of the model has entries that mean nothing.")
        ((label, content),) = plain.items()
        return self._unlabelled(label, content)

    def _unlabelled(self, label: str, content: Any) -> Any:
        match label:
            case "infinite" if content in (1, -1):
                return math.inf * content
            case "tuple":
                return tuple(self(list(content)))
            case "dict":
                return {self(key): self(item) for key, item in content}
            case "features":
                return self._features(content)
            case "basins":
                basins = Basins.__new__(Basins)
                vars(basins).update({name: self(item) for name, item in content.items()})
                return basins
            case "model":
                return self._model(content)
        if label not in _READ_ALONE:
            raise CertificateError(f"The model holds a {label[:40]!r}, which is not known.")
        return _READ_ALONE[label](content)

    def _from_fields(self, kind: Any, fields: Any) -> Any:
        final = _RECORDS.get(kind) if isinstance(kind, str) else None
        if final is None:
            raise CertificateError("The model holds a record that is not known.")
        names = {item.name for item in dataclasses.fields(final) if item.init} - {_SEED}
        if set(fields) != names:
            raise CertificateError(f"A {kind} of the model has unknown or missing entries.")
        return final(**{name: self(item) for name, item in fields.items()})

    def _features(self, content: Any) -> FourierFeatures | SketchFeatures:
        drawn = "signs" if "signs" in content else "frequencies"
        if set(content) - {"kernel"} != {"gamma", "norm", drawn}:
            raise CertificateError("The features of the model have unknown or missing entries.")
        matrix = self(content[drawn])
        if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or not matrix.size:
            raise CertificateError("The frequencies of the model are no matrix.")
        components = matrix.shape[1] if drawn == "signs" else 2 * matrix.shape[1]
        norm, kernel = self(content["norm"]), self(content.get("kernel", "rbf"))
        features = random_features(kernel, content["gamma"], components, norm, Seeds(None))
        if not hasattr(features, drawn):
            raise CertificateError("The features of the model are not those of its kernel.")
        setattr(features, drawn, matrix)
        return features


def _array(content: Any) -> np.ndarray:
    if set(content) != {"kind", "shape", "values"}:
        raise CertificateError("An array of the model has unknown or missing entries.")
    kind, shape, values = content["kind"], content["shape"], content["values"]
    if not _fits_shape(shape, values):
        raise CertificateError("An array of the model has another size than it says.")
    if kind in ("words", "objects"):
        if not all(isinstance(item, str) for item in values):
            raise CertificateError("An array of words holds something else.")
        return np.array(values, dtype=str if kind == "words" else object).reshape(shape)
    if not isinstance(kind, str) or not _NUMBERS.fullmatch(kind):
        raise CertificateError("An array of the model is of a kind that is not known.")
    return _number_array(kind, values).reshape(shape)


def _fits_shape(shape: Any, values: Any) -> bool:
    counted = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    return counted and isinstance(values, list) and math.prod(shape) == len(values)


def _number_array(kind: str, values: list[Any]) -> np.ndarray:
    wanted = np.dtype(kind)
    allowed = {"f": float | int, "b": bool, "i": int, "u": int}[wanted.kind]
    if not all(isinstance(item, allowed) and (wanted.kind == "b" or not isinstance(item, bool)) for item in values):
        raise CertificateError("An array of numbers holds something else.")
    made = np.array(values, dtype=wanted)
    if wanted.kind == "f" and not np.isfinite(made).all():
        raise CertificateError("An array of the model holds a number that is not finite.")
    return made


#: What is read without looking at the rest of the model.
_READ_ALONE: dict[str, Callable[[Any], Any]] = {
    "array": _array,
    "schema": Schema.from_toml,
    "adjacency": Adjacency.from_dict,
    "guarantee": guarantee_from_dict,
    "event": event_from_dict,
}
