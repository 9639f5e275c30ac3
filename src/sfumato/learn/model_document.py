"""Published models as plain JSON: written once, read and used without any private data and without a pickle.

In:   a fitted estimator of learn/, or the text it became.
Out:  the document; PublishedModel with `predict` for tables that have the named columns.
Not here: training (learn/), estimators as files (learn/saving.py), what a study publishes (run/publish_learning.py).

A document holds what was released and nothing else: noisy weights, public frequencies, the schema, the labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.card import Card, Shown
from sfumato.core import MeasuredGap, Schema
from sfumato.core.tables import as_arrow
from sfumato.core.whole_file import write_whole_file
from sfumato.errors import InputError
from sfumato.learn import EquilibriumClassifier, KernelClassifier, PrivateLinearRegression, PrivateSVDD
from sfumato.learn.asked import as_fitted
from sfumato.learn.base import PrivateLinearClassifier
from sfumato.learn.class_points import nearest_labels
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.fair import drawn_answers
from sfumato.learn.rows import UnitRows
from sfumato.learn.stepped import SteppedClassifier
from sfumato.learn.table import label_above_zero

__all__ = ["FORMAT", "PublishedModel", "load_model", "model_document", "model_from_text"]

#: What the field "format" of a document says.
FORMAT = "sfumato model"
_VERSION = 1


@dataclass(frozen=True)
class PublishedModel(Shown):
    """A model as it was published. Made by `load_model`.

    Tables are dicts of columns, pandas, polars or Arrow; columns have the names the schema gives them, such as age(P),
    or those of `also`: the names of the study's own columns. Absent and unlisted cells count as the study says.
    """

    kind: str
    strategy: str
    target: str | None
    classes: tuple[Any, ...]
    schema: Schema
    rule: Mapping[str, Any] = field(repr=False)
    guarantee: str = ""
    notes: tuple[str, ...] = ()
    #: Of a rule that treats groups alike: what was measured, the share of its own answers, the constant.
    fairness: Mapping[str, Any] | None = field(default=None, repr=False)
    #: By the schema's name another that a column may have in a table.
    also: Mapping[str, str] = field(default_factory=dict)

    def _card(self) -> Card:
        facts = {"promise": self.guarantee, "by": self.strategy}
        facts |= {"predicts": self.target} if self.target else {}
        facts |= {"classes": ", ".join(map(str, self.classes))} if self.classes else {}
        label = label_above_zero(self.classes or None)
        facts |= {"a score above 0": f"speaks for {label}"} if label is not None else {}
        return Card(f"A published {self.kind}", facts, notes=self.notes)

    def to_text(self) -> str:
        """The document, as a run writes it: plain JSON."""
        record = {
            "format": FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "strategy": self.strategy,
            "target": self.target,
            "classes": list(self.classes),
            "schema": self.schema.to_toml(),
            "rule": dict(self.rule),
            "guarantee": self.guarantee,
            "notes": list(self.notes),
            **({"fairness": dict(self.fairness)} if self.fairness is not None else {}),
            **({"also": dict(self.also)} if self.also else {}),
        }
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write it to a file; `sfumato.learn.load` reads it back. Its certificate is that of the release."""
        write_whole_file(path, self.to_text())

    def decision_function(self, table: Any) -> np.ndarray:
        """Scores: of the second of two `classes`, of each of several, of being typical; for a regression its number.

        `classes` are in the order of their values, which is not that in which a study declares them.
        """
        rows = self._encoded(table)
        match self.rule["type"]:
            case "linear":
                shaped = UnitRows(rows, self.rule["norm"], self.rule["constant"])
                scores = np.stack([shaped.times(weights) for weights in self._array("weights")], axis=1)
            case "features":
                features = self._features(rows)
                weights = self._array("weights")
                if weights.ndim == 3:
                    scores = np.stack([((features @ one) * features).sum(axis=1) for one in weights], axis=1)
                else:
                    scores = features @ weights.T
            case kind:
                raise InputError(f"A model by {kind} has labels and no scores: use predict.")
        return self._read(scores)

    def _read(self, scores: np.ndarray) -> np.ndarray:
        if "middle" in self.rule:
            return self.rule["middle"] + self.rule["half"] * scores[:, 0]
        if "offset" in self.rule:
            return scores[:, 0] - self.rule["offset"]
        if self.rule["type"] == "features" and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, table: Any) -> np.ndarray:
        """Labels; for a regression numbers; for outliers 1 where a row is typical and -1 where it is not."""
        if self.fairness is not None:
            return drawn_answers(self.chances(table), self._answers())
        return self._own(table)

    def chances(self, table: Any) -> np.ndarray:
        """The chance of a yes, the second label as it was declared: that treats groups alike; draw answers by it."""
        if self.fairness is None:
            raise InputError("This model was not asked to be fair: use predict.")
        own = (self._own(table) == np.asarray(self._answers())[1]).astype(float)
        share = float(self.fairness["share"])
        return share * own + (1 - share) * int(self.fairness["constant"])

    def _answers(self) -> Sequence[Any]:
        """No and yes of a fair rule, as they were declared; documents of before list classes alone."""
        assert self.fairness is not None
        return self.fairness.get("labels", self.classes)

    def _own(self, table: Any) -> np.ndarray:
        if self.rule["type"] == "points":
            return self._by_points(self._encoded(table))
        scores = self.decision_function(table)
        if "middle" in self.rule:
            return scores
        if "offset" in self.rule:
            return np.where(scores < 0, -1, 1)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes)[chosen]

    def _encoded(self, table: Any) -> np.ndarray:
        found = as_arrow(table, self.schema, extra="ignore", also=self.also)
        return SchemaEncoder(self.schema, extra="ignore").fit(None).transform(found)

    def _by_points(self, rows: np.ndarray) -> np.ndarray:
        points, labels = self._array("points"), np.asarray(self.rule["labels"], dtype=int)
        chosen = nearest_labels(points, labels, rows, int(self.rule["neighbours"]), len(self.classes))
        return np.asarray(self.classes)[chosen]

    def _array(self, name: str) -> np.ndarray:
        return np.asarray(self.rule[name], dtype=np.float64)

    def _features(self, rows: np.ndarray) -> np.ndarray:
        frequencies = self._array("frequencies")
        phases = rows @ frequencies
        return np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(frequencies.shape[1])


