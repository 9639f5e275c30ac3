"""StudyRelease: what was published, by the names of the questions.

In:   the Release of a run and the plan behind it.
Out:  one tidy table a publication, models ready to predict, certificates, a picture with intervals.
Not here: drawing and charging (run/study.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sfumato.card import Card, Shown
from sfumato.core.certificate import Certificate
from sfumato.errors import InputError
from sfumato.lang.term import show
from sfumato.network.network import Network
from sfumato.plan.cell_rules import own_names, renamed
from sfumato.run.study_files import Published, Release
from sfumato.study.naming import keys_of, table_of
from sfumato.study.tidy import Tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.learn.model_document import PublishedModel
    from sfumato.study.planned import StudyPlan

__all__ = ["StudyRelease"]

#: Publications that a notebook shows at once; the others are named.
_SHOWN = 12
_NUMBERS = ("value", "standard_error", "low", "high")
_FOR_PREDICTING = (
    "Numbers of a model are for predicting and not for reading off an effect: noise and a ridge draw coefficients "
    "towards 0, and they carry no interval."
)


@dataclass(frozen=True, repr=False)
class StudyRelease(Shown):
    """What was published. From here on everything is post-processing and costs nothing."""

    planned: StudyPlan
    release: Release = field(repr=False)

    def __getitem__(self, key: str | tuple[str, str]) -> Tidy:
        """The numbers of a publication, or of a (publication, reader) where several readers have a version."""
        one = self._published(key)
        told = _FOR_PREDICTING if one.values.column_names == ["part", "value"] else ""
        return Tidy(self._tidied(one), f"{one.name}, for {one.observer}", caution=told)

    def _published(self, key: str | tuple[str, str]) -> Published:
        try:
            return self.release.publication(key)
        except InputError:
            wanted = key[0] if isinstance(key, tuple) else key
            known = ", ".join(repr(one.name) for one in self.release.published)
            versions = [repr((one.name, one.observer)) for one in self.release.published if one.name == wanted]
            if len(versions) > 1:
                raise InputError(
                    f"{wanted!r} has a version for each reader: ask for {' or '.join(versions)}."
                ) from None
            raise InputError(f"{wanted!r} was not published. There are: {known}.") from None

    def _tidied(self, one: Published) -> Any:
        network = self.planned.plan.network
        assert network is not None  # it was run
        named = {show(column.atom): column.name for column in network.spec.columns}
        if one.values.column_names[:2] != ["node", "part"]:
            return one.values.rename_columns([named.get(name, name) for name in one.values.column_names])
        about = [name for name in one.values.column_names if name not in ("node", "part", *_NUMBERS)]
        listed = one.values.to_pylist()
        numbers = [{name: row[name] for name in (*_moments(about), *_NUMBERS)} for row in listed]
        keys = _keys(network, listed, {name: str(named.get(name, name)) for name in about})
        return table_of(list(zip(keys, numbers, strict=True)))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter([(one.name, one.observer) for one in self.release.published])

    def __len__(self) -> int:
        return len(self.release.published)

    def model(self, key: str | tuple[str, str]) -> PublishedModel:
        """A published classifier, regression or outlier detector, ready to predict from the study's own columns."""
        self._published(key)
        found = self.release.model(key)
        network = self.planned.plan.network
        assert network is not None  # it was run
        names = {show(column.atom): column.name for column in network.spec.columns}
        cells = {name: {"column": own} for name, own in names.items()}
        own = own_names(list(found.schema.columns), cells)
        target = names.get(found.target, found.target) if found.target else found.target
        also = {other: name for name, other in own.items()}
        return replace(found, schema=renamed(found.schema, own), target=target, also=also)

    @property
    def certificate(self) -> Certificate:
        """Of everything together; anybody can check it without the data: sfumato.verify."""
        return self.release.certificate

    @property
    def certificates(self) -> Mapping[str, Certificate]:
        """Of everything, and of what each reader sees."""
        return self.release.certificates

    def plot(self) -> Figure:
        """Every published number with its 95 % interval, one panel a publication."""
        from sfumato.study.plots import release_figure

        return release_figure(self)

    def _card(self) -> Card:
        rows = [[name, reader, len(self.release.publication((name, reader)).values)] for name, reader in self]
        facts = {name: str(one.guarantee) for name, one in self.certificates.items()}
        head = ["publication", "reader", "rows"]
        return Card(self.planned.study.title, facts, head, rows, kind="a release: what was published")

    def _repr_html_(self) -> str:
        shown = [self[name, reader].to_card().to_html() for name, reader in list(self)[:_SHOWN]]
        return self._card().to_html() + "".join(shown)

    def __str__(self) -> str:
        parts = [f"{name}, for {reader}\n{self[name, reader]}" for name, reader in self]
        return "\n\n".join(parts)

    __repr__ = __str__


def _moments(columns: Sequence[str]) -> list[str]:
    """The columns that tell a number as a day or a time of day."""
    return [
        name for name in columns if name.split("_")[0] in ("date", "time") and f"{name.split('_')[0]}_low" in columns
    ]


def _keys(network: Network, rows: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """What each number is about: its place among its question's own, or what was found in the data."""
    known = {name: iter(keys) for name, keys in keys_of(network).items()}
    drawn = {node.name for node in network.aggregates if node.question.only_drawn}
    for row in rows:
        node = row["node"]
        if node in drawn:
            yield {shown: row[name] for name, shown in about.items()}
        else:
            yield next(known[node]) if node in known else {"node": node}
