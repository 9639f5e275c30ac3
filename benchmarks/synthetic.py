"""Synthetic rows beside MST and AIM: what a model trained on them is worth, how near their tables are, what they cost.

Run: python benchmarks/synthetic.py [TABLE …] [--epsilon 0.3,1,3,8] [--splits 3] [--peers mst,aim] [--rounds 120].
All methods get the same level codes (edges by hand, below), the same (ε, 1e-6) and the adjacency of the peers,
adding or removing one row. The peers run in environments of their own below $SFUMATO_PEERS (.venv/peer), one job each:
dpmm's MST (`mst`) and AIM (`aim`, 120 rounds of 250 steps and 10 MB), SmartNoise's MST (`smartnoise`). They take
minutes to hours, so what they reached is kept in $SFUMATO_PEERS/dpmm_results.json and printed beside ours;
`--peer-splits` says on how many splits they run, 0 on none that is not kept already.
Trained on the made rows, tested on real ones that nobody saw: logistic regression on one-hot codes and boosted trees.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from learn_common import PEER, read

from sfumato import ADD_REMOVE, REPLACE_ONE, Adjacency, Categories, Schema
from sfumato.release import SyntheticRelease

PEERS = Path(os.environ.get("SFUMATO_PEERS", PEER))
KEPT = PEERS / "dpmm_results.json"
DELTA = 1e-6

#: Runs inside the other environment: codes in, codes out, processor seconds and memory on standard output.
CHILD = """
import json, resource, sys, time, warnings
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
given = np.load(sys.argv[1])
method, epsilon, rounds = sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
frame = pd.DataFrame(given["codes"], columns=[str(at) for at in range(given["codes"].shape[1])])
domain = {str(at): int(size) for at, size in enumerate(given["sizes"])}
options = {"rounds": rounds, "max_model_size": 10, "n_iters": 250} if method == "aim" else {}
model = (AIMGM if method == "aim" else MSTGM)(epsilon=epsilon, delta=1e-6, n_jobs=1, **options)
start = time.process_time()
model.set_random_state(np.random.RandomState())
model.set_domain(domain)
model.fit(frame)
made = model.generate(n_records=len(frame))
seconds = time.process_time() - start
np.save(sys.argv[5], made[frame.columns].to_numpy().astype(np.int32))
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""

