"""The command in this process: what it prints and how it ends, without the second that a process needs to begin."""

from __future__ import annotations

import contextlib
import io
import subprocess
import warnings
from pathlib import Path
from unittest import mock

from sfumato.cli.app import main


def called(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`sfumato ARGUMENTS`, from its first line to its exit code; at least one test of a file starts a real process."""
    words = ["sfumato", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as around:
        around.enter_context(contextlib.redirect_stdout(out))
        around.enter_context(contextlib.redirect_stderr(err))
        around.enter_context(contextlib.chdir(cwd or Path()))
        around.enter_context(mock.patch("sys.argv", words))
        around.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
