"""The same estimators on a GPU, with torch: training to a certified gradient, random features, equilibrium points.

    python benchmarks/gpu.py --device cuda                       the sizes of the bars
    python benchmarks/gpu.py --device cpu --rows 100000          a small size, anywhere torch is installed

Tables are made on the device. "Device time" is from the first question of the solver to the last answer, with the
device waited for; the whole fit also checks the labels on the host and draws the noise there. Results go to
benchmarks/gpu.md.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.learn import EquilibriumClassifier, KernelMeanClassifier, PrivateLogisticRegression, PrivateSVC
from sfumato.learn.calibration import plan_training
from sfumato.learn.losses import LogisticLoss
from sfumato.learn.newton import Objective, minimise_together
from sfumato.learn.passes import ArrayPasses
from sfumato.learn.stream_sums import MarginSums, RowShape, answers_from
from sfumato.learn.training_budget import TrainingBudget

COLUMNS = 119


def seconds(torch: Any, device: str, action: Callable[[], Any]) -> tuple[float, Any]:
    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    wait()
    start = time.perf_counter()
    result = action()
    wait()
    return time.perf_counter() - start, result


def table(torch: Any, device: str, rows: int, columns: int, seed: int = 0) -> tuple[Any, Any]:
    """Normal rows of length about 1 and the labels of one noisy linear rule, on the device."""

    def drawn(seed: int) -> Callable[..., Any]:
        generator = torch.Generator(device=device).manual_seed(seed)
        return lambda *shape: torch.randn(*shape, generator=generator, device=device, dtype=torch.float64)

    normal, direction = drawn(seed), drawn(1_000)(columns)
    X, noise = normal(rows, columns) / columns**0.5, normal(rows)
    return X, (X @ direction + 0.3 * noise > 0).to(torch.int64)


def solver(X: Any, y: Any) -> Any:
    """Objective perturbation's problem at ε = 1, δ = 1e-6: exactly what `fit` minimises, without its checks."""
    from sfumato.core import REPLACE_ONE

    rows, columns = X.shape
    loss = LogisticLoss()
    plan = plan_training(TrainingBudget(1.0, 1e-6, REPLACE_ONE, rows, columns + 1), loss, "objective")
    assert plan.tilt is not None
    tilt = plan.tilt(np.zeros(columns + 1)) / rows
    passes = ArrayPasses(X, y.to(X.dtype))
    objective = Objective(loss, columns + 1, rows, rows, plan.regularization, tilt, plan.tolerance)

    def ask(questions: list[Any]) -> list[Any]:
        sums = MarginSums(RowShape(1.0, 0.2), loss, tuple(questions), (1,))
        return answers_from(questions, passes.total(sums))

    return minimise_together([objective], ask)[0]


def bench_logistic(torch: Any, device: str, rows: int) -> None:
    X, y = table(torch, device, rows, COLUMNS)
    solver(X[:10_000], y[:10_000])  # libraries are loaded on first use
    taken, found = min((seconds(torch, device, lambda: solver(X, y)) for _ in range(3)), key=lambda pair: pair[0])
    print(
        f"logistic {rows:,} × {COLUMNS} to a certified gradient of {found.gradient_bound:.1e} ({found.steps} steps): "
        f"{taken:.3f} s of device time   bar ≤ 1 s to 1e-8"
    )
    model = PrivateLogisticRegression(1.0, 1e-6, random_state=0)
    taken, _ = seconds(torch, device, lambda: model.fit(X, y))
    print(f"  the whole fit: {taken:.2f} s, accuracy {float(np.mean(model.predict(X) == y.cpu().numpy())):.3f}")


