"""Lines a user writes: the programs on the pages of docs/coming_from, ours beside theirs, counted and run.

`python -m benchmarks.lines` counts; `python -m benchmarks.lines --run diffprivlib=/path/to/python` also runs their
programs with that interpreter, in a folder with the invented table. Blank lines, comments and the reading of the file
count as they stand; nothing is joined.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

__all__ = ["Program", "invented_people", "main", "programs"]

PAGES = Path(__file__).parents[1] / "docs" / "coming_from"
_BLOCK = re.compile(r'```python title="(?P<tool>[^:"]+): (?P<task>[^"]+)"\n(?P<text>.*?)```', re.DOTALL)


@dataclass(frozen=True)
class Program:
    """One program of a page: whose tool it uses, what it publishes."""

    page: str
    tool: str
    task: str
    text: str

    @property
    def ours(self) -> bool:
        return self.tool == "sfumato"

    @property
    def lines(self) -> int:
        """Lines of code; blank lines and comments are not."""
        return sum(bool(line.strip()) and not line.strip().startswith("#") for line in self.text.splitlines())


def programs() -> list[Program]:
    """Every program of every page."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        blocks = _BLOCK.finditer(page.read_text(encoding="utf-8"))
        found += [Program(page.stem, block["tool"], block["task"], block["text"]) for block in blocks]
    return found


def invented_people(folder: Path, rows: int = 20_000) -> None:
    """people.parquet, as the pages describe it."""
    generator = np.random.default_rng(0)
    sex, age = generator.choice(["Female", "Male"], rows), generator.integers(17, 91, rows)
    rich = generator.random(rows) < 0.1 + age / 300 + 0.1 * (sex == "Male")
    hours = generator.integers(1, 100, rows)
    table = pa.table({"age": age, "sex": sex, "hours": hours, "income": np.where(rich, ">50K", "<=50K")})
    parquet.write_table(table, folder / "people.parquet")


def main(arguments: Iterable[str] = ()) -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--run", action="append", default=[], metavar="PAGE=PYTHON")
    asked = dict(one.split("=", 1) for one in words.parse_args(list(arguments)).run)
    listed = programs()
    print(f"{'page':<14} {'task':<16} {'theirs':>6} {'ours':>5}")
    for theirs in (one for one in listed if not one.ours):
        ours = next(one for one in listed if one.ours and (one.page, one.task) == (theirs.page, theirs.task))
        print(f"{theirs.page:<14} {theirs.task:<16} {theirs.lines:>6} {ours.lines:>5}")
    failed = 0
    for theirs in (one for one in listed if not one.ours and one.page in asked):
        with tempfile.TemporaryDirectory() as folder:
            invented_people(Path(folder))
            command = [asked[theirs.page], "-c", theirs.text]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        failed += done.returncode != 0
        print(f"{theirs.page}, {theirs.task}: {'runs' if done.returncode == 0 else done.stderr[-500:]}")
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
