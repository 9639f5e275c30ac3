"""Study: what must stay private, from whom, and what has to be published, said in Python.

In:   tables, promises and questions, one call each.
Out:  the same study in the language (`to_text`), and its plan. No data are read.
Not here: the questions there are (study/forms.py), plans and releases (study/planned.py, study/released.py).

A Study never changes: each call returns a new one. Every line of its text remembers the call that wrote it, so what is
wrong is told at the caller's line.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato.card import Card, Shown
from sfumato.core.domain import Categories, Interval, checked_text
from sfumato.errors import InputError, PlanError, StudyError
from sfumato.lang.load import examine
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, ListTerm, show
from sfumato.study.call import StudyCall, known_form, word_of
from sfumato.study.caller import Mark, here, in_own_words, plan_error, refused, study_error
from sfumato.study.data import file_name
from sfumato.study.forms import FORMS, builder_method
from sfumato.study.formula import DeclaredColumn, constant_of, formula_of
from sfumato.study.writing import (
    PERSON,
    Asked,
    Parts,
    column_lines,
    dependence_text,
    fairness_lines,
    fresh,
    listing,
    metric_text,
    number_of,
    parts_of,
    publications_of,
    said_of,
    said_text,
    table_lines,
    unsaid_place,
)

if TYPE_CHECKING:
    from sfumato.study.planned import StudyPlan

__all__ = ["Study"]


@dataclass(frozen=True, repr=False)
class Study(Shown):
    """A study about people, written call by call. `hide_presence` protects also who is in the tables, and how many.

    >>> study = (
    ...     Study("Stays in hospital")
    ...     .table("stays", "stays.parquet", person="patient", columns={"days": Interval(1, 14)})
    ...     .promise("public", epsilon=1, delta=1e-6)
    ...     .mean("days", to="public")
    ... )
    >>> print(study.to_text().splitlines()[-1])
    publish('mean days', meanDays, promise(public)).
    >>> study.plan(size=1000).errors.to_dict()["half_width"]
    [0.03894]
    """

    title: str = "study"
    hide_presence: bool = field(default=False, kw_only=True)
    purpose: str = field(default="", kw_only=True)
    _parts: Parts = field(default=Parts(), kw_only=True)

    if TYPE_CHECKING:  # for editors; the methods are made below, one for each question there is
        count: ClassVar[Callable[..., Study]]
        sum: ClassVar[Callable[..., Study]]
        mean: ClassVar[Callable[..., Study]]
        moments: ClassVar[Callable[..., Study]]
        variance: ClassVar[Callable[..., Study]]
        covariance: ClassVar[Callable[..., Study]]
        correlation: ClassVar[Callable[..., Study]]
        histogram: ClassVar[Callable[..., Study]]
        marginals: ClassVar[Callable[..., Study]]
        groups: ClassVar[Callable[..., Study]]
        quantiles: ClassVar[Callable[..., Study]]
        median: ClassVar[Callable[..., Study]]
        synthetic: ClassVar[Callable[..., Study]]
        classifier: ClassVar[Callable[..., Study]]
        regression: ClassVar[Callable[..., Study]]
        outliers: ClassVar[Callable[..., Study]]

    def __post_init__(self) -> None:
        for what, said in (("title", self.title), ("purpose", self.purpose)):
            if isinstance(said, str):  # of what is no text the text of the study says so
                checked_text(said, f"Study: {what}")

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────────

    @in_own_words
    def table(
        self,
        name: str,
        data: Any = None,
        *,
        person: str | None,
        columns: Mapping[str, Interval | Categories | Sequence[Any] | type[str] | type[bool]],
        rows_per_person: int = 1,
        missing: str | None = None,
        unit: str | None = None,
    ) -> Study:
        """Rows about people: a file or a data frame, the column that says who a row is about, and public domains.

        `person=None` is your word that every row is another person: then no row can be named, and statistics and
        models can be published but nothing row by row. Of each person at most `rows_per_person` rows are used, a fair
        sample of hers. A domain is an Interval or Categories; (low, high) and a list are short for them; `bool` is
        yes or no; `str` is text of which no list is public, to be asked for by .groups. Of a DuckDB or SQLite file the
        table `name` is read. A domain's `null` and `unknown` stand for absent and unlisted cells.
        `missing="skip"` leaves people without a cell out of what reads it instead; `missing="never"` is your
        word that there are none. Unsaid it is taken as that word; study and plan say so, and where a cell would go.
        Nothing fails because of a cell; of those that should not be there the run tells you, and you alone.
        `unit` is what one of those who are protected is called wherever the promise is told: "patient", or "day" where
        each row is one value of a series; "person" unless you say so, and one for all tables.
        """
        call, parts = self._call(f".table({name!r})"), self._parts
        call.check_table(name, columns, rows_per_person, missing)
        parts = dataclasses.replace(parts, person=call.unit(unit))
        declared = call.declared(columns, word_of(parts.person))
        call.check_rows(name, person, rows_per_person, data, columns)
        taken = parts.taken.union(*({one.functor, listing(one)} for one in declared))
        lines = [] if parts.tables else self._heading()
        lines += table_lines(parts, name, data, person, rows_per_person)
        source, who = show(Compound(name)), show(parts.person)
        for column in declared:
            lines += column_lines(source, who, column, missing, call.mark)
        if not parts.tables:
            # The ledger knows the people by this name: that of their first table.
            lines.append(f"dataset({source}, domain(P, {who})).")
            lines += [f"adjacency({source}, add_remove)."] if self.hide_presence else []
        return self._with(
            call.mark,
            lines,
            columns={**parts.columns, **{one.name: one for one in declared}},
            tables={**parts.tables, name: data},
            files={**parts.files, name: file_name(name, data)},
            taken=taken,
            person=parts.person,
            people=parts.people if parts.tables else name,
            unsaid={**parts.unsaid, **(_places(declared) if missing is None else {})},
        )

    @in_own_words
    def derive(self, name: str, formula: str, low: float | None = None, high: float | None = None) -> Study:
        """A column computed from others, person by person: `.derive("bmi", "kilos / metres ** 2", 10, 60)`.

        With `low` and `high` what lies outside is put at the nearer end; without them the formula must be bounded by
        its columns' own ranges.
        """
        call = self._call(f".derive({name!r})")
        if name in self._parts.columns:
            raise refused(call.mark, f"there is a column {name!r} already.")
        if (low is None) != (high is None):
            raise refused(call.mark, "give both ends of the range, low and high, or none.")
        expression, read = call.read(lambda: formula_of(formula, self._parts.columns))
        if not read:
            raise refused(call.mark, f"{formula!r} reads no column.")
        domain = None
        if low is not None and high is not None:
            domain = call.read(lambda: Interval(low, high))
            expression = Compound("clip", (expression, number_of(low), number_of(high)))
        made = DeclaredColumn(name, fresh(name, self._parts.taken), domain)
        parents = show(ListTerm(tuple(column.variable for column in read)))
        variable = show(made.variable)
        lines = [
            f"random({variable}) :- {show(self._parts.person)}.",
            f"depends({variable}, {parents}, {show(expression)}).",
        ]
        taken = self._parts.taken | {made.functor, listing(made)}
        return self._with(call.mark, lines, columns={**self._parts.columns, name: made}, taken=taken)

    # ── who may learn how much ───────────────────────────────────────────────────────────────────────────────────────

    @in_own_words
    def promise(
        self,
        reader: str,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        mu: float | None = None,
        rho: float | None = None,
        households: int | None = None,
        memory: float | None = None,
        longest: int | None = None,
        decided_by: str | None = None,
    ) -> Study:
        """What this reader may learn about one person, by everything they see together: ε (and δ), or μ, or ρ.

        `households=4`: people depend on each other in groups of at most four, in any way, and the promise counts what
        the others tell of one. `memory=M`: each row is one value of a series, and no step multiplies odds by more than
        e^M; `longest` is the length of a series, where it is known. `decided_by` says who answers for it: the report
        and the page for a lawyer name them.
        """
        call, parts = self._call(f".promise({reader!r})"), self._parts
        if not parts.tables:
            told = "say first whose rows are protected: .table(name, data, person=column, columns={…})."
            raise refused(call.mark, told)
        if reader in parts.promises:
            raise refused(call.mark, f"there is a promise towards {reader!r} already.")
        call.check_amount(epsilon, delta, mu, rho, (households, memory) != (None, None))
        people = show(Compound(parts.people))
        tied = call.read(lambda: dependence_text(people, households, memory, longest))
        if memory is not None and parts.person == PERSON:
            told = "memory= is about values of a series: say what one row is, .table(…, person=None, unit='day')."
            raise refused(call.mark, told)
        metric = call.read(lambda: metric_text(epsilon, delta, mu, rho, bool(tied)))
        name = Compound("promise", (Compound(reader),))
        lines = [*call.new_dependence(tied), f"privacy_requirement({show(name)}, {people}, {metric})."]
        lines += [f"decided_by({show(name)}, {said_text(decided_by)})."] if decided_by else []
        return self._with(call.mark, lines, promises={**parts.promises, reader: name})

    @in_own_words
    def together(self, *readers: str) -> Study:
        """These readers may put together what they see; the plan then holds against all of them at once."""
        call = self._call(f".together({', '.join(map(repr, readers))})")
        for reader in readers:
            call.promise(reader)
        if len(set(readers)) < 2:
            raise refused(call.mark, "it takes two readers to put something together.")
        return self._with(call.mark, [f"collude({show(ListTerm(tuple(Compound(one) for one in readers)))})."])

    @in_own_words
    def fair(
        self, name: str, *, between: str, gap: float, on: str, confidence: float, measure: str = "demographic_parity"
    ) -> Study:
        """The classifier `name` treats the groups of a column alike: no gap above `gap`, this surely.

        `measure` is "demographic_parity", "equal_opportunity" or "equalized_odds"; `on` is "population" or "rows" (the
        people it is measured on). The plan tells the price, and so does what is published.
        """
        call = self._call(f".fair({name!r})")
        if name not in self._parts.questions:
            told = f"no classifier called {name!r} was asked for: .classifier(…, name={name!r}) first."
            raise refused(call.mark, told)
        group = show(call.columns([between])[0].variable)
        lines = call.read(lambda: fairness_lines(name, group, measure, gap, on, confidence))
        return self._with(call.mark, lines)

    # ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────────

    @in_own_words
    def ask(
        self,
        method: str,
        columns: str | Sequence[str] = (),
        *,
        to: str | Sequence[str],
        by: str | Sequence[str] | Mapping[str, Any] = (),
        where: str | None = None,
        within: float | None = None,
        weight: float | None = None,
        whole: bool = False,
        name: str | None = None,
        **options: Any,
    ) -> Study:
        """Any question by its name: `ask("mean", "days", to="public")` is `.mean("days", to="public")`.

        `to` is who sees it, one reader or several; `by` one number for each category of these columns, or for each
        class of a column of numbers or days: `by={"age": [18, 65], "sex": None}`; `where` who counts; `within` the
        error one can live with, as half the width of a 95 % interval (the plan says what it takes); `weight` how much
        its error counts beside the others'; `whole` rounds its numbers; `name` the key of the answer.
        """
        form = known_form(method)
        names, groups, readers = _several(columns), _several(by), _several(to)
        cuts = {group: cut for group, cut in by.items() if cut is not None} if isinstance(by, Mapping) else {}
        call = self._call(f".{method}({', '.join(map(repr, names))})")
        call.check_form(form, options, groups, where)
        asked = Asked(form, call.subject(form, names), call.groups(form, groups, cuts), where, options, cuts)
        wishes = {"weight": weight, "within": within, "whole": True if whole else None}
        return self._asked(call, asked, name or asked.name, readers, wishes)

    def _asked(
        self, call: StudyCall, asked: Asked, name: str, readers: tuple[str, ...], wishes: Mapping[str, float | None]
    ) -> Study:
        parts = self._parts
        if not readers:
            raise refused(call.mark, "say who sees it: to='public'.")
        promises = [call.promise(reader) for reader in readers]
        known = parts.questions.get(name)
        atom = known.atom if known is not None else fresh(name, parts.taken)
        written = call.read(lambda: asked.written(atom, call.find, parts.columns, parts.person))
        if name in parts.questions and known != written:
            told = f"another question is called {name!r} already; give this one a name of its own: name=."
            raise refused(call.mark, told)
        lines = self._levels(written.listed)
        lines += written.lines(name, promises, new=known is None)
        lines += call.wishes(name, {word: value for word, value in wishes.items() if value is not None})
        return self._with(
            call.mark,
            lines,
            questions={**parts.questions, name: written},
            grouped=parts.grouped | {column.name for column in written.listed},
            taken=parts.taken | {atom},
        )

    def clauses(self, text: str) -> Study:
        """Lines of the language as they are, for what no method says."""
        return self._with(None, text.splitlines())

    # ── what comes of it ─────────────────────────────────────────────────────────────────────────────────────────────

    def to_text(self) -> str:
        """The study in the language; `Study.from_text` reads it back."""
        return "\n".join(line for line, _ in self._parts.lines) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Study:
        """A study written in the language, to be planned, run, or asked more. A text that is wrong is refused."""
        spec, problems = examine(text if "\n" in text else f"{text}\n")
        errors = tuple(problem for problem in problems if problem.severity == "error")
        if errors or spec is None:
            raise StudyError(f"The study has {len(errors)} error(s). Nothing was run and nothing was spent.", errors)
        told = {one.topic: one.text for one in spec.about}
        title = told.get("title") or _first_remark(text)
        hidden = any(one.adjacency.relation == "add-remove" for one in spec.datasets)
        purpose = told.get("purpose", "")
        return cls(title or "study", hide_presence=hidden, purpose=purpose, _parts=parts_of(spec, text))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Study:
        """The study in a file."""
        return cls.from_text(Path(path).read_text(encoding="utf-8"))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the study's text to a file, for `sfumato plan` and `sfumato run`; an existing file is left alone."""
        target = Path(path)
        try:
            with target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(self.to_text())
        except FileExistsError:
            raise InputError(f"{target} exists already and was left as it is. Choose another name.") from None
        return target

    @property
    def spec(self) -> Spec:
        """The study, read and checked; StudyError says everything that is wrong with it, each at its call."""
        if not self._parts.lines:
            raise StudyError("The study says nothing yet. Begin with .table(name, data, person=…, columns={…}).")
        spec, problems = examine(self.to_text())
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors or spec is None:
            raise study_error(errors, self._mark, self.words)
        return dataclasses.replace(spec, name=self.title)

    def plan(self, size: float | None = None, *, public: Mapping[str, Any] | None = None) -> StudyPlan:
        """Where noise goes and how much, and how far each number may lie from the true one. No data are read.

        `size` is the number of people, where that is public; it steers predictions, never privacy. `public` gives the
        tables that a study's text declares public.
        """
        from sfumato.run.planning import make_plan
        from sfumato.study.planned import StudyPlan

        spec = self.spec
        if size is not None and (isinstance(size, bool) or not isinstance(size, Real) or not size < _MOST_PEOPLE):
            raise InputError(f"size is a number of people, such as 150_000, and {size!r} is none. Nothing was planned.")
        if not isinstance(public, Mapping | None):
            raise InputError(
                "public names the public tables one by one, each with its file or frame: public={'regions': "
                "'regions.csv'}. Nothing was planned and nothing was spent."
            )
        sizes = {} if size is None else {self._parts.people: float(size)}
        try:
            return StudyPlan(self, make_plan(spec, public, sizes=sizes), size)
        except PlanError as error:
            raise plan_error(error, self._mark, self.words) from None

    @property
    def unsaid(self) -> tuple[str, ...]:
        """What this study takes for granted because nothing was said: that no cell is absent or unlisted."""
        return self.unsaid_of(self._parts.unsaid)

    def unsaid_of(self, columns: Collection[str]) -> tuple[str, ...]:
        """The same about these columns alone, such as those that a plan reads."""
        places = ", ".join(f"{name} as {place}" for name, place in self._parts.unsaid.items() if name in columns)
        if not places:
            return ()
        return (
            "Nothing is said about absent or unlisted cells, so it counts as your word that there are none. One that "
            f"is there all the same would be counted: {places}. Say missing='never' or missing='skip' in .table(…), or "
            "null= and unknown= in a column's domain.",
        )

    @property
    def words(self) -> Mapping[str, str]:
        """The study's columns by their words in the language."""
        return {column.functor: name for name, column in self._parts.columns.items()}

    def in_names_of_questions(self, text: str) -> str:
        """A text in which each question is called by its name here, and not by its word in the language."""
        names = {written.atom: name for name, written in self._parts.questions.items() if written is not None}
        return re.sub(r"\w+", lambda found: names.get(found.group(0), found.group(0)), text)

    @property
    def readers(self) -> tuple[str, ...]:
        """Towards whom there is a promise."""
        return tuple(self._parts.promises)

    @property
    def data(self) -> Mapping[str, Any]:
        """Each table's rows as they were declared: a path, a frame, or None."""
        return self._parts.tables

    @property
    def files(self) -> Mapping[str, str]:
        """The name of each table's file."""
        return self._parts.files

    def __repr__(self) -> str:
        asked = ", ".join(self._parts.questions) or "nothing yet"
        return f"Study({self.title!r}: {', '.join(self._parts.tables) or 'no table'}; {asked})"

    def _card(self) -> Card:
        parts = self._parts
        facts = {f"table {name}": file for name, file in parts.files.items()}
        facts |= {"columns": ", ".join(map(said_of, parts.columns.values()))} if parts.columns else {}
        missing = [
            sentence
            for present, sentence in (
                (parts.tables, "No table yet: .table(name, data, person=column, columns={…})"),
                (parts.promises, "No promise yet: .promise(reader, epsilon=…, delta=…)"),
                (parts.questions, f"No question yet: .{', .'.join(FORMS)}"),
            )
            if not present
        ]
        rows = [[name, reader] for name, reader in publications_of(self.to_text())] if parts.lines else []
        notes = [f"{sentence}." for sentence in missing] or ["Next: .plan(size=…) says how far off each number may be."]
        notes += self.unsaid
        text = self.to_text() if parts.lines else ""
        return Card(self.title, facts, ["publication", "reader"], rows, notes, "a study; no data were read", text)

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _with(self, mark: Mark | None, lines: Iterable[str], **changes: Any) -> Study:
        """The same with further lines."""
        more = tuple((line, mark) for line in lines)
        frozen = {
            name: MappingProxyType(value) if isinstance(value, dict) else value for name, value in changes.items()
        }
        parts = dataclasses.replace(self._parts, lines=(*self._parts.lines, *more), **frozen)
        return dataclasses.replace(self, _parts=parts)

    def _call(self, call: str) -> StudyCall:
        return StudyCall(self._parts, here(call))

    def _heading(self) -> list[str]:
        told = {"title": self.title, "purpose": self.purpose}
        return [f"about({topic}, {said_text(text)})." for topic, text in told.items() if text.strip()]

    def _mark(self, line: int) -> Mark | None:
        lines = self._parts.lines
        return lines[line - 1][1] if 0 < line <= len(lines) else None

    def _levels(self, columns: Iterable[DeclaredColumn]) -> list[str]:
        lines = []
        for column in columns:
            if column.name not in self._parts.grouped and isinstance(column.domain, Categories):
                lines += [f"{listing(column)}({show(constant_of(value))})." for value in column.domain.values]
        return lines


#: More than there are.
_MOST_PEOPLE = 10**12


def _several(given: str | Sequence[str] | Mapping[str, Any]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _first_remark(text: str) -> str:
    first = text.lstrip().splitlines()[0] if text.strip() else ""
    return first.lstrip("% ").strip() if first.startswith("%") else ""


def _places(columns: Iterable[DeclaredColumn]) -> dict[str, str]:
    return {column.name: place for column in columns if (place := unsaid_place(column)) is not None}


# ── one method for each form ─────────────────────────────────────────────────────────────────────────────────────────


for _form in FORMS.values():
    setattr(Study, _form.method, builder_method(_form))
