"""A process that dies on purpose. Run by test_ledger.py, never collected.

    python ledger_crash_child.py steps FOLDER    one short-lived fork per step, each killed there
    python ledger_crash_child.py loop FOLDER     spends in a loop until somebody kills it
    python ledger_crash_child.py race FOLDER     eight processes at once, each spending ε = 0.2 if it can

What was acknowledged is written with one system call each, which a killed process cannot take back.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from sfumato.errors import OverspendError
from sfumato.ledger import Ledger
from sfumato.ledger import store as ledger_store


def acknowledge(folder: Path, word: str) -> None:
    with open(folder / "acknowledged", "a", buffering=1) as file:
        file.write(word + "\n")


def scenario(folder: Path) -> None:
    ledger = Ledger(folder / "ledger.db")
    acknowledge(folder, "opened")
    ledger.grant("survey", 1.0)
    acknowledge(folder, "granted")
    returned = ledger.reserve("survey", 0.3)
    ledger.release(returned)
    acknowledge(folder, "released")
    reservation = ledger.reserve("survey", 0.4, key="run 1")
    acknowledge(folder, "noise drawn")
    ledger.commit(reservation)
    acknowledge(folder, "committed")


def dying_at(step: int, folder: Path) -> None:
    passed: list[str] = []

    def checkpoint(name: str) -> None:
        passed.append(name)
        if len(passed) == step:
            acknowledge(folder, f"killed at {name}")
            os.kill(os.getpid(), signal.SIGKILL)

    ledger_store._checkpoint = checkpoint
    scenario(folder)


def every_step(folder: Path) -> None:
    """Fork for step 1, 2, … until one fork lives to the end: it has then been killed everywhere."""
    step, lived = 0, False
    while not lived:
        step += 1
        place = folder / str(step)
        place.mkdir()
        child = os.fork()
        if child == 0:
            try:
                dying_at(step, place)
                os._exit(0)
            except BaseException:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        lived = os.WIFEXITED(status)
        if lived and os.WEXITSTATUS(status) != 0:
            raise SystemExit(f"step {step} failed without being killed")
    print(json.dumps({"steps": step}))


def loop(folder: Path) -> None:
    ledger = Ledger(folder / "ledger.db")
    while True:
        reservation = ledger.reserve("survey", 0.01)
        acknowledge(folder, f"{reservation.id} drawn")
        ledger.commit(reservation)
        acknowledge(folder, f"{reservation.id} committed")


def take(folder: Path, start: int) -> str:
    os.read(start, 1)  # returns in all processes at once, when the parent closes the other end
    try:
        with Ledger(folder / "ledger.db").spending("survey", 0.2):
            return "spent"
    except OverspendError:
        return "overspend"
    except BaseException as error:
        return repr(error)


def race(folder: Path) -> None:
    start, gun = os.pipe()
    children = []
    for _ in range(8):
        children.append(os.fork())
        if children[-1] == 0:
            os.close(gun)
            acknowledge(folder, take(folder, start))
            os._exit(0)
    os.close(gun)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    {"steps": every_step, "loop": loop, "race": race}[sys.argv[1]](Path(sys.argv[2]))
