"""A label is one of the declared classes or a stranger, whether the table is in memory or goes by in batches."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import DataError
from sfumato.learn.stream_sums import BatchReader
from sfumato.learn.table import checked_labels, declared_classes

WORDS = ["no", "yes", "yesterday", "n", "None", "", "YES", "0", "1", "yes ", "ß"]
NUMBERS = [0, 1, 2, -1, 10**12]


def streamed(labels: pa.Array, classes: list) -> list | str:
    table = pa.table({"x": np.zeros(len(labels)), "y": labels})
    reader = BatchReader(("x",), "y", None, tuple(declared_classes(classes).tolist()))
    try:
        return [int(place) for _, places in reader(table) for place in places]
    except DataError:
        return "refused"


def in_memory(labels: list, classes: list) -> list | str:
    try:
        return checked_labels(np.array(labels, dtype=object), len(labels), declared_classes(classes))[0].tolist()
    except DataError:
        return "refused"


@pytest.mark.parametrize("seed", range(60))
def test_both_roads_read_the_same_labels(seed):
    rng = random.Random(seed)
    pool = rng.choice([WORDS, NUMBERS])
    classes = rng.sample(rng.choice([pool, WORDS, NUMBERS]), rng.randint(2, 4))
    known = [label for label in classes if label in pool]
    labels = [rng.choice(known if known and rng.random() < 0.9 else pool) for _ in range(rng.randint(1, 12))]
    array = pa.array(labels)
    if rng.random() < 0.5:
        array = array.dictionary_encode()
    by_hand = [sorted(classes).index(label) for label in labels] if set(labels) <= set(classes) else "refused"
    assert streamed(array, classes) == in_memory(labels, classes) == by_hand


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["yesterday", "no"], ["no", "yes"]),
        ([None, "yes"], ["None", "yes"]),
        (["0", "1"], [0, 1]),
        ([0, 1], ["0", "1"]),
    ],
)
def test_strangers_are_refused(labels, classes):
    assert streamed(pa.array(labels), classes) == in_memory(labels, classes) == "refused"


def objects(*cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


@pytest.mark.parametrize("cells", [(1, 0, 1), (np.float64(1), 0, 1), ({}, {}, {})])
def test_objects_that_are_no_words_are_told_what_to_do(cells):
    """scikit-learn guesses at a regression; whole numbers beside what was once an absent cell are the usual case."""
    with pytest.raises(DataError, match=r"column of Python objects.*astype\(int\).*classes=.*Nothing was spent"):
        checked_labels(objects(*cells), 3, None)


def test_objects_are_read_where_labels_are_declared():
    codes, _ = checked_labels(objects(1, 0, 1), 3, declared_classes([0, 1]))
    assert codes.tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="Nothing was spent"):
        checked_labels(objects([1], [0], [1]), 3, declared_classes([0, 1]))
