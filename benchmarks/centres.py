"""Several institutions against their bars: a round of 50 centres, deaths, learning over five, plans and their errors.

Run: python -m benchmarks.centres [section …] with parts, rounds, deaths, learn, study, sums, plans, commands; or all.
Each line says what was measured, the bar, and whether it holds.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres import (
    ClippedSums,
    Means,
    Requirement,
    SecondMoments,
    Series,
    aggregate_in_memory,
    aggregate_locally,
    learn_in_memory,
    new_centres,
    plan_round,
)
from sfumato.centres.conductor import Conductor
from sfumato.centres.design import Speed, designs_of
from sfumato.centres.masks import mask, pair_key, private_key, public_bytes
from sfumato.centres.messages import STEPS, Message, write_json
from sfumato.centres.node import Offer, RoundAccount, Seat
from sfumato.centres.wire import Frame, message_frame
from sfumato.core import Adjacency, ApproxDP, Categories, Interval, PureDP, Schema
from sfumato.errors import RoundFailedError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.mechanisms import Gaussian
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.shares import draw_share

LENGTH = 10_000
PATIENT = Adjacency("patient", "add-remove")
PROMISE = Requirement(PATIENT, ApproxDP(1.0, 1e-6))
ROOT = Path(__file__).parents[1]


def told(what: str, held: bool, bar: str) -> None:
    print(f"{'ok  ' if held else 'MISS'} {what} | bar {bar}", flush=True)


def seconds_of(action: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - start) / repeats


def parts() -> None:
    """What the parts of the protocol cost: the numbers of centres.design.Speed."""
    key, public = bytes([1] * 32), public_bytes(bytes([2] * 32))
    own = private_key(key)
    identity = Ed25519PrivateKey.generate()
    message = Message("0" * 64, "a", "keys", bytes(200)).sign(identity)
    known = identity.public_key().public_bytes_raw().hex()
    print(f"X25519 with HKDF        {seconds_of(lambda: pair_key(own, public, 'mask', 'r'), 500) * 1e6:8.1f} µs")
    print(f"Ed25519 verification    {seconds_of(lambda: message.check(known, '0' * 64, 'keys'), 500) * 1e6:8.1f} µs")
    print(f"mask, a number          {seconds_of(lambda: mask(key, 10**6), 10) * 1e3:8.2f} ns")
    for law, honest in (("gaussian", 4), ("laplace", 4), ("laplace", 40)):
        spent = seconds_of(lambda law=law, honest=honest: draw_share(law, 4.0, 2.0**-20, honest, 10**5, Bits()), 3)
        print(f"{law} share of 1/{honest:<3} a number {spent * 1e4:8.1f} ns")


def big_round(centres: int, requirement: Requirement = PROMISE, absences: int | None = None) -> Any:
    members, keys = new_centres(f"centre {number}" for number in range(centres))
    statistic = ClippedSums(LENGTH, 1.0, 1)
    away = centres // 5 if absences is None else absences
    agreed = plan_round("benchmark", members, statistic, [requirement], most_patients=1000, absences=away)
    generator = np.random.default_rng(0)
    cells = {one.name: statistic.cells(generator.normal(size=(20, LENGTH)), agreed.grid, 1000) for one in members}
    return agreed, keys, cells


def rounds() -> None:
    """A round of 10⁴ numbers with a process for each centre, and in one process."""
    for centres, bar in ((5, 10.0), (50, 10.0)):
        agreed, keys, cells = big_round(centres)
        truth = sum(cells.values()) * agreed.grid
        start = time.perf_counter()
        aggregate_in_memory(agreed.fresh(), cells, keys)
        alone = time.perf_counter() - start
        start = time.perf_counter()
        found = aggregate_locally(agreed, cells, keys)
        spent = time.perf_counter() - start
        ratio = float(np.mean(np.square((found.values - truth) / found.deviation)))
        _, together = designs_of(agreed, Speed(machines=os.cpu_count() or 1))
        told(
            f"{centres} centres, {LENGTH} numbers: {spent:.1f} s with a process each, {alone:.1f} s in one process "
            f"(predicted {together.seconds:.1f} s, {together.bytes / 2**20:.1f} MiB); squared error {ratio:.3f} of the "
            "planned",
            spent <= bar and abs(ratio - 1) < 0.1,
            f"{bar:g} s",
        )
    agreed, keys, cells = big_round(5, Requirement(PATIENT, PureDP(1.0)))
    found = aggregate_in_memory(agreed, cells, keys)
    ratio = float(np.mean(np.square((found.values - sum(cells.values()) * agreed.grid) / found.deviation)))
    told(f"5 centres, pure ε: squared error {ratio:.3f} of the planned", abs(ratio - 1) < 0.15, "1 ± 0.15")


class _Dying:
    """Fifty seats with ledgers, some of which die before or after saying something at one step."""

    def __init__(self, folder: Path, dead: set[str], step: str, after: bool) -> None:
        self.agreed, self.keys, self.cells = big_round(50, absences=16)
        self.agreed = self.agreed.fresh()
        self.folder, self.dead, self.step, self.after = folder, dead, step, after
        self.books = {name: Ledger(folder / f"{name}.db") for name in self.cells}
        for book in self.books.values():
            book.grant("patients", ApproxDP(1.5, 1e-5), adjacency=PATIENT)
        self.seats: dict[str, Seat] = {}

    def play(self) -> tuple[float | None, int]:
        """The squared error of the sum in units of the planned one, None where it was not opened; and how many ledgers
        were charged more than once or for nothing."""
        conductor = Conductor(self.agreed)
        offer = Offer.of(self.agreed)
        for name, vector in self.cells.items():
            if name in self.dead and self.step == "keys" and not self.after:
                continue
            account = RoundAccount(self.books[name], "patients")
            seat, first = Seat.take(offer, self.agreed, name, self.keys[name], vector, account, None)
            self.seats[name] = seat
            conductor.admit(name, first)
        conductor.begin()
        while asked := conductor.questions():
            conductor.answered({name: self._answer(conductor, name, frame) for name, frame in asked.items()})
        for name in conductor.farewell():
            self.seats[name].settle(conductor.outcome)
        try:
            found = conductor.result()
        except RoundFailedError:
            return None, sum(self._is_wrong(name, False) for name in self.cells)
        truth = sum(self.cells[name] for name in found.included) * self.agreed.grid
        ratio = float(np.mean(np.square((found.values - truth) / found.deviation)))
        return ratio, sum(self._is_wrong(name, name in found.included) for name in self.cells)

    def _answer(self, conductor: Conductor, name: str, frame: Any) -> Any:
        order = STEPS.index(conductor.aggregator.step), STEPS.index(self.step)
        if name in self.dead and (order[0] > order[1] or (order[0] == order[1] and not self.after)):
            return "broke off"
        try:
            return self.seats[name].answer(frame.head["kind"], frame.body)
        except SfumatoError as error:
            return str(error)

    def _is_wrong(self, name: str, inside: bool) -> bool:
        acts = [record.action for record in self.books[name].history("patients")]
        twice = acts.count("reserve") > 1 or acts.count("commit") > 1
        return twice or (inside and name not in self.dead and acts[-1] != "commit")


def deaths() -> None:
    """Any 16 of 50 die at any step: the right result or a clear refusal, nothing charged twice."""
    generator = np.random.default_rng(0)
    ratios, wrong = [], 0
    for step in STEPS:
        for after in (False, True):
            names = [f"centre {number}" for number in generator.choice(50, 16, replace=False)]
            with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
                result, faults = _Dying(Path(folder), set(names), step, after).play()
            ratios, wrong = [*ratios, *([] if result is None else [result])], wrong + faults
    off = max((abs(one - 1) for one in ratios), default=np.inf)
    told(
        f"16 of 50 dead at {2 * len(STEPS)} places: {len(ratios)} sums opened, squared errors of the sum of those who "
        f"stayed within {off:.3f} of the planned; {wrong} ledgers wrong",
        not wrong and off < 0.1,
        "0 wrong; within 0.1",
    )


def adult() -> tuple[Any, np.ndarray, Schema, Any, np.ndarray]:
    """Rows, labels, schema with the target, and who learns and who is asked."""
    sys.path.insert(0, str(Path(__file__).parent))
    from learn_adult import SCHEMA, table

    rows, labels = table()
    schema = Schema({**SCHEMA.columns, "income": Categories(["<=50K", ">50K"])})
    order = np.random.default_rng(0).permutation(len(labels))
    return rows, labels, schema, SCHEMA, order


def learn(draws: int = 3) -> None:
    """Logistic regression over five centres of Adult beside the estimator that sees all rows."""
    from sklearn.metrics import roc_auc_score

    from sfumato.learn import PrivateLogisticRegression

    rows, labels, schema, plain, order = adult()
    train, test = order[:39_000], order[39_000:]
    names = [f"centre {number}" for number in range(5)]
    members, keys = new_centres(names)
    at = np.random.default_rng(1).integers(0, 5, len(train))
    tables = {name: rows.take(train[at == place]) for place, name in enumerate(names)}
    one = Requirement(Adjacency("record", "replace-one"), ApproxDP(1.0, 1e-6))
    series = Series(
        subject="income", centres=members, schema=schema, target="income", label=">50K", requirement=one,
        most_patients=50_000,
    )  # fmt: skip
    ours, central, spent, sent = [], [], 0.0, 0
    for seed in range(draws):
        start = time.perf_counter()
        with counting() as passed:
            model = learn_in_memory(series, tables, keys)
        spent, sent = max(spent, time.perf_counter() - start), max(sent, *passed.values())
        ours.append(roc_auc_score(labels[test], model.decision_function(rows.take(test))))
        whole = PrivateLogisticRegression(schema=plain, epsilon=1.0, delta=1e-6, random_state=seed)
        whole.fit(rows.take(train), labels[train])
        central.append(roc_auc_score(labels[test], whole.decision_function(rows.take(test))))
    told(
        f"logistic regression over 5 centres of Adult at (1, 1e-6): AUC {np.mean(ours):.4f}, central "
        f"{np.mean(central):.4f}; {spent:.1f} s; {sent / 2**20:.2f} MiB a centre",
        np.mean(central) - np.mean(ours) <= 0.01 and spent <= 60 and sent <= 2 * 2**20,
        "AUC within 0.01, 60 s, 2 MB",
    )


def study(draws: int = 3) -> None:
    """Models and rows of one study over five centres of Adult, beside the same study where one party sees all rows."""
    from sklearn.metrics import roc_auc_score

    rows, labels, _, plain, order = adult()
    train, test = order[:39_000], order[39_000:]
    names = {name: f"c{place}(P)" for place, name in enumerate(plain.columns)}
    income = np.where(np.asarray(labels).astype(str) == str(max(labels)), ">50K", "<=50K")
    table = pa.table({**{f"c{place}": rows[name] for place, name in enumerate(names)}, "income": income})
    table = table.append_column("id", pa.array([f"p{place}" for place in range(table.num_rows)]))
    at = np.random.default_rng(1).integers(0, 5, len(train))
    parts = {f"centre{place}": table.take(pa.array(train[at == place])) for place in range(5)}
    asked = pa.table({shown: rows[name] for name, shown in names.items()}).take(pa.array(test))
    listed = ", ".join(names.values())
    classifier = f"publish(m, classifier(income(P), [{listed}]), r(public)).\n"
    for way in ("logistic_steps", "kernel"):
        ours, central, spent, sent = [], [], 0.0, 0.0
        text = _adult_study(plain, classifier)
        for seed in range(draws):
            start = time.perf_counter()
            release, sent = _over_centres(text + f"prefer(m, [{way}]). " + _named(parts), parts)
            spent = max(spent, time.perf_counter() - start)
            ours.append(roc_auc_score(labels[test], release.model("m").decision_function(asked)))
            whole = _in_one_place(text + (f"prefer(m, [{way}]). " if way == "kernel" else ""), table, train, seed)
            central.append(roc_auc_score(labels[test], whole.model("m").decision_function(asked)))
        told(
            f"study over 5 centres of Adult, {way} at (1, 1e-6): AUC {np.mean(ours):.4f}, central "
            f"{np.mean(central):.4f}; {spent:.1f} s in one process; {sent / 2**20:.2f} MiB a centre",
            np.mean(central) - np.mean(ours) <= 0.01 and spent <= 60 and sent <= 2 * 2**20,
            "AUC within 0.01, 60 s, 2 MB",
        )


def _adult_study(schema: Schema, publish: str) -> str:
    lines = ["source(t, 't.csv'). column(t, id, person(P)). rows_per_person(t, 1). missing(t, never)."]
    domains = {f"c{place}": domain for place, domain in enumerate(schema.columns.values())}
    for name, domain in (domains | {"income": Categories(["<=50K", ">50K"])}).items():
        listed = f"[{', '.join(map(_quoted, domain.values))}]" if isinstance(domain, Categories) else None
        ends = listed or f"{domain.low:g}, {domain.high:g}"  # type: ignore[union-attr]
        lines.append(f"column(t, {name}, {name}(P)). random({name}(P)) :- person(P). range({name}(P), {ends}).")
    lines.append("dataset(people, domain(P, person(P))). privacy_requirement(r(public), people, dp(1, 0.000001)).")
    return "\n".join(lines) + "\n" + publish


def _quoted(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _named(parts: dict[str, pa.Table]) -> str:
    return "".join(f"centre({name}). " for name in parts) + "\n"


def _over_centres(text: str, parts: dict[str, pa.Table]) -> tuple[Any, float]:
    """The release of all rounds, in one process; and what one centre sends and gets."""
    from sfumato.run.course import Course
    from sfumato.run.over_centres import published_over_centres, study_round
    from sfumato.run.planning import make_plan

    plan = make_plan(text, sizes={"people": 39_000.0})
    members, keys = new_centres(parts)
    values = {name: plan.network.evaluate({"t": one}) for name, one in parts.items()}  # type: ignore[union-attr]
    leader = Course(plan, study_round(plan, members))
    own = {name: Course(plan, leader.first) for name in parts}
    with counting() as passed:
        while not leader.is_over:
            agreed = leader.round.fresh()
            found = aggregate_in_memory(agreed, {name: own[name].cells(values[name]) for name in parts}, keys)
            for course in (leader, *own.values()):
                course.moved(found)
    first, *later = leader.opened
    release = published_over_centres(plan, first, {}, None, performed=leader.performed, later=later)
    return release, max(passed.values())


def _in_one_place(text: str, table: pa.Table, train: np.ndarray, seed: int) -> Any:
    from sfumato.run.planning import make_plan
    from sfumato.run.study import run_plan

    plan = make_plan(text, sizes={"people": 39_000.0})
    return run_plan(plan, {"t": table.take(pa.array(train))}, None, random_state=seed)


@contextmanager
def counting() -> Iterator[dict[str, int]]:
    """What passes between every centre and the coordinator, in bytes as they go over the line, without TLS's own."""
    passed: dict[str, int] = defaultdict(int)
    admit, answered, result = Conductor.admit, Conductor.answered, Conductor.result

    def size(frame: Frame) -> int:
        return 8 + len(write_json(frame.head)) + len(frame.body)

    def admitted(self: Conductor, name: str, message: Message) -> None:
        passed[name] += len(Offer.of(self.round).to_bytes()) + size(message_frame(message))
        admit(self, name, message)

    def heard(self: Conductor, answers: Any) -> None:
        for name, frame in self.questions().items():
            passed[name] += size(frame)
            passed[name] += size(message_frame(answers[name])) if isinstance(answers.get(name), Message) else 0
        answered(self, answers)

    def ended(self: Conductor) -> Any:
        for name, frame in self.farewell().items():
            passed[name] += size(frame)
        return result(self)

    with (
        mock.patch.object(Conductor, "admit", admitted),
        mock.patch.object(Conductor, "answered", heard),
        mock.patch.object(Conductor, "result", ended),
    ):
        yield passed


