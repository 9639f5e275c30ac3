"""Where a result came from, who paid for it, and what was published from one person: provenance without the data.

In:   a folder written by run, or its Plan; the study, if tables are to be named.
Out:  Trace values and text. No private table is opened, and nobody's presence in one is looked up.
Not here: the words (templates/trace*.txt), leaving people out of later runs (run/forget.py), drawing (run/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from sfumato.core.places import Place, place_of
from sfumato.core.tables import nearest
from sfumato.errors import InputError
from sfumato.evidence.drawn import Drawn, drawn_for
from sfumato.evidence.facts import PublicationFacts, ReleaseFacts, gather
from sfumato.evidence.figures import told_of
from sfumato.evidence.files import published_files
from sfumato.evidence.odds import odds_of
from sfumato.evidence.took_part import as_drawn
from sfumato.lang import load
from sfumato.lang.inside import at_home
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network, Node, is_read
from sfumato.plan.plan import Plan, Planned, Promise
from sfumato.plan.told import Told
from sfumato.run.forget import forgotten_names
from sfumato.wording import text

__all__ = ["Influence", "Origin", "Trace", "find_result", "study_network", "trace_person", "trace_result", "trace_text"]

_WIDTH = 100


@dataclass(frozen=True)
class Origin:
    """A table a result came from, and which of its columns were read as variables."""

    table: str
    path: str
    columns: tuple[str, ...]
    public: bool


@dataclass(frozen=True)
class Trace:
    """One publication followed back. `variables` and `tables` need the study; without it the plan's nodes are told."""

    publication: str
    observer: str
    requirement: str
    position: str
    shown: tuple[str, ...]
    noisy: tuple[str, ...]
    variables: tuple[str, ...]
    tables: tuple[Origin, ...]
    acts: tuple[Drawn, ...]
    promises: tuple[Promise, ...]
    told: tuple[Told, ...] = ()


@dataclass(frozen=True)
class Influence:
    """How far one individual of a dataset can have moved a publication: nodes by (move, standard deviation)."""

    shown: PublicationFacts
    unit: str
    own: bool  # one row for each individual, not a summary of all
    moved: Mapping[tuple[float, float], Iterable[str]]


def trace_result(
    plan: Plan, name: str, observer: str | None = None, network: Network | None = None, folder: Place | None = None
) -> tuple[Trace, ...]:
    """One Trace for each observer the publication was made for; with a folder, of the numbers published there."""
    found = [p for p in plan.publications if p.name == name and observer in (None, p.observer)]
    if not found:
        known = sorted({planned.name for planned in plan.publications})
        raise InputError(
            f"The plan has no publication {name!r}{nearest(name, known)}. It has: {', '.join(known)}. Nothing was "
            "opened."
        )
    graph, folder = network or plan.network, place_of(folder)
    drawn = as_drawn(plan, folder)
    return tuple(_trace(drawn, drawn.publication(one.name, one.observer), graph, folder) for one in found)


def _trace(plan: Plan, planned: Planned, network: Network | None, folder: Path | None) -> Trace:
    shown = tuple(dict.fromkeys(seen.node for seen in planned.seen))
    behind = _behind(network, (*shown, *planned.cut)) if network else {}
    needed = {*shown, *planned.cut, *behind}
    acts = tuple(act for act in drawn_for(plan, planned.observer) if act.serves(planned.name, needed))
    return Trace(
        planned.name,
        planned.observer,
        planned.requirement,
        planned.position,
        shown,
        tuple(dict.fromkeys(node for act in acts for node in act.nodes)),
        tuple(behind),
        _origins(network, behind) if network else (),
        acts,
        tuple(promise for promise in plan.promises if planned.observer in promise.observers),
        told_of(planned, folder, own=True),
    )


def _behind(network: Network, shown: tuple[str, ...]) -> dict[str, list[Node | AggregateNode]]:
    """Everything the shown nodes are computed from, themselves included; a cell of a table is where it begins."""
    known = {node.name: node for node in network.nodes}
    found: dict[str, list[Node | AggregateNode]] = {}
    waiting = list(shown)
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in known:
            continue
        forms: list[Node | AggregateNode] = list(network.variants(name)) or [known[name]]
        found[name] = forms
        for form in forms:
            if not is_read(form):
                waiting += form.parents
    return found


