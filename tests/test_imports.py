"""What is not needed is not imported: counted in modules, which no busy machine can change."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import sfumato

EXAMPLES = Path(__file__).parents[1] / "examples"
HEAVY = ("sklearn", "scipy.stats", "matplotlib", "pandas", "dask", "distributed", "dp_accounting", "cvxpy", "torch")


def modules_after(code: str) -> set[str]:
    """The modules a fresh interpreter holds after running this."""
    program = f"import sys\n{code}\nprint('\\n'.join(['MODULES', *sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=110, cwd=EXAMPLES
    )
    return set(done.stdout.split("MODULES\n", 1)[1].splitlines())


def test_the_package_alone_brings_nothing():
    found = modules_after("import sfumato")
    assert {name for name in found if name.startswith("sfumato")} == {"sfumato"}
    assert "numpy" not in found


def test_reading_a_study_brings_no_numerical_library_but_numpy():
    found = modules_after("import sfumato\nsfumato.load('oncology/study.pl')")
    assert "problog" in found
    assert not found & {*HEAVY, "scipy", "duckdb", "clarabel", "asyncio", "pyarrow.compute"}
    assert len(found) < 600


#: What neither a check nor the plan of means and counts needs: tables, solvers, root finders, tailored channels.
IDLE = (
    "scipy.optimize",
    "scipy.linalg",
    "scipy.sparse",
    "duckdb",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyarrow.dataset",
    "clarabel",
    "jinja2",
    "asyncio",
    "sfumato.mechanisms.tailored.noise",
    "sfumato.plan.linear.query",
    "sfumato.plan.linear.solver",
)
MEAN = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
dataset(people, domain(P, patient(P))).
privacy_requirement(openness(public), people, dp(0.5, 0.000001)).
mean(meanAge, age(P), patient(P)).
publish(average, meanAge, openness(public)).
"""


def test_a_check_brings_no_estimator_no_solver_and_no_ledger():
    found = modules_after("from sfumato.cli.app import app\napp(['check', 'oncology/study.pl'], standalone_mode=False)")
    assert "sfumato.plan.make" in found
    assert not found & {*HEAVY, *IDLE, "scipy", "sfumato.ledger.ledger"}
    assert len(found) < 800


@pytest.mark.parametrize("study", ["oncology/study.pl", MEAN])
def test_the_plan_of_means_and_counts_brings_no_estimator_and_no_solver(study: str):
    found = modules_after(f"import sfumato\nsfumato.make_plan({study!r})")
    assert "sfumato.plan.make" in found
    assert not found & {*HEAVY, *IDLE}
    assert len(found) < 750


def test_a_channel_brings_no_estimator():
    """The publishers of a kind are imported where a study publishes that kind."""
    channel = MEAN.replace("publish(average, meanAge,", "publish(ages, channel(age(P), [identity]),")
    found = modules_after(f"import sfumato\nsfumato.make_plan({channel!r})")
    assert "sfumato.run.publish_channel" in found
    assert not found & {"sklearn", "sfumato.learn.base", "sfumato.run.publish_learning", "sfumato.run.publish_tables"}


RELATED = "\nrandom(same(P, Q)) :- patient(P), listed(Q). listed(uma). depends(same(P, Q), [age(P)], age(P))."


@pytest.mark.parametrize(("more", "individuals"), [("", [1]), (RELATED, [1, 2])])
def test_the_logic_is_derived_once_and_once_more_where_its_form_does_not_show_that_nobody_minds(
    more: str, individuals: list[int], monkeypatch
):
    """Reading derives it for one individual; the network asks for two where a clause might relate them."""
    ground = importlib.import_module("sfumato.lang.ground")
    check = importlib.import_module("sfumato.lang.check")
    derived: list[int] = []

    def counted(spec, facts, meter):
        derived.append(len(facts))
        return derive(spec, facts, meter)

    derive = ground.derive
    monkeypatch.setattr(ground, "derive", counted)
    monkeypatch.setattr(check, "derive", counted)
    sfumato.make_plan(MEAN + more)
    assert derived == individuals


def test_every_name_is_found_where_it_lives():
    assert set(sfumato.__all__) == {*sfumato._HOME, "load", "make_plan", "run_plan"}
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
        assert name in dir(sfumato)
    with pytest.raises(AttributeError, match="no attribute 'Gausian'"):
        _ = sfumato.Gausian  # type: ignore[attr-defined]


def test_rooms_are_reached_through_the_package():
    done = "import sfumato\nassert sfumato.core.Interval is sfumato.Interval\nassert sfumato.mechanisms.Gaussian"
    assert "sfumato.core.domain" in modules_after(done)


def test_a_centre_that_joins_brings_no_learning_and_no_transform():
    found = modules_after("import sfumato.cli.app, sfumato.run.centre_part\nfrom sfumato.evidence import verify")
    assert "sfumato.centres.network" in found
    idle = ("centres.newton", "centres.series", "centres.design", "centres.processes", "centres.memory")
    assert not found & {*HEAVY, "scipy.fft", *(f"sfumato.{name}" for name in idle)}


def test_every_kind_of_round_is_known_to_who_imports_rounds_alone():
    made = """
from sfumato.centres import GradientSums, Requirement, new_centres, plan_round
from sfumato.core import Adjacency, ApproxDP, Categories, Interval, Schema
sums = GradientSums(Schema({"age": Interval(0, 9), "ill": Categories(["no", "yes"])}), "ill", "yes", (0.0, 0.0), 2.0)
promise = Requirement(Adjacency("patient", "replace-one"), ApproxDP(1.0, 1e-6))
agreed = plan_round("a round", new_centres(["east", "west"])[0], sums, [promise], most_patients=10)
"""
    code = f"{made}\nimport json\nprint(json.dumps(agreed.to_dict()))"
    record = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=110
    ).stdout
    modules_after(f"import json\nfrom sfumato.centres.round import Round\nRound.from_dict(json.loads({record!r}))")


def _asked(path: Path) -> Iterator[tuple[str, str]]:
    """What a file takes from the package, by module and name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sfumato":
            yield from ((str(node.module), one.name) for one in node.names)


def _is_there(module: str, name: str) -> bool:
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("folder", ["benchmarks", "papers", "tests"])
def test_what_is_taken_from_the_package_is_there(folder):
    """Also by what no test runs: a benchmark, a law at night. Files of a recipe take from what the recipe adds."""
    root = Path(__file__).parents[1]
    files = [path for path in (root / folder).rglob("*.py") if "recipes" not in path.parts]
    gone = [(path.name, *asked) for path in files for asked in _asked(path) if not _is_there(*asked)]
    assert gone == []
