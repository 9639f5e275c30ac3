"""Runs studies and releases in processes that can be killed at any step; spoken to in JSON lines.

One process loads the library and forks for every order, so that each has a life of its own and none costs an import.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from sfumato import make_plan
from sfumato.core import Interval, Schema
from sfumato.errors import SfumatoError
from sfumato.ledger import store as ledger_store
from sfumato.ledger.ledger import Ledger
from sfumato.release import LaplaceRelease
from sfumato.run import staging, study, tables

STUDY = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
rows_per_person(patients, 1).
missing(age(P), 50).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(0.5)).
sum(total, age(P), patient(P)).
publish(total, total, openness(public)).
"""
PLAN = make_plan(STUDY)
TABLE = LaplaceRelease(Schema({"id": Interval(0, 100), "age": Interval(0, 110)}), epsilon=0.5).prepare()


class Steps:
    """Counts the steps by which a run changes the world, and ends the process, or fails, at one of them."""

    def __init__(self, last: int, how: str) -> None:
        self.left, self.how = last, how

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            if self.how == "kill":
                os._exit(9)
            raise OSError(errno.ENOSPC, "No space left on device")

    def around(self, function):
        def stepped(*args, **options):
            self()
            return function(*args, **options)

        return stepped

    def install(self) -> None:
        for name in ("rename", "replace", "fsync", "mkdir"):
            setattr(os, name, self.around(getattr(os, name)))
        for name in ("touch", "unlink", "chmod", "write_text", "write_bytes"):
            setattr(Path, name, self.around(getattr(Path, name)))
        if self.how == "kill":
            ledger_store._checkpoint = lambda name: self()


def redraw() -> None:
    """A planted defect: an interrupted run draws again on the reservation it finds."""

    def reserve(plan, ledger, sources, grant, made, **options):
        opened = [record.reservation for record in ledger.history() if record.action == "reserve"]
        open_now = [one for one in opened if ledger.state(one) == "reserved"]
        if open_now:
            made.append(ledger.reservation(open_now[-1]))
        else:
            fresh(plan, ledger, sources, grant, made, **options)

    fresh, study.reserve_plan = study.reserve_plan, reserve
    study.finish = lambda *args, **options: False
    staging._clear = lambda folder, *rest: staging.shutil.rmtree(folder, ignore_errors=True)


def lose() -> None:
    """A planted defect: the hidden folder is removed whatever happened."""
    leave = staging.Staging._leave

    def forgetful(self, keep):
        self._complete = False
        leave(self, keep)

    staging.Staging._leave = forgetful


PLANTS = {"redraw": redraw, "lose": lose, "": lambda: None}


def obey(order: dict) -> int:
    PLANTS[order.get("plant", "")]()
    folder = Path(order["folder"])
    os.environ["SFUMATO_STATE"] = str(folder.with_name(f"{folder.name}.state"))  # every bank has a user of its own
    steps = Steps(order.get("steps", 0), order.get("how", "kill"))
    steps.install()
    ledger, out = Ledger(folder / "ledger.db"), folder / order["out"]
    try:
        if order["what"] == "run":
            study.run_plan(PLAN, folder, ledger, out=out, resume=order["resume"], grant=True)
        else:
            tables.release_file(folder / "patients.parquet", TABLE, out, ledger, "rows", grant=True)
    except (SfumatoError, OSError):
        return 1
    return 2 if order.get("steps") and steps.left <= 0 else 0  # 2: it went on in spite of the failure


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        children = []
        for order in json.loads(line):
            child = os.fork()
            if child == 0:
                code = 3
                try:
                    code = obey(order)
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            children.append(child)
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)


if __name__ == "__main__":
    main()