def _columns_of(spec: Spec, form: Node | AggregateNode) -> Iterator[tuple[str, Sequence[str]]]:
    """Which columns of which tables a node reads itself."""
    if isinstance(form, Node):
        if form.source is not None:
            yield form.source.table, (form.source.told,)
        return
    for member in sorted(form.condition.members(), key=str):
        yield member.table, member.columns
    if form.row_table is not None:
        yield form.row_table, ()
    if not form.question.variables and form.condition.trivial:  # a count of everybody reads who there is
        yield from ((table, ()) for table in _tables_of(spec, form.dataset))


def _origins(network: Network, behind: Mapping[str, list[Node | AggregateNode]]) -> tuple[Origin, ...]:
    spec = network.spec
    columns: dict[str, dict[str, None]] = {}
    for form in chain(*behind.values()):
        for table, names in _columns_of(spec, form):
            columns.setdefault(table, {}).update(dict.fromkeys(names))
    paths = {source.table: source.path for source in spec.sources}
    return tuple(
        Origin(table, paths.get(table, ""), tuple(names), table in spec.public_tables)
        for table, names in sorted(columns.items())
    )


def _tables_of(spec: Spec, dataset: str) -> list[str]:
    goal = spec.dataset(dataset).goal
    functor = goal.functor if isinstance(goal, Compound) else ""
    return [column.table for column in spec.columns if column.atom.functor == functor]


# ── finding things ───────────────────────────────────────────────────────────────────────────────────────────────────


def find_result(result: str, folder: Place | None) -> tuple[Path, str, str | None]:
    """(folder, publication, observer) of a file in results/, or of a publication's name in `folder`."""
    path = Path(result)
    if folder is None and path.is_file() and path.parent.name == "results":
        place = path.parent.parent
        for (name, observer), files in published_files(place).items():
            if f"results/{path.name}" in files:
                return place, name, observer
        raise InputError(f"results/index.json of {place} does not list {path.name}. Nothing was opened.")
    if folder is None:
        raise InputError(
            f"{result} is no file in the results/ of a release. Give such a file, or a publication's name with "
            "--folder. Nothing was opened."
        )
    name, _, observer = result.partition("@")
    return place_of(folder), name, observer or None


def study_network(plan: Plan, study: Place, tables: Mapping[str, Any]) -> Network:
    """The network of the study a plan was made from; another study is refused."""
    spec = load(study, plan.extras.get("step"))
    spec = at_home(spec, plan.extras["inside"]) if "inside" in plan.extras else spec
    if spec.digest != plan.study_digest:
        raise InputError(
            f"{place_of(study).name} is not the study this plan was made from: its text has another digest. Give the "
            "study as it was when the plan was made. Nothing was opened."
        )
    return Network.from_spec(spec, tables)


# ── in words ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def trace_text(trace: Trace, width: int = _WIDTH) -> str:
    """What `sfumato trace` prints for one publication."""
    return text("trace.txt", width, trace=trace)


def trace_person(
    plan: Plan, person: str, folder: Place | None = None, spec: Spec | None = None, width: int = _WIDTH
) -> str:
    """What was already published from one person, why its influence is bounded, and what happens from now on."""
    facts = gather(plan, folder)
    return text(
        "trace_person.txt",
        width,
        facts=facts,
        person=person,
        datasets=[(dataset, tuple(_already(facts, dataset)), odds_of(plan.cost(dataset))) for dataset in plan.datasets],
        line=f"forget({show(Compound(person))}).",
        known=spec is not None,
        forgotten=spec is not None and person in forgotten_names(spec.forgotten),
    )


def _already(facts: ReleaseFacts, dataset: str) -> Iterator[Influence]:
    for shown in facts.publications:
        planned = shown.planned
        needed = {*planned.cut, *(seen.node for seen in planned.seen)}
        found = [one for one in drawn_for(facts.drawn, planned.observer) if one.serves(planned.name, needed)]
        acts = [one for one in found if one.dataset == dataset]
        if acts:
            own = any(act.row_by_row for act in acts)
            yield Influence(shown, acts[0].unit, own, _alike(acts))


def _alike(acts: list[Drawn]) -> dict[tuple[float, float], dict[str, None]]:
    """Nodes by how far one individual moves them and how wide their noise is."""
    found: dict[tuple[float, float], dict[str, None]] = {}
    for act in acts:
        if act.sensitivity is not None and act.deviation:
            found.setdefault((act.sensitivity, act.deviation), {}).update(dict.fromkeys(act.nodes))
    return found