def bench_growth(torch: Any, device: str, rows: int) -> None:
    """More rows, never a worse model: accuracy on new rows, without noise to speak of and at (1, 1e-6)."""
    new, answers = table(torch, device, max(rows // 5, 10_000), COLUMNS, seed=1)
    truth = answers.cpu().numpy()
    for size in sorted({rows // 250, rows // 25, rows // 5, rows}):
        X, y = table(torch, device, size, COLUMNS, seed=2)
        for kind in (PrivateLogisticRegression, PrivateSVC):

            def accuracy(epsilon: float, seed: int, kind=kind, X=X, y=y) -> float:
                model = kind(epsilon, 1e-6, random_state=seed).fit(X, y)
                return float(np.mean(np.asarray(model.predict(new)) == truth))

            plain, private = accuracy(1e5, 0), float(np.mean([accuracy(1.0, seed) for seed in range(3)]))
            print(
                f"{kind.__name__}, {size:,} rows: {plain:.5f} at ε = 10⁵, {private:.5f} at ε = 1, "
                f"gap {plain - private:.5f}"
            )


def bench_features(torch: Any, device: str, rows: int) -> None:
    X, y = table(torch, device, rows // 10, 20)
    model = PrivateSVC(1.0, 1e-6, kernel="rbf", n_components=400, random_state=0)
    taken, _ = seconds(torch, device, lambda: model.fit(X, y))
    print(f"SVC on 400 random features, {rows // 10:,} rows: {taken:.2f} s")
    means = KernelMeanClassifier(1.0, 1e-6, n_components=400, random_state=0)
    taken, _ = seconds(torch, device, lambda: means.fit(X, y))
    print(f"class sums of 400 random features, {rows // 10:,} rows: {taken:.2f} s")


def shuttle_rows() -> tuple[np.ndarray, np.ndarray, Any, str]:
    """The shuttle table of the other benchmarks, or where its file is not at hand one made like it."""
    from kernel_tables import SHUTTLE, shuttle

    try:
        found = shuttle()
        return found.rows, found.labels, found.box, "shuttle"
    except (OSError, LookupError, ValueError):
        generator = np.random.default_rng(0)
        labels = generator.choice(3, 30_450, p=[0.786, 0.155, 0.059])
        low, high = (np.asarray(end, dtype=float) for end in SHUTTLE)
        centres = low + (high - low) * generator.uniform(0.3, 0.7, (3, 9))
        rows = centres[labels] + generator.normal(size=(30_450, 9)) * (high - low) * 0.05
        return rows, labels, SHUTTLE, "a table made like shuttle"


def bench_equilibrium(torch: Any, device: str) -> None:
    values, y, box, name = shuttle_rows()
    X = torch.asarray(values, dtype=torch.float64, device=device)
    classes = sorted(set(y.tolist()))
    make = lambda: EquilibriumClassifier(1.0, 1e-5, box=box, classes=classes, random_state=0)  # noqa: E731

    def train_and_predict() -> Any:
        return make().fit(X, y).predict(X)

    train_and_predict()
    taken, predicted = min((seconds(torch, device, train_and_predict) for _ in range(3)), key=lambda pair: pair[0])
    accuracy = float(np.mean(predicted == y))
    print(
        f"equilibrium points, {name} ({len(y):,} × {X.shape[1]}), train and predict: {taken:.2f} s, accuracy "
        f"{accuracy:.3f}   bar ≤ 1 s"
    )


def main(arguments: list[str] | None = None) -> None:
    try:
        import torch
    except ImportError:
        print("torch is not installed: nothing measured")
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=5_000_000 if torch.cuda.is_available() else 100_000)
    chosen = parser.parse_args([] if arguments is None else arguments)
    name = torch.cuda.get_device_name() if chosen.device.startswith("cuda") else platform.processor() or "CPU"
    print(f"{name}, torch {torch.__version__}, numpy {np.__version__}, Python {platform.python_version()}")
    bench_logistic(torch, chosen.device, chosen.rows)
    bench_growth(torch, chosen.device, chosen.rows)
    bench_features(torch, chosen.device, chosen.rows)
    bench_equilibrium(torch, chosen.device)


if __name__ == "__main__":
    main(sys.argv[1:])
