"""What `public=` of a study takes is said where something else is given."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sfumato import Study
from sfumato.errors import InputError


@pytest.mark.parametrize("given", ["tables", Path("tables"), pd.DataFrame({"a": [1]}), ["places"]])
def test_public_tables_are_given_by_their_names(given):
    study = Study("t").table("t", pd.DataFrame({"age": [1, 2]}), person=None, missing="never", columns={"age": (0, 9)})
    study = study.promise("public", epsilon=1).mean("age", to="public")
    with pytest.raises(InputError, match=r"public=\{.*nothing was spent"):
        study.plan(size=2, public=given)
    assert study.plan(size=2, public={}).errors is not None