#: SmartNoise learns the levels from the table, which costs it nothing here.
SMARTNOISE_CHILD = """
import json, resource, sys, time, warnings
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
from snsynth.mst import MSTSynthesizer
given = np.load(sys.argv[1])
names = [str(at) for at in range(given["codes"].shape[1])]
frame = pd.DataFrame(given["codes"].astype(int), columns=names)
model = MSTSynthesizer(epsilon=float(sys.argv[3]), delta=1e-6)
start = time.process_time()
model.fit(frame, categorical_columns=names)
made = model.sample(len(frame))
seconds = time.process_time() - start
np.save(sys.argv[5], pd.DataFrame(made, columns=names).to_numpy().astype(np.int32))
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
#: Of each method: its environment, what is installed there, what runs there.
METHODS = {
    "mst": ("dpmm", "dpmm==0.1.9", CHILD),
    "aim": ("dpmm", "dpmm==0.1.9", CHILD),
    "smartnoise": ("smartnoise", "smartnoise-synth==1.0.8", SMARTNOISE_CHILD),
}


def _even(low: float, high: float, bins: int = 16) -> list[float]:
    return [float(edge) for edge in np.linspace(low, high, bins + 1)]


def _powers(high: float, bins: int = 15) -> list[float]:
    """0 alone, then steps of equal ratio."""
    return [0.0, *(float(edge) for edge in np.geomspace(1.0, high, bins))]


ADULT = {
    "age": [17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 48, 52, 56, 61, 67, 75, 91],
    "fnlwgt": [*_even(0, 500_000, 15), 1.6e6],
    "education_num": list(range(1, 18)),
    "capital_gain": [0, 1, *range(1000, 9000, 1000), 10_000, 12_000, 15_000, 20_000, 30_000, 50_000, 100_001],
    "capital_loss": [0, 1, 500, 1000, 1300, *range(1500, 2300, 100), 2400, 2700, 3200, 5000],
    "hours_per_week": [0, 8, 15, 20, 25, 30, 35, 38, 40, 41, 45, 48, 50, 55, 60, 70, 100],
}
LENDING = {
    "loan_amnt": _even(0, 35_000), "funded_amnt_inv": _even(0, 35_000), "int_rate": _even(5, 27),
    "installment": _even(0, 1400), "annual_inc": _powers(1e7), "open_acc": _even(0, 50), "total_acc": _even(0, 100),
    "total_pymnt": _even(0, 60_000),
}  # fmt: skip


def adult() -> tuple[np.ndarray, np.ndarray]:
    table = read("adult.parquet").drop_columns(["split"])
    return _codes(table, ADULT, "income")


def lending() -> tuple[np.ndarray, np.ndarray]:
    return _codes(read("lending_club_2007_2014.parquet"), LENDING, "bad_loan")


def kdd() -> tuple[np.ndarray, np.ndarray]:
    table = read("kddcup99_10pct.parquet").drop_columns(["num_outbound_cmds"])
    attack = pc.not_equal(pc.cast(table["label"], pa.string()), "normal").cast(pa.int8())
    table = table.drop_columns(["label"]).append_column("attack", attack)
    numbers = [name for name in table.column_names if pa.types.is_integer(table.schema.field(name).type)]
    edges = {name: _powers(1e9, 10) for name in numbers if pc.max(table[name]).as_py() > 20}
    rates = [name for name in table.column_names if name.endswith("_rate")]
    return _codes(table, {**edges, **{name: _even(0, 1, 10) for name in rates}}, "attack")


def shuttle() -> tuple[np.ndarray, np.ndarray]:
    table = read("shuttle.parquet").drop_columns(["split", "class_name"])
    flow = pc.equal(table["class"], 1).cast(pa.int8())
    edges = {f"a{number}": _even(-60, 140) for number in range(1, 10)}
    return _codes(table.drop_columns(["class"]).append_column("flow", flow), edges, "flow")


def satimage() -> tuple[np.ndarray, np.ndarray]:
    table = read("satimage.parquet").drop_columns(["split", "class_name"])
    wet = pc.is_in(table["class"], pa.array([4, 5, 7], table.schema.field("class").type)).cast(pa.int8())
    edges = {f"x{number}": _even(20, 160, 8) for number in range(1, 37)}
    return _codes(table.drop_columns(["class"]).append_column("wet", wet), edges, "wet")


TABLES = {"adult": adult, "lending": lending, "kdd": kdd, "shuttle": shuttle, "satimage": satimage}


def _codes(table: pa.Table, edges: dict[str, list[float]], label: str) -> tuple[np.ndarray, np.ndarray]:
    """Level codes, the label last, and how many levels each column has."""
    names = [name for name in table.column_names if name != label] + [label]
    codes, sizes = [], []
    for name in names:
        if name in edges:
            ends = np.array(edges[name])
            values = table[name].cast(pa.float64()).to_numpy()
            codes.append(np.clip(np.searchsorted(ends, values, side="right") - 1, 0, len(ends) - 2))
            sizes.append(len(ends) - 1)
        else:
            text = pc.fill_null(table[name].cast(pa.string()), "?").combine_chunks()
            levels = pa.array(sorted(set(text.to_pylist())))
            codes.append(pc.index_in(text, levels).to_numpy())
            sizes.append(len(levels))
    return np.stack(codes, axis=1).astype(np.int32), np.array(sizes)


def parted(codes: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(100 + split).permutation(len(codes))
    cut = int(0.8 * len(codes))
    return codes[order[:cut]], codes[order[cut:]]


def ours(
    codes: np.ndarray, sizes: np.ndarray, epsilon: float, adjacency: Adjacency = ADD_REMOVE, plan: str | None = None
) -> tuple[np.ndarray, float, float]:
    lists = [pa.array([str(level) for level in range(size)]) for size in sizes]
    schema = Schema({str(at): Categories(levels.to_pylist()) for at, levels in enumerate(lists)})
    table = pa.table({str(at): levels.take(pa.array(codes[:, at])) for at, levels in enumerate(lists)})
    release = SyntheticRelease(schema, epsilon, DELTA, label=str(len(sizes) - 1), adjacency=adjacency, plan=plan)
    start = time.process_time()
    made = release.release(table).table
    seconds = time.process_time() - start
    back = [pc.index_in(made[str(at)], levels).to_numpy() for at, levels in enumerate(lists)]
    return np.stack(back, axis=1), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peer(method: str, codes: np.ndarray, sizes: np.ndarray, epsilon: float, rounds: int) -> tuple:
    place, package, child = METHODS[method]
    python = PEERS / place / "bin" / "python"
    if not python.exists():
        PEERS.mkdir(parents=True, exist_ok=True)
        venv.create(PEERS / place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npy"
        np.savez(given, codes=codes, sizes=sizes)
        words = [python, "-c", child, given, method, str(epsilon), str(rounds), made]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        seconds, memory = json.loads(done.stdout.strip().splitlines()[-1])
        return np.load(made), seconds, memory


def variations(real: np.ndarray, made: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    found = {1: [], 2: []}
    for way in (1, 2):
        for scope in itertools.combinations(range(len(sizes)), way):
            shape = [int(sizes[column]) for column in scope]
            shares = []
            for rows in (real, made):
                place = np.ravel_multi_index([rows[:, column] for column in scope], shape)
                shares.append(np.bincount(place, minlength=int(np.prod(shape))) / len(rows))
            found[way].append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(found[1])), float(np.mean(found[2]))


def areas(made: np.ndarray, test: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import OneHotEncoder

    if len(set(made[:, -1])) < 2:
        return 0.5, 0.5
    some = np.random.default_rng(0).permutation(len(made))[:100_000]
    rows, labels = made[some, :-1], made[some, -1]
    encoder = OneHotEncoder(categories=[np.arange(size) for size in sizes[:-1]])
    linear = LogisticRegression(max_iter=200).fit(encoder.fit_transform(rows), labels)
    boosted = HistGradientBoostingClassifier(max_iter=80, random_state=0).fit(rows, labels)
    scores = linear.predict_proba(encoder.transform(test[:, :-1]))[:, 1], boosted.predict_proba(test[:, :-1])[:, 1]
    return tuple(float(roc_auc_score(test[:, -1], score)) for score in scores)


def kept(key: str) -> list[float] | None:
    return json.loads(KEPT.read_text(encoding="utf-8")).get(key) if KEPT.exists() else None


def keep(key: str, figures: list[float]) -> None:
    every = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    KEPT.write_text(json.dumps({**every, key: figures}, indent=1), encoding="utf-8")


def peer_figures(table: str, method: str, split: int, epsilon: float, rounds: int, fresh: bool) -> list[float] | None:
    """Kept from an earlier run, or run now if that is allowed."""
    key = f"{table} {method} {rounds if method == 'aim' else 0} {epsilon:g} {split}"
    if (found := kept(key)) or not fresh:
        return found
    codes, sizes = TABLES[table]()
    train, test = parted(codes, split)
    made, seconds, memory = peer(method, train, sizes, epsilon, rounds)
    figures = [*areas(made, test, sizes), *variations(train, made, sizes), seconds, memory]
    keep(key, figures)
    return figures


def our_figures(table: str, split: int, epsilon: float | None) -> list[float]:
    codes, sizes = TABLES[table]()
    train, test = parted(codes, split)
    made, seconds, memory = (train, 0.0, 0.0) if epsilon is None else ours(train, sizes, epsilon)
    return [*areas(made, test, sizes), *variations(train, made, sizes), seconds, memory]


def compare(name: str, epsilons: list[float], given: argparse.Namespace) -> None:
    codes, sizes = TABLES[name]()
    print(f"{name}: {len(codes)} rows, {len(sizes)} columns, {int(sizes.sum())} levels", flush=True)
    heads = ("AUC linear", "boosted", "TV 1-way", "2-way", "cpu s", "MB", "splits")
    widths = (11, 8, 9, 7, 7, 6, 6)
    print(f"  {'':18s} {'ε':>4s} " + " ".join(f"{head:>{width}s}" for head, width in zip(heads, widths, strict=True)))
    for epsilon in [None, *epsilons]:
        for method in ["real rows"] if epsilon is None else ["sfumato", *given.peers.split(",")]:
            found = []
            for split in range(given.splits):
                if method in METHODS:
                    fresh = split < given.peer_splits
                    found.append(peer_figures(name, method, split, epsilon, given.rounds, fresh))
                elif method:
                    found.append(our_figures(name, split, epsilon))
            told(method, epsilon, [figures for figures in found if figures])


def told(method: str, epsilon: float | None, found: list[list[float]]) -> None:
    if not found:
        return
    linear, boosted, one, two, seconds, memory = np.mean(found, axis=0)
    shown = "" if epsilon is None else f"{epsilon:g}"
    print(
        f"  {method:18s} {shown:>4s} {linear:11.4f} {boosted:8.4f} {one:9.4f} {two:7.4f} {seconds:7.1f} {memory:6.0f} "
        f"{len(found):6d}",
        flush=True,
    )


def plans(name: str, epsilons: list[float]) -> None:
    """Each plan's forecast, made from public sizes alone, beside what it reached; replacing one row."""
    codes, sizes = TABLES[name]()
    train, test = parted(codes, 0)
    schema = Schema({str(at): Categories([str(level) for level in range(size)]) for at, size in enumerate(sizes)})
    print(f"{name}: plan, expected and reached total variation of pairs, AUC", flush=True)
    for epsilon in epsilons:
        wished = SyntheticRelease(schema, epsilon, DELTA, label=str(len(sizes) - 1))
        for forecast in wished.expected(len(train)):
            made, seconds, _ = ours(train, sizes, epsilon, REPLACE_ONE, forecast.plan.name)
            reached, auc = variations(train, made, sizes)[1], areas(made, test, sizes)[0]
            told = f"{forecast.two_way:.3f}" if forecast.known else "unknown"
            print(
                f"  ε {epsilon:<4g} {forecast.plan.name:7s} {told:>8s} {reached:7.4f} {auc:7.4f} {seconds:6.1f} s",
                flush=True,
            )


