"""Every error of the ledger that a command can mend prints the command, complete: typed as it stands, it works.

The errors are found in the source, not listed by hand: a new one is either provoked here and its commands are run, or
it stands below with the reason why no command helps.
"""

from __future__ import annotations

import ast
import math
import random
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

import sfumato
from sfumato.cli.app import app
from sfumato.core import (
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    Chains,
    GaussianDP,
    GaussianEvent,
    Groups,
    Pufferfish,
    PureDP,
    RenyiDP,
)
from sfumato.errors import SfumatoError
from sfumato.ledger import Ledger
from sfumato.run.accounts import first_grant

HOME = Path(sfumato.__file__).parent
PERSON = Adjacency("person", "replace-one")
NOISE = GaussianEvent(scale=2.0, sensitivity=1.0, grid=2.0**-30, dimension=1, adjacency=REPLACE_ONE)
#: What a trained model costs.
MODEL = ApproxDP(0.996, 9.96e-7)

#: Sites that no command mends, and why.
EXCUSED = {
    "ledger/checks.py": "a call from Python is wrong: the message says what to pass",
    "ledger/commands.py": "a programmer's mistake, no message",
    "ledger/known_ledgers.py": "another run must end first",
    "ledger/records.py": "becomes LedgerCorruptError in ledger.py",
    "ledger/grants.py:window_grant": "the study must ask for less: no grant mends it",
    "ledger/windows.py:check_sealed": "other data are needed",
    "ledger/windows.py:check_one_class": "the study contradicts itself",
    "ledger/store.py:_corrupt": "the file must be restored from a backup",
    "ledger/store.py:_check_identity": "sfumato must be upgraded",
    "ledger/store.py:_translate": "the disk, a right or another process",
    "ledger/store.py:_create:No ledger can be made": "the disk or a right",
    "ledger/ledger.py:_take_up": "the file must be restored from a backup",
    "ledger/ledger.py:_standing": "a call from Python with a reservation of another file",
    "ledger/ledger.py:decide": "a call from Python settles twice",
    "ledger/ledger.py:_account_for": "the study's adjacency line must change",
    "ledger/ledger.py:_only_unit": "a call from Python: the message says what to pass",
    "run/accounts.py:default_ledger": "--ledger must name a file of the caller's choice",
    "run/accounts.py:_check_apart": "the study must declare one dataset",
    "run/accounts.py:_check_public": "the study must declare one source",
    "run/accounts.py:_check_open": "the study must not call private data public",
    "This release promises next to nothing": "the release must promise more",
}


def sites() -> dict[tuple[str, int], str]:
    """(file, line) of every raise of ours, and the function it stands in."""
    found = {}
    for path in (*sorted((HOME / "ledger").glob("*.py")), HOME / "cli" / "ledger.py", HOME / "run" / "accounts.py"):
        name = path.relative_to(HOME).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                        found[name, line] = f"{name}:{function.name}:{_words(node.exc)}"
    return found


def _words(node: ast.expr) -> str:
    """The first words of a raise."""
    return re.sub(r"^.*?[\"']", "", ast.unparse(node))[:40]


SITES = sites()


