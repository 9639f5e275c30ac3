"""StudyPlan: what a study will publish and how far off it may be, before anything is read or spent.

In:   a Study and the Plan that was made of it.
Out:  predicted errors as tables, other ε tried, a picture, the run.
Not here: planning (plan/), what a run does (run/study.py).
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.card import Card, Shown, cell
from sfumato.errors import InputError
from sfumato.plan.beforehand import Said, said_beforehand
from sfumato.plan.make import ASSUMED_SIZE
from sfumato.plan.plan import Plan, Planned, Seen
from sfumato.run.aims import Aimed, aims_of, planned_with
from sfumato.run.other_weights import other_weights
from sfumato.study.caller import in_callers_words
from sfumato.study.data import data_of_run
from sfumato.study.naming import keys_of
from sfumato.study.tidy import Tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.ledger.ledger import Ledger
    from sfumato.run.accounts import Grant
    from sfumato.study.builder import Study
    from sfumato.study.released import StudyRelease

__all__ = ["StudyPlan"]

_SPELLED = {"ε": "epsilon", "μ": "mu", "ρ": "rho"}


@dataclass(frozen=True, repr=False)
class StudyPlan(Shown):
    """A settled plan. `plan` is the Plan itself, with draws, alternatives and hash; `print(plan)` shows the errors."""

    study: Study
    plan: Plan = field(repr=False)
    size: float | None = None

    @cached_property
    def errors(self) -> Tidy:
        """How far each number may lie from the true one: standard error, and half the width of its 95 % interval."""
        rests_on = [self._own(one) for one in said_beforehand(self.plan) if one.topic == "error"]
        note = " ".join([*rests_on, *self.assumptions])
        return Tidy(_columns(_error_rows(self.plan)), "predicted errors", note)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted, such as the number of people, or that no cell is absent."""
        read = {column for _, column, _, _ in self.plan.extras["about"]["columns"]}
        return (
            *(in_callers_words(one, self.study.words) for one in self.plan.assumptions),
            *self.study.unsaid_of(read),
        )

    @property
    def people(self) -> str:
        """For how many people the errors are: as you said, or assumed.

        Errors of means and shares are in proportion to one over this number: read them beside it.
        """
        known = f"{self.size:,.15g} people" if self.size is not None else ""
        return f"for {known}" if known else f"for {ASSUMED_SIZE:,.15g} people (assumed; .plan(size=N) tells it)"

    def compare(
        self,
        *,
        epsilon: Sequence[float] | None = None,
        weight: Sequence[float] | None = None,
        reader: str | None = None,
    ) -> Tidy:
        """The errors a reader would get at other ε, or at other weights; everything else is left as it is.

        At other ε: a row for each reader, ε and publication with the widest interval of its numbers, the other readers'
        promises left as they are. At other weights: one for each publication and weight of its own, and how many times
        as wide the interval of the publication becomes that suffers most.
        """
        if (epsilon is None) == (weight is None):
            raise InputError("compare takes epsilon=[…] or weight=[…], one of the two. Nothing was planned.")
        readers = self.study.readers if reader is None else (reader,)
        if weight is not None:
            return self._at_weights(weight, readers)
        rows = []
        for one in readers:
            for value in epsilon or ():
                changed = planned_with(self.plan, self._sizes, amounts={one: value})
                shown = [planned for planned in changed.publications if planned.observer == one]
                rows += [{"reader": one, "epsilon": float(value), **_widest(planned)} for planned in shown]
        return Tidy(_columns(rows), "errors at other ε")

    def _at_weights(self, weights: Sequence[float], readers: Sequence[str]) -> Tidy:
        rows = [
            {
                "reader": one.observer,
                "publication": one.publication,
                "weight": one.weight,
                "half_width": _rounded(one.half_width),
                "others_wider": _rounded(one.others_wider),
            }
            for curve in other_weights(self.plan, self._sizes, weights)
            for one in curve
            if one.observer in readers
        ]
        return Tidy(_columns(rows), "errors at other weights")

    @cached_property
    def aims(self) -> Tidy:
        """The publications with a `within=`: met or not, and the least ε and the least weight that would do."""
        rows = [
            {
                "publication": one.publication,
                "reader": one.observer,
                "within": one.wanted,
                "half_width": _rounded(one.half_width),
                "met": one.met,
                f"least_{_SPELLED[one.sign]}": one.least_amount,
                "least_weight": one.least_weight,
            }
            for one in self._aimed
        ]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return Tidy({name: [row.get(name) for row in rows] for name in names}, "errors one can live with")

    @cached_property
    def _aimed(self) -> tuple[Aimed, ...]:
        return aims_of(self.plan, self._sizes)

    @property
    def _said(self) -> list[str]:
        """What the terminal says of the plan, in the caller's words, and what only Python leaves unsaid.

        For how many people it is stands above it.
        """
        said = said_beforehand(self.plan, [one.sentence for one in self._aimed])
        told = [self._own(one) for one in said if one.topic != "assumed"]
        return [*told, *(str(Said("assumed", one)) for one in self.assumptions if "size=N" not in one)]

    def _own(self, said: Said) -> str:
        """In the words of whoever wrote the study: columns and questions by their names in Python."""
        named = self.study.in_names_of_questions(in_callers_words(said.sentence, self.study.words))
        return str(dataclasses.replace(said, sentence=named))

    @property
    def _sizes(self) -> dict[str, float]:
        network = self.plan.network
        assert network is not None  # it was planned just now
        return {} if self.size is None else {network.spec.datasets[0].name: float(self.size)}

    def run(
        self,
        data: Any = None,
        *,
        ledger: Ledger | str | Path | None,
        out: str | Path | None = None,
        grant: Grant | None = None,
        resume: bool = False,
    ) -> StudyRelease:
        """Publish: read the data, draw the noise, charge the ledger. The only step that sees data, and it costs.

        `data` is a folder with the tables' files, a frame, or a mapping from table names to either; without it the data
        that the study was declared with. `grant=True` gives data that has no budget yet exactly what this plan needs:
        a person's decision, so without it a person is asked, where there is one. `out` writes results, certificates,
        the plan and a report into a new folder.
        """
        from sfumato.evidence.verify import verify
        from sfumato.run.study import run_plan
        from sfumato.study.released import StudyRelease

        tables = data_of_run(self.study.data, self.study.files, data)
        folder = None if out is None else Path(out)
        release = run_plan(
            self.plan,
            tables,
            ledger,
            out=folder,
            resume=resume,
            grant=_asking() if grant is None else grant,
            again="call run(…, resume=True).",
            holds=lambda certificate: verify(certificate).ok,
        )
        if folder is not None and not (folder / "report.html").exists():
            from sfumato.evidence.report import finish_folder

            finish_folder(self.plan, folder, _file_of(ledger))
        return StudyRelease(self, release)

    def dry_run(self, people: int = 200) -> StudyRelease:
        """The same on invented people with fixed noise, to look at shapes. Nothing is read, charged or published."""
        from sfumato.run.generate import generated_tables
        from sfumato.run.study import run_plan
        from sfumato.study.released import StudyRelease

        network = self.plan.network
        assert network is not None  # it was planned just now
        return StudyRelease(
            self, run_plan(self.plan, generated_tables(network.spec, people=people), None, random_state=0)
        )

    def explain(self, reader: str = "ANALYST") -> str:
        """In words, for LAWYER, ANALYST, SUBJECT or one of the study's readers."""
        from sfumato.evidence.explain import explain

        return explain(self.plan, reader)

    def plot(self) -> Figure:
        """Half the width of every number's 95 % interval, as a matplotlib figure."""
        from sfumato.study.plots import error_figure

        return error_figure(self)

    @property
    def lines(self) -> Tidy:
        """The errors once for each publication and reader where all its numbers have the same."""
        rows: list[dict[str, Any]] = []
        for row in self.errors.rows():
            alike = rows and all(rows[-1][name] == row[name] for name in row if name != "group")
            if alike:
                each = "shares of each" if row["group"].startswith("shares of ") else "each"
                rows[-1] = {**rows[-1], "numbers": rows[-1]["numbers"] + 1, "group": each}
            else:
                rows.append({**row, "numbers": 1})
        order = ("publication", "reader", "group", "numbers", "half_width", "standard_error")
        return Tidy({name: [row[name] for row in rows] for name in order})

    def _card(self) -> Card:
        kept = {f"promise to {' and '.join(one.observers)}": str(one.asked) for one in self.plan.promises}
        rows = [
            [row["publication"], row["reader"], row["group"], f"±{cell(row['half_width'])}", row["standard_error"]]
            for row in self.lines.rows()
        ]
        head = ["publication", "reader", "about", "95 % within", "standard error"]
        kind = f"a plan {self.people}; no data were read, nothing was spent"
        return Card(self.study.title, kept, head, rows, self._said, kind, self.study.to_text())

    def __str__(self) -> str:
        kept = [f"promise to {' and '.join(one.observers)}: {one.asked}" for one in self.plan.promises]
        return "\n".join([self.people, str(self.lines), *kept, *self._said])

    __repr__ = __str__


