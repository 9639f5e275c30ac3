"""Text files: the fast way and the way of the rules read every block of bytes alike."""

from __future__ import annotations

import random
import re

import pytest

from sfumato.network import text_files

CELLS = (
    *(b"a", b"1.5", b"", b" ", b"\0", b"\xff", b"\xc3\xa9", b"\\", b"'", b"\t", b"#", b"NA", b"null", b"\xef\xbb\xbf"),
    *(b"\x1a", b"\x0b", b"\xe2\x80\xa8", b'"', b'"a"', b'"b"', b'""', b'"a,b"', b'x"', b'"x', b'"a"b"'),
)
ENDS = (b",", b"\n", b"\r\n", b"\r")


def any_block(source: random.Random, cells: int) -> bytes:
    if source.random() < 0.3:
        return b"".join(source.choice(CELLS + ENDS) for _ in range(source.randint(1, 12)))
    calm = CELLS if source.random() < 0.5 else CELLS[:5] + CELLS[18:21]
    lines = [b",".join(source.choice(calm) for _ in range(cells)) for _ in range(source.randint(1, 5))]
    block = b"".join(line + source.choice(ENDS[1:3]) for line in lines)
    return block[:-1] if source.random() < 0.3 else block


def quickly_read(cases: int) -> int:
    """How many blocks were read at once, all of them as line by line."""
    source, quick = random.Random(1), 0
    for _ in range(cases):
        names = ["x", "y", "z"][: source.randint(1, 3)]
        columns = source.sample(names, source.randint(1, len(names)))
        block = any_block(source, len(names)) or b"\n"
        found = text_files._at_once(block, names, columns, ",")
        if found is not None:
            quick += 1
            assert found.equals(text_files._line_by_line(block, names, columns, ",")), block
    return quick


def test_blocks_are_read_at_once_as_they_are_line_by_line():
    assert quickly_read(6_000) > 1_000


def test_a_fast_way_that_trusts_quotes_is_found(monkeypatch):
    monkeypatch.setitem(text_files._QUOTED, ",", re.compile(rb'"[^"]*"'))
    with pytest.raises(AssertionError):
        quickly_read(6_000)


def test_blocks_end_where_lines_do(tmp_path, monkeypatch):
    lines = [f"{number},{'x' * (number % 50)}" for number in range(500)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["n,w", *lines]))
    whole = text_files.read_text(path).table
    assert whole["n"].to_pylist() == [str(number) for number in range(500)]
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(text_files, "_BLOCK", size)
        assert text_files.read_text(path).table.equals(whole)
        assert all(batch.num_rows <= 3 for batch in text_files.text_batches(path, ["w"], 3))
