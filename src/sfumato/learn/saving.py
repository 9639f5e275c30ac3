"""Models as files: what may be published of a fitted estimator, with its certificate, in JSON.

In:   a fitted estimator, or a file that somebody handed on.
Out:  `save_model`, `load`: the same predictions, the same certificate; nothing is executed.
Not here: what may be published (learn/published.py), plain values (learn/plain_values.py), checking a certificate by
      another road (evidence/verify.py).

    {"sfumato_model": 1, "class": …, "parameters": {…}, "fitted": {…}, "certificate": {…}, "digest": …}

A file is data: class names come from a list, values are numbers, words, arrays and a few records. `load` refuses what
is too large, not a number, not known or not consistent, derives the certificate again from what it read, and compares.
The digest tells of careless edits, not of a forger.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.core.certificate import Certificate
from sfumato.core.domain import Interval
from sfumato.core.whole_file import write_whole_file
from sfumato.errors import CertificateError, SfumatoError, UnprovedError
from sfumato.learn.asked import OF_THE_SESSION, as_fitted, keep_parameters
from sfumato.learn.plain_values import ValueReader, as_plain
from sfumato.learn.published import published_names, refuse_unpublishable, withheld_names

__all__ = ["load", "save_model"]

_VERSION = 1
#: A larger file is refused unless the caller says how large it may be.
_MOST_BYTES = 1 << 28
_MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write what may be published of a fitted estimator, with its certificate; a crash leaves no half file."""
    check_is_fitted(estimator, "guarantee_")
    refuse_unpublishable(estimator, "saved")
    if estimator.is_best_of_many:
        raise UnprovedError(
            "This model is the best of several runs by random stopping. Its certificate would state the cost of one "
            "run, and the verifier cannot re-derive the cost of all: it is not saved. Use "
            "PrivateSearch(scheme='split'). Nothing was written."
        )
    record = _record(estimator)
    record["certificate"] = json.loads(estimator.certificate_.to_json())
    record = {"sfumato_model": _VERSION, **record}
    write_whole_file(path, _dump({**record, "digest": _digest(record)}) + "\n")


def load(path: str | os.PathLike[str], *, most_bytes: int = _MOST_BYTES) -> Any:
    """The fitted estimator in a file that `save` wrote; CertificateError if it is not whole or not consistent.

    A model that a study published comes back as it was, a PublishedModel; its certificate is that of the release.

    >>> import tempfile
    >>> from sfumato.learn import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 2))
    >>> model = PrivateLogisticRegression(1.0, 1e-6).fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.json")
    ...     again = load(f"{folder}/model.json")
    >>> bool((again.predict(X) == model.predict(X)).all()), again.guarantee_ == model.guarantee_
    (True, True)
    """
    model, refusal = None, ""
    try:
        text = _text(path, most_bytes)
        if (published := _of_a_study(text)) is not None:
            return published
        model, stated = _read(text)
        _check_certificate(model, stated)
        _check_answers(model)
    except CertificateError:
        raise
    except (SfumatoError, *_MALFORMED) as error:
        refusal = f"{type(error).__name__}: {error}"[:300]
    if refusal:
        raise CertificateError(f"{os.fspath(path)}: this is not a model that sfumato saved ({refusal}).")
    return model


def _of_a_study(text: str) -> Any | None:
    """The model of a study's release, whose certificate covers everything that was published with it."""
    from sfumato.learn.model_document import FORMAT, model_from_text  # it imports the estimators, which import this

    record = json.loads(text)
    return model_from_text(text) if isinstance(record, dict) and record.get("format") == FORMAT else None


def _text(path: str | os.PathLike[str], most_bytes: int) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise CertificateError(f"{os.fspath(path)}: the model cannot be read: {error}.") from error
    if len(content) > most_bytes:
        raise CertificateError(
            f"{os.fspath(path)}: larger than {most_bytes} bytes. Pass load(path, most_bytes=…) if you trust it."
        )
    return content.decode("utf-8")


def _record(estimator: Any) -> dict[str, Any]:
    parameters = as_fitted(estimator).get_params(deep=False)
    return {
        "class": type(estimator).__name__,
        "parameters": {
            name: as_plain(value, _record) for name, value in sorted(parameters.items()) if name not in OF_THE_SESSION
        },
        "fitted": {
            name: as_plain(getattr(estimator, name), _record)
            for name in (published_names(estimator) if "guarantee_" in vars(estimator) else _parts(estimator))
        },
    }