def _file_of(ledger: Ledger | str | Path | None) -> Path | None:
    """The file a run charged, as the ledger itself understands its name."""
    if ledger is None or isinstance(ledger, str | Path):
        return None if ledger is None else Path(ledger).expanduser()
    return ledger.path


def _error_rows(plan: Plan) -> Iterator[Mapping[str, Any]]:
    assert plan.network is not None  # it was planned just now
    keys = keys_of(plan.network)
    for planned in plan.publications:
        for seen in planned.seen:
            own = seen.node.removesuffix("(P)") if len(planned.seen) > 1 else ""
            own = f"shares of {seen.node.removesuffix('(P)')}" if seen.basis == "shares" else own
            for key, (error, width) in zip(_about(seen, keys), _numbers(seen), strict=True):
                yield {
                    "publication": planned.name,
                    "reader": planned.observer,
                    "group": _group_text(key, seen, keys, own),
                    "standard_error": _rounded(error),
                    "half_width": _rounded(width),
                    "strategy": planned.strategy,
                }


def _group_text(key: Mapping[str, Any], seen: Seen, keys: Mapping[str, list[dict[str, Any]]], own: str = "") -> str:
    """age = old; where all numbers of a question are alike, how many; `own` where nothing tells them apart."""
    many = len(keys.get(seen.node, ()))
    alike = [f"each of {many}"] if many > 1 and len(_numbers(seen)) == 1 else []
    return ", ".join([*(f"{name} = {value}" for name, value in key.items()), *alike]) or own


