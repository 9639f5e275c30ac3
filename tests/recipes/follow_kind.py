"""Follows "Add a kind of publication" of docs/architecture.md in a process of its own; tells it as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

import sfumato.questions.kinds

sfumato.questions.kinds.__path__.append(str(Path(__file__).parent / "kinds"))  # the recipe: a file in questions/kinds/

from sfumato import Study, load  # noqa: E402
from sfumato.errors import SfumatoError  # noqa: E402
from sfumato.evidence.explain import explain  # noqa: E402
from sfumato.evidence.recipient import recipient_text  # noqa: E402
from sfumato.evidence.trace import trace_person  # noqa: E402
from sfumato.evidence.verify_plan import verify_folder  # noqa: E402
from sfumato.lang.load import examine  # noqa: E402
from sfumato.plan.plan import Plan  # noqa: E402
from sfumato.run.planning import make_plan  # noqa: E402
from sfumato.run.study import run_plan  # noqa: E402

STUDY = """source(people, 'people.csv').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, fruit, fruit(P)).
column(people, age, age(P)).
random(fruit(P)) :- person(P).
random(age(P)) :- person(P).
range(fruit(P), [apple, pear, plum]).
range(age(P), 0, 100).
dataset(population, domain(P, person(P))).
privacy_requirement(census(public), population, dp(1)).
publish(liked, favourite(fruit(P)), census(public)).
"""


def refused(change: tuple[str, str], more: str = "") -> str:
    """What is said to a study with one change: by the check, or by the plan."""
    text = STUDY.replace(*change) + more
    if problems := [one.describe() for one in examine(text)[1] if one.severity == "error"]:
        return " ".join(problems)
    try:
        make_plan(text, sizes={"population": 400})
    except SfumatoError as error:
        return str(error)
    return ""


def main(folder: Path) -> dict[str, Any]:
    """What each step of the house says about the fixture kind."""
    table = pd.DataFrame({"id": range(400), "fruit": ["apple", "plum", "plum", "plum"] * 100, "age": 40})
    table.to_csv(folder / "people.csv", index=False)
    (folder / "study.pl").write_text(STUDY, encoding="utf-8")
    plan = make_plan(load(folder / "study.pl"), sizes={"population": 400})
    release = run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    checks = verify_folder(folder / "out", folder / "study.pl")
    builder = Study("Fixture").table("people", table, person="id", columns={"fruit": ["apple", "pear", "plum"]})
    built = builder.promise("public", epsilon=1).favourite("fruit", to="public")  # type: ignore[attr-defined]
    return {
        "checked": [one.describe() for one in examine(STUDY)[1]],
        "planned": [(one.name, one.kind, one.strategy) for one in plan.acts],
        "round trip": Plan.from_json(plan.to_json()).to_json() == plan.to_json(),
        "published": release["liked"].to_pylist(),
        "failures": [check.sentence for check in checks if not check.ok],
        "explained": " ".join(explain(plan, "analyst").split()),
        "readme": " ".join(recipient_text(plan, folder / "out").split()),
        "traced": " ".join(trace_person(plan, "7").split()),
        "text": built.to_text(),
        "help": str(Study.favourite.__doc__),  # type: ignore[attr-defined]
        "from Python": built.plan(size=400).dry_run()["favourite fruit"].to_pandas().to_dict("list"),
        "way": refused(("", ""), "prefer(liked, [gaussian]).\n"),
        "aim": refused(("", ""), "within(liked, 2).\n"),
        "variable": refused(("favourite(fruit(P))", "favourite(friut(P))")),
        "shape": refused(("favourite(fruit(P))", "favourite([fruit(P)])")),
        "number": refused(("favourite(fruit(P))", "favourite(age(P))")),
        "unknown": refused(("favourite(fruit(P))", "dearest(fruit(P))")),
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
