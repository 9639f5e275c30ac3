"""The network as a picture: one panel per requirement, zones as bands, who sees what.

In:   a Network.
Out:  an SVG, PNG or PDF file.
Not here: where things stand (network/layout.py), what the zones mean (network/zones.py).

Thesis Fig. 4.5 and 4.6 with ranges: sensitive variables left, observed ones right. Nothing in the picture comes from a
private table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.calendar import shown
from sfumato.core.domain import Categories, Interval
from sfumato.core.places import Place, place_of
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.spec import PrivacyRequirement
from sfumato.lang.term import Compound, indicator, show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.expression import Call, Distribution, Expression, Lookup
from sfumato.network.layout import DrawingLayout, lay_out
from sfumato.network.network import Network, Node, Zones, is_read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

_FORMATS = (".svg", ".png", ".pdf")
_BANDS = {"S": ("#fbe3d6", "sensitive (S)"), "Z": ("#fdf3cf", "between (Z)"), "O": ("#dcebf7", "observed (O)")}
_EDGE, _PUBLIC, _SEEN, _NOISY, _LINE = "#8a8a8a", "#e9e9e9", "#0072B2", "#D55E00", "#444444"
#: Sizes in inches.
_BOX_HEIGHT, _ROW, _GAP, _TOP = 0.46, 0.66, 0.85, 0.95
_TITLE_LETTER, _DETAIL_LETTER = 0.078, 0.062
#: More variables of one name in one zone than this are drawn as one box.
_MOST_ALIKE = 8
_LONGEST = 72


@dataclass(frozen=True, slots=True)
class _Box:
    """What is drawn for a node, or for many alike."""

    name: str
    title: str
    detail: str
    zone: str
    seen: bool
    public: bool
    aggregate: bool
    noisy: bool = False


def draw(network: Network, path: Place, noise: Mapping[tuple[str, str], str] | None = None) -> Path:
    """Write the picture; the suffix chooses the format.

    `noise` says for (observer, node) what is added there before the observer's version is read on: a plan knows it.
    """
    path = place_of(path)
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"A graph is written as {', '.join(_FORMATS)}, not as {path.name}. Nothing was written.")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels = [_panel(network, zones, noise) for zones in network.zones if zones.observed] or [_plain(network)]
    sizes = [_size(layout, boxes) for layout, boxes, _, _ in panels]
    width, height = max(w for w, _ in sizes), sum(h for _, h in sizes)
    # A name may hold dollar signs: they are no formula.
    with mpl.rc_context(
        {"svg.hashsalt": "sfumato", "svg.fonttype": "none", "font.family": "DejaVu Sans", "text.parse_math": False}
    ):
        figure = Figure(figsize=(width, height), dpi=150)
        top = height
        for (layout, boxes, title, bands), (own, tall) in zip(panels, sizes, strict=True):
            axes = figure.add_axes((0, (top - tall) / height, own / width, tall / height))
            _draw_panel(axes, layout, boxes, title, bands, (own, tall))
            top -= tall
        figure.savefig(path, metadata=_no_date(path), facecolor="white")
    return path


def _no_date(path: Path) -> dict[str, None]:
    """The same study gives the same file."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})


_Panel = tuple[DrawingLayout, dict[str, _Box], tuple[str, str], Mapping[str, tuple[int, int]]]


def _panel(network: Network, zones: Zones, noise: Mapping[tuple[str, str], str] | None = None) -> _Panel:
    inside = zones.sensitive | zones.intermediate | zones.observed | zones.public
    nodes = {node.name: node for node in network.nodes if node.name in inside}
    letters = _bands(network, zones, nodes)
    notes = {node: text for (observer, node), text in (noise or {}).items() if observer == zones.observer}
    boxes, drawn = _boxes(nodes, letters, zones, notes)
    edges = _edges(network, drawn)
    layout = lay_out({name: box.zone for name, box in boxes.items()}, edges)
    requirement = next(r for r in network.spec.requirements if r.name == zones.requirement)
    return layout, boxes, _titles(requirement, network, zones), layout.bands


def _plain(network: Network) -> _Panel:
    """Nobody observes anything: the graph alone."""
    nodes = {node.name: node for node in network.nodes}
    nothing = Zones(Compound("none"), "", "", frozenset(), frozenset(), frozenset())
    boxes, drawn = _boxes(nodes, dict.fromkeys(nodes, "Z"), nothing, {})
    layout = lay_out(dict.fromkeys(boxes, "Z"), _edges(network, drawn))
    return layout, boxes, (network.spec.name, "No requirement has an observed variable."), {}