def sums() -> None:
    """One round suffices: the noise beside that of one place with the same promise."""
    from sfumato.plan.draw import Draw
    from sfumato.run.planning import make_plan

    schema = Schema({f"x{number}": Interval(0, 1) for number in range(8)} | {"sex": Categories(["f", "m"])})
    members, keys = new_centres(f"centre {number}" for number in range(5))
    generator = np.random.default_rng(0)
    for name, statistic in (("regression (second moments)", SecondMoments(schema)), ("means", Means(schema))):
        agreed = plan_round(name, members, statistic, [PROMISE], most_patients=10_000)
        rows = {c: generator.random(400) for c in schema.columns if c != "sex"} | {"sex": ["f", "m"] * 200}
        cells = {one.name: statistic.cells(rows, agreed.grid, 10_000) for one in members}
        truth = sum(cells.values()) * agreed.grid
        central = Gaussian.for_guarantee(
            PROMISE.guarantee, statistic.sensitivity(PATIENT, "gaussian"), PATIENT, dimension=statistic.length
        )
        measured = [aggregate_in_memory(agreed.fresh(), cells, keys).values - truth for _ in range(40)]
        ratio = agreed.deviation(5) / central.scale
        seen = float(np.sqrt(np.mean(np.square(measured)))) / central.scale
        chance = 3 / np.sqrt(2 * np.size(measured))
        told(
            f"{name} over 5 centres: noise {ratio:.6f} of one place's, measured {seen:.3f} (± {chance:.3f} by chance)",
            ratio <= 1.02 and abs(seen - ratio) <= chance,
            "1.02, measured as predicted",
        )
    text = (ROOT / "examples" / "centres" / "study.pl").read_text().replace("absences(1).", "")
    text = re.sub(r"publish\(.*\)\.", "", text)
    text += "marginals(tables, [sex(P), age(P): [30, 60]], 2, patient(P)). publish(tables, tables, care(public)).\n"
    plans = [make_plan(text + more) for more in ("", "trusted(registry).\n")]
    errors = [
        sum(draw.variance for draw in plan.draws if isinstance(draw, Draw)) for plan in plans
    ]  # fmt: skip
    told(
        f"marginals over 4 centres: {errors[0] / errors[1]:.6f} of one place's variance",
        errors[0] <= 1.02**2 * errors[1],
        "1.02²",
    )


