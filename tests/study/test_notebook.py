"""What a notebook shows: every value a card, every name escaped, no script; the magic; the notebooks in examples/."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from sfumato import Categories, Interval, Ledger, Schema, Study
from sfumato.errors import InputError, StudyError
from sfumato.learn import PrivateLogisticRegression
from sfumato.release import GaussianRelease, SyntheticRelease

ROOT = Path(__file__).parents[2]
EVIL = "<img src=x onerror=alert(1)>"
SECRET = 7.123456


@pytest.fixture(autouse=True)
def _main_module(monkeypatch):
    """A shell puts a module of its own in the place of __main__; processes that are started later need the old one."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One value of every kind that shows itself, made from names that try to break out."""
    folder = tmp_path_factory.mktemp("notebook")
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": range(300), EVIL: generator.uniform(0, 10, 300), "c": generator.choice(["<a>", "b"], 300)}
    )
    frame.loc[0, EVIL] = SECRET
    study = (
        Study(EVIL)
        .table("t", frame, person="id", columns={EVIL: Interval(0, 10), "c": Categories(["<a>", "b"])})
        .promise("<b>public", epsilon=2, delta=1e-6)
        .mean(EVIL, by="c", to="<b>public")
        .histogram("c", to="<b>public")
        .classifier("c", [EVIL], to="<b>public", name="model")
    )
    plan = study.plan(size=300)
    release = plan.run(ledger=Ledger(folder / "ledger.db"), grant=True)
    schema = Schema({EVIL: Interval(0, 10), "c": Categories(["<a>", "b"])})
    rows = generator.normal(size=(2000, 3)) / 4
    fitted = PrivateLogisticRegression(epsilon=2.0, delta=1e-6, norm=1.0).fit(rows, (rows[:, 0] > 0).astype(int))
    table = {EVIL: frame[EVIL].to_numpy(), "c": frame["c"].to_numpy()}
    return {
        "study": study,
        "empty": Study(),
        "plan": plan,
        "errors": plan.errors,
        "release": release,
        "answer": release["histogram c"],
        "certificate": release.certificate,
        "schema": schema,
        "balance": Ledger(folder / "ledger.db").balance("t", "person"),
        "table": GaussianRelease(schema, epsilon=2.0, delta=1e-6, label="c").release(table),
        "synthetic": SyntheticRelease(schema, epsilon=2.0, delta=1e-6).release(table),
        "model": release.model("model"),
        "estimator": fitted,
    }


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("br", "img", "input", "meta", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "path":
            assert self.open.pop() == tag


KINDS = (
    *("study", "empty", "plan", "errors", "release", "answer", "certificate", "schema", "balance", "table"),
    *("synthetic", "model", "estimator"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_shows_itself_and_no_name_breaks_out(shown, kind):
    value = shown[kind]
    page = value._repr_html_()
    # What scikit-learn draws below the card of an estimator is its own.
    own = page[: page.index("<style>", page.index("</style>"))] if kind == "estimator" else page
    tags = _Tags()
    tags.feed(own)
    found = {tag for tag, _ in tags.seen}
    assert not found & {"script", "img", "iframe", "link"}, found
    assert not [attributes for tag, attributes in tags.seen if "id" in attributes or "onerror" in attributes]
    assert "http" not in own
    assert len(own) < 12_000 * (6 if kind == "release" else 1)
    assert str(SECRET) not in page
    bundle = value._repr_mimebundle_()
    assert bundle["text/html"].startswith(own)
    assert bundle["text/plain"]


def test_a_study_says_what_is_missing(shown):
    assert "No table yet" in shown["empty"]._repr_html_()
    assert "Next: .plan" in shown["study"]._repr_html_()


def test_intervals_are_drawn_as_bars_with_words(shown):
    page = shown["answer"]._repr_html_()
    assert page.count('role="img"') == 2
    assert re.search(r'aria-label="between [\d.-]+ and [\d.]+"', page)


def test_pictures(shown, tmp_path):
    assert mpl.get_backend()  # no window is opened: figures are made without pyplot
    for name in ("plan", "release", "answer"):
        path = tmp_path / f"{name}.png"
        shown[name].plot().savefig(path)
        assert path.stat().st_size > 2000
    with pytest.raises(InputError, match="no intervals"):
        shown["errors"].plot()


def test_the_cell_magic_plans_a_study_where_it_stands(shown):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sfumato")
    text = shown["study"].to_text()
    plan = shell.run_cell_magic("sfumato", "mine --size 300", text)
    assert shell.user_ns["mine"].to_text() == text
    assert plan.plan.hash == shown["plan"].plan.hash
    with pytest.raises(InputError, match="is no name"):
        shell.run_cell_magic("sfumato", "2x", text)
    with pytest.raises(StudyError):
        shell.run_cell_magic("sfumato", "", "mean(m, x(P), y(P)).\n")


def test_a_problem_in_a_cell_names_the_cell():
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    lines = ("from sfumato import Study", "try:", "    Study('x').promise('a', epsilon=1)")
    code = "\n".join((*lines, "except ValueError as error:", "    said = str(error)"))
    assert shell.run_cell(code, store_history=True).success
    assert "line 3, .promise('a')" in shell.user_ns["said"]


NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_run_from_top_to_bottom(path, tmp_path, monkeypatch):
    """Cell by cell in one shell, in an empty folder, as a reader would."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell.instance()
    shell.reset(new_session=False)
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    for cell in book["cells"]:
        assert not cell.get("outputs"), "notebooks are kept without outputs"
        if cell["cell_type"] == "code":
            result = shell.run_cell("".join(cell["source"]))
            assert result.success, "".join(cell["source"])


def test_there_are_two_notebooks():
    assert len(NOTEBOOKS) >= 2
