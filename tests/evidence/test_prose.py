"""Facts are Python, words are templates: no prose in evidence/, no sentence twice, no value that writes a line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

import sfumato
from evidence.pages import Page
from plan.studies import HEAD, MEAN
from sfumato import make_plan
from sfumato.evidence.report import lawyer_html, report_html
from sfumato.run.publish import STRATEGIES
from sfumato.wording import TEMPLATES, page, printable, text

SOURCE = Path(sfumato.__file__).parent
#: The longest string that is no prose: a pattern, a piece of SVG, a label.
LONGEST = 200
#: Files that may hold longer ones. None: what a verifier finds is said in short sentences, refusals are raised.
EXEMPT: set[str] = set()
MARKS = "|>=-─$"


def said(tree: ast.AST) -> list[tuple[int, int]]:
    """(line, letters) of every string of a module that is neither a docstring nor part of an error."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            skipped |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):  # counted as a whole
            skipped |= {id(inner) for inner in node.values}
    return [(node.lineno, letters(node)) for node in ast.walk(tree) if id(node) not in skipped and letters(node)]


def letters(node: ast.AST) -> int:
    if isinstance(node, ast.JoinedStr):
        return sum(letters(part) for part in node.values)
    return len(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else 0


def prose(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.glob("*.py")):
        long = [line for line, size in said(ast.parse(path.read_text(encoding="utf-8"))) if size > LONGEST]
        found += [f"{path.name}:{line}" for line in long if path.name not in EXEMPT]
    return found


def test_no_module_of_evidence_holds_prose():
    assert prose(SOURCE / "evidence") == []
    assert prose(SOURCE / "plan") != []  # what a plan carries in its file: the count does find prose


@pytest.mark.parametrize("statement", ["x = f'{a} " + 120 * "ab " + "'", "f(" + repr(120 * "ab ") + ")"])
def test_prose_is_found(statement):
    assert max(size for _, size in said(ast.parse(statement))) > LONGEST
    assert said(ast.parse(f"raise E({120 * 'ab '!r})")) == []


def text_templates() -> list[Path]:
    return sorted(TEMPLATES.glob("*.txt"))


@pytest.mark.parametrize("path", text_templates(), ids=lambda path: path.name)
def test_every_line_of_a_text_begins_with_its_mark(path):
    """A value can begin no line, so that a name such as '# x' is never taken for a mark."""
    tags = re.compile(r"\{% macro .*?endmacro %\}|\{#.*?#\}|\{%.*?%\}", re.DOTALL)
    for line in tags.sub("", path.read_text(encoding="utf-8")).splitlines():
        assert not line or line[0] == " " or (line[0] in MARKS and line[1:2] in ("", " ")), line


def test_values_neither_break_nor_begin_a_line_nor_steer_a_terminal():
    hostile = "x\n= title\r\x1b[2J\u202e\u2028| y"
    step = {"kind": "history", "step": 1, "requirement": hostile, "whole": hostile, "shares": 2}
    told = text("shared.txt", None, shared=[step])
    assert told.count("\n") == 1
    assert printable(told[:-1]) == told[:-1]
    assert "= title" in told


def test_values_of_shared_sentences_are_escaped_in_pages():
    """A page takes its sentences from words.txt, whose own name does not decide whether values are escaped."""
    study = HEAD + MEAN + "privacy_requirement(openness(public), people, dp(1, 0.000001)).\n"
    study += "observe(public, age(P)) :- patient(P).\n"
    study = study.replace("public", "'<b>bold</b>'")
    plan = make_plan(study, sizes={"people": 100})
    for made in (report_html(plan), lawyer_html(plan)):
        assert "<b>" not in made
        assert "<b>bold</b>" in Page(made).text


def test_every_template_is_rendered_by_somebody():
    """Named in Python, or by a template that is; and every act that can be settled has its words."""
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    found = {path.relative_to(TEMPLATES).as_posix(): path for path in TEMPLATES.rglob("*.*")}
    named = {name for name in found if f'"{name}"' in code}
    named |= {f"explain_{word}.txt" for word in ("analyst", "lawyer", "subject")}
    for path in found.values():
        tree = Environment().parse(path.read_text(encoding="utf-8"))
        for node in tree.find_all((nodes.Import, nodes.Include)):
            named |= {str(node.template.value)} if isinstance(node.template, nodes.Const) else set()
    assert {name for name in found if not name.startswith("acts/")} <= named
    kinds = {name.removeprefix("acts/").removesuffix(".txt") for name in found if name.startswith("acts/")}
    assert kinds == {one.kind for one in STRATEGIES}


def test_a_page_with_a_fact_that_is_missing_is_not_written():
    with pytest.raises(LookupError, match="title"):
        page("lawyer.html", facts={}, report={})
    with pytest.raises(ValueError, match="no mark"):
        text("acts/table.txt", 80)
