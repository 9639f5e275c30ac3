"""One study on a real medical table: plan, publish, sum over hospitals, verify, audit, report.

In:   a folder to write to.
Out:  everything a data steward would hand out, in that folder, and an account of every step on the terminal.
Not here: any privacy logic; each step is one call into the rooms.

The table is scikit-learn's Breast Cancer Wisconsin (569 patients), dealt out to three hospitals by row number.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from sfumato.centres import Aggregate, Means, Requirement, aggregate_locally, new_centres, plan_round
from sfumato.core import Interval, Schema, compose
from sfumato.evidence import verify
from sfumato.evidence.audit import audit
from sfumato.evidence.report import finish_folder
from sfumato.evidence.verify_plan import verify_folder
from sfumato.learn.model_document import load_model
from sfumato.ledger import Ledger
from sfumato.mechanisms import Gaussian
from sfumato.plan.draw import Draw
from sfumato.plan.plan import Plan
from sfumato.run.planning import make_plan
from sfumato.run.study import Release, run_plan

__all__ = ["STUDY", "run_demo"]

HOSPITALS = ("north", "south", "west")
STUDY = """\
% Breast masses in three hospitals: what the public may see, and what researchers may.
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, radius, radius(P)).
column(patients, texture, texture(P)).
column(patients, smoothness, smoothness(P)).
column(patients, diagnosis, diagnosis(P)).
centre(north). centre(south). centre(west). trusted(registry).
holds(north, patients). holds(south, patients). holds(west, patients).

random(radius(P)) :- patient(P).
random(texture(P)) :- patient(P).
random(smoothness(P)) :- patient(P).
random(diagnosis(P)) :- patient(P).

% Public facts, from the literature and not from this table.
range(radius(P), 5, 30).
range(texture(P), 5, 40).
range(smoothness(P), 0.05, 0.2).
range(diagnosis(P), [benign, malignant]).

dataset(patientRecords, domain(P, patient(P))).
privacy_requirement(promise(public), patientRecords, dp(1, 0.000001)).
privacy_requirement(promise(researcher), patientRecords, dp(8, 0.00001)).

mean(meanRadius, radius(P), patient(P)).
histogram(radii, radius(P), patient(P), [5, 10, 15, 20, 25, 30]).
publish(averageRadius, meanRadius, promise(public)).
publish(radiusHistogram, radii, promise(public)).
publish(openTable, synthetic([radius(P), texture(P), smoothness(P), diagnosis(P)], for(diagnosis(P))),
        promise(researcher)) :- patient(P).
publish(triage, classifier(diagnosis(P), [radius(P), texture(P), smoothness(P)]), promise(researcher)) :- patient(P).
"""


def run_demo(folder: Path, console: Console) -> bool:
    """Walk through the whole flow in `folder`; True if everything held."""
    release_folder = folder / "release"
    shutil.rmtree(release_folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True, exist_ok=True)
    patients = _patients()
    parquet.write_table(patients, folder / "data" / "patients.parquet")
    study, ledger = folder / "study.pl", _fresh(folder / "ledger.db")
    study.write_text(STUDY, encoding="utf-8")
    plan = _plan(study, patients.num_rows, console)
    release = _publish(plan, folder, ledger, console)
    _compare(patients, release, console)
    summed = _sum_over_hospitals(plan, patients, console)
    holds = _verify(release_folder, study, summed, console)
    caught = _audit(plan, console)
    lacking = finish_folder(plan, release_folder, ledger)
    console.rule("[bold]7 · report[/]")
    for sentence in lacking:
        console.print(f"[red]{sentence}[/]")
    console.print(f"Read {release_folder / 'report.html'}", soft_wrap=True)
    console.print(
        f"Next: sfumato explain {release_folder} --for LAWYER · sfumato ledger show --ledger {ledger}", soft_wrap=True
    )
    return holds and caught and not lacking


def _patients() -> pa.Table:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    measured, malignant = found.data, found.target == 0  # type: ignore[attr-defined]
    return pa.table(
        {
            "id": [f"patient{number:03d}" for number in range(len(malignant))],
            "radius": measured[:, 0],
            "texture": measured[:, 1],
            "smoothness": measured[:, 4],
            "diagnosis": np.where(malignant, "malignant", "benign"),
        }
    )


def _fresh(path: Path) -> Path:
    for old in path.parent.glob(path.name + "*"):
        old.unlink()
    return path


def _plan(study: Path, size: int, console: Console) -> Plan:
    console.rule("[bold]1 · plan[/]  (no data is read)")
    plan = make_plan(study, sizes={"patientRecords": size})
    table = Table("publication", "for", "chosen", "95 % within", "considered too", box=None, pad_edge=False)
    for planned in plan.publications:
        others = {other.strategy for other in planned.alternatives if other.reason != "chosen"}
        seen = planned.seen[0]
        table.add_row(
            planned.name,
            planned.observer,
            planned.strategy,
            f"±{seen.half_width:.3g} ({seen.node})",
            f"{len(others)} others",
        )
    console.print(table)
    return plan


def _publish(plan: Plan, folder: Path, ledger: Path, console: Console) -> Release:
    console.rule("[bold]2 · publish and charge the ledger[/]")
    book = Ledger(ledger, beside=())  # a public table, shown as often as somebody likes: each demo has its own budget
    release = run_plan(plan, folder / "data", book, out=folder / "release", grant=True)
    console.print(f"{Ledger(ledger).balance('patientRecords', 'patient')}")
    return release


def _compare(patients: pa.Table, release: Release, console: Console) -> None:
    console.rule("[bold]3 · what was published[/]  (private figures: in this demo only)")
    row = release["averageRadius"].to_pylist()[0]
    truth = float(np.mean(patients["radius"].to_numpy()))
    ends = f"95 %: {row['low']:.2f} to {row['high']:.2f}"
    console.print(f"mean radius     {row['value']:.2f}, {ends}   [dim]private: {truth:.2f}[/]")
    counts = [f"{value:.0f}" for value in release["radiusHistogram"]["value"].to_pylist()]
    exact, _ = np.histogram(patients["radius"].to_numpy(), [5, 10, 15, 20, 25, 30])
    console.print(f"radius counts   {', '.join(counts)}   [dim]private: {', '.join(map(str, exact))}[/]")
    assert release.folder is not None
    model = load_model(release.folder / "results" / "triage.researcher.json")
    features = patients.select(["radius", "texture", "smoothness"]).to_pandas().to_numpy()
    right = np.mean(model.predict(features) == patients["diagnosis"].to_numpy(zero_copy_only=False))
    console.print(f"triage          right for {right:.0%} of these patients   [dim]always 'benign': 63%[/]")
    right = _learned(release["openTable"], features, patients["diagnosis"].to_numpy(zero_copy_only=False))
    console.print(f"open table      a model trained on its invented rows is right for {right:.0%} of these patients")


def _learned(rows: pa.Table, features: np.ndarray, diagnosis: np.ndarray) -> float:
    """What an ordinary model learns from the published rows, as anybody may train it: it knows nothing of noise."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    frame = rows.to_pandas()
    columns = ["radius", "texture", "smoothness"]
    if frame["diagnosis"].nunique() < 2:
        return float(np.mean(diagnosis == frame["diagnosis"].iloc[0]))
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(frame[columns].to_numpy(), frame["diagnosis"].to_numpy())
    return float(np.mean(model.predict(features) == diagnosis))


