"""`sfumato draw STUDY.pl -o graph.svg`: the network of a study as a picture, without any private data.

In:   a study, where its public tables are.
Out:  a file.
Not here: the picture (network/draw.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import InputError
from sfumato.lang import Spec, load
from sfumato.network.network import Network

__all__ = ["public_paths", "run_draw"]


def run_draw(study: Path, out: Path, given: Sequence[str] = ()) -> str:
    """Draw the study; returns what to print."""
    spec = load(study)
    network = Network.from_spec(spec, public_paths(spec, study.resolve().parent, given))
    network.draw(out)
    nodes, groups = len(network.nodes), len(network.groups)
    return f"{out}: {nodes} variables, {groups} public structure(s), {len(network.zones)} requirement(s)."


def public_paths(spec: Spec, folder: Path, given: Sequence[str]) -> dict[str, Path]:
    """The public tables: those named on the command line, else those the study names inside its own folder.

    A study is text from somebody else, so a path in it that leads out of its folder is not followed.
    """
    found: dict[str, Path] = {}
    for entry in given:
        table, equals, path = entry.partition("=")
        if not equals:
            raise InputError(f"--table {entry}: write NAME=PATH. Nothing was drawn.")
        found[table] = Path(path)
    for source in spec.sources:
        if source.table in spec.public_tables and source.table not in found:
            path = (folder / source.path).resolve()
            if not path.is_relative_to(folder):
                raise InputError(
                    f"The public table {source.table} lies outside of the study's folder. Name it yourself: "
                    f"--table {source.table}=PATH. Nothing was read."
                )
            found[source.table] = path
    return found
