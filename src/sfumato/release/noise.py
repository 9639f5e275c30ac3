"""The published noise law of a released table: everything a reader may use to correct for it.

In:   the schema, the covariance of the additive noise, the odds of randomised answers.
Out:  TableNoise, serialisable, without a trace of the data.
Not here: how the noise was chosen or drawn (the release classes), how to use it (release/aware_*.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.noise import BoxNoise, GaussianNoise, LaplaceNoise, Noise, SummedNoise
from sfumato.core.schema import Schema
from sfumato.errors import InputError

__all__ = ["ResponseNoise", "TableNoise"]

_LAWS: dict[str, type[Noise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
    "box": BoxNoise,
    "sum of boxes": SummedNoise,
}


@dataclass(frozen=True)
class ResponseNoise:
    """Randomised answers: the true category stays with probability `keep`, else one of the others, all alike.

    >>> ResponseNoise(("no", "yes"), 0.75).matrix
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """

    values: tuple[Any, ...]
    keep: float

    @property
    def matrix(self) -> np.ndarray:
        """P[published | true], true categories down the rows."""
        size = len(self.values)
        move = (1 - self.keep) / (size - 1) if size > 1 else 0.0
        return np.full((size, size), move) + np.eye(size) * (self.keep - move)


@dataclass(frozen=True)
class TableNoise:
    """What was added to which column, in the column's own unit.

    `columns` are the numeric columns with additive noise and `covariance` their joint covariance; `laws` gives each
    column's marginal law. `responses` are the randomised categorical columns (and the label, if `label` is randomised);
    columns in neither were published as they are. `clipped` says that noisy values were put back into the public range,
    which makes the published noise depend on the value. `shifts` are the means of noise that is not centred, by column.
    """

    schema: Schema
    columns: tuple[str, ...]
    laws: tuple[Noise, ...]
    covariance_rows: tuple[tuple[float, ...], ...]
    responses: Mapping[str, ResponseNoise] = field(default_factory=dict)
    label: str | None = None
    clipped: bool = False
    shifts: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        size = len(self.columns)
        if len(self.laws) != size or np.shape(self.covariance) != (size, size):
            raise InputError("A noise law needs one marginal and one covariance row for each column.")

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the additive noise over `columns`."""
        size = len(self.columns)
        return np.array(self.covariance_rows, dtype=float).reshape(size, size)

    def covariance_of(self, columns: Sequence[str]) -> np.ndarray:
        """The same over any columns, zero for those published without additive noise.

        >>> from sfumato.core import Interval
        >>> noise = TableNoise(Schema({"age": Interval(0, 100)}), ("age",), (GaussianNoise(2.0),), ((4.0,),))
        >>> noise.covariance_of(["height", "age"])
        array([[0., 0.],
               [0., 4.]])
        """
        result = np.zeros((len(columns), len(columns)))
        known = {name: position for position, name in enumerate(self.columns)}
        here = [position for position, name in enumerate(columns) if name in known]
        there = [known[columns[position]] for position in here]
        result[np.ix_(here, here)] = self.covariance[np.ix_(there, there)]
        return result

    @classmethod
    def independent(
        cls,
        schema: Schema,
        laws: Mapping[str, Noise],
        responses: Mapping[str, ResponseNoise] | None = None,
        label: str | None = None,
        clipped: bool = False,
    ) -> TableNoise:
        """Noise drawn independently for every column."""
        rows = np.diag([law.variance() for law in laws.values()])
        covariance = tuple(tuple(float(cell) for cell in row) for row in rows)
        return cls(schema, tuple(laws), tuple(laws.values()), covariance, dict(responses or {}), label, clipped)

    def to_json(self) -> str:
        return json.dumps(
            {
                "columns": list(self.columns),
                "laws": [_law_record(law) for law in self.laws],
                "covariance": [list(row) for row in self.covariance_rows],
                "responses": {k: {"values": list(v.values), "keep": v.keep} for k, v in self.responses.items()},
                "label": self.label,
                "clipped": self.clipped,
                **({"shifts": dict(self.shifts)} if self.shifts else {}),
                "schema": self.schema.to_toml(),
            },
            ensure_ascii=False,
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> TableNoise:
        """The noise law that `to_json` wrote."""
        try:
            record = json.loads(text)
            return cls(
                Schema.from_toml(record["schema"]),
                tuple(record["columns"]),
                tuple(_law(item) for item in record["laws"]),
                tuple(tuple(row) for row in record["covariance"]),
                {k: ResponseNoise(tuple(v["values"]), v["keep"]) for k, v in record["responses"].items()},
                record["label"],
                record["clipped"],
                {str(name): float(shift) for name, shift in record.get("shifts", {}).items()},
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise InputError(f"This is not the noise law of a released table: {error}.") from error


def _law_record(law: Noise) -> dict[str, Any]:
    name = next(name for name, kind in _LAWS.items() if type(law) is kind)
    return {"law": name, **{key: value for key, value in vars(law).items() if not key.startswith("_")}}


def _law(record: dict[str, Any]) -> Noise:
    fields: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in record.items()}
    return _LAWS[fields.pop("law")](**fields)