def _sum_over_hospitals(plan: Plan, patients: pa.Table, console: Console) -> Aggregate:
    console.rule("[bold]4 · the same mean over three hospitals[/]  (masks, noise shares)")
    centres, keys = new_centres(HOSPITALS)
    share = compose([draw.event() for draw in plan.draws if draw.node == "meanRadius"])  # what the plan set aside
    assert share.adjacency is not None
    statistic = Means(Schema({"radius": Interval(5, 30)}), identity="id")
    promised = [Requirement(share.adjacency, share)]
    agreed = plan_round("averageRadius", centres, statistic, promised, most_patients=1000)
    cells = {
        name: agreed.statistic.cells(
            patients.take(list(range(place, patients.num_rows, 3))).select(["id", "radius"]), agreed.grid, 1000
        )
        for place, name in enumerate(HOSPITALS)
    }
    found = aggregate_locally(agreed, cells, keys)
    console.print(f"{found.read()}, noise deviation {found.deviation:.3g} on each sum")
    return found


def _verify(folder: Path, study: Path, summed: Aggregate, console: Console) -> bool:
    console.rule("[bold]5 · verify[/]  (without the data, by a second code path)")
    checks = verify_folder(folder, study)
    holds = all(check.ok for check in checks) and all(verify(one).ok for one in summed.certificates())
    for check in checks:
        if not check.ok:
            console.print(f"[red]{check.field}: {check.sentence}[/]")
    number, sums = sum(check.covered for check in checks), len(summed.certificates())
    console.print(f"{number} checks of the release and {sums} of the hospitals' sum: ", end="")
    console.print("[green]all hold[/]" if holds else "[red]FAILED[/]")
    return holds


def _audit(plan: Plan, console: Console) -> bool:
    console.rule("[bold]6 · audit[/]  (attack the noise of the mean, and a broken twin of it)")
    draw = next(draw for draw in plan.draws if isinstance(draw, Draw) and draw.node == "meanRadius")
    noise = draw.mechanism()
    neighbours = (np.zeros(1), np.full(1, noise.sensitivity))
    honest = audit(noise, neighbours, trials=200_000)
    broken = type(noise)(noise.scale * 2 / 3, noise.sensitivity, draw.adjacency, 1)
    caught = audit(broken, neighbours, trials=200_000, claim=noise.guarantee())
    measure = "μ" if isinstance(noise, Gaussian) else "ε"
    pair = (honest.mu_lower, honest.mu_claimed) if measure == "μ" else (honest.epsilon_lower, honest.epsilon_claimed)
    console.print(f"this noise:            {measure} ≥ {pair[0]:.3f}, claimed {pair[1]:.3f}: not refuted")
    console.print(
        "with 2/3 of the noise: " + ("[red]refuted[/], as it should be" if caught.refuted else "[red]NOT CAUGHT[/]")
    )
    return caught.refuted and not honest.refuted
