"""A channel file is read as it was certified or not at all: whichever entry is edited, it is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import random

import pytest

from sfumato.core import Interval
from sfumato.errors import CertificateError
from sfumato.mechanisms import TailoredNoise

CHANNELS = {
    "pure": lambda: TailoredNoise(Interval(0, 1), 1.0, bins=4),
    "with δ": lambda: TailoredNoise(Interval(0, 1), 1.0, 1e-2, bins=4),
}


def canonical(record) -> str:
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def places(tree, path=()):
    """Every leaf of a JSON tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    below = [place for key, value in items for place in places(value, (*path, key))]
    return below or ([path] if path else [])


def edited(tree, path, rng):
    tree = copy.deepcopy(tree)
    inside = tree
    for key in path[:-1]:
        inside = inside[key]
    old = inside[path[-1]]
    kinds = {
        bool: not old,
        int: old + 1 if isinstance(old, int) else 0,
        float: (old or 1.0) * 0.99 if isinstance(old, float) else 0,
        str: f"{old}x",
    }
    inside[path[-1]] = kinds.get(type(old), rng.choice([0.5, [1]]))
    return tree


def signed_again(record):
    """By a forger who knows how the hashes are made."""
    record = copy.deepcopy(record)
    certificate = record["certificate"]
    certificate["plan_hash"] = canonical({name: part for name, part in record.items() if name != "certificate"})
    certificate["digest"] = canonical({name: part for name, part in certificate.items() if name != "digest"})
    return record


@pytest.fixture(params=CHANNELS)
def record(request, tmp_path):
    CHANNELS[request.param]().write(tmp_path / "channel.json")
    return json.loads((tmp_path / "channel.json").read_text())


def is_read(record, folder) -> bool:
    (folder / "edited.json").write_text(json.dumps(record))
    try:
        TailoredNoise.read(folder / "edited.json")
    except CertificateError:
        return False
    return True


def test_every_edit_is_refused(record, tmp_path):
    assert is_read(record, tmp_path)
    assert is_read(signed_again(record), tmp_path)
    rng = random.Random(0)
    leaves = [place for place in places(record) if "weights" not in place] + [
        ["certificate", "events", 0, "weights", 0, 0]
    ]
    assert [place for place in leaves if is_read(edited(record, place, rng), tmp_path)] == []


@pytest.mark.parametrize(
    "path",
    [["design", "epsilon"], ["certificate", "guarantee", "eps"], ["certificate", "composed", "eps"],
     ["certificate", "claims", "pairs", -1, "epsilon"], ["certificate", "claims", "advantage"]],
)  # fmt: skip
def test_no_hash_makes_a_smaller_promise_true(record, path, tmp_path):
    inside = record
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] *= 0.5
    assert not is_read(signed_again(record), tmp_path)


def test_a_smaller_delta_is_not_read(tmp_path):
    CHANNELS["with δ"]().write(tmp_path / "channel.json")
    record = json.loads((tmp_path / "channel.json").read_text())
    record["design"]["delta"] = 1e-12
    assert not is_read(signed_again(record), tmp_path)
