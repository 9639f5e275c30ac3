"""Follows two recipes of docs/architecture.md, a question and an engine, in a process of its own; tells it as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, final

import pandas as pd

import sfumato.questions

sfumato.questions.__path__.append(str(Path(__file__).parent / "questions"))  # the recipe: a file in questions/

from sfumato import Interval, Study, load  # noqa: E402
from sfumato.evidence.explain import explain  # noqa: E402
from sfumato.evidence.verify_plan import verify_folder  # noqa: E402
from sfumato.lang.vocabulary import AGGREGATES  # noqa: E402
from sfumato.questions.registry import QUESTIONS  # noqa: E402
from sfumato.run.engine.engine import Engine, Function, Task, computed, guarded  # noqa: E402
from sfumato.run.planning import make_plan  # noqa: E402
from sfumato.run.study import run_plan  # noqa: E402

STUDY = """source(people, 'people.csv').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, age, age(P)).
random(age(P)) :- person(P).
range(age(P), 0, 100).
dataset(population, domain(P, person(P))).
privacy_requirement(census(public), population, dp(1000000)).
twofold(t, age(P), person(P)).
publish(twice, t, census(public)).
"""


@final
class BackwardEngine(Engine):
    """The recipe for an engine: one class. It works from the last task to the first."""

    name = "backward"

    def map(self, function: Function, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        guard = guarded(function)
        for position in reversed(range(len(tasks))):
            yield position, guard(tasks[position])

    def sum(self, function: Callable[[Task], Any], tasks: Sequence[Task]) -> Any:
        parts = [part for _, part in self.map(function, tasks)]
        result = parts[0]
        for part in parts[1:]:
            result = result.plus(part)
        return result

    def keep(self, parts: Sequence[Any]) -> list[Any]:
        return computed(parts)


def main(folder: Path, engines: Sequence[str]) -> dict[str, Any]:
    """What each step of the house says about the fixture question."""
    table = pd.DataFrame({"id": range(400), "age": [20 + i % 60 for i in range(400)]})
    table.to_csv(folder / "people.csv", index=False)
    (folder / "study.pl").write_text(STUDY, encoding="utf-8")
    plan = make_plan(load(folder / "study.pl"), sizes={"population": 400})
    found: dict[str, Any] = {"planned": [one.name for one in plan.publications], "values": {}, "failures": []}
    for name in ("local", "backward", *engines):
        out = folder / f"out_{name}"
        engine = BackwardEngine() if name == "backward" else name
        os.environ["SFUMATO_STATE"] = str(folder / f"state_{name}")  # every engine is somebody's first run of this data
        release = run_plan(plan, folder, folder / f"{name}.db", out=out, engine=engine, grant=True)
        found["values"][name] = release.published[0].values.to_pylist()[0]["value"]
        checks = verify_folder(out, folder / "study.pl")
        found["failures"] += [check.sentence for check in checks if not check.ok]
    found["truth"] = 2 * int(table["age"].sum())
    found["explained"] = explain(plan, "analyst")
    found["vocabulary"] = "twofold/3" in AGGREGATES
    builder = Study("Fixture").table("people", table, person="id", columns={"age": Interval(0, 100)})
    built = builder.promise("public", epsilon=1).twofold("age", to="public")
    found["text"] = built.to_text()
    found["help"] = str(Study.twofold.__doc__)  # type: ignore[attr-defined]
    found["round trip"] = all(QUESTIONS["twofold"].from_dict(q.to_dict()) == q for q in plan.questions.values())
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2:])))
