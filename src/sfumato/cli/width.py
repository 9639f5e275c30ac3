"""How long lines of running text may be.

In:   the terminal, or COLUMNS.
Out:  a number of characters.
Not here: tables, which rich fits by itself.
"""

from __future__ import annotations

import shutil

__all__ = ["text_width"]

#: Longer lines are hard to read, and nobody asked for shorter ones where there is no terminal.
_LONGEST, _SHORTEST = 100, 40


def text_width() -> int:
    """As wide as the terminal, within reason; a file or a pipe has lines of 100 characters."""
    return max(_SHORTEST, min(_LONGEST, shutil.get_terminal_size((_LONGEST, 24)).columns))
