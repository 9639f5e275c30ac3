"""Follows "Add a law of noise for sums" of docs/architecture.md in a process of its own; tells what came of it as JSON.

Three files and a note; a line of the law table and one of the verifier, as for every mechanism.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato.mechanisms.laws
import sfumato.plan.laws

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sfumato.mechanisms.__path__.append(str(HERE / "laws" / "drawn"))  # the recipe: a file in mechanisms/,
sfumato.mechanisms.laws.__path__.append(str(HERE / "laws" / "grid"))  # one in mechanisms/laws/
sfumato.plan.laws.__path__.append(str(HERE / "laws" / "planned"))  # and one in plan/laws/

from sfumato.mechanisms.huber import Huber  # type: ignore[import-not-found]  # noqa: E402
from sfumato.mechanisms.laws.huber import VARIANCE  # type: ignore[import-not-found]  # noqa: E402

from laws import test_every_mechanism as laws  # noqa: E402
from laws.rows import ROWS, Row  # noqa: E402
from sfumato import load  # noqa: E402
from sfumato.core import REPLACE_ONE, PureDP  # noqa: E402
from sfumato.evidence import losses  # noqa: E402
from sfumato.evidence.explain import explain  # noqa: E402
from sfumato.evidence.verify_plan import verify_folder  # noqa: E402
from sfumato.plan.draw_law import draw_law  # noqa: E402
from sfumato.plan.plan import Plan  # noqa: E402
from sfumato.run.planning import make_plan  # noqa: E402
from sfumato.run.study import run_plan  # noqa: E402

STUDY = """source(people, 'people.csv').
column(people, id, person(P)). rows_per_person(people, 1). missing(people, never).
column(people, age, age(P)). column(people, sex, sex(P)).
random(age(P)) :- person(P). range(age(P), 0, 100).
random(sex(P)) :- person(P). range(sex(P), [f, m]).
dataset(population, domain(P, person(P))).
privacy_requirement(census(public), population, dp(1)).
mean(m, age(P), person(P)). publish(average, m, census(public)).
count(women, (person(P), sex(P) = f)). publish(women, women, census(public)).
count(men, (person(P), sex(P) = m)). publish(men, men, census(public)).
"""
WISH = "prefer(average, huber). prefer(women, huber). prefer(men, huber).\n"
CENTRES = "centre(east). centre(west).\n"
NOISE = Huber.for_guarantee(PureDP(1.0), 3.0, REPLACE_ONE)


def failed(law: Any, *given: Any) -> str:
    try:
        law(*given)
    except (Exception, SystemExit) as error:
        return f"{law.__name__}: {type(error).__name__} {error}"[:300]
    return ""


def mechanism_laws() -> list[str]:
    """What fails of the laws of every mechanism."""
    row = Row(
        NOISE,
        ([0.0, 0.0], [2.0, 1.0]),
        lambda factor: Huber(NOISE.scale * factor, 3.0, REPLACE_ONE),
        lambda mechanism, trials: mechanism.sample([0.0], trials) ** 2,
    )
    ROWS[Huber] = row  # the law table's one line
    each = (
        laws.test_no_attacker_beats_the_claim,
        laws.test_an_attacker_beats_a_broken_twin,
        laws.test_the_guarantee_asked_for_is_kept,
        laws.test_calibration_is_not_wasteful,
        laws.test_event_survives_writing,
        laws.test_certificate_verifies,
        laws.test_a_seed_repeats_and_marks,
        laws.test_nobody_protected_is_refused,
    )
    done = [failed(law, row) for law in each]
    done += [failed(laws.test_error_is_what_it_says, row, factor) for factor in (2 / 3, 1.0, 3 / 2)]
    return [text for text in (*done, failed(laws.test_a_mechanism_is_four_things, Huber)) if text]


def noises(plan: Plan) -> list[str]:
    return sorted({draw.noise for draw in plan.draws})


def main(folder: Path) -> dict[str, Any]:
    laws.PROOFS = HERE / "laws" / "drawn"
    laws.HOUSES.append(HERE / "laws" / "drawn")
    table = pd.DataFrame({"id": range(400), "age": [20 + i % 60 for i in range(400)], "sex": ["f", "m"] * 200})
    table.to_csv(folder / "people.csv", index=False)
    (folder / "study.pl").write_text(STUDY + WISH, encoding="utf-8")
    plan = make_plan(load(folder / "study.pl"), sizes={"population": 400})
    release = run_plan(plan, folder, folder / "ledger.db", out=folder / "out", grant=True)
    found: dict[str, Any] = {"without a rule": [one.sentence for one in verify_folder(folder / "out") if not one.ok]}
    # The verifier's one line.
    losses.RULES["HuberEvent"] = losses.Rule(lambda _: "huber", lambda event: losses.Part("two-point", cost(event)))
    found["failures"] = [one.sentence for one in verify_folder(folder / "out", folder / "study.pl") if not one.ok]
    found["planned"] = noises(plan)
    found["read again"] = Plan.read(folder / "out" / "plan.json").hash == plan.hash
    found["explained"] = explain(plan, "analyst")
    seen = plan.publication("average").seen[0]
    found["off by"] = abs(release["average"].to_pylist()[0]["value"] - table["age"].mean()) / seen.half_width
    found["unasked"] = noises(make_plan(STUDY))
    found["over centres"] = noises(make_plan(STUDY + WISH + CENTRES))
    found["laws"] = mechanism_laws()
    found["quantiles"] = off_by_quantiles()
    found["variance"] = float(np.var(dataclasses.replace(NOISE, random_state=1).sample([0.0], 200_000))) / (
        VARIANCE * NOISE.scale**2
    )
    return found


def off_by_quantiles() -> float:
    """How far the share of draws below the quantiles is from what they are quantiles of."""
    drawn = dataclasses.replace(NOISE, random_state=2).sample([0.0], 100_000) / NOISE.scale
    at = np.array([0.001, 0.05, 0.3, 0.5, 0.62, 0.9, 0.999])
    below = (drawn.reshape(-1, 1) <= draw_law("huber").quantile(at)).mean(axis=0)
    return float(np.abs(below - at).max())


def cost(event: losses.Record) -> Decimal:
    """ε by the verifier's own arithmetic, rounded up."""
    return losses._moved(event, losses._side(event))


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
