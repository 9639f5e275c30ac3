"""The rooms and the arrows between them, drawn from the real imports."""

from __future__ import annotations

import ast
from pathlib import Path

import sfumato
from sfumato import errors

SOURCE = Path(sfumato.__file__).parent

#: Which rooms a room may import from. `errors`, `lazy`, `card`, `wording` are open to all; the verifier is stricter.
ALLOWED = {
    "core": set(),
    "mechanisms": {"core"},
    "questions": {"core", "mechanisms"},
    "lang": {"core", "questions"},
    "network": {"core", "lang", "questions"},
    "learn": {"core", "mechanisms"},
    "release": {"core", "mechanisms"},
    "plan": {"core", "mechanisms", "questions", "lang", "network"},
    "centres": {"core", "mechanisms"},
    "ledger": {"core"},
    "run": {"core", "mechanisms", "questions", "lang", "network", "plan", "learn", "release", "centres", "ledger"},
    "evidence": {
        *("core", "mechanisms", "questions", "lang", "network", "plan"),
        *("learn", "release", "centres", "ledger", "run"),
    },
    "study": {"core", "questions", "lang", "network", "plan", "learn", "ledger", "run", "evidence"},
    "demo": {"core", "mechanisms", "plan", "learn", "centres", "ledger", "run", "evidence"},
    "studio": {"core", "lang", "network", "plan", "ledger", "run", "evidence"},
    "__main__": {"cli"},
    "cli": {
        *("core", "mechanisms", "questions", "lang", "network", "plan", "learn", "release"),
        *("centres", "ledger", "run", "evidence", "study", "demo", "studio"),
    },
}


#: Files that draw what is no privacy noise: public random features, simulations of public laws.
PUBLIC_RANDOMNESS = {
    *(
        "learn/fair.py",
        "learn/features.py",
        "learn/sample_size.py",
        "release/aware_kernel.py",
        "release/aware_moments.py",
    ),
    *(
        "release/synthetic/junction_tree.py",
        "release/synthetic/levels.py",
        "release/synthetic/release.py",
        "release/synthetic/walk.py",
    ),
}


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "sfumato" else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("sfumato.")}
    return found - {"errors", "lazy", "card", "wording"}


def test_imports_point_one_way():
    arrows = {}
    for path in sorted(SOURCE.rglob("*.py")):
        here = room(path)
        if here in ("__init__", "errors", "lazy", "card", "wording"):
            continue
        assert here in ALLOWED, f"{path.name} is in a room the diagram does not know"
        new = imported_rooms(path) - {here} - ALLOWED[here]
        if new:
            arrows[str(path.relative_to(SOURCE))] = sorted(new)
    assert not arrows, f"new arrows in the diagram: {arrows}"


def test_the_verifier_stands_on_core_alone():
    alone = ("verify", "losses", "laws", "dependences")
    for name in alone:
        assert imported_rooms(SOURCE / "evidence" / f"{name}.py") <= {"core", "evidence"}
    text = "".join((SOURCE / "evidence" / f"{name}.py").read_text() for name in alone)
    others = {path.stem for path in (SOURCE / "evidence").glob("*.py")} - {*alone, "__init__"}
    assert not [name for name in others if f"sfumato.evidence.{name}" in text]


def test_only_mechanisms_draw_randomness():
    """numpy's and Python's generators are for experiments; privacy noise comes from mechanisms/ alone."""
    offenders = []
    for path in SOURCE.rglob("*.py"):
        if room(path) == "mechanisms":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            named = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if named == "default_rng" or "random" in imported:
                offenders.append(str(path.relative_to(SOURCE)))
    assert set(offenders) <= PUBLIC_RANDOMNESS


def test_no_module_takes_another_ones_private_names():
    taken = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato"):
                private = [alias.name for alias in node.names if alias.name.startswith("_")]
                if private:
                    taken[str(path.relative_to(SOURCE))] = private
    assert not taken, f"make these public or ask for them otherwise: {taken}"


#: Names of laws of noise and of worst pairs. What differs between them stands in the law's own class.
LAW_NAMES = {"gaussian", "laplace", "norm-gamma", "geometric", "two-point", "box", "concentrated", "renyi"}
#: Kinds and levels that are asked for where the kind itself is written, never elsewhere.
LEVELS = {"individual", "aggregate"}
#: Where a law, an event or a level is at home; and the verifier, which reads records of others by its own road.
HOMES = {
    "core/events/joint.py",
    "core/events/learning.py",
    "core/events/together.py",
    "mechanisms/sampling.py",
    "mechanisms/shares.py",
    "network/network.py",
    "plan/request.py",
    "run/study_files.py",
    "evidence/dependences.py",
    "evidence/laws.py",
    "evidence/losses.py",
    "evidence/verify.py",
}


def compared_names(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, name) of every law or level that some value is compared with or matched against."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        else:
            continue
        words = [word for side in sides for word in ast.walk(side) if isinstance(word, ast.Constant)]
        found += [(node.lineno, word.value) for word in words if word.value in LAW_NAMES | LEVELS]
    return found


def test_nobody_asks_for_the_name_of_a_law():
    """No `noise == "gaussian"` outside the law's own class: ask the law (plan/draw_law.py, core/parts.py) instead."""
    found = [
        f"{path.relative_to(SOURCE).as_posix()}:{line} {name!r}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).as_posix() not in HOMES and room(path) != "centres"
        for line, name in compared_names(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, found


def test_asking_for_the_name_of_a_law_is_found():
    planted = """
if draw.noise == "gaussian" or kind not in ("box", "two-point"):
    pass
match part.kind:
    case "laplace":
        pass
"""
    assert {name for _, name in compared_names(ast.parse(planted))} == {"gaussian", "box", "two-point", "laplace"}


def test_files_stay_small():
    long = {str(p.relative_to(SOURCE)): n for p in SOURCE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 550}
    assert not long, f"these want to be two: {long}"


def test_error_tree_is_complete():
    """Every error is public, drawn in the module header, and descends from one root."""
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert classes == set(errors.__all__)
    for name in errors.__all__:
        root = UserWarning if name.endswith("Warning") else errors.SfumatoError
        assert issubclass(getattr(errors, name), root)
        assert name in (errors.__doc__ or "")