def site_of(error: BaseException) -> str:
    """The innermost raise of ours that an error came from."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(HOME):
            found = SITES.get((file.relative_to(HOME).as_posix(), trace.tb_lineno), found)
        trace = trace.tb_next
    return found


def typed(command: str) -> None:
    """Run a command as a person types it; exit code 0 or it fails the test."""
    words = shlex.split(command)
    if words[0] == "mkdir":
        subprocess.run(words, check=True)
        return
    assert words[0] == "sfumato", command
    done = CliRunner().invoke(app, words[1:], env={"COLUMNS": "80"})
    assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"


def refused(action: Callable[[], Any]) -> SfumatoError:
    with pytest.raises(SfumatoError) as told:
        action()
    return told.value


def at_the_terminal(*words: object) -> Callable[[], None]:
    def action() -> None:
        done = CliRunner().invoke(app, ["ledger", *map(str, words)], env={"COLUMNS": "80"})
        if done.exception is not None:
            raise done.exception

    return action


@dataclass(frozen=True)
class Case:
    """A ledger with grants and costs, what is asked of it then, and whether the last command of the refusal allows it.

    What is asked are words at the terminal, or a call.
    """

    ask: tuple[object, ...] | Callable[[Ledger], Any]
    granted: tuple[tuple[str, Any], ...] = ()
    spent: Any = None
    mends: bool = False
    sources: tuple[str, ...] = ()

    def made(self, path: Path) -> Callable[[], Any]:
        for name, total in self.granted:
            Ledger(path, beside=()).grant(name, total, sources=self.sources)
        if self.spent is not None:
            book = Ledger(path)
            book.commit(book.reserve(self.granted[0][0], self.spent))
        if callable(self.ask):
            ask = self.ask
            return lambda: ask(Ledger(path, beside=()))  # each case has a user of its own
        place = () if "--ledger" in self.ask else ("--ledger", path)
        return at_the_terminal(self.ask[0], *place, *self.ask[1:])


def reserving(cost: Any, name: str = "people", **more: Any) -> Callable[[Ledger], Any]:
    return lambda book: book.reserve(name, cost, **more)


def of_people(total: Any, spent: Any, ask: Any, mends: bool = False) -> Case:
    return Case(ask, (("people", total),), spent, mends)


def elsewhere(book: Ledger) -> None:
    first = book.path.parent / "first.db"
    if not first.exists():
        Ledger(first, beside=()).grant("people", 1.0, sources=["rows\0x\0id"])
    first_grant(Ledger(book.path, beside=[first]), "people", OWN, ["rows\0x\0id"], False)


def copied(book: Ledger, *, both: bool = False) -> None:
    """Another copy of the ledger has spent; where `both`, this one has as well."""
    first = book.path.parent / "first copy.db"
    if not first.exists():
        shutil.copy(book.path, first)
        Ledger(first, beside=()).reserve("people", 0.25)
        if both:
            book.reserve("people", 0.125)
    Ledger(book.path, beside=[first]).reserve("people", 0.25, sources=["rows\0x\0id"])


def committed_in_a_copy(book: Ledger) -> None:
    """Both copies have drawn for one reservation, and the other one was quicker."""
    first = book.path.parent / "first copy.db"
    if not first.exists():
        book.reserve("people", 0.25, key="run")
        shutil.copy(book.path, first)
        quicker = Ledger(first, beside=())
        quicker.commit(quicker.reserve("people", 0.25, key="run"))
    (open_one, _), *_ = book.open_reservations("people")
    Ledger(book.path, beside=[first]).commit(open_one)


OWN = PureDP(0.5, adjacency=PERSON)
FAMILY = Pufferfish(0.9, 1e-6, Groups(3))
SERIES = Pufferfish(2.5, 1e-6, Chains.best(0.1, 2.5, 1e-6, None))

ASKED: dict[str, Case] = {
    "no ledger": Case(("show",), mends=True),
    "no such dataset": Case(("show", "poeple"), (("people", 1.0),), mends=True),
    "no such dataset at all": Case(("history", "xyz"), (("people", 1.0),), mends=True),
    "no such unit": Case(("settle", "my people"), (("my people", OWN),), mends=True),
    "a cost without a grant": Case(reserving([NOISE], "it's"), mends=True),
    "a pure cost without a grant": Case(reserving(OWN), mends=True),
    "too much of a pure budget": of_people(OWN, 0.3, reserving(0.5), mends=True),
    "too much ε and δ": of_people(ApproxDP(1.0, 1e-6), ApproxDP(0.7, 1e-7), reserving(ApproxDP(0.6, 5e-6)), mends=True),
    "too much μ": of_people(GaussianDP(1.0), GaussianDP(0.9), reserving([NOISE] * 4), mends=True),
    "too much ρ": of_people(ZCDP(0.5), ZCDP(0.4), reserving([NOISE]), mends=True),
    "too much of a Rényi budget": of_people(RenyiDP(4.0, 1.0), RenyiDP(4.0, 0.9), reserving([NOISE]), mends=True),
    "Gaussian noise on a pure budget": of_people(1.0, 0.25, reserving([NOISE]), mends=True),
    "a δ on a budget in μ": of_people(GaussianDP(0.216), GaussianDP(0.216), reserving(MODEL), mends=True),
    "a δ on a budget in ρ": of_people(ZCDP(0.3), [NOISE] * 2, reserving([MODEL, NOISE]), mends=True),
    "a δ on a pure budget": of_people(1.0, 0.3, reserving(MODEL), mends=True),
    "a δ on a Rényi budget": of_people(RenyiDP(4.0, 1.0), RenyiDP(4.0, 0.9), reserving(MODEL), mends=True),
    "a curve beyond ε and δ": of_people(ApproxDP(0.5, 1e-6), ApproxDP(0.4, 1e-6), reserving([NOISE]), mends=True),
    "a pure cost on a budget in μ": of_people(GaussianDP(0.216), GaussianDP(0.216), reserving(1.0), mends=True),
    "families": of_people(FAMILY, PureDP(0.2), reserving(PureDP(0.3), promised=FAMILY), mends=True),
    "families on a plain budget": of_people(1.0, 0.2, reserving(PureDP(0.3), promised=FAMILY), mends=True),
    "series on a budget of families": of_people(FAMILY, 0.1, reserving(PureDP(0.1), promised=SERIES)),
    "another name": Case(lambda book: book.grant("folk", 1.0, sources=["a"]), (("people", 1.0),), sources=("a",)),
    "another column": Case(
        lambda book: book.grant("homes", OWN, sources=["rows\0x\0home"]),
        (("people", 1.0),),
        sources=("rows\0x\0id",),
    ),
    "beside a stranger": of_people(1.0, None, lambda book: book.grant("people", 1.0, beside="folk")),
    "beside itself": of_people(1.0, None, lambda book: book.grant("people", 2.0, beside="people")),
    "less than is spent": of_people(1.0, 0.7, ("grant", "people", "--epsilon", 0.5)),
    "less μ than is spent": of_people(GaussianDP(3.0), [NOISE], ("grant", "people", "--mu", 0.1)),
    "another relation": of_people(1.0, 0.7, ("grant", "people", "--epsilon", 0.5, "--relation", "add-remove")),
    "whose budget": of_people(OWN, None, ("grant", "people", "--epsilon", 2)),
    "whose to raise": Case(("raise", "people", "--epsilon", 2), (("people", OWN), ("people", 1.0))),
    "nobody's to raise": of_people(ZCDP(1.0, adjacency=PERSON), None, ("raise", "people", "--rho", 2, "--unit", "dog")),
    "no higher": of_people(1.0, 0.7, ("raise", "people", "--epsilon", 0.5)),
    "no higher of its kind": of_people(RenyiDP(3.0, 1.0), [NOISE], ("raise", "people", "--mu", 2)),
    "no higher for families": of_people(FAMILY, 0.1, ("raise", "people", "--epsilon", 0.5)),
    "no amount": Case(("grant", "people")),
    "no amount to raise": Case(("raise", "--", "-people"), (("-people", ApproxDP(1.0, 1e-6)),)),
    "two amounts": Case(("grant", "people", "--mu", 1, "--rho", 1)),
    "δ without ε": Case(("grant", "people", "--mu", 1, "--delta", 1e-6)),
    "δ and an order": Case(("grant", "people", "--epsilon", 1, "--delta", 1e-6, "--alpha", 2)),
    "families and series": Case(("grant", "people", "--epsilon", 1, "--groups", 3, "--memory", 0.2)),
    "families in μ": Case(("grant", "people", "--mu", 1, "--groups", 3)),
    "a first grant": Case(lambda book: first_grant(book, "people", OWN, ["a"], False), mends=True),
    "by another column": Case(
        lambda book: first_grant(book, "homes", OWN, ["rows\0x\0home"], False),
        (("people", 1.0),),
        mends=True,
        sources=("rows\0x\0id",),
    ),
    "elsewhere": Case(elsewhere),
    "in a copy of it": Case(copied, (("people", 1.0),)),
    "paid in a copy of it": Case(committed_in_a_copy, (("people", 1.0),)),
    "in two copies": Case(partial(copied, both=True), (("people", 1.0),)),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.by_day(9)
def test_every_command_of_an_error_works_as_it_stands(name, tmp_path):
    """Each on a copy of the ledger as the error left it; the last one allows what was refused, where it should."""
    path = tmp_path / "the ledger.db"
    action = ASKED[name].made(path)
    error = refused(action)
    said = str(error)
    assert re.search(r"[Nn]othing (was spent|changed|was run|was published)", said), said
    commands = re.findall(r"`(.+?)`", said)
    assert commands, said
    before = tmp_path / "before"
    for command in commands:
        shutil.copy(path, before) if path.exists() else None
        typed(command)
        if command is not commands[-1] and before.exists():
            shutil.copy(before, path)
    if ASKED[name].mends:
        action()


def epsilon_of_mu(mu: float, delta: float) -> float:
    """ε of μ-Gaussian DP at δ by the closed form (Dong, Roth & Su 2022, Cor. 2.13)."""

    def excess(epsilon: float) -> float:
        normal = NormalDist().cdf
        return normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu) - delta

    return float(brentq(excess, 0.0, 100 * mu + 10))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(5)
def test_a_refusal_offers_first_what_is_least_in_epsilon(seed, tmp_path):
    """Noise in μ is spent and an ε-DP act is asked for: the raise in μ, or an (ε, δ) for both, whichever is less."""
    draw = random.Random(seed)
    mu, pure = 10 ** draw.uniform(-1.3, 0.3), 10 ** draw.uniform(-2, 0.7)
    case = of_people(GaussianDP(mu), GaussianDP(mu), reserving(pure))
    first = re.findall(r"`(.+?)`", str(refused(case.made(tmp_path / "ledger.db"))))[0]
    amounts = {name: float(value) for name, value in re.findall(r"--(mu|epsilon|delta) (\S+)", first)}
    mu_of_both = math.hypot(mu, 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-pure))))
    in_mu = epsilon_of_mu(mu_of_both, 1e-6)
    # The share of (ε, δ) that the noise takes: any will do, and the best of many is nearly the least.
    shares = (place / 200 for place in range(1, 200))
    in_pairs = min(max(epsilon_of_mu(mu, share * 1e-6) / share, pure / (1 - share)) for share in shares)
    offered = amounts["epsilon"] if "epsilon" in amounts else epsilon_of_mu(amounts["mu"], 1e-6)
    assert amounts.get("delta", 1e-6) == 1e-6
    assert offered <= 1.12 * min(in_mu, in_pairs)


def test_a_folder_that_is_not_there_is_made_with_the_command(tmp_path):
    action = at_the_terminal("grant", "people", "--epsilon", 1, "--ledger", tmp_path / "new one" / "ledger.db")
    (command,) = re.findall(r"`(.+?)`", str(refused(action)))
    typed(command)
    action()


def test_every_error_of_the_ledger_is_provoked_or_excused(tmp_path):
    provoked = {site_of(refused(lambda: Ledger(tmp_path / "none" / "ledger.db")))}
    for place, case in enumerate(ASKED.values()):
        folder = tmp_path / str(place)
        folder.mkdir()
        provoked.add(site_of(refused(case.made(folder / "ledger.db"))))
    excused = {site for site in SITES.values() if any(one in site for one in EXCUSED)}
    assert set(SITES.values()) - excused - provoked == set()
    assert all(any(one in site for site in SITES.values()) for one in EXCUSED)


def test_no_command_in_the_source_has_a_hole():
    """A name or an amount that the reader must think of is no command; in docs and docstrings it may stand."""
    holes = []
    for path in HOME.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "sfumato ledger" in source else ():
            if isinstance(node, ast.JoinedStr) and "`" in ast.unparse(node):
                text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)  # type: ignore[misc]
                holes += [
                    f"{path.name}: {command}"
                    for command in re.findall(r"`(sfumato ledger [^`]*)", text)
                    if re.search(r"…|\b[A-Z]{4,}\b|--epsilon E\b|ledger \w+`?$", command)
                ]
    assert holes == []


def untold(source: str) -> list[str]:
    """Sentences that name an option of a command, and not what it is called in Python."""
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    told = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            told.append("".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            told.append(node.value)
    documented = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, DOCUMENTED)}
    sentences = [re.sub(r"`.*?`", "", text) for text in told if text not in documented]
    return [
        text
        for text in sentences
        for option in ("ledger", "grant")
        if re.search(rf" --{option}\b", text) and not text.startswith("sfumato ") and f" {option}=" not in text
    ]


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_a_sentence_that_names_an_option_names_what_it_is_in_python():
    """Errors of ledger/ and run/ reach both doors."""
    found = {
        path.name: untold(path.read_text(encoding="utf-8"))
        for room in ("ledger", "run")
        for path in (HOME / room).rglob("*.py")
    }
    assert {name: texts for name, texts in found.items() if texts} == {}
    assert untold('raise E(f"Run {it} again with --ledger {path}. Nothing was spent.")')
    assert untold('raise E("Run it with --grant, or name ledger=.")')
    assert not untold('raise E(f"Run {it} with --grant (from Python: grant=True), or `sfumato run --ledger x`.")')
