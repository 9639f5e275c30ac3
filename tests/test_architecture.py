"""The rooms and the arrows between them, drawn from the real imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import pytest

from sfumato import errors
from sfumato.questions.registry import KINDS
from source import SOURCE, Outline, source

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
    "centres": {"core", "mechanisms", "questions"},
    "ledger": {"core"},
    "run": {"core", "mechanisms", "questions", "lang", "network", "plan", "learn", "release", "centres", "ledger"},
    "evidence": {
        *("core", "mechanisms", "questions", "lang", "network", "plan"),
        *("learn", "release", "centres", "ledger", "run"),
    },
    "study": {"core", "questions", "lang", "network", "plan", "learn", "ledger", "run", "evidence"},
    "demo": {"core", "mechanisms", "plan", "learn", "centres", "ledger", "run", "evidence"},
    "studio": {"core", "questions", "lang", "network", "plan", "ledger", "run", "evidence"},
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
        "release/aware_network.py",
        "release/aware_truth.py",
    ),
    *(
        "release/synthetic/junction_tree.py",
        "release/synthetic/levels.py",
        "release/synthetic/release.py",
        "release/synthetic/walk.py",
    ),
}


def room(place: str) -> str:
    return place.removesuffix(".py").split("/")[0]


def imported_rooms(outline: Outline) -> set[str]:
    found = set()
    for node in outline.imports:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "sfumato" else [node.module]
            )
        found |= {name.split(".")[1] for name in names if name.startswith("sfumato.")}
    return found - {"errors", "lazy", "card", "wording"}


def test_imports_point_one_way():
    arrows = {}
    for place, outline in source():
        here = room(place)
        if here in ("__init__", "errors", "lazy", "card", "wording"):
            continue
        assert here in ALLOWED, f"{place} is in a room the diagram does not know"
        new = imported_rooms(outline) - {here} - ALLOWED[here]
        if new:
            arrows[place] = sorted(new)
    assert not arrows, f"new arrows in the diagram: {arrows}"


def test_the_verifier_stands_on_core_alone():
    alone = ("verify", "losses", "plain_sums", "laws", "dependences")
    read = dict(source())
    own = [read[f"evidence/{name}.py"] for name in alone]
    for outline in own:
        assert imported_rooms(outline) <= {"core", "evidence"}
    text = "".join(outline.text for outline in own)
    others = {path.stem for path in (SOURCE / "evidence").glob("*.py")} - {*alone, "__init__"}
    assert not [name for name in others if f"sfumato.evidence.{name}" in text]


def draws(outline: Outline) -> bool:
    imported = [alias.name for node in outline.imports if isinstance(node, ast.Import) for alias in node.names]
    return "default_rng" in outline.names or "random" in imported


def test_only_mechanisms_draw_randomness():
    """numpy's and Python's generators are for experiments; privacy noise comes from mechanisms/ alone."""
    offenders = {place for place, outline in source() if room(place) != "mechanisms" and draws(outline)}
    assert offenders <= PUBLIC_RANDOMNESS
    assert offenders  # the public ones are seen


def test_no_module_takes_another_ones_private_names():
    taken = {}
    for place, outline in source():
        for node in outline.imports:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato"):
                private = [alias.name for alias in node.names if alias.name.startswith("_")]
                if private:
                    taken[place] = private
    assert not taken, f"make these public or ask for them otherwise: {taken}"


#: What Python documents under a private name.
DOCUMENTED = {"_replace", "_getframe"}
#: Private names of others that are reached all the same, by the file that reaches them, and why.
REACHED = {
    # dp-accounting tells of its laws what it computes from them, and not their masses.
    "core/loss_distribution.py": {
        *("_pmf_remove", "_pmf_add", "_probs", "_discretization", "_infinity_mass", "_lower_loss"),
    },
    # ProbLog's `ground` writes answers into a formula and gives none of them back.
    "lang/engine.py": {"_ground"},
    # Scikit-learn's own clone copies the first, and so does ours; the others are written and read by this file alone.
    "learn/lineage.py": {"_metadata_request", "_lineage", "_place", "_solitary"},
}


def reached_names(outlines: Iterable[tuple[str, Outline]]) -> dict[str, set[str]]:
    """By file, the private names of what is defined elsewhere."""
    found = {place: {name for _, name in outline.reached} - DOCUMENTED for place, outline in outlines}
    return {place: names for place, names in found.items() if names}


def test_nobody_reaches_for_what_is_private_elsewhere():
    """`other._name` where the file defines no `_name`: give it a public name with words, or move the function there."""
    assert reached_names(source()) == REACHED


@pytest.mark.parametrize(
    "written",
    [
        "guarantee = release._facts(machine.alpha_).guarantee",
        "blocks.append(self.release._table(values + noise, label))",
        'rule = {"norm": model._norm, "constant": model._weights_constant}',
        "self.support_._fit_rows(rows, support, components, seeds)",
        "low = -2 * SchemaEncoder(schema)._origin(domain)",
        "core._labels_read = self.reads_labels()",
        "core.guarantee_, core._chosen_among_many = self.guarantee_, True",
    ],
)
def test_reaching_for_what_is_private_is_found(written):
    assert reached_names([("one.py", Outline.of(f"class Own:\n    def do(self):\n        {written}"))])


def test_what_a_file_defines_itself_it_may_reach():
    written = """
class Own:
    _declared: int
    def __init__(self, other):
        self._kept = other._kept or other._made() or super()._inherited()
        self._far = found._replace(declared=other._declared)
    def _made(self): ...
