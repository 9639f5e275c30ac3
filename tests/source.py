"""The package's own source, read and parsed once for all tests that look at how it is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import sfumato

SOURCE = Path(sfumato.__file__).parent


@dataclass
class Outline:
    """What the laws about the source ask of one file; its tree is not kept."""

    text: str
    classes: list[str] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    compared: list[tuple[int, ast.expr]] = field(default_factory=list)
    listed: list[tuple[int, set[object]]] = field(default_factory=list)
    exported: set[str] = field(default_factory=set)
    silent: list[str] = field(default_factory=list)
    #: Names that the file gives to something of its own, and (line, name) of private ones of what is not `self`.
    own: set[str] = field(default_factory=set)
    reached: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Outline:
        tree = ast.parse(text)
        found = cls(text)
        for node in ast.walk(tree):
            found._note(node)
            found._note_private(node)
        for node in tree.body:
            found._note_top(node)
        found.silent = [name for name in found.silent if name in found.exported]
        found.reached = [(line, name) for line, name in found.reached if name not in found.own]
        return found

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                self.names.add(name)
            case ast.ClassDef(name=name):
                self.classes.append(name)
            case ast.Import() | ast.ImportFrom():
                self.imports.append(node)
            case ast.Compare():
                self.compared += [(node.lineno, side) for side in (node.left, *node.comparators)]
            case ast.MatchValue():
                self.compared.append((node.lineno, node.value))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(keys=parts):
                self.listed.append((node.lineno, {part.value for part in parts if isinstance(part, ast.Constant)}))

    def _note_private(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.own.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                self.own.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=context):
                self.own |= {name} if isinstance(context, ast.Store) else set()
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                pass
            case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__"):
                self.reached.append((node.lineno, name))

    def _note_top(self, node: ast.stmt) -> None:
        """What `__all__` names, and which functions and classes say nothing about themselves."""
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__"), *_]):
                self.exported |= {str(word.value) for word in ast.walk(node.value) if isinstance(word, ast.Constant)}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if not ast.get_docstring(node):
                self.silent.append(node.name)


@cache
def _read(path: Path) -> Outline:
    return Outline.of(path.read_text(encoding="utf-8"))


def source() -> Iterator[tuple[str, Outline]]:
    """Every file of the package: its path below the package, and its outline."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), _read(path)
