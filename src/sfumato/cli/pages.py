"""`sfumato explain --for LAWYER --html PAGE --pdf PAGE`, `sfumato report --pdf PAGE`: pages written and printed.

In:   a plan or a page.
Out:  files, and what to print. PDF comes from the print of a browser that is here already; nothing is installed.
Not here: what the pages say (evidence/report.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from sfumato.errors import InputError
from sfumato.evidence.files import write_whole
from sfumato.evidence.report import lawyer_html
from sfumato.plan.plan import Plan

__all__ = ["print_page", "write_lawyer_page"]

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
#: Chromium has no sandbox for root; what it opens here is our own page, without script, from a file.
_SANDBOX = ("--no-sandbox",) if getattr(os, "geteuid", lambda: 1)() == 0 else ()
#: Seconds a browser may take to print a page.
_PATIENCE = 120


def write_lawyer_page(
    plan: Plan, reader: str, source: Path, html: Path | None, pdf: Path | None, ledger: Path | None
) -> str:
    """Write the page to sign; what to print."""
    if reader.strip().lower() != "lawyer":
        raise InputError("The page with lines to sign is for a lawyer: say --for LAWYER. Nothing was written.")
    text = lawyer_html(plan, source if source.is_dir() else None, ledger=ledger)
    told = []
    if html is not None:
        told.append(f"{write_whole(html, text)}: the promise on a page, with lines to sign.")
    if pdf is not None:
        with tempfile.TemporaryDirectory() as folder:
            page = write_whole(Path(folder) / "lawyer.html", text)
            told.append(f"{print_page(page, pdf)}: the same, printed.")
    return "\n".join(told)


def print_page(page: Path, target: Path) -> Path:
    """The page as PDF, as the browser of this machine prints it."""
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise InputError(
            f"No Chromium was found to print {page}. Open the page in any browser and print it to a file, or install "
            "one (Debian: apt-get install chromium). Nothing was spent."
        )
    options = ["--headless", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={target.resolve()}"]
    with tempfile.TemporaryDirectory() as profile:
        own = [f"--user-data-dir={profile}", *_SANDBOX]
        try:
            done = subprocess.run(
                [browser, *own, *options, page.resolve().as_uri()], capture_output=True, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{browser} could not print {page}: {type(error).__name__}. Print it by hand.") from error
    if done.returncode or not target.is_file():
        raise InputError(f"{browser} could not print {page} (it ended with {done.returncode}). Print it by hand.")
    return target
