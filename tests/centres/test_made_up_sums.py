"""A coordinator that makes up the end of a round: no centre goes on as if it had paid for it.

The first round of a study with models pays for all that follow. If a sum is told of before the centre's own part has
left, its reservation is given back; who believed the sum then would answer all later rounds for nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from centres.small_rounds import gather, granted_accounts, last_action, small_round
from sfumato.centres.messages import write_json
from sfumato.centres.network import Coordination
from sfumato.centres.outcome import Outcome
from sfumato.centres.wire import Frame
from sfumato.errors import RoundFailedError

STEPS = ("keys", "parcels", "included", "signatures")
NAMES = tuple(f"centre {number}" for number in range(3))
TOLD = st.fixed_dictionaries(
    {
        "step": st.sampled_from(STEPS),
        "revealed": st.booleans(),
        "included": st.lists(st.sampled_from((*NAMES, "nobody")), max_size=4).map(tuple) | st.just(NAMES),
        "length": st.sampled_from((3, 3, 0, 2, 4)),
        "number": st.sampled_from((0.0, 1e9, float("nan"), float("inf"))),
    }
)


def lying(told):
    """A coordinator that tells an outcome of its own in place of one of its questions."""

    class Lying(Coordination):
        async def _exchange(self, asked):
            if {frame.head["kind"] for frame in asked.values()} != {told["step"]}:
                return await super()._exchange(asked)
            made_up = Outcome(told["revealed"], "", (told["number"],) * told["length"], told["included"])
            frame = Frame({"kind": "outcome"}, write_json(made_up.to_dict()))
            await self._say_goodbye(dict.fromkeys(self._members, frame))
            return {}

    return Lying


@pytest.mark.parametrize("coordinator", ["curious", "malicious"])
@given(told=TOLD)
@example(told={"step": "keys", "revealed": True, "included": NAMES, "length": 3, "number": 0.0})
@settings(max_examples=4, deadline=None)
@pytest.mark.by_day(1)
def test_no_centre_believes_a_sum_that_it_did_not_pay_for(tmp_path_factory, coordinator, told):
    here = tmp_path_factory.mktemp("ledgers")
    agreed, keys, cells = small_round(3, 3, absences=0, coordinator=coordinator)
    opened = granted_accounts(here, agreed)
    _, found = gather(agreed, keys, cells, accounts={name: opened(name) for name in NAMES}, coordination=lying(told))
    for name in NAMES:
        if isinstance(found[name], Outcome):
            assert last_action(here, name) != "release"
            assert np.shape(found[name].values) == (agreed.length,)
            assert np.isfinite(found[name].values).all()
            assert name in found[name].included
        else:
            assert isinstance(found[name], RoundFailedError), found[name]
