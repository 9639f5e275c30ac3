"""The `sfumato` command: one file a command; app.py mounts them and prints what went wrong."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Entry point: what editors ask at every save is answered at once, all else by cli/app.py."""
    # Modules live for ever: looking through them for garbage was a tenth of the time of a short command.
    gc.set_threshold(50_000, 20, 20)
    if sys.argv[1:2] == ["check"]:
        from sfumato.cli.check import plain_check

        if (fine := plain_check(sys.argv[1:])) is not None:
            sys.exit(0 if fine else 1)
    from sfumato.cli.app import main as run

    gc.freeze()
    run()
