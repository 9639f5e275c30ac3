"""Training by sums: the estimator that memory would give, on every engine and for every cut of the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from run import engine_faults
from sfumato.core import ADD_REMOVE, Categories, Interval, Schema
from sfumato.errors import DataError, InputError, SchemaError
from sfumato.evidence import verify
from sfumato.learn import (
    KernelMeanClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVC,
)
from sfumato.learn.losses import LogisticLoss
from sfumato.learn.newton import SumsAsked
from sfumato.learn.stream_sums import BatchReader, MarginSums, ProductSums, RowShape
from sfumato.run.engine import fit as engine_fit
from sfumato.run.engine.engine import LocalEngine
from sfumato.run.engine.fit import fit_table
from sfumato.run.engine.sums import batch_sums
from sfumato.run.partition import PartitionedTable, PartLayout, grouped

SMALL = PartLayout(block_rows=500, part_blocks=1)
NAMES = [f"x{column}" for column in range(4)]
GENERATOR = np.random.default_rng(5)
X = GENERATOR.normal(size=(4500, 4)) * 0.4
LABELS = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)]
TARGET = X @ [1.0, -1.0, 0.5, 0.0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("table")
    for number, part in enumerate(np.array_split(np.arange(4500), [1250, 1250, 3501])):
        columns = {name: X[part, column] for column, name in enumerate(NAMES)}
        table = pa.table({**columns, "y": LABELS[part], "b": LABELS[part] == "a", "t": TARGET[part]})
        parquet.write_table(table, made / f"{number}.parquet", row_group_size=700)
    return made


def fit(estimator, folder: Path, label: str, **options):
    return fit_table(estimator, folder, label, **{"columns": NAMES, "layout": SMALL, **options})


ESTIMATORS = {
    "logistic": (
        "b",
        LABELS == "a",
        lambda: PrivateLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=3),
    ),
    "pure output": (
        "b",
        LABELS == "a",
        lambda: PrivateLogisticRegression(1.0, method="output", classes=[False, True], random_state=3),
    ),
    "three classes": ("y", LABELS, lambda: PrivateLogisticRegression(2.0, 1e-6, classes=list("abc"), random_state=3)),
    "svc": ("y", LABELS, lambda: PrivateSVC(2.0, 1e-6, classes=list("abc"), random_state=3)),
    "smoothed svc": (
        "b",
        LABELS == "a",
        lambda: PrivateSVC(2.0, 1e-6, loss="smoothed_hinge", classes=[False, True], random_state=3),
    ),
    "random features": (
        "b",
        LABELS == "a",
        lambda: PrivateSVC(2.0, 1e-6, kernel="rbf", n_components=20, classes=[False, True], random_state=3),
    ),
    "bought norm": (
        "b",
        LABELS == "a",
        lambda: PrivateLogisticRegression(
            1.0, 1e-6, norm=None, spend_on_bounds=0.1, classes=[False, True], random_state=3
        ),
    ),
    "add-remove": (
        "b",
        LABELS == "a",
        lambda: PrivateLogisticRegression(
            1.0, 1e-6, adjacency=ADD_REMOVE, public_size=10_000, classes=[False, True], random_state=3
        ),
    ),
    "kernel means": (
        "y",
        LABELS,
        lambda: KernelMeanClassifier(1.0, 1e-6, n_components=40, classes=list("abc"), random_state=3),
    ),
    "kernel densities": (
        "y",
        LABELS,
        lambda: KernelMeanClassifier(
            1.0, box=(-2.0, 2.0), n_components=40, priors="divided", classes=list("abc"), random_state=3
        ),
    ),
    "regression": ("t", TARGET, lambda: PrivateLinearRegression(1.0, 1e-6, target=(-3, 3), random_state=3)),
}


class NeedsWho:
    def fit(self, X, y, *, who):
        raise AssertionError


def parameters(model) -> np.ndarray:
    return model.weights_ if hasattr(model, "weights_") else model.coef_


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.by_day(2)
def test_the_fit_is_that_of_memory_for_every_cut(folder, kind):
    """Same seed, same noise: what is left is the solver's residual, which both certify."""
    label, y, make = ESTIMATORS[kind]
    memory = make().fit(X, y)
    streamed = [fit(make(), folder, label, partitions=count) for count in (1, 7)]
    expected = parameters(memory)
    scale = np.abs(expected).max()
    for model in streamed:
        assert np.abs(parameters(model) - expected).max() <= 1e-7 * scale
        assert np.abs(parameters(model) - parameters(streamed[0])).max() <= 1e-9 * scale
        assert str(model.guarantee_) == str(memory.guarantee_)
        assert [e.to_dict() for e in model.certificate_.events] == [e.to_dict() for e in memory.certificate_.events]
    if kind == "logistic":
        assert verify(streamed[0].certificate_)
        assert streamed[0].explain() == memory.explain()
        assert list(streamed[0].feature_names_in_) == NAMES


