"""Training time and memory: ours beside scikit-learn's solvers and diffprivlib.

Run: python benchmarks/learn_speed.py [rows]. Bars: at most twice scikit-learn's fastest non-private solver on Adult at
equal tolerance, three times faster than diffprivlib, and at 500,000 × 119 at most twice X's size beyond X.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
from learn_adult import load
from learn_common import PEER_RESULTS
from sklearn.linear_model import LogisticRegression

from sfumato.learn import PrivateLogisticRegression


def best_time(make, X: np.ndarray, labels: np.ndarray, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        model = make()
        start = time.perf_counter()
        model.fit(X, labels)
        times.append(time.perf_counter() - start)
    return min(times)


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed() -> bool:
    X, labels = load()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fitted = PrivateLogisticRegression(1.0, 1e-6, random_state=0, fit_intercept=False).fit(X, labels)
    # scikit-learn's tolerance is on the gradient of the mean loss, as ours is.
    tolerance, strength = fitted.plan_.tolerance, 1 / (fitted.regularization_ * len(labels))
    theirs = {
        solver: best_time(
            lambda solver=solver: LogisticRegression(
                C=strength, tol=tolerance, solver=solver, fit_intercept=False, max_iter=10_000
            ),
            X,
            labels,
            3,
        )
        for solver in ("lbfgs", "newton-cholesky", "newton-cg")
    }
    fastest = min(theirs, key=lambda solver: theirs[solver])
    ours = {
        delta: best_time(lambda delta=delta: PrivateLogisticRegression(1.0, delta, fit_intercept=False), X, labels)
        for delta in (1e-6, 0.0)
    }
    peer = json.loads(PEER_RESULTS.read_text()).get("speed") if PEER_RESULTS.exists() else None
    met = True
    for delta, seconds in ours.items():
        ratio = seconds / theirs[fastest]
        beside = f"diffprivlib {peer:.3f} s, {peer / seconds:.1f}x slower" if peer else "diffprivlib not measured"
        good = ratio <= 2 and (peer is None or peer / seconds >= 3)
        met &= good
        print(
            f"{'ok  ' if good else 'MISS'} Adult fit, delta={delta:g}: {seconds:.3f} s | scikit-learn {fastest}, "
            f"tol {tolerance:.1e}: {theirs[fastest]:.3f} s, ratio {ratio:.2f} (bar 2) | {beside} (bar 3)"
        )
    return met


def memory(rows: int) -> bool:
    generator = np.random.default_rng(0)
    X = generator.random((rows, 119))
    labels = X[:, 0] + X[:, 1] > 1
    before, size = peak_mebibytes(), X.nbytes / 2**20
    start = time.perf_counter()
    PrivateLogisticRegression(1.0, 1e-6).fit(X, labels)
    beyond = (peak_mebibytes() - before) / size
    print(
        f"{'ok  ' if beyond <= 2 else 'MISS'} {rows} x 119 ({size:.0f} MiB): {time.perf_counter() - start:.1f} s, "
        f"{beyond:.2f} times X beyond X (bar 2)"
    )
    return beyond <= 2


def main(rows: int = 500_000) -> bool:
    return all([speed(), memory(rows)])


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
