"""What sums show of a table is not asked again, and what the curator is told is what plain Python counts."""

from __future__ import annotations

import random
import warnings

import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.errors import UndeclaredCellWarning
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.network.tables import TableRoom
from sfumato.run.engine.engine import LocalEngine
from sfumato.run.engine.study import evaluate_on

WORDS = ["a", "b", "c"]
STUDY = """
source(t, 't.parquet'). column(t, who, p(P)). rows_per_person(t, 1).
column(t, w, w(P)). random(w(P)) :- p(P). range(w(P), [a, b, c{other}]). {missing}
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10). missing(x(P), 3).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
{asked} publish(s, s, r(pub)).
"""
ASKED = [
    "sum(s, x(P), p(P), by([w(P)])).",
    "histogram(s, [w(P)], p(P)).",
    "histogram(s, [w(P), x(P): [5]], (p(P), x(P) > 2)).",
    "mean(s, x(P), p(P)).",
]


def share(count: int, rows: int) -> str:
    percent = 100 * count / rows
    return "all" if count == rows else f"{percent:.1f} %" if percent >= 0.1 else "less than 0.1 %"


def expected(who: list, words: list, never: bool, collects: bool) -> list[str]:
    """How every sentence begins."""
    rows, found = len(words), []
    if nobody := sum(one is None for one in who):
        found.append(f"Column 'who' of t: {share(nobody, rows)} of its cells are absent")
    absent = sum(word is None for word in words)
    unlisted = [word for word in words if word is not None and word not in WORDS]
    nearly = sum(word.strip().lower() in WORDS for word in unlisted)
    if nearly or (never and (absent or (unlisted and not collects))):
        parts = [f"{share(absent, rows)} of its cells are absent"] if absent else []
        if unlisted and (nearly or not collects):
            near = f" ({share(nearly, rows)} but for capital letters or blanks)" if nearly else ""
            parts.append(f"{share(len(unlisted), rows)} of its cells are not in its list{near}")
        found.append(f"Column 'w' of t: {' and '.join(parts)};")
    return sorted(found)


def heard(work) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndeclaredCellWarning)
        work()
    return sorted(str(one.message) for one in caught if one.category is UndeclaredCellWarning)


def case(seed: int, folder) -> tuple[Network, list, list, bool, bool]:
    """A study, its table in two files, and what is in it."""
    rng = random.Random(seed)
    never, collects, size = rng.random() < 0.5, rng.random() < 0.3, rng.choice([1, 2, 40])
    odd = rng.sample([None, "x", "A", " b", "d"], rng.randrange(4))
    words = [rng.choice(odd) if odd and rng.random() < 0.1 else rng.choice(WORDS) for _ in range(size)]
    who: list = [3 * number for number in range(size)]
    if rng.random() < 0.5:
        rng.shuffle(who)
    if rng.random() < 0.5:
        who = [rng.choice([one, None, 0]) for one in who]
    if rng.random() < 0.4 and odd:  # in rows that no sum reads
        words = [rng.choice(odd) if one is None else "b" for one in who]
    text = STUDY.format(
        other=" | d" if collects else "",
        missing="missing(t, never)." if never else "missing(w(P), b).",
        asked=rng.choice(ASKED),
    )
    table = pa.table({"who": pa.array(who, pa.int64()), "w": pa.array(words, pa.string()), "x": [1.0] * size})
    folder.mkdir()
    for number, part in enumerate((table[: size // 2], table[size // 2 :])):
        parquet.write_table(part, folder / f"{number}.parquet")
    return Network.from_spec(load(text)), who, words, never, collects


def wrong(seed: int, folder) -> list[str]:
    network, who, words, never, collects = case(seed, folder)
    if collects:  # then d is the listed word for all others
        words = ["a" if word == "d" else word for word in words]
    wanted = expected(who, words, never, collects)
    ways = {
        "sums alone": lambda: network.evaluate({"t": folder}, sums_only=True),
        "everybody": lambda: network.evaluate({"t": folder}),
        "two shares": lambda: evaluate_on(LocalEngine(), network, {"t": folder}, 2, sums_only=True),
    }
    told = {name: heard(way) for name, way in ways.items()}
    bad = [f"{name}: {told[name]}, not {wanted}" for name in told if not _begin(told[name], wanted)]
    return bad + [name for name in told if told[name] != told["everybody"]]


def _begin(sentences: list[str], beginnings: list[str]) -> bool:
    pairs = zip(sentences, beginnings, strict=False)
    return len(sentences) == len(beginnings) and all(one.startswith(begin) for one, begin in pairs)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(4)
def test_what_is_told_is_what_plain_python_counts(seed, tmp_path):
    for number in range(4):
        assert wrong(100 * seed + number, tmp_path / f"t{number}") == []


@pytest.mark.slow
def test_what_is_told_of_many_tables(tmp_path):
    assert [seed for seed in range(2000, 2300) if wrong(seed, tmp_path / f"t{seed}")] == []


@pytest.mark.parametrize("word", ["a", "x", None])
def test_only_what_sums_did_not_show_is_asked_again(word, tmp_path, monkeypatch):
    """Identifiers that rise are all there, and words without a gap are all listed."""
    text = STUDY.format(other="", missing="missing(t, never).", asked=ASKED[0])
    network = Network.from_spec(load(text))
    parquet.write_table(pa.table({"who": range(9), "w": [*"abcabcab", word], "x": [1.0] * 9}), tmp_path / "t.parquet")
    asked, run = [], TableRoom.run
    monkeypatch.setattr(TableRoom, "run", lambda room, query: asked.append(query) or run(room, query))
    said = heard(lambda: network.evaluate({"t": tmp_path / "t.parquet"}, sums_only=True))
    again = [query for query in asked if query.startswith("SELECT count(*), count(")]
    assert not any("who" in query for query in again)
    assert bool(said) == any('count("w")' in query for query in again) == (word != "a")


def test_shares_tell_of_decimal_identifiers_what_one_process_tells(tmp_path):
    """From 2⁵³ on a decimal number is not told from the next."""
    network = Network.from_spec(load(STUDY.format(other="", missing="missing(t, never).", asked=ASKED[0])))
    for number in range(2):
        who = [float(2**53 + 40 * number + 2 * place) for place in range(20)]
        parquet.write_table(pa.table({"who": who, "w": ["a"] * 20, "x": [1.0] * 20}), tmp_path / f"{number}.parquet")
    alone = heard(lambda: network.evaluate({"t": tmp_path}, sums_only=True))
    assert len(alone) == 1
    for sums_only in (False, True):
        shares = heard(lambda only=sums_only: evaluate_on(LocalEngine(), network, {"t": tmp_path}, 2, sums_only=only))
        assert shares == alone