def _parts(estimator: Any) -> list[str]:
    """What an estimator inside another one was given by it; nothing for one that was never fitted."""
    own = {*estimator.get_params(), *withheld_names(estimator)}
    return sorted(name for name in vars(estimator) if name.endswith("_") and name not in own)


def _read(text: str) -> tuple[Any, Certificate]:
    record = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    _exactly(record, {"sfumato_model", "class", "parameters", "fitted", "certificate", "digest"})
    if type(record["sfumato_model"]) is not int or record["sfumato_model"] != _VERSION:
        raise CertificateError(f"This model was written in form {record['sfumato_model']!r}; form {_VERSION} is read.")
    stated = record.pop("digest")
    if stated != _digest(record):
        raise CertificateError("The model was changed after it was saved: its digest does not hold.")
    certificate = Certificate.from_json(_dump(record["certificate"]))
    return _model({name: record[name] for name in ("class", "parameters", "fitted")}), certificate


def _estimator(name: Any) -> Any:
    from sfumato import learn

    kind = getattr(learn, name) if isinstance(name, str) and name in learn.__all__ else None
    if not inspect.isclass(kind) or not issubclass(kind, learn.PrivateEstimator):
        raise CertificateError(f"The class {str(name)[:60]!r} is not an estimator of this sfumato.")
    return kind


def _model(record: Any) -> Any:
    _exactly(record, {"class", "parameters", "fitted"})
    kind = _estimator(record["class"])
    names = set(inspect.signature(kind.__init__).parameters) - {"self"}
    _exactly(record["parameters"], names - OF_THE_SESSION)
    read = ValueReader(_model)
    given = {name: read(value) for name, value in record["parameters"].items()}
    model = kind(**given, **({"random_state": None} if "random_state" in names else {}))
    for name, value in record["fitted"].items():
        if name in names or name.startswith("__"):
            raise CertificateError(f"{str(name)[:60]!r} is no fitted attribute.")
        setattr(model, name, read(value))
    if "guarantee_" in record["fitted"]:
        published_names(model)  # refuses names that no fit sets
        keep_parameters(model)
    return model


def _check_certificate(model: Any, stated: Certificate) -> None:
    """The certificate is whole, and is the one that this model's own events give; its notes may be in older words."""
    if not stated.is_whole:
        raise CertificateError("The certificate of the model does not hold: it was edited.")
    own = replace(
        model.certificate_, created=stated.created, versions=stated.versions, notes=stated.notes, digest=stated.digest
    )
    if own != stated:
        raise CertificateError("The certificate is not that of this model.")


def _check_answers(model: Any) -> None:
    """It can be asked: one row of zeros, or of the lowest values of its schema, gives one finite answer."""
    model = getattr(model, "best_estimator_", model)
    with np.errstate(all="ignore"):
        answer = np.asarray(model.predict(_one_row(model)))
    if answer.shape != (1,) or (answer.dtype.kind == "f" and not np.isfinite(answer).all()):
        raise CertificateError("The model does not answer.")


def _one_row(model: Any) -> Any:
    schema = getattr(model, "schema", None)
    if schema is not None:
        return {
            name: [domain.low if isinstance(domain, Interval) else domain.values[0]]
            for name, domain in schema.columns.items()
        }
    width = model.n_features_in_
    if type(width) is not int or not 0 < width <= 10**7:
        raise CertificateError("The number of columns is not one.")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (names.ndim != 1 or len(names) != width):
        raise CertificateError("The names of the columns do not fit their number.")
    return np.zeros((1, width)) if names is None else _named(names)


def _named(names: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(np.zeros((1, len(names))), columns=list(names))


def _exactly(record: Any, names: set[str]) -> None:
    if not isinstance(record, dict) or set(record) != names:
        raise CertificateError("This is not a model that sfumato saved: entries are unknown or missing.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise CertificateError("This is not a model that sfumato saved: an entry is given twice.")
    return dict(pairs)


def _no_number(word: str) -> float:
    raise CertificateError(f"This is not a model that sfumato saved: {word} is no number.")


def _dump(record: Any) -> str:
    return json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _digest(record: Any) -> str:
    return hashlib.sha256(_dump(record).encode()).hexdigest()
