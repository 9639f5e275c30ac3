"""Pages read by axe-core in Chromium, for tests: what it calls serious or critical."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

SERIOUS = ("serious", "critical")


def axe_source() -> str:
    """axe-core's own file, from the folder that `make browser` fills (SFUMATO_AXE), or a reason to skip."""
    folder = Path(os.environ.get("SFUMATO_AXE", Path.home() / ".cache" / "sfumato-axe"))
    path = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip(f"axe-core is not in {folder}: `make browser` puts it there by npm; is npm installed?")
    return path.read_text(encoding="utf-8")


def system_browser() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((found for name in names if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here: install it (Debian: `apt-get install chromium`) and run `make browser` again")
    return found


def complaints(page: Any, source: str) -> list[str]:
    """Each serious finding with its first place."""
    page.evaluate(source)
    found = page.evaluate("axe.run()")["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in SERIOUS]
