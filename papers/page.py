"""All experiments on one page: verdicts, pictures and numbers, side by side with what the papers claim.

In:   studies, a folder, a seed.
Out:  index.html beside ID.csv, ID.png, ID.json of every study; the page needs nothing but the pictures.
Not here: running one study (catalogue.py), the studies themselves.

A study that cannot run (its data are not here) is on the page with the reason.
"""

from __future__ import annotations

import json
import time
from html import escape
from pathlib import Path

from rich.console import Console
from rich.text import Text

from papers.catalogue import STUDIES, reproduce
from sfumato.errors import SfumatoError

__all__ = ["WITHOUT_NUMBERS", "reproduce_all"]

#: Pictures of the documents that show no measurement: nothing to run again.
WITHOUT_NUMBERS = {
    "Basu": "Figs 2.1–2.16, 3.1–3.2, 4.1–4.6 and Tables 3.1–3.2, 4.1–4.3, 5.1–5.2 are drawings and lists of notation",
    "Chaudhuri, Monteleoni & Sarwate": "Fig. 1 is a drawing of the definition",
}
_MARKS = {True: "✓", False: "✗", None: "?"}
_MOST_ROWS = 12


def reproduce_all(out: Path, *, seed: int = 0, quick: bool = False, console: Console) -> Path:
    """Run every study and write the page; its path."""
    sections, began = [], time.monotonic()
    for name in STUDIES:
        try:
            reproduce(name, out, seed=seed, quick=quick, console=console)
            sections.append(_section(json.loads((out / f"{name}.json").read_text(encoding="utf-8"))))
        except SfumatoError as error:
            console.print(Text(f"  not run: {error}", style="yellow"))
            sections.append(f"<h2 id='{name}'>{escape(name)}</h2><p class='absent'>Not run: {escape(str(error))}</p>")
    page = out / "index.html"
    out.mkdir(parents=True, exist_ok=True)
    page.write_text(_page(sections, seed, quick), encoding="utf-8")
    console.print(Text(f"Written: {page} ({len(sections)} studies, {time.monotonic() - began:.0f} s)"))
    return page


def _section(report: dict) -> str:
    """One study: its claims, its picture, the first rows of its table."""
    verdicts = "".join(
        f"<li class='{_MARKS[one['holds']] == '✓'}'><b>{_MARKS[one['holds']]}</b> "
        f"{'' if one['of'] == 'paper' else '(ours) '}{escape(one['claim'])}: {escape(one['finding'])}</li>"
        for one in report["verdicts"]
    )
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in report["notes"])
    name = report["study"]
    return (
        f"<h2 id='{name}'>{escape(report['title'])}</h2><p class='note'>{name} · {escape(report['reference'])}</p>"
        f"<ul>{verdicts}</ul><img src='{name}.png' alt='{escape(report['title'])}'>{_table(report)}{notes}"
    )


def _table(report: dict) -> str:
    rows, more = report["rows"][:_MOST_ROWS], len(report["rows"]) - _MOST_ROWS
    head = "".join(f"<th>{escape(str(name))}</th>" for name in report["columns"])
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    rest = f"<p class='note'>{more} further rows in {report['study']}.csv</p>" if more > 0 else ""
    return f"<table><tr>{head}</tr>{body}</table>{rest}"


def _cell(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _page(sections: list[str], seed: int, quick: bool) -> str:
    how = "few rows and draws: rough" if quick else "full size"
    without = "".join(f"<li>{escape(who)}: {escape(what)}.</li>" for who, what in WITHOUT_NUMBERS.items())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>The papers' experiments, again</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}img{max-width:100%}"
        "table{border-collapse:collapse;font-size:.8rem}td,th{padding:.1rem .6rem;border-bottom:1px solid #ccc}"
        ".note{color:#555;font-size:.85rem}.absent{color:#a40}ul{list-style:none;padding:0}</style>"
        f"<h1>The papers' experiments, again</h1><p>Seed {seed}, {how}. ✓ the claim held in this run, ✗ it did not, "
        "? the run does not decide it. Noise was seeded: these are experiments on public data, not releases.</p>"
        f"{''.join(sections)}<h2>Without numbers</h2><ul>{without}</ul></html>\n"
    )
