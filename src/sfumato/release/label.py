"""What happens to the label: published as it is, and said so, or randomised with a budget of its own.

In:   the schema, the label's name, its ε.
Out:  an act or None, and the sentences that belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sfumato.core.compose import compose
from sfumato.core.domain import Categories
from sfumato.core.guarantee import Guarantee, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError, SchemaError
from sfumato.mechanisms import Laplace, RandomizedResponse
from sfumato.release.acts import AdditiveColumn, ColumnAct, Respond, events_of, interval
from sfumato.release.table import RECORD, PreparedTable, protected

__all__ = ["label_act", "label_notes", "with_label"]


def label_act(schema: Schema, label: str | None, epsilon: float | None, random_state: int | None) -> ColumnAct | None:
    """Randomised response for a category, Laplace noise for a number, nothing where no ε was given."""
    if epsilon is None:
        return None
    if label is None:
        raise PrivacyParameterError("label_epsilon was given without a label: say label='column'.")
    wanted = PureDP(epsilon)
    domain = schema.columns[label]
    if isinstance(domain, Categories):
        if len(domain.values) < 2:
            raise SchemaError(f"The label {label} has a single category: there is nothing to learn or to hide.")
        size = len(domain.values)
        return Respond(
            label, RandomizedResponse.for_guarantee(wanted, 1.0, RECORD, categories=size, random_state=random_state)
        )
    width = interval(schema, label).width
    noise = Laplace.for_guarantee(wanted, width, RECORD, dimension=1, random_state=random_state)
    return AdditiveColumn(label, noise)


class Labelled(Protocol):
    """What the release classes with a label say."""

    @property
    def schema(self) -> Schema: ...
    @property
    def label(self) -> str | None: ...
    @property
    def label_epsilon(self) -> float | None: ...
    @property
    def clip(self) -> bool: ...
    @property
    def random_state(self) -> int | None: ...


def with_label(
    release: Labelled, acts: Sequence[ColumnAct], noise: str, plan: dict[str, Any], notes: Sequence[str] = ()
) -> PreparedTable:
    """The table with these acts on its features, and what happens to its label."""
    label = label_act(release.schema, release.label, release.label_epsilon, release.random_state)
    features = compose(events_of(acts))
    return PreparedTable(
        schema=release.schema,
        acts=(*acts, *([label] if label else [])),
        label=release.label,
        label_is_raw=protected(release.label, release.label_epsilon) != RECORD,
        clip=release.clip,
        subject=f"a table of {len(release.schema.columns)} columns, every record with {noise} noise",
        plan=plan,
        notes=(*notes, *label_notes(release.label, release.label_epsilon, features)),
        publishable=release.random_state is None,
    )


def label_notes(label: str | None, epsilon: float | None, features: Guarantee) -> tuple[str, ...]:
    """What is promised about the label, in words."""
    if label is None:
        return ()
    if epsilon is None:
        return (
            f"The label {label} is published as it is: the guarantee covers the features of a record only. "
            "Say label_epsilon=… to protect the whole record.",
        )
    return (f"Features alone: {features.describe()}; label alone: {epsilon:g}-DP; the guarantee is for both together.",)
