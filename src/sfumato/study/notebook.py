"""`%load_ext sfumato`, then a cell that begins with `%%sfumato`: a study in the language, planned where it stands.

In:   the text of a cell; on its first line a name for the study, and the number of people if that is public.
Out:  the Study under that name, and its plan as the cell's result. No data are read.
Not here: how values show themselves (`_card` of each class).
"""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NoReturn

from sfumato.errors import InputError
from sfumato.study.builder import Study

if TYPE_CHECKING:
    from sfumato.study.planned import StudyPlan

__all__ = ["register", "study_cell"]


class _Words(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"%%sfumato [NAME] [--size PEOPLE]: {message}. Nothing was planned.")


def register(shell: Any) -> None:
    """Add %%sfumato to an IPython shell."""
    shell.register_magic_function(lambda line, cell: study_cell(shell, line, cell), "cell", "sfumato")


def study_cell(shell: Any, line: str, cell: str) -> StudyPlan:
    """The plan of the study in a cell; the study itself gets the name that the first line gives, or `study`."""
    words = _Words(prog="%%sfumato", add_help=False)
    words.add_argument("name", nargs="?", default="study")
    words.add_argument("--size", type=float)
    told = words.parse_args(shlex.split(line))
    if not told.name.isidentifier():
        words.error(f"{told.name!r} is no name")
    study = Study.from_text(cell)
    shell.user_ns[told.name] = study
    return study.plan(size=told.size)
