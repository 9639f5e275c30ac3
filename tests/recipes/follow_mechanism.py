"""Follows "Add a mechanism" of docs/architecture.md in a process of its own, and prints which laws failed as JSON.

In a process of its own, since mechanisms are discovered: whoever imports this one has one mechanism more.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np

import sfumato.mechanisms

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sfumato.mechanisms.__path__.append(str(HERE / "mechanisms"))  # the recipe: a file in mechanisms/

from sfumato.mechanisms.turned_bit import TurnedBit  # type: ignore[import-not-found]  # noqa: E402

from laws import test_every_mechanism as laws  # noqa: E402
from laws.rows import ROWS, Row  # noqa: E402
from sfumato.core import REPLACE_ONE  # noqa: E402
from sfumato.evidence import losses  # noqa: E402

BIT = TurnedBit(3, 1, REPLACE_ONE)


def wrong_bits(mechanism: Any, trials: int) -> np.ndarray:
    return mechanism.sample([0], trials) != 0


def scaled(factor: float) -> Any:
    """ε divided by the factor."""
    return TurnedBit(1000, round(1000 * math.exp(-math.log(3) / factor)), REPLACE_ONE)


def cost(event: losses.Record) -> losses.Part:
    up = Context(prec=60)
    return losses.Part("two-point", up.next_plus(up.ln(up.divide(Decimal(event["keep"]), Decimal(event["turn"])))))


def failed(law: Any, *given: Any) -> str:
    try:
        law(*given)
    except (Exception, SystemExit) as error:
        return f"{law.__name__}: {type(error).__name__} {error}"[:300]
    return ""


def main() -> dict[str, Any]:
    laws.PROOFS = HERE / "mechanisms"
    laws.HOUSES.append(HERE / "mechanisms")
    found: dict[str, Any] = {"without a row": failed(laws.test_a_mechanism_is_four_things, TurnedBit)}
    row = Row(BIT, ([0], [1]), scaled, wrong_bits)
    found["without a rule"] = failed(laws.test_certificate_verifies, row)
    found["discovered"] = TurnedBit in laws.every_mechanism()
    ROWS[TurnedBit] = row  # the law table's one line
    losses.RULES["TurnedBitEvent"] = losses.Rule(lambda _: "turned_bit", cost)  # the verifier's one line
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
    done += [failed(laws.test_bad_values_are_refused, row, bad) for bad in ([], [math.nan], "text")]
    done += [failed(laws.test_error_is_what_it_says, row, factor) for factor in (2 / 3, 1.0, 3 / 2)]
    done += [failed(laws.test_a_mechanism_is_four_things, TurnedBit), failed(laws.test_rows_name_only_mechanisms)]
    found["failures"] = [text for text in done if text]
    lying = dataclasses.replace(row, mechanism=TurnedBit(3, 2, REPLACE_ONE), scaled=lambda factor: BIT)
    found["a twin that turns less often than it says"] = failed(laws.test_an_attacker_beats_a_broken_twin, lying) == ""
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
