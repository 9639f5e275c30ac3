"""The main job on a small table: calibrate, add noise, charge the ledger, certify, verify, audit.

In:   a folder to write to.
Out:  a noisy table, a ledger and a certificate in it, and an account of every step on the terminal.
Not here: any privacy logic; each step is one call into the rooms.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from sfumato.core import REPLACE_ONE, ApproxDP, Interval, Schema
from sfumato.evidence import Certificate, verify
from sfumato.evidence.audit import audit
from sfumato.mechanisms import Gaussian
from sfumato.run import Ledger

__all__ = ["run_demo"]

_SCHEMA = Schema({"age": Interval(0, 110), "weight_kg": Interval(20, 220), "systolic_mmhg": Interval(60, 260)})
_WANTED = ApproxDP(1.0, 1e-6)
_BUDGET = ApproxDP(2.0, 1e-5)


def _patients(count: int) -> pa.Table:
    """Invented patients: a stand-in for the private table. Seeded, so that the demonstration repeats."""
    generator = np.random.default_rng(2024)
    age = generator.gamma(9.0, 6.0, count)
    weight = generator.normal(76, 14, count)
    pressure = 105 + 0.45 * age + generator.normal(0, 13, count)
    return pa.table({"age": age, "weight_kg": weight, "systolic_mmhg": pressure})


def run_demo(folder: Path, console: Console) -> bool:
    """Walk through the whole flow in `folder`; True if everything held."""
    folder.mkdir(parents=True, exist_ok=True)
    table = _patients(2_000)
    ledger = Ledger(_fresh(folder / "ledger.db"))
    noise = _calibrate(table.num_rows, console)
    certificate, published = _publish(table, noise, ledger, folder, console)
    verification = verify(certificate)
    console.rule("[bold]4 · verify[/]  (from the certificate alone, by a second code path)")
    console.print(
        f"{len(verification.checks)} checks, " + ("[green]all hold[/]" if verification.ok else "[red]FAILED[/]")
    )
    console.rule("[bold]5 · audit[/]  (attack the mechanism, and a broken twin of it)")
    held = _audit(noise, console)
    console.rule("[bold]what was published[/]")
    console.print(_comparison(table, published, noise))
    console.print(f"Files are in {folder}: means.parquet, certificate.json, ledger.db")
    console.print(f"Next: sfumato verify {folder}/certificate.json · sfumato ledger show --ledger {folder}/ledger.db")
    return verification.ok and held


def _fresh(path: Path) -> Path:
    for old in path.parent.glob(path.name + "*"):
        old.unlink()
    return path


def _calibrate(rows: int, console: Console) -> Gaussian:
    console.rule("[bold]1 · calibrate[/]")
    # Three means of columns scaled to [0, 1]: replacing one record moves the vector by at most √3/n.
    sensitivity = np.sqrt(_SCHEMA.width) / rows
    noise = Gaussian.for_guarantee(_WANTED, sensitivity, REPLACE_ONE, dimension=_SCHEMA.width)
    console.print(f"Wanted:  {_WANTED.under(REPLACE_ONE)}")
    console.print(f"Public:  {rows} records, every column's range. L2 sensitivity of the means: {sensitivity:.3g}")
    console.print(f"Noise:   N(0, σ²) with σ = {noise.scale:.4g} on a grid of 2^{int(np.log2(noise.grid))}")
    return noise


def _publish(table: pa.Table, noise: Gaussian, ledger: Ledger, folder: Path, console: Console):
    console.rule("[bold]2 · publish and charge the ledger[/]")
    ledger.grant("patients", _BUDGET, adjacency=REPLACE_ONE)
    with ledger.spending("patients", noise.event(), purpose="three column means"):
        published = noise(_SCHEMA.encode(table).mean(axis=0))
    console.print(f"Granted: {ledger.balance('patients').granted}")
    console.print(f"Left:    {ledger.balance('patients').remaining}")
    console.rule("[bold]3 · certify[/]")
    certificate = Certificate.issue(
        subject="means of age, weight and systolic pressure of 2,000 patients",
        events=[noise.event()],
        plan={"query": "column means", "columns": list(_SCHEMA.columns)},
        proofs=[noise.proof],
    )
    certificate.write(folder / "certificate.json")
    names = list(_SCHEMA.columns)
    parquet.write_table(pa.table({"column": names, "mean": _in_units(published)}), folder / "means.parquet")
    console.print(f"Claimed: {certificate.guarantee}")
    console.print(f"An attacker's gain over guessing is at most {certificate.guarantee.advantage():.1%}")
    return certificate, published


def _audit(noise: Gaussian, console: Console) -> bool:
    here = np.zeros(_SCHEMA.width)
    there = np.full(_SCHEMA.width, noise.sensitivity / np.sqrt(_SCHEMA.width))
    honest = audit(noise, (here, there), trials=200_000)
    broken = Gaussian(noise.scale * 2 / 3, noise.sensitivity, REPLACE_ONE, noise.dimension)
    caught = audit(broken, (here, there), trials=200_000, claim=noise.guarantee())
    console.print(f"This mechanism:        μ ≥ {honest.mu_lower:.3f}, claimed {honest.mu_claimed:.3f}: not refuted")
    console.print(
        f"With 2/3 of the noise: μ ≥ {caught.mu_lower:.3f}, claimed {caught.mu_claimed:.3f}: "
        + ("[red]refuted[/], as it should be" if caught.refuted else "[red]NOT CAUGHT[/]")
    )
    return caught.refuted and not honest.refuted


def _in_units(scaled: np.ndarray) -> list[float]:
    return [d.low + d.width * float(v) for d, v in zip(_SCHEMA.columns.values(), scaled, strict=True)]  # type: ignore[union-attr]


def _comparison(table: pa.Table, published: np.ndarray, noise: Gaussian) -> Table:
    view = Table("column", "published mean", "± 95 % from the noise", "[dim]private mean (shown in this demo only)[/]")
    for name, value, domain in zip(_SCHEMA.columns, _in_units(published), _SCHEMA.columns.values(), strict=True):
        private = float(np.mean(np.clip(table[name].to_numpy(), domain.low, domain.high)))  # type: ignore[union-attr]
        view.add_row(name, f"{value:.2f}", f"{1.96 * noise.scale * domain.width:.2f}", f"[dim]{private:.2f}[/]")  # type: ignore[union-attr]
    return view
