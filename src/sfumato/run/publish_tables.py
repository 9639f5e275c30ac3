"""Strategies for table([…], for(…)): every record with noise of its own, the label included.

In:   what is wanted, (ε, δ) of one record.
Out:  the noisy table without identifiers, in an order that its own values decide; noise.json for noise-aware models.
Not here: the releases (release/), how a requirement is split (plan/portions.py).
Proof: docs/proofs/table_release.md, docs/proofs/portions.md

The label is randomised like any other column: its ε is a part of the record's. ε is split over numbers, categories and
label so that the sum of relative squared errors is least; their costs add up by plain composition, (Σε, δ). A record's
error is that sum: σ²/width² for a number, the squared error of the unbiased one-hot estimate for a category
(release/budget.py); it is exact, for the law of the noise is public. Beside other publications a table counts by what
it is read for, means over n records: its loss is a record's error over n.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa

from sfumato.core import Categories, Guarantee, Interval, Schema
from sfumato.core.events.event import Event, Repeated
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import SfumatoError, UnprovedError
from sfumato.plan.act import Act
from sfumato.plan.cell_rules import own_names, renamed
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.kinds.table import TableKind
from sfumato.release import GaussianRelease, LaplaceRelease
from sfumato.release.budget import Share, response_loss, split
from sfumato.release.label import label_act
from sfumato.release.noise import TableNoise
from sfumato.release.synthetic.plans import best_plan
from sfumato.release.table import PreparedTable, TableReleaser
from sfumato.run.publish_base import Performed, Publisher, point_of, under
from sfumato.run.publish_synthetic import synthetic_forecasts

__all__ = ["GaussianTable", "LaplaceTable", "ObfuscatedTable"]

#: Room for the rounding of sums of ε.
_SLACK = 1 - 1e-9
#: Records a second: measured on one core, for the plan's column of seconds alone.
_RECORDS_PER_SECOND = 200_000.0


class TablePublisher(Publisher):
    """Noise of one law on the numbers of a record, random answers for its categories. Abstract."""

    kind: ClassVar[str] = TableKind.functor
    words: ClassVar[str] = (
        "a table with {columns} of each individual. Every number has noise of its own, every category is an answer "
        "drawn at random"
    )

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        noise = self._prepared(wanted.schema, self._parameters(wanted, guarantee), None).noise
        seen, loss = [], 0.0
        for name in wanted.columns:
            one, relative = _seen(name, noise)
            seen.append(one)
            loss += relative
        cells = size * len(wanted.columns)
        note = _rows_instead(wanted, guarantee, size)
        return Prediction(loss / size, tuple(seen), cells / _RECORDS_PER_SECOND, 8 * cells, note)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        return self.act(self, wanted, guarantee, self._parameters(wanted, guarantee))

    def events_of(self, act: Act) -> tuple[Event | Repeated, ...]:
        adjacency = act.guarantee.adjacency
        assert adjacency is not None
        events = self._prepared(Schema.from_toml(act.parameters["schema"]), act.parameters, None).events
        return tuple(under(event, adjacency) for event in events)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        declared, target = Schema.from_toml(act.parameters["schema"]), act.parameters["target"]
        names = own_names(list(declared.columns), act.parameters.get("cells", {}))
        schema, label = renamed(declared, names), names.get(target, target)
        prepared = self._prepared(schema, {**act.parameters, "target": label}, random_state)
        published = prepared.apply(table.select(list(declared.columns)).rename_columns(list(schema.columns)))
        adjacency = act.guarantee.adjacency
        assert adjacency is not None
        events = tuple(under(event, adjacency) for event in prepared.events)
        proofs = ("table_release", *dict.fromkeys(event.proof_id() for event in events))
        notes = (*prepared.notes, "The table names nobody, and the order of its rows follows from their noisy values.")
        return Performed(reordered(published), {"noise.json": prepared.noise.to_json() + "\n"}, events, proofs, notes)

    def _prepared(self, schema: Schema, parameters: Any, random_state: int | None) -> PreparedTable:
        """The release of the features, and the label answered at random beside it: the whole record is protected."""
        label, epsilon = parameters["target"], parameters["label_epsilon"]
        features = self._release(schema.without([label]) if label else schema, parameters, random_state).prepare()
        act = label_act(schema, label, epsilon, random_state)
        if act is None:
            return features
        note = f"{label} is randomised with ε = {epsilon:.4g} of its own, a part of the record's ε."
        return dataclasses.replace(
            features, schema=schema, acts=(*features.acts, act), label=label, notes=(*features.notes, note)
        )

    @abstractmethod
    def _parameters(self, wanted: Wanted, guarantee: Guarantee) -> dict[str, Any]:
        """How ε is split."""

    @abstractmethod
    def _release(self, schema: Schema, parameters: Any, random_state: int | None) -> TableReleaser:
        """The release of the features."""


def _rows_instead(wanted: Wanted, guarantee: Guarantee, size: float) -> str:
    """What synthetic rows of these columns would reach for the same promise: for whoever may trust the publisher."""
    if not point_of(guarantee)[1]:
        return ""
    try:
        best = best_plan(synthetic_forecasts(wanted, guarantee, size))
    except SfumatoError:  # too many levels, say: then they are no way out
        return ""
    return f"synthetic rows of the same columns would reach {best}" if best.known else ""


def _features(wanted: Wanted) -> tuple[list[str], list[str]]:
    """Numbers and categories beside the label."""
    columns = {
        name: domain for name, domain in zip(wanted.columns, wanted.domains, strict=True) if name != wanted.target
    }
    numbers = [name for name, domain in columns.items() if isinstance(domain, Interval)]
    return numbers, [name for name in columns if name not in numbers]


def _label_taker(wanted: Wanted) -> list[Share]:
    if wanted.target is None:
        return []
    if isinstance(wanted.target_domain, Categories):
        size = wanted.classes
        return [Share("label", lambda e: response_loss(size, e), lambda e: e)]
    return [Share("label", lambda e: 2 / e**2, lambda e: e)]


@final
class GaussianTable(TablePublisher):
    """Gaussian noise of least total relative variance on the numbers, random answers for categories and label."""

    name: ClassVar[str] = "gaussian"

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if not point_of(guarantee)[1]:
            return "Gaussian noise needs a δ, and none is promised"
        numbers, _ = _features(wanted)
        return None if numbers else "no column beside the label is a number"

    def _parameters(self, wanted: Wanted, guarantee: Guarantee) -> dict[str, Any]:
        epsilon, delta = point_of(guarantee)
        numbers, categories = _features(wanted)
        mu_of = _interpolated_mu(delta)
        squares = len(numbers) ** 2
        takers = [Share("numbers", lambda e: squares / mu_of(e) ** 2, lambda e: e), *_label_taker(wanted)]
        if categories:
            count = len(categories)
            sizes = [len(wanted.schema.columns[name].values) for name in categories]  # type: ignore[union-attr]
            takers.append(
                Share("categories", lambda e: np.sum([response_loss(k, e / count) for k in sizes], axis=0), lambda e: e)
            )
        shares = split(takers, epsilon * _SLACK)
        mu = gaussian_mu(shares["numbers"], delta)
        return {
            "target": wanted.target,
            "deviation": math.sqrt(len(numbers)) / mu * (1 + 2.0**-10),  # of each number, in widths; grid included
            "category_epsilon": shares.get("categories"),
            "label_epsilon": shares.get("label"),
        }

    def _release(self, schema: Schema, parameters: Any, random_state: int | None) -> GaussianRelease:
        errors = {
            name: (domain.width * parameters["deviation"]) ** 2
            for name, domain in schema.columns.items()
            if isinstance(domain, Interval)
        }
        categories = parameters["category_epsilon"]
        return GaussianRelease(schema, adversary_error=errors, category_epsilon=categories, random_state=random_state)


@final
class LaplaceTable(TablePublisher):
    """Laplace noise on every number, random answers for categories and label: a pure ε, whatever δ is promised."""

    name: ClassVar[str] = "laplace"

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        return None if any(_features(wanted)) else "there is no column beside the label"

    def _parameters(self, wanted: Wanted, guarantee: Guarantee) -> dict[str, Any]:
        epsilon = point_of(guarantee)[0] * _SLACK
        label = _label_taker(wanted)
        if not label:
            return {"target": None, "epsilon": epsilon, "label_epsilon": None}
        numbers, categories = _features(wanted)
        takers = [Share(name, lambda e: 2 / e**2, lambda e: e) for name in numbers]
        for name in categories:
            size = len(wanted.schema.columns[name].values)  # type: ignore[union-attr]
            takers.append(Share(name, lambda e, k=size: response_loss(k, e), lambda e: e))
        shares = split([*takers, *label], epsilon)
        rest = (epsilon - shares["label"]) * _SLACK
        return {"target": wanted.target, "epsilon": rest, "label_epsilon": shares["label"]}

    def _release(self, schema: Schema, parameters: Any, random_state: int | None) -> LaplaceRelease:
        return LaplaceRelease(schema, epsilon=parameters["epsilon"], random_state=random_state)


@final
class ObfuscatedTable(Publisher):
    """ObfuscatedRelease keeps statistics of the table exactly and promises nothing: listed, never chosen."""

    name: ClassVar[str] = "obfuscation"
    kind: ClassVar[str] = TableKind.functor

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        return "it has no guarantee, and the study promises one"

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        raise UnprovedError(_UNPROVED)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        raise UnprovedError(_UNPROVED)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        raise UnprovedError(_UNPROVED)


_UNPROVED = "Obfuscation has no guarantee: use ObfuscatedRelease directly, for comparison. Nothing was spent."


def _interpolated_mu(delta: float) -> Callable[[np.ndarray], np.ndarray]:
    """μ of (ε, δ) for many ε at once: on a grid, to guide the split; what is used is computed exactly."""
    grid = np.geomspace(1e-4, 80.0, 64)
    values = np.log([gaussian_mu(float(epsilon), delta) for epsilon in grid])
    return lambda epsilon: np.exp(np.interp(np.log(epsilon), np.log(grid), values))


def _seen(name: str, noise: TableNoise) -> tuple[Seen, float]:
    """One column as it will be seen, and its relative squared error."""
    if name in noise.responses:
        response = noise.responses[name]
        count = len(response.values)
        epsilon = math.log(response.keep * (count - 1) / (1 - response.keep))
        note = (
            f"A category: kept with probability {response.keep:.3g}, otherwise any other. The error is that of 0 or 1."
        )
        return Seen(name, 1 - response.keep, 1.0, 1, note, basis="answer"), float(
            response_loss(count, np.array(epsilon))
        )
    law = noise.laws[noise.columns.index(name)]
    width = noise.schema.columns[name].width  # type: ignore[union-attr]
    half_width = law.deviations_95 * math.sqrt(law.variance())
    note = "Of one record; means over many records are far more exact, see noise.json."
    return Seen(name, law.variance(), half_width, 1, note), law.variance() / width**2


def reordered(table: pa.Table) -> pa.Table:
    """The rows in an order that is a function of their published values alone: whose row came first cannot be seen.

    By a hash of each row, so that the order looks random and halves of the table are alike.

    >>> first = reordered(pa.table({"x": [1.5, 2.5, 3.5], "y": ["a", "b", "a"]}))
    >>> first.equals(reordered(pa.table({"x": [3.5, 1.5, 2.5], "y": ["a", "a", "b"]})))
    True
    """
    mixed = np.zeros(table.num_rows, dtype=np.uint64)
    for column in table.columns:
        if pa.types.is_floating(column.type):
            words = np.ascontiguousarray(column.to_numpy(), dtype=np.float64).view(np.uint64)
        else:
            levels = [_word(value) for value in column.unique().to_pylist()]
            places = column.combine_chunks().dictionary_encode().indices.to_numpy()
            words = np.array(levels, dtype=np.uint64)[places]
        mixed = _mix(mixed ^ words)
    return table.take(pa.array(np.argsort(mixed, kind="stable")))


def _word(value: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:8], "little")


def _mix(words: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
