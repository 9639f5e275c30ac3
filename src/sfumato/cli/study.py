"""`sfumato plan`, `sfumato run`, `sfumato explain`: a study at the command line.

In:   a plan, arguments.
Out:  tables and lines for the terminal.
Not here: planning and running (run/study_file.py), what is said of a plan (plan/beforehand.py), what it means (plan/,
evidence/explain.py).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.core.whole_file import write_whole_file
from sfumato.errors import InputError, SfumatoError
from sfumato.plan.beforehand import Topic, said_beforehand
from sfumato.plan.plan import Plan
from sfumato.plan.shared_act import sharing_of
from sfumato.plan.told import digits, told_before
from sfumato.run.aims import Aimed
from sfumato.run.other_weights import MULTIPLES, AtWeight

__all__ = ["next_command", "plan_table", "read_sizes", "show_plan", "show_weights", "watched", "write_new"]

_STYLES: Mapping[Topic, str] = {"caution": "yellow", "assumed": "dim"}
#: Seconds between two looks at a watched file.
_PAUSE = 0.4


def read_sizes(given: list[str] | None) -> dict[str, float]:
    """NAME=NUMBER pairs."""
    sizes: dict[str, float] = {}
    for text in given or []:
        name, sign, number = text.partition("=")
        try:
            sizes[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise InputError(f"--size {text!r} is not NAME=NUMBER, for example --size patients=1000.")
    return sizes


def plan_table(plan: Plan) -> Table:
    """The publications of a plan, one a line."""
    table = Table("publication", "observer", "strategy", "95 % within", "standard error", box=None, pad_edge=False)
    for planned in plan.publications:
        told = [one for seen in planned.seen for one in told_before(seen)]
        for place, one in enumerate(told):
            first = place == 0
            table.add_row(
                Text(planned.name if first else ""),
                Text(planned.observer if first else ""),
                Text(planned.strategy if first else ""),
                one.within,
                Text(f"{one.error}  {one.name}"),
            )
    return table


def show_plan(plan: Plan, console: Console, aims: Sequence[Aimed] = ()) -> None:
    """Print a plan: its publications, promises, and all that is said of them."""
    console.print(plan_table(plan))
    for promise in plan.promises:
        console.print(f"promise to {' and '.join(promise.observers)}: {promise.asked}", markup=False)
    for said in said_beforehand(plan, [aim.sentence for aim in aims]):
        console.print(str(said), style=_STYLES.get(said.topic, ""), markup=False, highlight=False)


def show_weights(curves: Iterable[Sequence[AtWeight]], console: Console) -> None:
    """What another weight would do: a line a publication, its widest interval at every weight that was tried."""
    head = ("publication", "observer", *(f"×{one:g}" for one in MULTIPLES), "others")
    table = Table(*head, box=None, pad_edge=False, title="95 % within ±, at multiples of its weight", title_style="")
    for curve in curves:
        widths = [digits(one.half_width) for one in curve]
        first, last = curve[0], curve[-1]
        table.add_row(Text(first.publication), Text(first.observer), *widths, f"×{last.others_wider:.2f}")
    if not table.row_count:
        console.print("No two publications share a budget: a weight changes nothing.")
        return
    console.print(table)
    rest = "Others: how much wider the one that suffers most becomes at the largest weight. Every number was planned."
    console.print(f"{rest} Say it in the study: weight(Publication, Number).", style="dim", highlight=False)


def next_command(
    plan: Plan,
    study: Path,
    data: Path | None,
    options: Mapping[str, int | str | None],
    sizes: Mapping[str, float] | None = None,
) -> str:
    """What carries out the plan: one command, or over centres the first of a few; all that shaped it is said again."""
    said = _said_of_sizes(sizes or {})
    if sharing_of(plan) is not None:
        said += ["--step", str(at)] if (at := options.get("--at")) is not None else []
        cards = " ".join(["sfumato coordinate init", shlex.quote(str(study)), "CARD CARD …", *map(shlex.quote, said)])
        return f"at each centre `sfumato centre init NAME`, then {cards}"
    place = study.parent
    said += [word for option, given in options.items() if given is not None for word in (option, str(given))]
    # What a centre publishes inside is paid from the account that pays for its part in rounds.
    said += ["--ledger", f"{inside}/ledger.db"] if (inside := options.get("--inside")) is not None else []
    words = ["sfumato", "run", str(study), "--data", str(data or place), "--out", str(place / "published")]
    return shlex.join([*words, *said])


def _said_of_sizes(sizes: Mapping[str, float]) -> list[str]:
    return [word for name, size in sizes.items() for word in ("--size", f"{name}={_plain(size)}")]


def _plain(size: float) -> str:
    """A number that is read back as it was given."""
    return str(int(size)) if size.is_integer() else repr(size)


def watched(
    study: Path, once: Callable[[], None], console: Console, wait: Callable[[float], None] = time.sleep
) -> None:
    """Call `once` now and whenever the file changes, until Ctrl-C; what is wrong is told, and waited for."""
    seen: tuple[int, int] | None = None
    try:
        while True:
            now = _stamp(study)
            if now != seen:
                seen = now
                console.rule(f"{study.name} at {datetime.now():%H:%M:%S}", align="left")
                try:
                    once()
                except SfumatoError as error:
                    console.print(Text.assemble((type(error).__name__, "red"), f": {error}"), soft_wrap=True)
                console.print("Waiting for changes; Ctrl-C ends it. Nothing is spent by planning.", style="dim")
            wait(_PAUSE)
    except KeyboardInterrupt:
        console.print("Stopped. Nothing was spent.")


def _stamp(path: Path) -> tuple[int, int]:
    """What changes when a file is saved; (0, 0) while an editor has it away."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def write_new(path: Path, text: str) -> None:
    """The whole file or none of it."""
    write_whole_file(path, text)
