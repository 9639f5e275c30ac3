"""A plan as the page shows it: promises, publications with their haze, who depends on whom, words, cost.

In:   a Plan, the plan as it was before (for the brackets), the study's problems.
Out:  plain dictionaries for the templates; nothing of any table.
Not here: planning (studio/desk.py), HTML (templates/).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.evidence.explain import explain
from sfumato.evidence.odds import bound_words, odds_of
from sfumato.lang.problem import Problem
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Variable, show
from sfumato.plan.plan import Considered, Plan, Planned, Promise
from sfumato.plan.told import digits, told_before
from sfumato.plan.whole import at_promises

__all__ = ["form_of", "problems_of", "view_of", "widths"]

REGISTERS = (("subject", "Person in the data"), ("lawyer", "Lawyer"), ("analyst", "Technical"))
#: Aggregates that a form can ask for: of one variable, or of nobody's.
_ASKED = (
    ("mean", "mean of"),
    ("sum", "sum of"),
    ("count", "number of people"),
    ("histogram", "how often each value of"),
)
_BOX, _ROW, _COLUMN = 150, 44, 220


def widths(plan: Plan) -> dict[str, float]:
    """The half width of the widest interval of each publication, by observer and name."""
    return {_key(one): max((seen.half_width for seen in one.seen), default=math.inf) for one in plan.publications}


def view_of(plan: Plan, before: Mapping[str, float]) -> dict[str, Any]:
    """Everything the right side of the page says."""
    return {
        "hash": plan.hash,
        "promises": [_promise(one) for one in plan.promises if len(one.observers) == 1],
        "together": [
            f"{' and '.join(one.observers)} together: {one.requirement}, {one.asked}"
            for one in plan.promises
            if len(one.observers) > 1
        ],
        "observers": _observers(plan, before),
        "network": _network(plan),
        "words": [{"key": key, "title": title, "parts": _parts(explain(plan, key))} for key, title in REGISTERS],
        "costs": [{"dataset": name, "amount": at_promises(plan.cost(name), plan, name)} for name in plan.datasets],
        "assumptions": plan.assumptions,
    }


def problems_of(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Messages with the line they belong to."""
    return [
        {
            "severity": one.severity,
            "line": one.position.line,
            "message": one.message,
            "nearest": one.nearest or "",
            "way_out": one.way_out,
        }
        for one in problems
    ]


def form_of(spec: Spec) -> dict[str, Any]:
    """What the form offers: promises, what is published, and variables that may be asked about."""
    random = spec.random_predicates
    variables = [
        show(column.atom) for column in spec.columns if f"{column.atom.functor}/{len(column.atom.arguments)}" in random
    ]
    return {
        "promises": [
            {"name": show(one.name), "epsilon": f"{point[0]:g}", "delta": f"{point[1]:g}"}
            for one in spec.requirements
            if (point := one.guarantee.stated)
        ],
        "kinds": _ASKED,
        "variables": list(dict.fromkeys(variables)),
        "goals": [show(one.goal) for one in spec.datasets if isinstance(one.goal, Compound) and _is_plain(one.goal)],
        "requirements": [show(one.name) for one in spec.requirements],
    }


def _is_plain(goal: Compound) -> bool:
    return all(isinstance(argument, Variable) for argument in goal.arguments)


def _key(planned: Planned) -> str:
    return f"{planned.observer}\0{planned.name}"


def _promise(promise: Promise) -> dict[str, Any]:
    epsilon, delta = promise.asked.stated
    odds = odds_of(promise.asked, promise.kept)
    return {
        "observer": promise.observers[0],
        "requirement": promise.requirement,
        "epsilon": f"{epsilon:.6g}",
        "slide": round(100 * math.log10(min(max(epsilon, 0.01), 20.0))),
        "delta": f"{delta:g}" if delta else "",
        "unit": odds.unit,
        "factor": odds.factor,
        "bound": bound_words(odds),
        "shown": odds.shown,
        "large": epsilon > 10,
    }


def _alternative(one: Considered) -> dict[str, str]:
    error = "" if one.error is None else digits(math.sqrt(one.error))
    return {"strategy": one.strategy, "error": error, "reason": one.reason}


def _observers(plan: Plan, before: Mapping[str, float]) -> list[dict[str, Any]]:
    return [
        {"name": who, "seen": [_publication(one, before) for one in plan.publications if one.observer == who]}
        for who in dict.fromkeys(one.observer for one in plan.publications)
    ]


def _publication(planned: Planned, before: Mapping[str, float]) -> dict[str, Any]:
    told = [one for seen in planned.seen for one in told_before(seen)]
    width = max((seen.half_width for seen in planned.seen), default=math.inf)
    was = before.get(_key(planned), width)
    # The picture is 240 wide; the brackets stand where the interval was when the page was opened, at half of it.
    share = width / was if was > 0 and math.isfinite(was) and math.isfinite(width) else 1.0
    return {
        "key": _key(planned).replace("\0", "-"),
        "name": planned.name,
        "weight": f"{planned.weight:g}",
        "within": "; ".join(dict.fromkeys(one.within for one in told))[:120],
        "about": planned.about,
        "lines": [one.sentence for one in told],
        "half": round(min(60.0 * share, 118.0), 1),
        "cut": 60.0 * share > 118.0,
        "change": _change(width, was),
        "strategy": planned.strategy,
        "reason": planned.reason,
        "others": list(map(_alternative, planned.alternatives)),
        "line": planned.position.rpartition(":")[2] if ":" in planned.position else "",
    }