def plans(settings: int = 20) -> None:
    """The chosen way has the least measured error among those that could be run."""
    from sfumato.run.over_centres import cells_of, published_over_centres, sharing_of, study_round
    from sfumato.run.planning import make_plan

    generator = np.random.default_rng(5)
    right = 0
    for _ in range(settings):
        count = int(generator.integers(3, 51))
        away, colluding = int(generator.integers(0, count // 3 + 1)), int(generator.integers(0, count // 3 + 1))
        metric = "dp(1)" if generator.random() < 0.3 else "dp(1, 0.000001)"
        names = [f"c{number}" for number in range(count)]
        head = "".join(f"centre({name}). " for name in names) + f"absences({away}). colluders({colluding}).\n"
        text = f"""
            source(t, 't.csv'). column(t, id, person(P)). rows_per_person(t, 1). missing(t, never).
            column(t, x, x(P)). random(x(P)) :- person(P). range(x(P), 0, 10).
            dataset(people, domain(P, person(P))). privacy_requirement(r(public), people, {metric}).
            sum(total, x(P), person(P)). histogram(h, x(P), person(P), [0, 2, 4, 6, 8, 10]).
            publish(total, total, r(public)). publish(h, h, r(public)). {head}"""
        if "dp(1)" not in metric and generator.random() < 0.5:  # a second observer, who can be told next to nothing
            text += "privacy_requirement(s(journal), people, dp(0.001, 0.000001)). mean(m, x(P), person(P)).\n"
            text += "publish(m, m, s(journal)).\n"
        tables = {
            name: pa.table({"id": [f"{name} {row}" for row in range(20)], "x": generator.uniform(0, 10, 20)})
            for name in names
        }
        values = np.concatenate([table["x"].to_numpy() for table in tables.values()])
        truth = [values.sum(), *np.histogram(values, [0, 2, 4, 6, 8, 10])[0]]
        scale = np.array([10.0, *[1.0] * 5]) * len(values)
        measured, chosen = {}, make_plan(text, sizes={"people": 20.0 * count})
        for way in ("masks", "each_centre"):
            try:
                plan = make_plan(text + f" prefer(total, {way}).\n", sizes={"people": 20.0 * count})
            except SfumatoError:
                continue
            if getattr(sharing_of(plan), "way", "") != way:
                continue
            members, keys = new_centres(names)
            agreed = study_round(plan, members)
            cells = {name: cells_of(plan, plan.network.evaluate({"t": t}), agreed) for name, t in tables.items()}
            errors = []
            for _ in range(12):
                opened = aggregate_in_memory(agreed.fresh(), cells, keys)
                release = published_over_centres(plan, opened, {}, None)
                published = [*release["total"]["value"].to_pylist(), *release["h"]["value"].to_pylist()]
                errors.append((np.array(published) - truth) / scale)
            squares = np.mean(np.square(errors), axis=0)
            measured[way] = float(squares[0] + squares[1:].mean())  # what the planner makes small
        best = min(measured, key=lambda way: measured[way])
        own = getattr(sharing_of(chosen), "way", "central")
        close = measured[own] <= 2 * measured[best]  # seventy squares each: a tie is a tie
        right += own == best or (close and abs(chosen_ratio(chosen) - 1) < 0.2)
    told(
        f"plans for 3 to 50 centres: the chosen way was measured best in {right} of {settings}",
        right == settings,
        "all",
    )


def chosen_ratio(plan: Any) -> float:
    """The predicted error of the best other way beside that of the chosen one."""
    planned = plan.publications[0]
    others = [one.error for one in planned.alternatives[1:] if one.error and "centres" in one.strategy]
    return min(others, default=np.inf) / planned.error


def commands() -> None:
    """The page's commands as processes: how many, how long, and how long a refusal takes."""
    page = (ROOT / "docs" / "howto" / "hospitals.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(.*?)```", page, re.DOTALL)
    assert block is not None
    lines = block[1].splitlines()
    program = str(Path(sys.executable).with_name("sfumato"))
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(ROOT / "examples", Path(place) / "examples")
        folder, own = Path(place) / lines[0].removeprefix("cd "), {**os.environ, "SFUMATO_STATE": f"{place}/state"}
        start, waiting, refusals = time.perf_counter(), [], []
        for command in lines[1:]:
            words = [program, *shlex.split(command)[1:]]
            if words[1:3] == ["centre", "join"] and not refusals:  # once without a grant: a refusal
                begun = time.perf_counter()
                without = [word for word in words if word != "--grant"]
                subprocess.run(without, cwd=folder, env=own, capture_output=True, check=False)
                refusals.append(time.perf_counter() - begun)
            if words[1] == "run" or words[1:3] == ["centre", "join"]:
                waiting.append(subprocess.Popen(words, cwd=folder, env=own, stdout=subprocess.PIPE, text=True))
                if words[1] == "run" and waiting[0].stdout is not None:
                    waiting[0].stdout.readline()
                continue
            for process in waiting:
                process.communicate(timeout=300)
            subprocess.run(words, cwd=folder, env=own, capture_output=True, check=True)
        good = all(process.returncode == 0 for process in waiting)
        spent = time.perf_counter() - start
    told(
        f"{len(waiting)} processes, {len(lines) - 1} commands, {spent:.0f} s in all; refused after {refusals[0]:.1f} s",
        good and len(lines) - 1 <= 8 and refusals[0] <= 5,
        "8 commands, 5 s",
    )


SECTIONS = {one.__name__: one for one in (parts, rounds, deaths, learn, study, sums, plans, commands)}


def main(names: list[str]) -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores: the bars are for an idle machine")
    for name in names or SECTIONS:
        SECTIONS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
