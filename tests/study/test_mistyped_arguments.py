"""An argument that a method of a study does not have is refused in words, with the nearest one that it has."""

import inspect

import numpy as np
import pytest

from sfumato import Study
from sfumato.errors import StudyError
from sfumato.study.forms import FORMS

METHODS = ("table", "derive", "promise", "fair", *FORMS)


def mistyped(name: str, generator) -> str:
    """A letter twice, or two in the wrong places."""
    place = int(generator.integers(len(name) - 1))
    swapped = name[:place] + name[place + 1] + name[place] + name[place + 2 :]
    return swapped if swapped != name and generator.integers(2) else name[: place + 1] + name[place:]


@pytest.mark.parametrize("method", METHODS)
def test_the_nearest_argument_is_named(method):
    generator = np.random.default_rng(len(method))
    study = Study("typed").table("t", person="id", columns={"x": (0, 1)}).promise("public", epsilon=1)
    named = [one for one in inspect.signature(getattr(Study, method)).parameters if one != "self" and len(one) > 3]
    for name in named:
        wrong = mistyped(name, generator)
        with pytest.raises(StudyError, match="Nothing was planned and nothing was spent") as refused:
            getattr(study, method)(**{wrong: 1})
        said = str(refused.value)
        assert f"{wrong!r}" in said
        assert "did you mean" in said
        assert "test_mistyped_arguments.py, line " in said
    with pytest.raises(StudyError, match=r"missing a required argument|no argument 'too' \(did you mean 'to'"):
        getattr(study, method)(**({"too": 1} if method in FORMS else {}))
