"""`sfumato privatize`: a party applies a downloaded channel to its own values.

In:   a channel file, a table with the column to publish.
Out:  a table with the published column alone, and its certificate.
Not here: the channel (mechanisms/tailored/), budgets: what a party says about itself is in no curator's ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.text import Text

from sfumato.core.curator import told_to, warn_of
from sfumato.core.guarantee import PureDP
from sfumato.core.schema import Schema
from sfumato.core.tables import nearest
from sfumato.core.whole_file import draft_of
from sfumato.errors import DataError, InputError, PrivacyParameterError

__all__ = ["privatize", "privatize_file"]

_ROWS = 1 << 20
_STOPPED = (
    "Interrupted: the file was not written, and what was drawn for it was handed to nobody. A channel has no ledger; "
    "nothing was charged. The same command begins anew."
)


def privatize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The private table: .parquet or .csv.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Where the published column goes; same format as IN.")],
    channel: Annotated[Path, typer.Option(help="The channel file, as the curator published it.")],
    column: Annotated[str | None, typer.Option(help="Which column to publish, if the table has several.")] = None,
    most_epsilon: Annotated[float | None, typer.Option(help="Refuse a channel that costs more than this ε.")] = None,
) -> None:
    """Send a column through a tailored channel, here and now: needs the channel file and nothing else.

    Only the published column is written; every other column stays unread.

    Example: sfumato privatize --channel channel.json mine.csv published.csv
    """
    from sfumato.cli.progress import row_progress
    from sfumato.run.interruption import told_when_interrupted

    console = Console()
    with row_progress(console, "sending") as bar, told_when_interrupted(_STOPPED):
        task = bar.add_task("sending", total=None)
        promise, note, certificate = privatize_file(
            channel, source, out, column, most_epsilon, lambda rows: bar.advance(task, rows)
        )
    console.print(Text.assemble("Published ", (str(out), "bold"), f" and {certificate.name}"))
    console.print(f"Promise for each record: {promise}", highlight=False, markup=False)
    console.print(note, highlight=False, markup=False)


def privatize_file(
    channel: Path,
    source: Path,
    out: Path,
    column: str | None = None,
    most_epsilon: float | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> tuple[str, str, Path]:
    """Writes OUT and its certificate; the promise, the note and the certificate's path."""
    from sfumato.mechanisms import TailoredNoise
    from sfumato.run.files import TableFile

    law = TailoredNoise.read(channel)
    if most_epsilon is not None and law.guarantee().implies(PureDP(most_epsilon)) is not True:
        raise PrivacyParameterError(
            f"{channel.name} promises {law.guarantee().describe()}, and {most_epsilon:g} is the most you allow. Ask "
            "the curator for a stricter channel. Nothing was drawn."
        )
    table = TableFile.open(source)
    if out.suffix.lower() != source.suffix.lower():
        raise InputError(f"OUT must end in {source.suffix.lower()} like IN. Nothing was drawn.")
    certificate = out.with_name(f"{out.name}.certificate.json")
    for path in (out, certificate):
        if path.exists():
            raise InputError(
                f"{path} exists. A value sent twice costs twice: publish the file you have, or give another name. "
                "Nothing was drawn."
            )
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out.parent} is not a folder. Nothing was drawn.")
    name = _column(table.column_names(), column)
    if (kind := table.column_types().get(name)) is not None:
        law.domain.check_type(kind, name)
    schema = Schema({name: law.domain})
    heard: set[str] = set()
    with draft_of(out) as draft:
        with told_to(heard), table.writer(draft) as append:
            for batch in table.batches(schema, [name], _ROWS):
                values = law.domain.place(batch.column(name), name)
                append(pa.table({name: law(values) if len(values) else np.empty(0)}))
                progress(len(values))
        table.check_unchanged()
        law.certificate(f"column {name!r} of {out.name}, each record sent through a channel").write(certificate)
    warn_of(heard)
    return str(law.guarantee()), law.note, certificate


def _column(names: list[str], wanted: str | None) -> str:
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None:
        raise InputError(f"The table has {len(names)} columns: say which one to publish (--column). Nothing was drawn.")
    if wanted not in names:
        raise DataError(f"The table has no column {wanted!r}{nearest(wanted, names)}. Nothing was drawn.")
    return wanted
