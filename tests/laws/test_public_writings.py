"""A public column of wards is one thing, however it is written: whole numbers, decimals, text, files of text.

The same wards are written in every way in which pandas and files write them, and asked for through clauses, through
goals, by facts of the study, through a second table and ward by ward. Every number is what pandas finds; a study that
writes one ward in two ways is refused in words.
"""

from __future__ import annotations

import decimal
import itertools

import pandas as pd
import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.lang import load
from sfumato.network import Network

IDS = [1, 2, 3, 4, 5, 6]
WARDS = [7, 8, None, 7, 7.5, 10]
X = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
source(g, 'g.parquet'). column(g, id, p(P)). column(g, w, ward(W)). relation(g, in(P, W)). public(g).
source(h, 'h.parquet'). column(h, w, ward(W)). column(h, side, side(S)). relation(h, lies(W, S)). public(h).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, gdp(1000000)).
random(y(P)) :- p(P). sum(s, y(P), p(P)). publish(o, s, r(pub)). count(c, (p(P), {goal})). publish(n, c, r(pub)).
"""
#: How clauses tell who is in ward 7; {w} is how the study writes it.
FORMS = {
    "a condition": "depends(y(P), [x(P)], 10 * x(P)) :- in(P, {w}). "
    "depends(y(P), [x(P)], x(P)) :- p(P), \\+ in(P, {w}).",
    "a fact of the study": "wanted({w}). depends(y(P), [x(P)], 10 * x(P)) :- in(P, W), wanted(W). "
    "own(P) :- in(P, W), wanted(W). depends(y(P), [x(P)], x(P)) :- p(P), \\+ own(P).",
    "a list": "own(P) :- in(P, W), member(W, [{w}, other]). depends(y(P), [x(P)], 10 * x(P)) :- own(P). "
    "depends(y(P), [x(P)], x(P)) :- p(P), \\+ own(P).",
    "an equality": "own(P) :- in(P, W), W = {w}. depends(y(P), [x(P)], 10 * x(P)) :- own(P). "
    "depends(y(P), [x(P)], x(P)) :- p(P), \\+ own(P).",
    "a second table": "own(P) :- in(P, W), lies(W, north). depends(y(P), [x(P)], 10 * x(P)) :- own(P). "
    "depends(y(P), [x(P)], x(P)) :- p(P), \\+ own(P). marked({w}).",
}
WRITTEN = ("7", "7.0", "'7'", '"7"')


def absent(cells):
    return pd.DataFrame({"id": IDS, "w": cells})


def present(cells):
    return absent(cells).dropna(subset="w")


def texts(sign):
    return [None if one is None else sign(one) for one in WARDS]


#: The wards in every writing; where no cell is absent, the person has no row.
WRITINGS = {
    "decimals with an absent cell": lambda _: absent(WARDS),
    "decimals": lambda _: present(WARDS),
    "32 bits": lambda _: absent(WARDS).astype({"w": "float32"}),
    "text": lambda _: present(texts(lambda one: f"{one:g}")),
    "text with an absent cell": lambda _: absent(texts(lambda one: f"{one:g}")),
    "text of decimals": lambda _: absent(texts(lambda one: str(float(one)))),
    "both texts": lambda _: absent([None if one is None else ("7.0" if place else "7")
                                    if one == 7 else str(one) for place, one in enumerate(WARDS)]),
    "text beside a word": lambda _: pd.concat([absent(texts(str)), pd.DataFrame({"id": [9], "w": ["none"]})]),
    "categories": lambda _: absent(pd.Categorical(texts(lambda one: f"{one:g}"))),
    "numbers and text": lambda _: absent([None, *texts(str)[1:]]).fillna({"w": "7"}).drop(index=2),
    "CSV": lambda folder: csv(folder, "{:g}"),
    "CSV of decimals": lambda folder: csv(folder, "{:.1f}"),
    "CSV beside a word": lambda folder: csv(folder, "{:g}", "9,none\n"),
}  # fmt: skip


def csv(folder, sign, more=""):
    rows = (f"{who},{'' if one is None else sign.format(one)}\n" for who, one in zip(IDS, WARDS, strict=True))
    (folder / "g.csv").write_text("id,w\n" + "".join(rows) + more)
    return folder / "g.csv"


def private():
    return pd.DataFrame({"id": IDS, "x": X})


def sides(w=("7", "8")):
    return pd.DataFrame({"w": list(w), "side": ["north", "south"]})


def numbers(text, tables):
    """Every aggregate without noise, by name."""
    network = Network.from_spec(load(text), tables)
    found = network.evaluate(tables).aggregates
    return {node.name: float(node.question.truth(found[node.name])[0]) for node in network.aggregates}


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("form", FORMS)
def test_clauses_and_goals_find_the_same_ward_in_every_writing(form, writing, tmp_path):
    mine = pd.Series([one == 7 for one in WARDS])
    want = {"s": float((private().x * mine.map({True: 10, False: 1})).sum()), "c": float(mine.sum())}
    w = WRITTEN[(list(FORMS).index(form) + list(WRITINGS).index(writing)) % len(WRITTEN)]
    text = HEAD.format(goal=f"in(P, {w})") + FORMS[form].format(w=w)
    assert numbers(text, {"t": private(), "g": WRITINGS[writing](tmp_path), "h": sides()}) == want, w


@pytest.mark.parametrize("writing", WRITINGS)
def test_each_ward_is_published_once(writing, tmp_path):
    by_ward = "sum(s(W), x(P), (p(P), in(P, W))) :- in(_, W). publish(o(W), s(W), r(pub)) :- in(_, W)."
    text = HEAD.split("random(y(P))", maxsplit=1)[0] + by_ward
    found = numbers(text, {"t": private(), "g": WRITINGS[writing](tmp_path), "h": sides()})
    own = private().assign(w=WARDS).groupby("w").x.sum()
    want = {f"s({int(w) if float(w).is_integer() else w})": x for w, x in own.items()}
    assert {name: x for name, x in found.items() if name != "s(none)"} == want


@pytest.mark.parametrize("writing", WRITINGS)
def test_tables_meet_in_every_writing(writing, tmp_path):
    sides_of = ([7, 8], [7.0, None], ["7", "8"], ["7.0", "x"])[list(WRITINGS).index(writing) % 4]
    text = HEAD.format(goal="in(P, 7)") + FORMS["a second table"].format(w=8)
    found = numbers(text, {"t": private(), "g": WRITINGS[writing](tmp_path), "h": sides(sides_of)})
    assert found == {"s": sum(x * (10 if w == 7 else 1) for x, w in zip(X, WARDS, strict=True)), "c": 2.0}


def test_a_ward_in_two_ways_is_refused_in_words(tmp_path):
    form = "depends(y(P), [x(P)], 10 * x(P)) :- in(P, 7). depends(y(P), [x(P)], x(P)) :- in(P, W), W = {w}."
    for w, writing in itertools.product(("'7'", '"7"', "7.0"), list(WRITINGS)[:4]):
        tables = {"g": WRITINGS[writing](tmp_path), "h": sides()}
        text = HEAD.format(goal="in(P, 7)") + form.format(w=w)
        with pytest.raises(SchemaError, match=r"w of g holds 7, which the study writes in several ways.*in one way"):
            Network.from_spec(load(text), tables)


#: Cells of which a goal says more than one number would: what the study writes finds them in clauses too.
CODES = {
    "zeros in front": (["007", "7", "08"], {"7": [0, 1], "'007'": [0], '"7"': [1], "8.0": [2]}),
    "exponents": (["1e3", "1000", "12e1"], {"1000": [0, 1], "'1e3'": [0], "120": [2], "'1000'": [1]}),
    "signs and blanks": (["+7", " 7", "-7"], {"7": [0, 1], "'+7'": [0], "-7": [2]}),
    "large": (["9007199254740993", "9007199254740992", "x"], {"9007199254740993": [0], "'9007199254740992'": [1]}),
    "fixed digits": ([decimal.Decimal("7.00"), decimal.Decimal("8.50"), None], {"7": [0], "8.5": [1], "'7.00'": [0]}),
    "truth values": ([True, False, True], {"true": [0, 2], "false": [1], "1": []}),
    "days": (
        pd.to_datetime(["2020-01-01T00:00:00", "2020-01-01T09:30:00.5", None], format="ISO8601"),
        {"'2020-01-01 00:00:00'": [0], "'2020-01-01 09:30:00.5'": [1]},
    ),
    "words": (["vip", "nan", "inf"], {"vip": [0], '"vip"': [0], "nan": [1], "inf": [2], "'vip '": []}),
}


@pytest.mark.parametrize("codes", CODES)
def test_clauses_find_what_goals_find(codes):
    cells, asked = CODES[codes]
    people = pd.DataFrame({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    public = pa.table({"id": [1, 2, 3], "w": pa.Array.from_pandas(cells)})
    for w, who in asked.items():
        text = HEAD.format(goal=f"in(P, {w})") + FORMS["a condition"].format(w=w)
        found = numbers(text, {"t": people, "g": public, "h": sides()})
        assert found["c"] == len(who), w
        assert found["s"] == 6 + 9 * people.x[who].sum(), w


def test_what_nothing_asks_for_keeps_its_name():
    """Codes are no numbers: no zero in front is lost, and two codes of one number are two publications."""
    text = HEAD.split("random(y(P))", maxsplit=1)[0] + "sum(s(W), x(P), (p(P), in(P, W))) :- ward(W). "
    text += "publish(o(W), s(W), r(pub)) :- ward(W)."
    public = pd.DataFrame({"id": [1, 2, 3], "w": ["0123", "1e3", "7"]})
    network = Network.from_spec(load(text), {"g": public, "h": sides(("x", "y"))})
    assert {node.name for node in network.aggregates} == {"s('0123')", "s('1e3')", "s(7)", "s(x)", "s(y)"}
