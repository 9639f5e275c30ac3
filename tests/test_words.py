"""One word, one meaning: no two classes share a name, and docs/words.md says what the main ones mean."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import sfumato

SOURCE = Path(sfumato.__file__).parent
WORDS = Path(__file__).parents[1] / "docs" / "words.md"
#: The verifier shares no code, and calls the same thing by the same word.
SAME_MEANING = {"Part": ["core/parts.py", "evidence/losses.py"]}


def classes(texts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Where each class name is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(place)
    return dict(found)


def house() -> dict[str, list[str]]:
    paths = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "centres")
    return classes((path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")) for path in paths)


def twice(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in found.items() if len(places) > 1 and places != SAME_MEANING.get(name)}


def test_no_two_classes_share_a_name():
    assert not twice(house())


def test_a_second_class_of_a_name_is_found():
    assert twice(classes([("one.py", "class Budget: ..."), ("two.py", "if True:\n    class Budget: ...")]))


def listed() -> dict[str, str]:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| `([\w/.]+)` \|$", WORDS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len({word for word, _ in rows}), "a word stands twice in docs/words.md"
    return dict(rows)


def test_every_word_exists_where_the_page_says():
    found = house()
    wrong = {word: place for word, place in listed().items() if place not in found.get(word, [])}
    assert not wrong


def test_every_exported_noun_is_on_the_page():
    nouns = {name for name in sfumato.__all__ if isinstance(getattr(sfumato, name), type)}
    assert nouns - listed().keys() == set()


def undocumented(text: str) -> list[str]:
    """Functions and classes in a module's __all__ that say nothing about themselves."""
    body = ast.parse(text).body
    named = [node for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    exported = {word.value for node in named for word in ast.walk(node.value) if isinstance(word, ast.Constant)}
    written = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [node.name for node in written if node.name in exported and not ast.get_docstring(node)]


def test_what_is_exported_says_what_it_is():
    missing = {
        path.relative_to(SOURCE).as_posix(): names
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != "centres" and (names := undocumented(path.read_text(encoding="utf-8")))
    }
    assert not missing


def test_silence_is_found():
    assert undocumented('__all__ = ["load"]\ndef load(): ...\ndef _own(): ...') == ["load"]


#: Where something other than a text takes a place in one step: parts of tables, keys, locked markers, folders.
OWN_STEP = {
    "core/whole_file.py",
    "ledger/store.py",
    "run/partition_obfuscated.py",
    "run/partition_release.py",
    "run/row_key.py",
    "run/staging.py",
}


def test_a_file_is_written_whole_in_one_place():
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if "os.replace(" in path.read_text(encoding="utf-8") and path.relative_to(SOURCE).parts[0] != "centres"
    }
    assert "core/whole_file.py" in found
    assert found <= OWN_STEP