"""
    assert not reached_names([("one.py", Outline.of(written))])


#: Names of laws of noise and of worst pairs. What differs between them stands in the law's own class.
LAW_NAMES = {
    "gaussian",
    "laplace",
    "norm-gamma",
    "geometric",
    "two-point",
    "three-point",
    "box",
    "concentrated",
    "renyi",
}
#: Kinds and levels that are asked for where the kind itself is written, never elsewhere.
LEVELS = {"individual", "aggregate"}
#: Where a law, an event or a level is at home; and the verifier, which reads records of others by its own road.
HOMES = {
    "network/network.py",
    "plan/request.py",
    "run/study_files.py",
    "evidence/dependences.py",
    "evidence/laws.py",
    "evidence/losses.py",
    "evidence/plain_sums.py",
    "evidence/verify.py",
}


def compared_names(outline: Outline, names: Iterable[str]) -> list[tuple[int, str]]:
    """(line, name) of every one of these names that some value is compared with or matched against."""
    words = [
        (line, word) for line, side in outline.compared for word in ast.walk(side) if isinstance(word, ast.Constant)
    ]
    return [(line, word.value) for line, word in words if word.value in names]


def test_nobody_asks_for_the_name_of_a_law():
    """No `noise == "gaussian"` outside the law's own class: ask the law (plan/laws/, core/parts.py) instead."""
    found = [
        f"{place}:{line} {name!r}"
        for place, outline in source()
        if place not in HOMES
        for line, name in compared_names(outline, LAW_NAMES | LEVELS)
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
    found = {name for _, name in compared_names(Outline.of(planted), LAW_NAMES | LEVELS)}
    assert found == {"gaussian", "box", "two-point", "laplace"}


#: Noise of another law than the normal one is refused there: a check, and no choice between laws.
ASKED_ONCE = {"plan/shared_act.py"}


def test_nobody_asks_for_the_class_of_a_noise():
    """No `isinstance(noise, Laplace)` where things are planned and published: its law knows what differs."""
    asked = re.compile(r"isinstance\([^()]*\b(Gaussian|Laplace)(Noise)?\b")
    assert asked.search("pure = isinstance(noise, Laplace)")
    assert asked.search("if isinstance(law, GaussianNoise | BoxNoise):")
    rooms = ("run", "plan", "centres")
    found = {place for place, outline in source() if room(place) in rooms and asked.search(outline.text)}
    assert found == ASKED_ONCE


#: Where the word of a kind means something else: which rows of a person are kept, the part of a record that is drawn.
OTHER_MEANINGS = {("lang/declare.py", "sample"), ("plan/plan.py", "sample")}


def named_kinds(outline: Outline) -> list[tuple[int, str]]:
    """(line, name) of every kind of publication that a value is compared with, or that is listed beside another."""
    several = [(line, words & KINDS.keys()) for line, words in outline.listed if len(words & KINDS.keys()) > 1]
    return [*compared_names(outline, KINDS), *((line, str(word)) for line, words in several for word in words)]


def test_nobody_asks_for_the_name_of_a_kind():
    """No `kind == "table"` and no list of kinds outside a kind's own file: ask the kind (questions/kind.py) instead."""
    found = [
        f"{place}:{line} {name!r}"
        for place, outline in source()
        if not place.startswith("questions/kinds/")
        for line, name in named_kinds(outline)
        if (place, name) not in OTHER_MEANINGS
    ]
    assert not found, found


def test_asking_for_the_name_of_a_kind_is_found():
    planted = """
if act.kind == "table" or term.functor not in ("channel", "other"):
    pass
match term:
    case Compound(functor="sample"):
        pass
MODELS = frozenset({"classifier", "svm", "regression"})
"""
    found = {name for _, name in named_kinds(Outline.of(planted))}
    assert found == {"table", "channel", "sample", "classifier", "regression"}
    assert named_kinds(Outline.of('kind = "synthetic"\nwords = ("outliers", "others")')) == []


def test_a_kind_is_final_and_has_its_words():
    for functor, kind in KINDS.items():
        assert getattr(kind, "__final__", False), f"{kind.__name__} is not final"
        assert kind.ways.name == functor
        assert all(text.startswith(f"{functor}(") for text, _ in kind.usages)
        assert len({len(places) for _, places in kind.usages}) == len(kind.usages)
        assert bool(kind.method) == bool(kind.help)


def test_files_stay_small():
    long = {place: n for place, outline in source() if (n := len(outline.text.splitlines())) > 550}
    assert not long, f"these want to be two: {long}"


def test_error_tree_is_complete():
    """Every error is public, drawn in the module header, and descends from one root."""
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert classes == set(errors.__all__)
    for name in errors.__all__:
        root = UserWarning if name.endswith("Warning") else errors.SfumatoError
        assert issubclass(getattr(errors, name), root)
        assert name in (errors.__doc__ or "")


def test_epsilon_and_delta_of_a_guarantee_are_read_off_in_one_place():
    """`Guarantee.stated` knows which of them has a δ; nobody asks for the class to find out."""
    asked = re.compile(r"\.delta_ if isinstance|isinstance\([^()]*\) else [\w.]*\.delta_")
    assert asked.search("delta = one.delta_ if isinstance(one, ApproxDP) else 0.0")
    assert asked.search("0.0 if isinstance(one, PureDP) else one.asked.delta_")
    assert [place for place, outline in source() if asked.search(outline.text)] == []
