"""One word, one meaning: no two classes share a name, and docs/words.md says what the main ones mean."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from types import FunctionType

import sfumato
from sfumato import centres
from source import Outline, source

WORDS = Path(__file__).parents[1] / "docs" / "words.md"
#: The verifier shares no code, and calls the same thing by the same word. A round that sums one statistic of a schema
#: asks the question of that name how far an individual moves it.
SAME_MEANING = {
    "Part": ["core/parts.py", "evidence/losses.py"],
    "Count": ["centres/statistics.py", "questions/count.py"],
    "Histogram": ["centres/statistics.py", "questions/histogram.py"],
}


def classes(outlines: Iterable[tuple[str, Outline]]) -> dict[str, list[str]]:
    """Where each class name is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, outline in outlines:
        for name in outline.classes:
            found[name].append(place)
    return dict(found)


def twice(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in found.items() if len(places) > 1 and places != SAME_MEANING.get(name)}


def test_no_two_classes_share_a_name():
    assert not twice(classes(source()))


def test_a_second_class_of_a_name_is_found():
    planted = {"one.py": "class Budget: ...", "two.py": "if True:\n    class Budget: ..."}
    assert twice(classes((place, Outline.of(text)) for place, text in planted.items()))


def listed() -> dict[str, str]:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| `([\w/.]+)` \|$", WORDS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len({word for word, _ in rows}), "a word stands twice in docs/words.md"
    return dict(rows)


def test_every_word_exists_where_the_page_says():
    found = classes(source())
    wrong = {word: place for word, place in listed().items() if place not in found.get(word, [])}
    assert not wrong


def test_every_exported_noun_is_on_the_page():
    nouns = {name for name in sfumato.__all__ if isinstance(getattr(sfumato, name), type)}
    assert nouns - listed().keys() == set()


def test_what_is_exported_says_what_it_is():
    """Functions and classes in a module's __all__ have words of their own."""
    assert not {place: outline.silent for place, outline in source() if outline.silent}


def test_silence_is_found():
    assert Outline.of('__all__ = ["load"]\ndef load(): ...\ndef _own(): ...').silent == ["load"]
    assert Outline.of('__all__ = ["load"]\nasync def load(): ...').silent == ["load"]


def silent_members(exported: type) -> list[str]:
    """What can be called or read of a class and says nothing about itself, nor where it is inherited from."""
    members = {name: inspect.getattr_static(exported, name) for name in dir(exported) if not name.startswith("_")}
    said = property, classmethod, staticmethod, cached_property, FunctionType
    asked = {name: one for name, one in members.items() if isinstance(one, said)}
    return [name for name, one in asked.items() if not inspect.getdoc(getattr(one, "__func__", one))]


def test_what_centres_export_says_what_each_of_its_methods_promises():
    found = {name: one for name in centres.__all__ if isinstance(one := getattr(centres, name), type)}
    assert not {name: silent for name, one in found.items() if (silent := silent_members(one))}


class Planted:
    def told(self):
        """In words."""

    def untold(self): ...

    @property
    def shown(self): ...


class Below(Planted):
    def told(self): ...


def test_a_silent_method_is_found():
    assert silent_members(Below) == ["shown", "untold"]


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
    found = {place for place, outline in source() if "os.replace(" in outline.text}
    assert "core/whole_file.py" in found
    assert found <= OWN_STEP
