"""Which part of which paper works, where, and by which test: the page docs/papers.md.

In:   the tests that carry `@pytest.mark.paper(work, section, code, missing=…)`, and the list of sections below.
Out:  rows with a verdict, and the page; `python -m papers.audit` writes it.
Not here: the papers' experiments (catalogue.py).

A section that no test names is answered "no": nobody has to remember to say so.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SECTIONS", "WORKS", "Evidence", "Row", "evidence", "page", "rows"]

ROOT = Path(__file__).resolve().parents[1]

WORKS = {
    "000": "Farokhi, publishing a table for support vector machines (000, 001)",
    "002": "Basu, privacy by declared constraints (002)",
    "003": "Chaudhuri, Monteleoni & Sarwate, private empirical risk minimisation (003)",
    "004": "Park, private support vector data description (004)",
}

#: What each work describes. A section without a test is a section that does not work.
SECTIONS: dict[tuple[str, str], str] = {
    ("000", "§2.1"): "soft-margin machine (2) and its multipliers (15)",
    ("000", "Prop 2.2"): "error of an unbiased adversary, with the weight repaired",
    ("000", "Prop 2.3"): "how far noise moves the machine: an explicit bound in place of unknown constants",
    ("000", "Thm 2.4"): "the least informative noise is Gaussian",
    ("000", "Thm 2.5"): "λ from (ε, δ), exactly on the public box",
    ("000", "Thm 2.6"): "noise of bounded support: boxes for each column, lopsided boxes, linear constraints",
    ("000", "Cor 2.7"): "noise in an interval",
    ("000", "Thm 2.10"): "noise that leaves the machine as it is (no privacy promised)",
    ("000", "§2.4"): "linear and logistic regression that know the noise",
    ("000", "§2.4, kernels"): "machines that are not linear and know the noise",
    ("000", "Prop 2.11"): "how far noise moves a learner: an explicit bound, its hypotheses checked",
    ("000", "Figs 1–2"): "which (ε, δ) a λ meets; the adversary's error",
    ("000", "Figs 3–4"): "two features, ordinary and projected noise",
    ("000", "Figs 5–7"): "breast cancer, Adult, Lending Club",
    ("002", "§2.7"): "composition and Rényi privacy",
    ("002", "§3.3.2"): "linear queries: noise at inputs and outputs as one convex program (3.34)",
    ("002", "§3.3.2, budgets"): "(ε, δ) for each coordinate in (3.34)",
    ("002", "§3.3.3"): "the best channel for power means",
    ("002", "§3.4"): "encrypt or add noise, over medical centres",
    ("002", "§3.5"): "fairness as a constraint",
    ("002", "§4.4"): "the language: random, depends, dataset, requirement",
    ("002", "§4.4, units"): "dataset_instance and instance_rv: what belongs to a unit; units with two owners",
    ("002", "§4.4, personal"): "personal_rv: what a person sees of themselves",
    ("002", "§4.5"): "from a network to a constraint problem; zones",
    ("002", "§4.5, observers"): "several observers, alone and together",
    ("002", "§5.3"): "tailored noise by linear and quadratic programs",
    ("002", "§5.3, outputs"): "fewer outputs than inputs",
    ("002", "§5.3, δ"): "δ > 0 for more than 32 bins, in seconds",
    ("002", "§5.3, composition"): "a channel's loss distribution in composition",
    ("002", "§5.4"): "noise before or after a transformation",
    ("002", "§5.7"): "continuous shaped noise, by interpolation",
    ("002", "§5.7, joint"): "one channel for two attributes",
    ("002", "§6.1"): "requirements beyond differential privacy: Pufferfish",
    ("002", "§6.2"): "observe, reveal, forget over time",
    ("002", "Figs 5.1–5.8"): "channels against other noise on ds0 … ds3b, misra1d",
    ("002", "Figs 5.9–5.15"): "how bins are made",
    ("002", "Figs 3.3–3.6"): "design choices over centres",
    ("003", "Alg 1"): "output perturbation",
    ("003", "Alg 2"): "objective perturbation",
    ("003", "§3.4"): "logistic, Huber and smoothed hinge losses",
    ("003", "§3.1"): "any convex loss and regulariser that meets the conditions, which are checked",
    ("003", "Thm 3, 4"): "how many records output and objective perturbation need",
    ("003", "Thm 6, 7"): "how many records kernels need",
    ("003", "§5"): "kernels by random features (Alg 3): Gaussian, Laplacian, Cauchy, Matérn, polynomial",
    ("003", "§6"): "private tuning (Alg 4)",
    ("003", "Figs 2–3"): "accuracy against ε",
    ("003", "Tables 1–2"): "errors by regularisation",
    ("003", "Figs 4–5"): "learning curves",
    ("004", "Alg 1"): "a private support function, with the sensitivity repaired",
    ("004", "Thm 4.4"): "how far noise moves the support function, for a projected release",
    ("004", "§5.1–5.3"): "equilibrium points, basins and noisy votes, from public starts",
    ("004", "§6.1"): "publishing the support function",
    ("004", "§6.2"): "publishing labelled points alone",
    ("004", "§6.3"): "SVM WEIGHT, SVM SEMI, SVM OUTPUT",
    ("004", "Fig 1.1"): "what a support vector machine betrays",
    ("004", "Figs 5.1–5.2"): "regions with and without noise",
    ("004", "Fig 7.1"): "accuracy against ε",
    ("004", "Fig 7.2"): "published points, by neighbours",
    ("004", "Tables 7.1–7.2"): "tables, settings, times",
    ("004", "Table 7.3"): "subsamples of shuttle",
}


@dataclass(frozen=True)
class Evidence:
    """One marked test: the section it shows, the code it is about, and what of the section it leaves open."""

    work: str
    section: str
    code: str
    test: str
    missing: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the page."""

    work: str
    section: str
    what: str
    evidence: tuple[Evidence, ...]

    @property
    def verdict(self) -> str:
        """ "no" without a test, "partial" with what is missing, else "yes".

        >>> Row("003", "Alg 1", "…", ()).verdict
        'no'
        >>> Row("003", "Alg 1", "…", (Evidence("003", "Alg 1", "a.py", "t", "speed"),)).verdict
        'partial: speed'
        """
        if not self.evidence:
            return "no"
        missing = [one.missing for one in self.evidence if one.missing]
        return f"partial: {'; '.join(missing)}" if missing else "yes"


