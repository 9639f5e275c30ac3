"""A plan's hash tells every change of it: no two different plans have one hash."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.digest import plan_digest

#: Texts near those that infinity is written as, and the numbers themselves.
_WORDS = st.sampled_from(["infinity", "-infinity", "\\infinity", "\\\\infinity", "\\-infinity", "Infinity", "inf", ""])
_LEAVES = _WORDS | st.sampled_from([math.inf, -math.inf, 0, 1.5, True, None]) | st.text(max_size=4)
_PLANS = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3))


@given(_PLANS, _PLANS)
def test_plans_that_differ_have_different_hashes(one, other):
    """JSON as Python writes it tells infinity from the word, and shares no code with the hash."""
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (plan_digest(one) == plan_digest(other)) == same


def test_an_observer_called_infinity_is_no_number():
    assert plan_digest({"observer": "infinity"}) != plan_digest({"observer": math.inf})
    assert plan_digest({"observer": "\\infinity"}) != plan_digest({"observer": "infinity"})
