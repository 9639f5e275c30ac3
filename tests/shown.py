"""Programs that pages show, run as shown: in a folder and with names of their own, as a process would run them."""

from __future__ import annotations

import sys
import types
import warnings
from pathlib import Path

import pytest


def run_shown(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it as `python -c` does, without the seconds that a process needs to begin. A warning is shown, not raised."""
    main = types.ModuleType("__main__")
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["-c"])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        exec(compile(text, "<shown>", "exec"), vars(main))