def passes(folder: Path, count: int, engine=None) -> engine_fit._TablePasses:
    table = engine_fit._Files(PartitionedTable.open(folder))
    reader = BatchReader(tuple(NAMES), "y", None, ("a", "b", "c"))
    return engine_fit._TablePasses(table, reader, engine or LocalEngine(), grouped(table.payloads(SMALL), count))


def test_sums_do_not_depend_on_partitions_or_engine(folder, cluster):
    """Gradients, Hessians and products before noise: 1, 2 and 7 partitions, here and on workers."""
    point = np.array([3.0, -2.0, 0.5, 1.0, 0.1])
    shape = RowShape(1.0, 0.2)
    margins = MarginSums(shape, LogisticLoss(), (SumsAsked(0, point, True), SumsAsked(2, -point, True)), (0, 1, 2))
    seen = [passes(folder, count).total(margins) for count in (1, 2, 7)]
    seen += [passes(folder, count, cluster).total(margins) for count in (2, 7)]
    whole = margins(X, np.searchsorted(["a", "b", "c"], LABELS))
    for sums in seen:
        for one, first, together in zip(sums, seen[0], whole, strict=True):
            assert np.abs(one - first).max() <= 1e-9 * np.abs(first).max()
            assert np.abs(one - first).max() <= 1e-14 * np.abs(first).max()  # in fact to the last digit or so
            assert np.abs(one - together).max() <= 1e-6 * np.abs(first).max()  # Hessians are summed in single precision
    reader = BatchReader(tuple(NAMES), "t", None, None)
    table = engine_fit._Files(PartitionedTable.open(folder))
    products = [
        engine_fit._TablePasses(table, reader, LocalEngine(), grouped(table.payloads(SMALL), count)).total(
            ProductSums(RowShape(100.0, 0.0), -3.0, 3.0)
        )
        for count in (1, 7)
    ]
    assert np.allclose(products[0][0], X.T @ X / 100**2, rtol=1e-12)
    assert np.abs(products[0][0] - products[1][0]).max() <= 1e-14 * np.abs(products[0][0]).max()


def test_counts_and_histograms_of_many_files(folder, cluster):
    seen = [
        batch_sums(folder, ["x0"], engine_faults.counts_and_sums, engine=engine, partitions=count, layout=SMALL)
        for engine, count in (("local", 1), ("local", 7), (cluster, 2))
    ]
    for rows, bins, total in seen:
        assert rows == len(X)
        assert np.array_equal(bins, np.histogram(X[:, 0], bins=10, range=(-2, 2))[0])
        assert abs(total - X[:, 0].sum()) < 1e-9
        assert abs(total - seen[0][2]) <= 1e-14 * abs(total)
    with pytest.raises(SchemaError, match="x00"):
        batch_sums(folder, ["x00"], engine_faults.counts_and_sums)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_a_pass_changes_no_sum(folder, cluster, tmp_path, monkeypatch):
    calm = passes(folder, 3).total(ProductSums(RowShape(1.0, 0.0), -1.0, 1.0))
    monkeypatch.setattr(engine_fit, "_SumParts", _dying(engine_fit._SumParts, str(tmp_path)))
    hit = passes(folder, 3, cluster).total(ProductSums(RowShape(1.0, 0.0), -1.0, 1.0))
    assert list(tmp_path.iterdir())
    assert all(np.array_equal(one, other) for one, other in zip(calm, hit, strict=True))