def evidence(folder: Path = ROOT / "tests") -> list[Evidence]:
    """Every test that names a section of a work, read without running anything."""
    found: list[Evidence] = []
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                test = f"{path.relative_to(folder.parent).as_posix()}::{node.name}"
                found += [_read(mark, test) for mark in node.decorator_list if _is_mark(mark)]
    return found


def _is_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.paper"


def _read(mark: ast.expr, test: str) -> Evidence:
    assert isinstance(mark, ast.Call)
    work, section, code = (ast.literal_eval(argument) for argument in mark.args)
    named = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
    return Evidence(work, section, code, test, named.get("missing", ""))


def rows(found: list[Evidence] | None = None) -> list[Row]:
    """The sections in their order, each with its tests."""
    found = evidence() if found is None else found
    return [
        Row(*key, what, tuple(one for one in found if (one.work, one.section) == key)) for key, what in SECTIONS.items()
    ]


def page(found: list[Evidence] | None = None) -> str:
    """docs/papers.md."""
    table = rows(found)
    lines = [
        "# What the papers describe, and what works",
        "",
        "Made by `python -m papers.audit` from the tests that carry `@pytest.mark.paper(…)`; a section that no test",
        "names is answered “no”. What the papers print wrongly was put right first: see [the proofs](proofs_index.md).",
        "`sfumato reproduce --list` names every figure and table; `sfumato reproduce --all --quick` writes one page.",
        "",
        _count(table),
    ]
    for work, title in WORKS.items():
        lines += ["", f"## {title}", "", "| section | what | where | test | verdict |", "|---|---|---|---|---|"]
        lines += [_line(row) for row in table if row.work == work]
    return "\n".join(lines) + "\n"


def _count(table: list[Row]) -> str:
    verdicts = [row.verdict.split(":")[0] for row in table]
    stand, part, absent = (verdicts.count(word) for word in ("yes", "partial", "no"))
    return f"Of {len(table)} rows {stand} stand, {part} in part, {absent} not."


def _line(row: Row) -> str:
    code = ", ".join(dict.fromkeys(f"`{one.code}`" for one in row.evidence))
    tests = ", ".join(f"`{one.test.removeprefix('tests/')}`" for one in row.evidence)
    return f"| {row.section} | {row.what} | {code} | {tests} | {row.verdict} |"


if __name__ == "__main__":
    (ROOT / "docs" / "papers.md").write_text(page(), encoding="utf-8")