def _change(width: float, was: float) -> str:
    if not (was > 0 and math.isfinite(was) and math.isfinite(width)) or math.isclose(width, was, rel_tol=5e-3):
        return "as at the beginning"
    ratio = width / was
    return (
        f"{ratio:.2f} times as wide as at the beginning"
        if ratio > 1
        else f"{1 / ratio:.2f} times sharper than at the beginning"
    )


def _is_rule(line: str) -> bool:
    return set(line.strip()) == {"─"}


def _parts(text: str) -> list[dict[str, str]]:
    """Paragraphs and headings of an explanation."""
    lines = text.split("\n")
    found: list[dict[str, str]] = []
    for place, line in enumerate(lines):
        if not line.strip() or _is_rule(line):
            found.append({"kind": "break", "text": ""})
        elif any(map(_is_rule, lines[place + 1 : place + 2])):
            found.append({"kind": "title", "text": line.strip()})
        elif found and found[-1]["kind"] == "text" and _goes_on(lines[place - 1], line):
            found[-1]["text"] += f" {line.strip()}"
        else:
            found.append({"kind": "text", "text": line.strip()})
    return [part for part in found if part["kind"] != "break"]


def _goes_on(previous: str, line: str) -> bool:
    """A wrapped line is nearly full; a short one ends its paragraph."""
    return len(previous) > 80 and not line.startswith("·")


# ── who depends on whom ──────────────────────────────────────────────────────────────────────────────────────────────


#: What a box is, and its name.
_Entry = tuple[str, str]


def _drawn(plan: Plan) -> dict[str, None]:
    return dict.fromkeys(name for one in plan.publications for name in one.cut)


def _columns(plan: Plan, parents: Mapping[str, tuple[str, ...]]) -> list[list[_Entry]]:
    """What is private, what is drawn, what is published, who reads it."""
    shown = dict.fromkeys(seen.node for one in plan.publications for seen in one.seen)
    drawn = _drawn(plan)
    private = _roots_of((*shown, *drawn), parents)
    return [
        [("private", name) for name in private if name not in drawn],
        [("drawn", name) for name in drawn],
        [("publication", one.name) for one in _unique(plan.publications)],
        [("reader", name) for name in {one.observer: None for one in plan.publications}],
    ]


def _lines(plan: Plan, parents: Mapping[str, tuple[str, ...]]) -> dict[tuple[_Entry, _Entry], None]:
    drawn = _drawn(plan)
    lines: dict[tuple[_Entry, _Entry], None] = {
        (("private", root), ("drawn", name)): None for name in drawn for root in _roots(name, parents)
    }
    for one in plan.publications:
        for name in one.cut or _read_by(one, parents):
            lines[("drawn" if name in drawn else "private", name), ("publication", one.name)] = None
        lines[("publication", one.name), ("reader", one.observer)] = None
    return lines


def _network(plan: Plan) -> dict[str, Any]:
    """Columns of boxes from what is private to who sees it, and the lines between them."""
    assert plan.network is not None
    parents = {node.name: tuple(node.parents) for node in plan.network.nodes}
    columns = _columns(plan, parents)
    places = {
        entry: (20 + column * _COLUMN, 20 + row * _ROW)
        for column, entries in enumerate(columns)
        for row, entry in enumerate(entries)
    }
    lines = _lines(plan, parents)
    tall = max(map(len, columns), default=1)
    return {
        "width": 20 + len(columns) * _COLUMN,
        "height": 40 + tall * _ROW,
        "boxes": [
            {"kind": kind, "name": name, "short": _short(name), "x": x, "y": y, "width": _BOX}
            for (kind, name), (x, y) in places.items()
        ],
        "lines": [
            {"x1": places[a][0] + _BOX, "y1": places[a][1] + 15, "x2": places[b][0], "y2": places[b][1] + 15}
            for a, b in lines
            if {a, b} <= places.keys()
        ],
        "sentences": [
            f"{one.name}, seen by {one.observer}, is computed from {', '.join(_read_by(one, parents))}"
            + (f"; noise is drawn at {', '.join(one.cut)}." if one.cut else "; no noise is needed.")
            for one in plan.publications
        ],
    }


def _unique(publications: Sequence[Planned]) -> list[Planned]:
    return list({one.name: one for one in publications}.values())


def _read_by(planned: Planned, parents: Mapping[str, Sequence[str]]) -> dict[str, None]:
    return _roots_of((seen.node for seen in planned.seen), parents)


def _roots_of(names: Iterable[str], parents: Mapping[str, Sequence[str]]) -> dict[str, None]:
    return dict.fromkeys(root for name in names for root in _roots(name, parents))


def _roots(name: str, parents: Mapping[str, Sequence[str]]) -> list[str]:
    waiting, met, found = [name], set(), []
    while waiting:
        node = waiting.pop()
        if node in met:
            continue
        met.add(node)
        above = [parent for parent in parents.get(node, ()) if parent in parents]
        if above:
            waiting += above
        elif node != name:
            found.append(node)
    return sorted(found) or [name]


def _short(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:20]}…"
