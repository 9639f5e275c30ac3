"""Models as files: the same answers, nothing of the training rows, and no hostile file gets through.

Estimators are discovered. Training values are looked for in the bytes of a pickle and among the numbers of a file.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import pickle
import random
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import RegressorMixin

from laws.hostile import Hostile
from laws.test_ends import every_estimator, made
from sfumato import learn
from sfumato.core import REPLACE_ONE, Categories, Interval, Schema
from sfumato.errors import CertificateError, SfumatoError, UnprovedError
from sfumato.evidence import verify
from sfumato.learn import published

ROWS = 200
GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(-0.7, 0.7, (ROWS, 3))
LABELS = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
KINDS = [kind for kind in every_estimator() if kind is not learn.OutputSVC]
SCHEMA = Schema({"age": Interval(-1, 1), "job": Categories(["a", "b"], unknown="a")})
FRAME = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 0, "a", "b")})


def fitted(kind: type, table: Any = X, **options: Any) -> Any:
    """The estimator fitted on words as labels, or on numbers if it is a regression."""
    labels = X[:, 0] if issubclass(kind, RegressorMixin) else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0))
        known = estimator.get_params()
        estimator.set_params(**{name: value for name, value in {"classes": None, **options}.items() if name in known})
        if kind is learn.PrivateSearch:
            estimator.set_params(estimator__classes=None)
        return estimator.fit(table, labels)


def variants(kind: type) -> list[tuple[Any, Any]]:
    """(model, rows to ask): numbers, a table with names, a schema, pure privacy, a kernel."""
    found = [(fitted(kind), X)]
    if kind is not learn.SemiSVC:
        found.append((fitted(kind, delta=0.0, n_components=4), X))
    if kind not in (learn.SemiSVC, learn.PrivateSearch):
        named = pd.DataFrame(X, columns=["c0", "c1", "c2"])
        found.append((fitted(kind, named), named))
    if "schema" in made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0)).get_params() and kind is not learn.SemiSVC:
        found.append((fitted(kind, FRAME, schema=SCHEMA, norm=2.0), FRAME))
    if kind is learn.PrivateSVC:
        found += [(fitted(kind, kernel="rbf"), X), (fitted(kind, calibration=0.1), X)]
    return found


def answers(model: Any, rows: Any) -> list[np.ndarray]:
    asked = ("predict", "decision_function", "predict_proba")
    return [getattr(model, name)(rows) for name in asked if hasattr(model, name)]


def numbers_in(record: Any) -> set[float]:
    if isinstance(record, dict):
        return set().union(*map(numbers_in, record.values())) if record else set()
    if isinstance(record, list):
        return set().union(*map(numbers_in, record)) if record else set()
    return {float(record)} if isinstance(record, float) else set()


def training_values_in(content: bytes, rows: np.ndarray = X) -> int:
    """How many training values stand in these bytes as doubles or floats, at any place, in either order of bytes.

    Four bytes are alike by chance: of 10⁴ places and hundreds of values once in a thousand models. Five are no chance.
    """
    total = 0
    for kind, size, chance in (("<f8", 8, 0), (">f8", 8, 0), ("<f4", 4, 4)):
        found = 0
        wanted = np.unique(rows.ravel().astype(kind).view(f"<u{size}"))
        for start in range(size):
            part = content[start:]
            words = np.frombuffer(part[: len(part) // size * size], dtype=f"<u{size}")
            found += int(np.isin(words, wanted).sum())
        total += found if found > chance else 0
    return total


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_loaded_model_answers_alike_and_is_certified(kind, tmp_path):
    for model, rows in variants(kind):
        model.save(tmp_path / "model.json")
        again = learn.load(tmp_path / "model.json")
        assert type(again) is kind
        for mine, theirs in zip(answers(model, rows), answers(again, rows), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        assert again.guarantee_ == model.guarantee_
        assert verify(again.certificate_).ok
        assert again.explain() == model.explain()
        assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_file_and_no_pickle_holds_a_training_value(kind, tmp_path):
    for model, _ in variants(kind):
        model.save(tmp_path / "model.json")
        text = (tmp_path / "model.json").read_text()
        assert not numbers_in(json.loads(text)) & set(X.ravel().tolist())
        assert "n_iter_" not in text
        content = pickle.dumps(model)
        assert training_values_in(content) == 0
        unpickled = pickle.loads(content)
        assert not hasattr(unpickled, "n_iter_")
        assert not hasattr(copy.deepcopy(model), "n_iter_")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_attribute_that_fit_sets_is_decided(kind):
    """Published, withheld or the object's own: a new attribute fails here until somebody has decided."""
    for model, _ in variants(kind):
        assert published.published_names(model)


def test_planted_rows_are_found_and_never_saved(tmp_path):
    model = fitted(learn.PrivateLogisticRegression)
    model.seen_ = X
    assert training_values_in(pickle.dumps(model)) >= X.size
    with pytest.raises(UnprovedError, match="seen_ of PrivateLogisticRegression"):
        model.save(tmp_path / "model.json")
    del model.seen_
    model.coef_ = X[:1] + 0.0  # a published name with private values: found by the values
    model.save(tmp_path / "model.json")
    assert numbers_in(json.loads((tmp_path / "model.json").read_text())) & set(X.ravel().tolist())


