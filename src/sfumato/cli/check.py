"""`sfumato check STUDY.pl`: every problem of a study at once, for people or for editors.

In:   a path.
Out:  text or JSON; whether the study can be planned.
Not here: the checks (run/checking.py and what it calls).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.lang.problem import Problem
from sfumato.lang.spec import Spec
from sfumato.run.checking import examine_study

__all__ = ["check_study", "plain_check", "run_check"]


def plain_check(arguments: Sequence[str]) -> bool | None:
    """`check STUDY [--json]` without the machinery of options, which takes as long to load as a study to check.

    None for everything else, to be read as it always is; so are failures, which are told there.
    """
    words = [word for word in arguments if word != "--json"]
    if len(words) != 2 or words[0] != "check" or words[1].startswith("-") or len(arguments) > 3:
        return None
    try:
        return check_study(Path(words[1]), "--json" in arguments)
    except Exception:  # nothing was printed yet
        return None


def check_study(study: Path, as_json: bool = False, data: Path | None = None) -> bool:
    """Print what is wrong with a study; whether it can be planned."""
    text, fine = run_check(study, as_json, data)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
    return fine


def run_check(study: Path, as_json: bool = False, data: Path | None = None) -> tuple[str, bool]:
    """What to print, and whether there are no errors."""
    spec, problems = examine_study(study, data)
    errors = sum(problem.severity == "error" for problem in problems)
    text = _record(study, spec, problems) if as_json else _page(study, spec, problems)
    return text, errors == 0


def _record(study: Path, spec: Spec | None, problems: tuple[Problem, ...]) -> str:
    record: dict[str, Any] = {
        "study": str(study),
        "digest": spec.digest if spec else None,
        "errors": sum(problem.severity == "error" for problem in problems),
        "warnings": sum(problem.severity == "warning" for problem in problems),
        "problems": [problem.to_dict() for problem in problems],
    }
    return json.dumps(record, indent=2, ensure_ascii=True)


def _page(study: Path, spec: Spec | None, problems: tuple[Problem, ...]) -> str:
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    parts = [problem.describe() for problem in problems]
    counted = f"{_number(errors, 'error')}, {_number(warnings, 'warning')}"
    if errors or spec is None:
        parts.append(f"{study}: {counted}. Nothing was run and nothing was spent.")
    else:
        parts.append(f"{study}: {counted}. {_summary(spec, problems)}")
    return "\n".join(parts)


def _summary(spec: Spec, problems: tuple[Problem, ...]) -> str:
    promises = [f"  {requirement.observer}: {requirement.guarantee}" for requirement in spec.requirements]
    looked = not any(problem.code == "not-checked" for problem in problems)
    return ("The study can be planned." if looked else "Nothing speaks against it so far.") + (
        "\nPromised, observer by observer:\n" + "\n".join(promises) if promises else ""
    )


def _number(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
