"""Small pictures for the report, as inline SVG that follows the page's colours and width.

In:   a Frontier.
Out:  SVG text; all words in it are escaped.
Not here: the page (evidence/report.py), the network's picture (network/draw.py).
"""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from sfumato.evidence.frontier import Frontier

__all__ = ["frontier_svg"]

_WIDTH, _HEIGHT = 360.0, 210.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 12.0, 14.0, 40.0
#: Presentation attributes for readers without style sheets; the page's own style overrides them, in the dark too.
_LINE = 'fill="none" stroke="#8a8a8a"'
_TEXT = 'font-size="11" fill="#5f6670"'


class _Scale:
    """A logarithmic axis from values to pixels, with a tick at the ends of every decade or at 1, 2, 5."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = math.log10(low), math.log10(high)
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self.low) / max(self.high - self.low, 1e-9)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        for steps in ((1, 2, 5), (1,)):
            every = max(1, len(decades) // 6)
            values = [step * 10.0**power for power in decades[::every] for step in steps]
            inside = [value for value in values if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9]
            if 2 <= len(inside) <= 7:
                return inside
        # Less than a decade: the ends and the middle say more than one round number.
        ends = (self.low, (self.low + self.high) / 2, self.high)
        return inside if len(inside) > 1 else [float(f"{10**end:.2g}") for end in ends]


def frontier_svg(frontier: Frontier, name: str) -> Markup:
    """The curve on logarithmic axes, the settled point as a dot."""
    errors = [error for _, error in frontier.points]
    across = _Scale(frontier.points[0][0], frontier.points[-1][0], _LEFT, _WIDTH - _RIGHT)
    down = _Scale(min(errors), max(errors), _HEIGHT - _BOTTOM, _TOP)
    line = " ".join(f"{across(epsilon):.1f},{down(error):.1f}" for epsilon, error in frontier.points)
    x, y = across(frontier.chosen[0]), down(frontier.chosen[1])
    mark = escape(f"chosen: ε = {frontier.chosen[0]:.4g}")
    said = f"{name}: {frontier.unit} {frontier.chosen[1]:.4g} at ε = {frontier.chosen[0]:.4g}"
    parts = [
        f'<svg class="plot" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(said)}">',
        f"<title>{escape(said)}</title>",
        *_axes(across, down, frontier.unit),
        f'<polyline class="curve" fill="none" stroke="#0b6aa2" stroke-width="2" points="{line}"></polyline>',
        f'<circle class="chosen" fill="#b4530a" cx="{x:.1f}" cy="{y:.1f}" r="5"></circle>',
        f'<text class="mark" {_TEXT} x="{x + 9:.1f}" y="{y - 7:.1f}">{mark}</text>',
        "</svg>",
    ]
    return Markup("".join(parts))


def _axes(across: _Scale, down: _Scale, unit: str) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [f'<path class="axis" {_LINE} d="M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:g}"></path>']
    for value in across.ticks():
        x = across(value)
        parts.append(f'<path class="grid" {_LINE} stroke-opacity="0.4" d="M{x:.1f} {_TOP:g}V{bottom:g}"></path>')
        parts.append(
            f'<text class="tick" {_TEXT} text-anchor="middle" x="{x:.1f}" y="{bottom + 14:g}">{value:g}</text>'
        )
    for value in down.ticks():
        y = down(value)
        parts.append(f'<path class="grid" {_LINE} stroke-opacity="0.4" d="M{_LEFT:g} {y:.1f}H{right:g}"></path>')
        parts.append(
            f'<text class="tick" {_TEXT} text-anchor="end" x="{_LEFT - 5:g}" y="{y + 3.5:.1f}">{value:g}</text>'
        )
    middle = (_LEFT + right) / 2
    parts.append(
        f'<text class="name" {_TEXT} text-anchor="middle" x="{middle:g}" y="{_HEIGHT - 6:g}">ε (logarithmic)</text>'
    )
    centre = (_TOP + bottom) / 2
    turned = f'text-anchor="middle" transform="translate(12 {centre:g}) rotate(-90)"'
    parts.append(f'<text class="name" {_TEXT} {turned}>{escape(unit)}</text>')
    return parts