def growth() -> None:
    """Processor time against rows: counting is all that grows."""
    codes, sizes = adult()
    for rows in (10_000, 100_000, 1_000_000):
        picked = np.random.default_rng(rows).integers(0, len(codes), rows)
        _, seconds, memory = ours(codes[picked], sizes, 1.0)
        print(
            f"  {rows:>9d} rows × {len(sizes)} columns: {seconds:.1f} s of processor, {memory:.0f} MB at most",
            flush=True,
        )


def scale(rows: int, columns: int, engine: str) -> None:
    """A folder of Parquet, a million rows a file, counted part by part; wall and processor time, largest process."""
    from pyarrow import parquet

    from sfumato.ledger.ledger import Ledger
    from sfumato.run.synthesize import synthesize_file

    names = [f"c{number}" for number in range(columns)]
    schema = Schema({name: Categories(list(range(10))) for name in names})
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "parts"
        folder.mkdir()
        for part in range(max(1, rows // 1_000_000)):
            generator = np.random.default_rng(part)
            hidden = generator.integers(0, 10, min(rows, 1_000_000))
            drawn = [(hidden * (at % 3) + generator.geometric(0.3, len(hidden))) % 10 for at in range(columns)]
            table = pa.table({name: pa.array(drawn[at].astype(np.int8)) for at, name in enumerate(names)})
            parquet.write_table(table, folder / f"{part:04d}.parquet")
        release = SyntheticRelease(schema, 1.0, DELTA, label="c0", rows=100_000)
        wall, start = time.perf_counter(), time.process_time()
        book = Ledger(Path(place) / "book.db")
        synthesize_file(folder, release, Path(place) / "made", book, "people", engine=engine, grant=True)
        who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        seconds = time.process_time() - start + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        memory = max(resource.getrusage(one).ru_maxrss / 1024 for one in who)
        print(
            f"  {rows} rows × {columns} columns, {engine}: {time.perf_counter() - wall:.0f} s wall, {seconds:.0f} s of "
            f"processor, largest process {memory:.0f} MB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=["adult", "shuttle"])
    parser.add_argument("--epsilon", default="0.3,1,3,8")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--peers", default="mst,aim")
    parser.add_argument("--peer-splits", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--scale", type=int, default=0, metavar="ROWS")
    parser.add_argument("--engine", default="local")
    given = parser.parse_args(sys.argv[1:] if "synthetic" in sys.argv[0] else [])
    epsilons = [float(text) for text in given.epsilon.split(",")]
    if given.scale:
        scale(given.scale, 20, given.engine)
        return
    for name in given.tables:
        plans(name, epsilons) if given.plans else compare(name, epsilons, given)
    if not given.plans:
        growth()


if __name__ == "__main__":
    main()