def test_what_holds_private_weights_or_promises_nothing_stays(tmp_path):
    keeper = fitted(learn.OutputSVC)
    for act in (lambda: keeper.save(tmp_path / "m.json"), lambda: pickle.dumps(keeper), lambda: copy.deepcopy(keeper)):
        with pytest.raises(UnprovedError, match="private weights"):
            act()
    nothing = fitted(learn.EquilibriumClassifier, as_published=True)
    with pytest.raises(UnprovedError, match="promises nothing"):
        nothing.save(tmp_path / "m.json")
    pipeline = learn.make_pipeline(learn.PrivateSVC(1.0, 1e-6))
    with pytest.raises(UnprovedError, match=r"pipeline\[-1\]"):
        pipeline.save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_a_crash_leaves_the_old_file(tmp_path, monkeypatch):
    model = fitted(learn.PrivateSVDD)
    model.save(tmp_path / "model.json")
    before = (tmp_path / "model.json").read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        model.save(tmp_path / "model.json")
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert (tmp_path / "model.json").read_bytes() == before


#: Hostile leaves: not finite, too large, of another kind, nested, code-like.
LEAVES = [
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400, "null", "true", '"__import__"', "[]", "{}", "-1", "0",
    "[[[[1]]]]", '{"model": {"class": "os", "parameters": {}, "fitted": {}}}', '{"record": "Popen", "fields": {}}',
    '{"array": {"kind": "|O8", "shape": [1], "values": [1]}}',
    '{"array": {"kind": "<f8", "shape": [2, -1], "values": []}}',
    '{"array": {"kind": "<f8", "shape": [1000000000000], "values": []}}', '{"schema": "x = 1"}', '{"tuple": 3}',
    '{"event": {}}', "1e308",
]  # fmt: skip


def places(record: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(record, dict):
        inner = [place for name, item in record.items() for place in places(item, (*here, name))]
    elif isinstance(record, list):
        inner = [place for number, item in enumerate(record[:3]) for place in places(item, (*here, number))]
    else:
        inner = []
    return [*([here] if here else []), *inner]


def forged(record: dict[str, Any], rng: random.Random) -> str:
    """One place of the record replaced, renamed or removed, and the digest made to fit."""
    record = copy.deepcopy(record)
    place = rng.choice([one for one in places(record) if one[0] != "digest"])
    parent: Any = record
    for step in place[:-1]:
        parent = parent[step]
    act = rng.random()
    if act < 0.1 and isinstance(parent, dict):
        parent["__class__"] = parent.pop(place[-1])
    elif act < 0.2:
        del parent[place[-1]]
    else:
        parent[place[-1]] = "@@"
    record.pop("digest", None)
    leaf = rng.choice(LEAVES)
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":")).replace('"@@"', leaf)
    try:  # what a reader without our checks would make of it
        body = json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        body = text
    digest = hashlib.sha256(body.encode()).hexdigest()
    return text[:-1] + f',"digest":"{digest}"}}'


def opened(path: Any) -> Any:
    """The model, or None if it was refused as it should be; anything else that is raised passes through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return learn.load(path)
        except CertificateError:
            return None


def hostile_files(tmp_path: Any, number: int) -> tuple[int, int]:
    """How many forged files were refused, and how many were read; those that were read answer or refuse."""
    refused = read = 0
    for kind in KINDS:
        model = fitted(kind)
        model.save(tmp_path / "model.json")
        record = json.loads((tmp_path / "model.json").read_text())
        rng = random.Random(kind.__name__)
        for _ in range(number):
            (tmp_path / "forged.json").write_text(forged(record, rng))
            found = opened(tmp_path / "forged.json")
            if found is None:
                refused += 1
                continue
            read += 1
            assert verify(found.certificate_).ok
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with contextlib.suppress(SfumatoError, ValueError):
                    assert len(found.predict(X)) == ROWS
    return refused, read


def test_hostile_files_are_refused_in_words(tmp_path):
    refused, read = hostile_files(tmp_path, 12)
    assert refused > 3 * read


@pytest.mark.slow
def test_many_hostile_files_are_refused_in_words(tmp_path):
    refused, read = hostile_files(tmp_path, 150)
    assert refused > 3 * read


def test_sizes_edits_and_strangers(tmp_path):
    path = tmp_path / "model.json"
    fitted(learn.PrivateLogisticRegression).save(path)
    text = path.read_text()
    with pytest.raises(CertificateError, match="larger than 100 bytes"):
        learn.load(path, most_bytes=100)
    path.write_text(text.replace("PrivateLogisticRegression", "PrivateSVC", 1))
    with pytest.raises(CertificateError, match="digest"):
        learn.load(path)
    for content in ("", "[]", "{}", "[" * 100_000, '{"sfumato_model": 1}', "\x00", text[:-20], text + text):
        path.write_text(content)
        with pytest.raises(CertificateError):
            learn.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CertificateError):
        learn.load(path)
    with pytest.raises(CertificateError, match="cannot be read"):
        learn.load(tmp_path / "absent.json")


def test_a_certificate_of_another_model_is_refused(tmp_path):
    mine, other = tmp_path / "mine.json", tmp_path / "other.json"
    fitted(learn.PrivateLogisticRegression).save(mine)
    fitted(learn.PrivateLogisticRegression, epsilon=3.0).save(other)
    record, stranger = json.loads(mine.read_text()), json.loads(other.read_text())
    record["certificate"] = stranger["certificate"]
    record.pop("digest")
    body = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    record["digest"] = hashlib.sha256(body.encode()).hexdigest()
    mine.write_text(json.dumps(record))
    with pytest.raises(CertificateError, match="not that of this model"):
        learn.load(mine)