def _bands(network: Network, zones: Zones, nodes: Mapping[str, Node | AggregateNode]) -> dict[str, str]:
    """An observed node on which others rest stays in their band, marked as seen, so that all arrows point right."""
    children: dict[str, list[str]] = {}
    for parent, child in network.edges:
        if parent in nodes and child in nodes and not is_read(nodes[child]):
            children.setdefault(parent, []).append(child)
    found: dict[str, str] = {}
    for name in reversed(list(nodes)):
        inner = "S" if name in zones.sensitive | zones.public else "Z"
        last = name in zones.observed and all(found[child] == "O" for child in children.get(name, ()))
        found[name] = "O" if last else inner
    return dict(reversed(found.items()))


def _functor(node: Node | AggregateNode) -> str:
    return indicator(node.atom) if isinstance(node.atom, Compound) else node.name


def _boxes(
    nodes: Mapping[str, Node | AggregateNode], letters: Mapping[str, str], zones: Zones, notes: Mapping[str, str]
) -> tuple[dict[str, _Box], dict[str, str]]:
    """Boxes by name, and the box each node is drawn in: many that are alike share one."""
    alike: dict[tuple[str, str, bool], list[str]] = {}
    for name, node in nodes.items():
        alike.setdefault((_functor(node), letters[name], name in zones.observed), []).append(name)
    boxes: dict[str, _Box] = {}
    drawn: dict[str, str] = {}
    for name, node in nodes.items():
        family = alike[_functor(node), letters[name], name in zones.observed]
        title = f"{_functor(node).split('/')[0]}(…) × {len(family)}"
        if len(family) <= _MOST_ALIKE:
            family, title = [name], name
        drawn[name] = family[0]
        if drawn[name] == name:
            note = next((f" · {notes[one]}" for one in family if one in notes), "")
            boxes[name] = _Box(
                name,
                _short(title),
                _short(_detail(node) + (" · public" if name in zones.public else "")) + note,
                letters[name],
                name in zones.observed,
                name in zones.public,
                isinstance(node, AggregateNode),
                bool(note),
            )
    return boxes, drawn


def _edges(network: Network, drawn: Mapping[str, str]) -> list[tuple[str, str]]:
    read = {node.name for node in network.nodes if is_read(node)}
    pairs = [
        (drawn[parent], drawn[child])
        for parent, child in network.edges
        if parent in drawn and child in drawn and child not in read
    ]
    return [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]


def _detail(node: Node | AggregateNode) -> str:
    if isinstance(node, AggregateNode):
        variables = node.question.variables
        of = f" of {', '.join(variables)}" if variables else ""
        condition = "" if node.condition.trivial else f" if {node.condition}"
        return f"{node.question.form.functor}{of}{condition}"
    law = _law(node.law)
    return f"{law + ' in ' if law else ''}{_range(node)}"


def _law(law: Expression | None) -> str:
    match law:
        case Distribution(kind=kind):
            return kind
        case Lookup():
            return "table"
        case Call():
            return "function"
    return ""


def _range(node: Node) -> str:
    if node.levels:
        return "{" + ", ".join(map(str, node.levels)) + "}"
    match node.domain:
        case Interval(share=float()):
            return "bounds are bought"
        case Interval(low=low, high=high, calendar=calendar):
            ends = [shown(end, calendar) if calendar else f"{end:.4g}" for end in (low, high)]
            return f"{{{ends[0]}}}" if ends[0] == ends[1] else f"[{ends[0]}, {ends[1]}]"
        case Categories(values=values):
            return "{" + ", ".join(map(str, values)) + "}"
        case AnyText():
            return "text"
    return f"unbounded: {node.bounds.reason}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _titles(requirement: PrivacyRequirement, network: Network, zones: Zones) -> tuple[str, str]:
    """Who is promised what, and what the observer gets to see."""
    names = sorted({entry.name for entry in network.publications if entry.requirement == zones.requirement})
    published = f"; published as {', '.join(names)}" if names else ""
    inside = zones.sensitive | zones.intermediate | zones.observed | zones.public
    hidden = {node.name for node in network.nodes} - inside
    left_out = f"   ({len(hidden)} other variable(s) play no part)" if hidden else ""
    promise = f"{show(requirement.name)}: {requirement.guarantee}"
    return promise, f"{zones.observer} sees {len(zones.observed)} variable(s){published}{left_out}"


