"""A page that shows how near the rows are to what was measured: counts with their intervals beside generated ones.

In:   measured tables (noisy, public to whoever gets the rows).
Out:  one self-contained HTML page, no script. No number on it is private: all were published with the rows.
Not here: the report of a study, which shows no result (evidence/report.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import escape

from sfumato.release.synthetic.result import INVENTED, Measured, one_way

__all__ = ["marginals_page"]

_WIDTH, _ROW, _LABEL = 450.0, 17.0, 170.0
#: Levels that are drawn of one column; the others are summed up in a line.
_MOST_LEVELS = 24
_NORMAL_95 = 1.959963984540054
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1d2329;"
    "background:#fff}h1{font-size:1.4rem}h2{font-size:1rem;margin:0 0 .3rem;overflow-wrap:anywhere}"
    ".columns{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:1.6rem}"
    "svg{width:100%;height:auto}text{font:11px system-ui,sans-serif;fill:#4a525b}"
    ".made{fill:#8fb8d6}.line{stroke:#b4530a;stroke-width:2}.dot{fill:#b4530a}.quiet{color:#5f6670}"
    "@media (prefers-color-scheme:dark){body{background:#14181c;color:#dde3e8}text{fill:#aab3bb}"
    ".made{fill:#35617f}.line{stroke:#f0a868}.dot{fill:#f0a868}.quiet{color:#9aa4ad}}"
)


def marginals_page(title: str, measured: Sequence[Measured], about: Sequence[str] = ()) -> str:
    """The page. Bars are rows, dots measured counts, lines their 95 % intervals."""
    columns = list(dict.fromkeys(name for one in measured for name in one.columns))
    parts = [f"<section><h2>{escape(name)}</h2>{_plot(name, measured)}</section>" for name in columns]
    pairs = sorted((_distance(one), " and ".join(one.columns)) for one in measured if len(one.columns) == 2)
    listed = "".join(f"<li>{escape(name)}: {distance:.3f}</li>" for distance, name in reversed(pairs[-12:]))
    far = f"<h2>Pairs farthest from what was measured (total variation)</h2><ol>{listed}</ol>" if pairs else ""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in about if sentence != INVENTED)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><p>{escape(INVENTED)}</p>{said}"
        "<p>Bars: how often a level occurs in the rows. Dots and lines: the noisy counts and their 95 % intervals. "
        "Where a bar ends outside the line the rows do not say what was measured.</p>"
        f'<div class="columns">{"".join(parts)}</div>{far}'
        '<p class="quiet">Distances of pairs hold the noise of the measured counts too.</p></body></html>\n'
    )


def _plot(name: str, measured: Sequence[Measured]) -> str:
    levels, counts, error = one_way(measured, name)
    holding = next(one for one in measured if name in one.columns)
    at = holding.columns.index(name)
    made = holding.generated.sum(axis=tuple(axis for axis in range(holding.generated.ndim) if axis != at))
    shown = min(len(levels), _MOST_LEVELS)
    reach = _NORMAL_95 * error
    highest = max(float(made[:shown].max()), float(counts[:shown].max()) + reach, 1.0)
    scale = (_WIDTH - _LABEL - 8) / highest
    height = shown * _ROW + 22
    said = f"{name}: measured and generated counts of {len(levels)} levels"
    parts = [f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{escape(said)}">']
    for row in range(shown):
        parts += _bar(row, levels[row], float(made[row]), float(counts[row]), reach, scale)
    parts.append(f'<text x="{_LABEL:g}" y="{height - 6:g}">0</text>')
    parts.append(f'<text x="{_WIDTH - 6:g}" y="{height - 6:g}" text-anchor="end">{highest:,.0f}</text></svg>')
    if len(levels) > shown:
        parts.append(f'<p class="quiet">and {len(levels) - shown} further levels</p>')
    return "".join(parts)


def _bar(row: int, level: str, made: float, count: float, reach: float, scale: float) -> list[str]:
    top = row * _ROW
    low, high = _LABEL + max(0.0, count - reach) * scale, _LABEL + max(0.0, count + reach) * scale
    name = level if len(level) <= 24 else level[:23] + "…"
    middle = top + _ROW / 2
    return [
        f'<text x="{_LABEL - 6:g}" y="{top + _ROW - 5:g}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="made" x="{_LABEL:g}" y="{top + 2:g}" width="{max(made * scale, 0.0):.1f}" '
        f'height="{_ROW - 4:g}"></rect>',
        f'<path class="line" d="M{low:.1f} {middle:.1f}H{high:.1f}"></path>',
        f'<circle class="dot" cx="{_LABEL + max(count, 0.0) * scale:.1f}" cy="{middle:.1f}" r="3"></circle>',
    ]


def _distance(one: Measured) -> float:
    """Between the measured counts, those below zero as zero, and the generated ones."""
    measured = np.maximum(one.counts, 0.0)
    shares = [table / max(math.fsum(table.ravel()), 1e-9) for table in (measured, one.generated)]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())
