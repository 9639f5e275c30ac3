"""The Python reference, made from docstrings whenever the site is built: no page to keep in step by hand.

In:   the public names of sfumato, sfumato.learn and sfumato.release.
Out:  reference.md, for mkdocs (on_files) and for a test.
Not here: what the names do.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

__all__ = ["on_files", "reference_text"]

PAGE = "reference.md"
#: Classes that a user meets without naming them.
_MET = ("study.planned.StudyPlan", "study.released.StudyRelease", "study.tidy.Tidy")
#: Rooms with what they are for.
ROOMS = (
    ("sfumato", "Studies, promises, ledgers, noise", _MET),
    ("sfumato.learn", "Private models", ()),
    ("sfumato.release", "Tables and synthetic rows", ()),
)
_HEAD = """# Python reference

Made from the docstrings when this site is built. What a name promises stands in its own words; examples run in tests.
"""


def on_files(files: Any, config: Any) -> Any:
    """mkdocs calls it when it has listed the pages."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=reference_text()))
    return files


def reference_text() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(line for room in ROOMS for line in _room(*room))])


def _room(module: str, title: str, more: tuple[str, ...]) -> Iterator[str]:
    yield f"## `{module}`: {title}\n"
    found = import_module(module)
    named = {name: getattr(found, name) for name in found.__all__}
    for path in more:
        home, name = path.rsplit(".", 1)
        named[name] = getattr(import_module(f"sfumato.{home}"), name)
    for name in sorted(named, key=str.lower):
        yield from _entry(name, named[name], "###")
        for method, value in _methods(named[name]):
            yield from _entry(f"{name}.{method}", value, "####")


def _methods(owner: Any) -> Iterator[tuple[str, Any]]:
    """What a class says itself, or inherits from another class of ours."""
    if not inspect.isclass(owner):
        return
    for name, value in inspect.getmembers(owner):
        ours = any(name in vars(one) for one in owner.__mro__ if one.__module__.startswith("sfumato"))
        if ours and not name.startswith("_") and (callable(value) or isinstance(value, property)):
            yield name, value


def _entry(name: str, value: Any, level: str) -> Iterator[str]:
    told = inspect.getdoc(value) if callable(value) or isinstance(value, property) else f"`{value}`"
    yield f"{level} {name}\n"
    if (callable(value) and not issubclass(type(value), type)) or inspect.isclass(value):
        yield f"```text\n{name}{_signature(value)}\n```\n"
    yield f"{_shown(told or '')}\n"


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(…)"
    return re.sub(r"(?:[a-z_]+\.)+(?=[A-Z])", "", text).replace("self, ", "").replace("(self)", "()")


def _shown(text: str) -> str:
    """Examples become blocks of code; everything else is prose that must not be read as markup of another kind."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        begins = line.startswith(">>>")
        if begins and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line if inside else line.replace("<", "&lt;"))
    return "\n".join([*lines, *(["```"] if inside else [])])