def load_model(path: str | Path) -> PublishedModel:
    """The model in a file of results/; nothing in it is executed."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the model cannot be read: {error}.") from error
    return model_from_text(text)


def model_from_text(text: str) -> PublishedModel:
    """A published model read back from its JSON text."""
    try:
        record = json.loads(text)
        if record["format"] != FORMAT or record["version"] != _VERSION:
            raise InputError(f"This model has another format or version; this sfumato reads {FORMAT} {_VERSION}.")
        return PublishedModel(
            record["kind"],
            record["strategy"],
            record["target"],
            tuple(record["classes"]),
            Schema.from_toml(record["schema"]),
            record["rule"],
            record["guarantee"],
            tuple(record["notes"]),
            record.get("fairness"),
            {str(name): str(other) for name, other in record.get("also", {}).items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"This is not a published model: {error}.") from error


def model_document(
    kind: str,
    strategy: str,
    target: str | None,
    model: Any,
    notes: tuple[str, ...],
    measured: MeasuredGap | None = None,
    also: Mapping[str, str] | None = None,
    labels: Sequence[Any] = (),
) -> str:
    """The text of a fitted estimator; `also` are other names of its columns, `labels` no and yes of a fair rule."""
    classes = [value.item() if isinstance(value, np.generic) else value for value in getattr(model, "classes_", ())]
    rule, promise = _rule(model), str(model.guarantee_)
    fair = None if measured is None else {**measured.to_dict(), "labels": list(labels)}
    made = PublishedModel(
        kind, strategy, target, tuple(classes), as_fitted(model).schema, rule, promise, notes, fair, dict(also or {})
    )
    return made.to_text()


def _rule(model: Any) -> dict[str, Any]:
    """What predictions are computed from; every number of it was released or is public."""
    match model := as_fitted(model):
        case PrivateLinearClassifier() | SteppedClassifier() | PrivateLinearRegression():
            return model.rule()
        case KernelClassifier():
            return {
                "type": "features",
                "frequencies": _frequencies(model.features_),
                "weights": model.weights_.tolist(),
            }
        case PrivateSVDD():
            frequencies, weights = _frequencies(model.features_), [model.centre_.tolist()]
            return {"type": "features", "frequencies": frequencies, "weights": weights, "offset": float(model.offset_)}
        case EquilibriumClassifier() if model.publish == "points":
            points, labels = model.points_.tolist(), model.point_labels_.tolist()
            return {"type": "points", "points": points, "labels": labels, "neighbours": int(model.n_neighbors)}
        case EquilibriumClassifier():
            support: Any = model.support_  # of classes, or of one region that has no weights
            frequencies, weights = _frequencies(support.features_), support.weights_.tolist()
            return {"type": "features", "frequencies": frequencies, "weights": weights}
    raise InputError(f"A {type(model).__name__} has no plain form.")


def _frequencies(features: Any) -> list[list[float]]:
    return features.frequencies.tolist()