def _dying(kind, marks: str):
    return lambda *arguments: engine_faults.DiesOnce(kind(*arguments), marks)


def test_engines_give_the_same_model(folder, cluster):
    label, _, make = ESTIMATORS["three classes"]
    one = fit(make(), folder, label)
    two = fit(make(), folder, label, engine=cluster, partitions=4)
    assert np.abs(one.coef_ - two.coef_).max() <= 1e-9 * np.abs(one.coef_).max()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.by_day(1)
def test_a_dask_dataframe_with_an_empty_partition(folder, engine):
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.read_parquet(str(folder))
    assert 0 in [len(part) for part in frame.partitions]
    label, y, make = ESTIMATORS["logistic"]
    model = fit_table(make(), frame, label, columns=NAMES, engine=engine)
    memory = make().fit(X, y)
    assert np.abs(model.coef_ - memory.coef_).max() <= 1e-7 * np.abs(memory.coef_).max()


def test_a_schema_reads_the_same_table_as_in_memory(folder):
    schema = Schema({"x0": Interval(-2, 2), "x1": Interval(-2, 2), "y": Categories(["a", "b", "c"])}, norm=1.0)
    make = lambda: PrivateLogisticRegression(2.0, schema=schema, classes=[False, True], random_state=1)  # noqa: E731
    memory = make().fit({"x0": X[:, 0], "x1": X[:, 1], "y": LABELS}, LABELS == "a")
    streamed = fit_table(make(), folder, "b", layout=SMALL)
    assert np.abs(streamed.coef_ - memory.coef_).max() <= 1e-7 * np.abs(memory.coef_).max()


def test_a_table_that_changes_between_passes_releases_nothing(folder, tmp_path, monkeypatch):
    """One of a thousand rows exchanged after the first pass: the fit ends with an error and without a model."""
    path = tmp_path / "0.parquet"
    path.write_bytes((folder / "0.parquet").read_bytes())
    total = engine_fit._TablePasses.total

    def disturbed(self, statistic):
        parquet.write_table(parquet.read_table(path), path)
        return total(self, statistic)

    monkeypatch.setattr(engine_fit._TablePasses, "total", disturbed)
    model = ESTIMATORS["logistic"][2]()
    with pytest.raises(DataError, match="changed while"):
        fit(model, tmp_path, "b")
    assert not hasattr(model, "coef_")


def test_refusals_name_no_value(folder, engine, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    table = parquet.read_table(folder / "0.parquet")
    parquet.write_table(table, broken / "0.parquet")
    holes = pa.array([None, *table["x0"].to_pylist()[1:]], pa.float64())
    parquet.write_table(table.set_column(0, "x0", holes), broken / "1.parquet")
    make = ESTIMATORS["logistic"][2]
    with pytest.raises(DataError, match="NaN"):
        fit(make(), broken, "b", engine=engine)
    with pytest.raises(DataError, match="not among the 2 declared"):
        fit(make().set_params(classes=["a", "b"]), folder, "y", engine=engine)
    with pytest.raises(DataError, match="declared"):
        fit(make().set_params(classes=None), folder, "b", engine=engine)
    with pytest.raises(SchemaError, match="x9"):
        fit(make(), folder, "b", columns=["x9"], engine=engine)
    with pytest.raises(SchemaError, match="label"):
        fit(make(), folder, "b", columns=["b"], engine=engine)
    with pytest.raises(DataError, match="no numbers"):
        fit(make(), folder, "b", columns=["y"], engine=engine)
    with pytest.raises(InputError, match="has no fit"):
        fit(object(), folder, "b", engine=engine)
    with pytest.raises(InputError, match="with who beside its rows"):
        fit(NeedsWho(), folder, "b", engine=engine)
    with pytest.raises(InputError, match="spread"):
        fit(KernelMeanClassifier(1.0, 1e-6, gamma="spread", classes=list("abc")), folder, "y", engine=engine)
    with pytest.raises(DataError, match="not read in parts"):
        fit(make(), X, "b", engine=engine)