def _numbers(seen: Seen) -> Sequence[tuple[float, float]]:
    return seen.numbers if len(seen.numbers) > 1 else [(seen.standard_error, seen.half_width)]


def _about(seen: Seen, keys: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What each line is about; of numbers that are all alike there is one line, about their group."""
    known = keys.get(seen.node, [{}])
    if len(_numbers(seen)) == len(known):
        return known
    common = {name: value for name, value in known[0].items() if all(one.get(name) == value for one in known)}
    return [common] * len(_numbers(seen))


def _widest(planned: Planned) -> dict[str, Any]:
    widths = [seen.half_width for seen in planned.seen]
    errors = [seen.standard_error for seen in planned.seen]
    return {"publication": planned.name, "standard_error": _rounded(max(errors)), "half_width": _rounded(max(widths))}


def _columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    listed = list(rows)
    return {name: [row[name] for row in listed] for name in listed[0]}


def _rounded(value: float) -> float:
    """Four digits, as everywhere a predicted error is told."""
    return float(f"{value:.4g}") if math.isfinite(value) else value


def _asking() -> Grant:
    """Whether a first grant may be made: a person at a terminal or a notebook is asked, nobody else can decide it."""
    shell = sys.modules.get("IPython")
    interactive = hasattr(sys, "ps1") or sys.stdin.isatty() or (shell is not None and shell.get_ipython() is not None)
    return _asked if interactive else False


def _asked(question: str) -> bool:
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except Exception:  # a notebook that is run by a program has nobody to ask, and says so by an error of its own
        return False