def _size(layout: DrawingLayout, boxes: Mapping[str, _Box]) -> tuple[float, float]:
    columns = _columns(layout, boxes)
    return max(columns[-1][1] + 0.4, 6.5), _TOP + layout.rows * _ROW + 0.3


def _columns(layout: DrawingLayout, boxes: Mapping[str, _Box]) -> list[tuple[float, float]]:
    """Left and right end of each column in inches: as wide as its longest text."""
    found, left = [], 0.4
    for column in range(layout.columns):
        inside = [box for name, box in boxes.items() if layout.places[name][0] == column]
        titles = [_TITLE_LETTER * len(box.title) for box in inside]
        width = 0.3 + max([0.8, *titles, *(_DETAIL_LETTER * len(box.detail) for box in inside)])
        found.append((left, left + width))
        left += width + _GAP
    return found


def _draw_panel(
    axes: Axes,
    layout: DrawingLayout,
    boxes: Mapping[str, _Box],
    titles: tuple[str, str],
    bands: Mapping[str, tuple[int, int]],
    size: tuple[float, float],
) -> None:
    columns = _columns(layout, boxes)
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))
    axes.axis("off")
    axes.text(0.25, 0.24, titles[0], fontsize=10.5, weight="bold", va="center")
    axes.text(0.25, 0.48, titles[1], fontsize=8.5, va="center", color=_LINE)
    for letter, (first, last) in bands.items():
        _draw_band(axes, letter, columns[first][0] - _GAP / 3, columns[last][1] + _GAP / 3, size[1])
    for route in layout.routes.values():
        _draw_edge(axes, route, columns)
    for name, box in boxes.items():
        column, row = layout.places[name]
        _draw_box(axes, box, columns[column], _height(row))


def _height(row: float) -> float:
    return _TOP + (row + 0.5) * _ROW


def _draw_band(axes: Axes, letter: str, left: float, right: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    colour, words = _BANDS[letter]
    axes.add_patch(Rectangle((left, 0.66), right - left, height - 0.66 - 0.12, facecolor=colour, linewidth=0, zorder=0))
    axes.text((left + right) / 2, 0.80, words, ha="center", va="center", fontsize=8.5, style="italic", color=_LINE)


def _draw_edge(axes: Axes, route: Sequence[tuple[int, float]], columns: Sequence[tuple[float, float]]) -> None:
    """A smooth line through the free lanes: level inside a column, curved between columns."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    points, codes = [(columns[route[0][0]][1], _height(route[0][1]))], [Curve.MOVETO]
    for column, row in route[1:]:
        left, right = columns[column]
        here, there = points[-1], (left, _height(row))
        middle = (here[0] + there[0]) / 2
        points += [(middle, here[1]), (middle, there[1]), there]
        codes += [Curve.CURVE4] * 3
        if (column, row) != route[-1]:
            points.append((right, there[1]))
            codes.append(Curve.LINETO)
    line = FancyArrowPatch(
        path=Curve(points, codes), arrowstyle="-|>", mutation_scale=8, color=_EDGE, linewidth=0.9, fill=False, zorder=1
    )
    axes.add_patch(line)


def _draw_box(axes: Axes, box: _Box, span: tuple[float, float], height: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, right = span
    style = "round,pad=0,rounding_size=0.2" if not box.aggregate else "square,pad=0"
    patch = FancyBboxPatch(
        (left, height - _BOX_HEIGHT / 2),
        right - left,
        _BOX_HEIGHT,
        boxstyle=style,
        facecolor=_PUBLIC if box.public else "white",
        edgecolor=_SEEN if box.seen else _NOISY if box.noisy else _LINE,
        linewidth=2.0 if box.seen or box.noisy else 0.8,
        linestyle="--" if box.noisy else "-",
        zorder=2,
    )
    axes.add_patch(patch)
    middle = (left + right) / 2
    axes.text(middle, height - 0.09, box.title, ha="center", va="center", fontsize=8.5, zorder=3)
    axes.text(middle, height + 0.11, box.detail, ha="center", va="center", fontsize=7, color=_LINE, zorder=3)
