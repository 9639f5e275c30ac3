"""The peer's numbers: diffprivlib's logistic regression in an environment of its own.

Run: python benchmarks/diffprivlib_peer.py [adult|kdd|speed …]. Builds .venv/peer/diffprivlib (an older scikit-learn:
diffprivlib 0.6.6 does not import with 1.8 or later), hands it the same encoded rows, and keeps what it prints in
.venv/peer/diffprivlib_results.json for the other benchmarks. The peer's best setting is chosen on the test folds
among strengths and intercepts, as a courtesy no real user could extend to it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
from learn_common import PEER, PEER_RESULTS, folds

ENVIRONMENT = PEER / "diffprivlib"
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn<1.8")

#: Runs inside the other environment: one JSON line of results.
CHILD = """
import json, sys, time, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
from sklearn.metrics import roc_auc_score
warnings.simplefilter("ignore")
given = np.load(sys.argv[1], allow_pickle=False)
epsilon, draws = float(sys.argv[2]), int(sys.argv[3])
X, y = given["X"], given["y"]
found = []
for C in json.loads(sys.argv[4]):
    for intercept in (True, False):
        errors, aucs, seconds = [], [], []
        for number in range(int(given["folds"])):
            train, test = given[f"train{number}"], given[f"test{number}"]
            for _ in range(draws):
                start = time.perf_counter()
                model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=intercept, max_iter=1000)
                model.fit(X[train], y[train])
                seconds.append(time.perf_counter() - start)
                scores = model.decision_function(X[test])
                errors.append(np.mean((scores > 0) != (y[test] == 1)))
                aucs.append(roc_auc_score(y[test], scores))
        found.append((float(np.mean(errors)), float(np.mean(aucs)), float(np.mean(seconds)), C, intercept))
print(json.dumps(found))
"""


def interpreter() -> Path:
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        PEER.mkdir(parents=True, exist_ok=True)
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def measure(
    X: np.ndarray, labels: np.ndarray, epsilon: float, *, count: int = 3, draws: int = 2, strengths: tuple = ()
) -> list:
    """(error, AUC, seconds per fit, C, intercept) of every setting, on rows brought to norm 1."""
    rows = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None] * (1 - 1e-9)
    parts = {"X": rows, "y": labels, "folds": np.array(count)}
    everything = np.arange(len(labels))
    for number, (train, test) in enumerate(folds(labels, count) if count > 1 else [(everything, everything)]):
        parts[f"train{number}"], parts[f"test{number}"] = train, test
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, **parts)  # type: ignore[arg-type]
        grid = strengths or (1.0, 0.1, 0.01, 0.001)
        command = [str(interpreter()), "-c", CHILD, str(file), str(epsilon), str(draws), json.dumps(grid)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(answer.splitlines()[-1])


def words(found: list) -> str:
    default = next(item for item in found if item[3] == 1.0 and item[4])
    error, auc = min(item[0] for item in found), max(item[1] for item in found)
    return f"best error {error:.3f}, best AUC {auc:.3f}, default error {default[0]:.3f} AUC {default[1]:.3f}"


def main(names: list[str] | None = None) -> None:
    results = json.loads(PEER_RESULTS.read_text()) if PEER_RESULTS.exists() else {}
    for name in names or ["adult", "kdd", "speed"]:
        if name == "speed":
            from learn_adult import load

            X, labels = load()
            found = measure(X, labels, 1.0, count=1, draws=3, strengths=(1.0,))
            results["speed"] = min(item[2] for item in found)
        else:
            module = __import__(f"learn_{name}")
            X, labels = module.load()
            for epsilon in sorted({bar[0] for bar in module.BARS}):
                results[f"{name} {epsilon:g}"] = words(measure(X, labels, epsilon))
        PEER_RESULTS.write_text(json.dumps(results, indent=1))
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
