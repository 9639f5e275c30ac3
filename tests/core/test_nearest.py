"""Which known word is offered for a wrong one."""

from __future__ import annotations

import random

from sfumato.core.tables import nearest


def test_what_differs_in_capital_letters_alone_is_offered_first():
    """Whatever else looks alike, and wherever it stands."""
    source = random.Random(3)
    for _ in range(200):
        name = "".join(source.choices("abcé", k=source.randrange(3, 9)))
        others = [name[:1] + " " + name[1:], "V " + name.capitalize(), name + "x", name.upper() + "X", "zzz"]
        known = [name, *others]
        source.shuffle(known)
        assert nearest(name.upper(), known) == f" (did you mean {name!r}?)"
