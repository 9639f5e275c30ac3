"""Study files as an unlucky author, a broken editor or an attacker would hand them over."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STUDIES = tuple(
    (EXAMPLES / name).read_text(encoding="utf-8")
    for name in (
        "oncology/study.pl",
        "oncology/printed.pl",
        "university/study.pl",
        "university/printed.pl",
        "linear_query/study.pl",
    )
)
TOKENS = re.compile(r"\w+|:-|\\\+|[^\w\s]|\s+")

SPITE = (
    "!", "->", ";", "::", "0.3::", ":-", "\\+", "(", ")", "[", "]", "|", ",", ".", ". ", "'", '"', "/*", "*/", "%",
    "{", "}", "consult('/etc/passwd')", "use_module(library(lists))", "assertz(patient(x))", "halt", "X", "_", "P",
    "D", "0", "-1", "1e308", "1e999", "9" * 400, "9**9**9", "0x1F", "1.e5", "é", "←", "λ", "∀", "\x00", "\x1b[31m",
    "\ud800", "\u202e", "🙂", "between(1, 999999999, X)", "length(L, 99999999)", "X is 9 ** 9999999", "X is 1 / 0",
    "X is Y + 1", "patient(P)", "findall(X, X, X)", "findall(P, patient(P), L)",
    "loop(s(X)) :- loop(X).\nloop(X) :- loop(s(X)).\n", "random(X)", "random(age(P)) :- random(age(P)).",
    "depends(age(P), [age(P)], age(P)).", "$", "'$patient_1'", "f(" * 150, "[" * 150, "-" * 300, "1+" * 600,
    "a," * 600, "(" * 3000, "\\+ " * 200, "f(a, b, c) = g(X, Y)", "dp(-1, 2)", "dp(0.1, nan)",
)  # fmt: skip


def mutated(seed: int) -> str:
    """One mutated study, the same for the same seed."""
    chance = random.Random(seed)
    text = chance.choice(STUDIES)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        text = chance.choice((_delete, _duplicate, _swap, _insert, _replace, _bytes, _cut, _clause, _rename))(
            chance, text
        )
    return text


def _pieces(text: str) -> list[str]:
    return TOKENS.findall(text) or [" "]


def _delete(chance: random.Random, text: str) -> str:
    pieces = _pieces(text)
    del pieces[chance.randrange(len(pieces))]
    return "".join(pieces)


def _duplicate(chance: random.Random, text: str) -> str:
    pieces = _pieces(text)
    place = chance.randrange(len(pieces))
    return "".join([*pieces[:place], *pieces[place : place + 1] * chance.choice((2, 3, 50)), *pieces[place:]])


def _swap(chance: random.Random, text: str) -> str:
    pieces = _pieces(text)
    one, two = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    pieces[one], pieces[two] = pieces[two], pieces[one]
    return "".join(pieces)


def _insert(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    return text[:place] + chance.choice(SPITE) + text[place:]


def _replace(chance: random.Random, text: str) -> str:
    pieces = _pieces(text)
    pieces[chance.randrange(len(pieces))] = chance.choice(SPITE)
    return "".join(pieces)


def _bytes(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text) + 1)
    return (
        text[:place]
        + "".join(chr(chance.choice((chance.randrange(256), chance.randrange(0x11000)))) for _ in range(5))
        + text[place:]
    )


def _cut(chance: random.Random, text: str) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randrange(200) :]


def _clause(chance: random.Random, text: str) -> str:
    """A whole clause moved, doubled or dropped: the text stays readable and its meaning breaks."""
    clauses = re.split(r"(?<=\.)\n", text)
    place = chance.randrange(len(clauses))
    kept = clauses.pop(place)
    for _ in range(chance.choice((0, 1, 2))):
        clauses.insert(chance.randrange(len(clauses) + 1), kept)
    return "\n".join(clauses)


def _rename(chance: random.Random, text: str) -> str:
    """One word for another: a variable, a predicate, a constant."""
    words = re.findall(r"[A-Za-z_]\w*", text) or ["a"]
    old, new = chance.choice(words), chance.choice(words)
    count = chance.choice((1, 1, 100))
    return re.sub(rf"\b{old}\b", new, text, count=count)


def many(first: int, number: int) -> Iterator[tuple[int, str]]:
    """Seeds and their studies."""
    return ((seed, mutated(seed)) for seed in range(first, first + number))
