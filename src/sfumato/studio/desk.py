"""What lies on the desk: one study, its plan, and the acts that a person starts from the page.

In:   the study's file, the folder of its tables, the ledger.
Out:  plans, a rehearsal with invented people, a publication that was asked for twice.
Not here: who may ask (studio/guard.py), HTML (studio/app.py).

Private tables are read by `publish` alone. A publication needs a nonce that was made for exactly this plan a moment ago
and the word that says so, so that neither an old tab nor a slip of the hand can spend anything.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from sfumato.core.certificate import Certificate
from sfumato.errors import InputError, LedgerError, SfumatoError
from sfumato.evidence.files import write_whole
from sfumato.evidence.report import finish_folder
from sfumato.lang.problem import Problem
from sfumato.lang.spec import Spec
from sfumato.lang.term import Position
from sfumato.ledger.balance import amount_text, left_text
from sfumato.ledger.ledger import Ledger
from sfumato.plan.plan import Plan
from sfumato.run.accounts import default_ledger
from sfumato.run.charges import charges_of, need_of
from sfumato.run.checking import examine_study
from sfumato.run.planning import make_plan
from sfumato.run.study_file import public_tables, run_study
from sfumato.studio.view import widths

__all__ = ["Desk", "Drafted"]

#: How long a person may think before the question has to be asked again.
_PATIENCE = 300.0
_WORD = "publish"


@dataclass(frozen=True)
class Drafted:
    """A text with what is known about it: its plan, or why there is none."""

    text: str
    spec: Spec | None
    plan: Plan | None
    problems: tuple[Problem, ...]
    seconds: float


@dataclass
class Desk:
    """One study. `stage` says what a running publication is doing."""

    study: Path
    data: Path
    ledger: Path
    sizes: dict[str, float] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    stage: str = ""
    reports: dict[str, Path] = field(default_factory=dict)
    _asked: dict[str, tuple[str, float]] = field(default_factory=dict)
    _saved: str = ""
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _scratch: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def open(
        cls, study: Path, data: Path | None = None, ledger: Path | None = None, sizes: dict[str, float] | None = None
    ) -> Desk:
        """The desk of a study file, which may be broken or empty: it can be mended on the page."""
        place = data or study.resolve().parent
        desk = cls(study.resolve(), place, (ledger or default_ledger(place)).resolve(), dict(sizes or {}))
        desk._saved = _digest(desk.text_on_disk())
        return desk

    def text_on_disk(self) -> str:
        try:
            return self.study.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise InputError(f"{self.study} cannot be read as text ({type(error).__name__}).") from error

    # ── planning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draft(self, text: str) -> Drafted:
        """The plan of a text, or what is wrong with it. No private table is opened."""
        start = time.perf_counter()
        spec, plan, problems = self._planned(text)
        if plan is not None and not self.before:
            self.before = widths(plan)
        return Drafted(text, spec, plan, problems, time.perf_counter() - start)

    def _planned(self, text: str) -> tuple[Spec | None, Plan | None, tuple[Problem, ...]]:
        from sfumato.lang.load import examine

        spec, problems = examine(text)
        if spec is None or any(one.severity == "error" for one in problems):
            return spec, None, problems
        try:
            return spec, make_plan(spec, public_tables(spec, self.data), sizes=self.sizes), problems
        except SfumatoError as error:
            # Asked a second time where it is told with its line.
            spec, problems = examine_study(text, self.data)
            if not any(one.severity == "error" for one in problems):  # a good study that is not planned here
                problems = (*problems, Problem("error", "plan", str(error), Position(self.study.name, 1, 1)))
            return spec, None, problems

    # ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def save(self, text: str, *, over: bool = False) -> bool:
        """Write the study; False if somebody else changed the file since it was read, and `over` does not say so."""
        if not over and _digest(self.text_on_disk()) != self._saved:
            return False
        write_whole(self.study, text)
        self._saved = _digest(text)
        return True

    def reload(self) -> str:
        """The file as it is now, which counts as saved."""
        text = self.text_on_disk()
        self._saved = _digest(text)
        return text

    @property
    def is_changed_elsewhere(self) -> bool:
        return _digest(self.text_on_disk()) != self._saved

    # ── rehearsal and publication ────────────────────────────────────────────────────────────────────────────────────

    def rehearse(self, text: str) -> str:
        """A dry run on invented people in a folder of its own; the name of its report."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="sfumato-studio-")
        folder = Path(self._scratch.name) / secrets.token_hex(4)
        folder.mkdir()
        study = folder / self.study.name
        study.write_text(text, encoding="utf-8")
        with self._alone():
            return self._run(study, folder / "rehearsal", rehearsal=True)

    def ask(self, text: str) -> dict[str, Any]:
        """What publishing would cost and leave, and a nonce that is good for exactly this plan."""
        drafted = self.draft(text)
        if drafted.plan is None:
            raise InputError("This study cannot be planned yet: see the messages beside its text.")
        nonce = secrets.token_urlsafe(16)
        self._asked = {nonce: (drafted.plan.hash, time.monotonic())}
        return {
            "nonce": nonce,
            "word": _WORD,
            "ledger": str(self.ledger),
            "lines": self._account(drafted.plan),
            "first": self._is_first(drafted.plan),
        }

    def _account(self, plan: Plan) -> list[str]:
        book = Ledger(self.ledger, create=False) if self.ledger.is_file() else None
        lines = []
        for dataset in plan.datasets:
            cost = plan.row_cost(dataset)
            unit = cost.adjacency.unit if cost.adjacency else "record"
            known = book is not None and (dataset, unit) in book.datasets()
            if book is None or not known:
                need = amount_text(need_of(plan, dataset))
                lines.append(f"{dataset}: nothing was granted yet under this name. This publication needs {need}.")
            else:
                lines.append(f"{dataset}: {_taken(book, plan, dataset, unit)}")
        return lines

    def _is_first(self, plan: Plan) -> bool:
        if not self.ledger.is_file():
            return True
        known = {name for name, _ in Ledger(self.ledger, create=False).datasets()}
        return not set(plan.datasets) <= known

    def publish(self, text: str, nonce: str, word: str, grant: bool) -> str:
        """Run the study on its tables and charge the ledger; the name of its report."""
        hash_asked, since = self._asked.pop(nonce, ("", 0.0))
        drafted = self.draft(text)
        if drafted.plan is None or drafted.plan.hash != hash_asked or time.monotonic() - since > _PATIENCE:
            raise InputError("The study or its plan changed since you were asked. Look at it again. Nothing was spent.")
        if word.strip().lower() != _WORD:
            raise InputError(f"Type the word {_WORD} to publish. Nothing was spent.")
        if not self.save(text):
            raise InputError(f"{self.study.name} was changed elsewhere. Save or reload it first. Nothing was spent.")
        with self._alone():
            return self._run(self.study, self._free_folder(), rehearsal=False, grant=grant, approved=text)

    def _free_folder(self) -> Path:
        """Beside the study, named by the moment; two releases of one second get two folders."""
        first = self.study.parent / f"{self.study.stem}-{datetime.now():%Y%m%d-%H%M%S}"
        later = (first.with_name(f"{first.name}-{number}") for number in count(2))
        return next(path for path in chain((first,), later) if not path.exists())

    def _run(self, study: Path, out: Path, *, rehearsal: bool, grant: bool = False, approved: str | None = None) -> str:
        from sfumato.evidence import verify

        def holds(certificate: Certificate) -> bool:
            return verify(certificate).ok

        def told(name: str) -> None:
            self.stage = name

        book: Ledger | Path = self.ledger if rehearsal else Ledger(self.ledger)
        plan, _ = run_study(
            study, self.data, out, book, grant=grant, dry_run=rehearsal, sizes=self.sizes, holds=holds, stage=told,
            approved=approved,
        )  # fmt: skip
        assert plan.network is not None
        told("writing the report")
        lacking = finish_folder(
            plan,
            out,
            None if rehearsal else self.ledger,
            tables=public_tables(plan.network.spec, self.data),
            rehearsal=rehearsal,
        )
        if not (out / "report.html").is_file():
            raise InputError(f"The results are in {out}, and the report is missing: {' '.join(lacking)}")
        name = secrets.token_hex(8)
        self.reports[name] = out
        return name

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One rehearsal or publication at a time."""
        if not self._busy.acquire(blocking=False):
            raise InputError(f"A run is under way ({self.stage}). Wait until it has ended. Nothing was spent.")
        try:
            yield
        finally:
            self.stage = ""
            self._busy.release()

    def close(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()


def _taken(book: Ledger, plan: Plan, dataset: str, unit: str) -> str:
    """What is left in an account, and what a publication would be charged there; or why it would be refused."""
    balance = book.balance(dataset, unit)
    left = f"{left_text(balance.remaining)} is left of {amount_text(balance.granted)}."
    ((name, costs, point),) = charges_of(plan, dataset, [(dataset, unit)])
    try:
        charged = book.check(name, costs, promised=point)
    except LedgerError as error:
        return f"{left} {error}"
    taken = "nothing" if charged is None else amount_text(charged)
    return f"{left} This publication takes {taken} of it."


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
