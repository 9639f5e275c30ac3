"""The oncology study over many patients: build and evaluate, with time and memory; and the size of the network."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STUDY = Path(__file__).parents[1] / "examples" / "oncology" / "study.pl"
SIZES = (10, 100_000, 1_000_000)
#: Seconds for network and evaluation together; GB at the peak of the process.
BARS = {100_000: (3.0, 1.5), 1_000_000: (20.0, 1.5)}


def write_tables(folder: Path, patients: int) -> None:
    generator = np.random.default_rng(0)
    ids = np.array([f"patient-{place}" for place in range(patients)])
    age, smoking = generator.uniform(0, 110, patients), generator.integers(0, 2, patients)
    pq.write_table(pa.table({"id": ids, "age": age, "smoking": smoking}), folder / "patients.parquet")
    names = np.array([f"a{place}" for place in range(1, 7)])
    cells = {
        "patient": np.repeat(ids, 6),
        "alteration": np.tile(names, patients),
        "present": generator.integers(0, 2, 6 * patients),
    }
    pq.write_table(pa.table(cells), folder / "alterations.parquet")
    drugs = generator.choice(["d1", "d2", "d3", "d4"], patients)
    pq.write_table(pa.table({"patient": ids, "drug": drugs}), folder / "treatments.parquet")


def measure(folder: Path) -> dict[str, float]:
    """In a process of its own, so that the peak memory is this run's."""
    from sfumato.lang import load
    from sfumato.network import Network

    spec = load(STUDY)
    tables = {name: folder / f"{name}.parquet" for name in ("patients", "alterations", "treatments")}
    start, work = time.perf_counter(), time.process_time()
    network = Network.from_spec(spec, tables)
    built = time.perf_counter()
    network.evaluate(tables)
    return {
        "nodes": len(network.nodes),
        "build": built - start,
        "evaluate": time.perf_counter() - built,
        "processor": time.process_time() - work,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def main() -> None:
    heads = ("patients", "nodes", "build s", "evaluate s", "together s", "processor s", "peak GB")
    print("".join(f"{head:>12}" for head in heads) + f"   load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for patients in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            write_tables(Path(folder), patients)
            answer = subprocess.run(
                [sys.executable, __file__, folder], capture_output=True, text=True, check=True
            ).stdout
        found = json.loads(answer)
        total = found["build"] + found["evaluate"]
        cells = (found["build"], found["evaluate"], total, found["processor"], found["memory"])
        line = f"{patients:>12}{found['nodes']:>12}" + "".join(f"{cell:>12.2f}" for cell in cells)
        if patients in BARS:
            seconds, memory = BARS[patients]
            fine = total <= seconds and found["memory"] < memory
            line += f"   bars: ≤ {seconds:g} s, < {memory:g} GB: {'kept' if fine else 'MISSED'}"
            if not fine and found["processor"] <= seconds:
                line += " (waiting for other work: kept by processor time)"
        print(line, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        main()
