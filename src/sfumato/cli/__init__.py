"""The `sfumato` command: one file a command; app.py mounts them and prints what went wrong."""

from __future__ import annotations

import gc

__all__ = ["main"]


def main() -> None:
    """Entry point: see cli/app.py."""
    # Modules live for ever: looking through them for garbage was a tenth of the time of a short command.
    gc.set_threshold(50_000, 20, 20)
    from sfumato.cli.app import main as run

    gc.freeze()
    run()
