"""One call of a Study: what its arguments name, found among what the study knows, or refused at the caller's line.

In:   the parts of a study, the place of the call.
Out:  declared columns, promises, groups; StudyError in the caller's words.
Not here: what the call writes (study/writing.py), the study itself (study/builder.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sfumato.core.alike_names import alike_names
from sfumato.core.domain import Categories, Interval
from sfumato.core.text import AnyText
from sfumato.errors import InputError, StudyError
from sfumato.lang.problem import nearest
from sfumato.lang.term import Compound, Term, Variable, indicator, show
from sfumato.study.caller import Mark, here, refused
from sfumato.study.data import column_names
from sfumato.study.forms import FORMS, BuilderMethod
from sfumato.study.formula import DeclaredColumn
from sfumato.study.writing import Parts, domain_of, fresh, listing, number_text

__all__ = ["StudyCall", "known_form", "word_of"]


def known_form(method: str) -> BuilderMethod:
    """The question of that name; refused with the nearest one."""
    if method not in FORMS:
        close = nearest(method, FORMS)
        raise refused(
            here(f".ask({method!r})"),
            f"{method!r} is no question{f'; did you mean {close!r}?' if close else '.'} There are {', '.join(FORMS)}.",
        )
    return FORMS[method]


def word_of(person: Term) -> str:
    """What one of those who are protected is called."""
    return indicator(person).split("/", maxsplit=1)[0]


@final
@dataclass(frozen=True)
class StudyCall:
    """The names that one call gives, against those the study has."""

    parts: Parts
    mark: Mark

    def read(self, reading: Callable[[], Any]) -> Any:
        """What a reader of arguments says is wrong, at the caller's line."""
        try:
            return reading()
        except StudyError:
            raise
        except (InputError, TypeError, ValueError) as error:
            sentence = str(error)
            raise refused(self.mark, sentence if sentence.endswith((".", "?")) else f"{sentence}.") from None

    def find(self, name: str) -> DeclaredColumn:
        """A column of the study."""
        if name in self.parts.columns:
            return self.parts.columns[name]
        close = nearest(str(name), self.parts.columns)
        known = f"did you mean {close!r}?" if close else f"it has {', '.join(self.parts.columns) or 'none'}."
        raise InputError(f"{name!r} is not a column of this study; {known}")

    def promise(self, reader: str) -> Term:
        """The promise towards a reader."""
        if reader in self.parts.promises:
            return self.parts.promises[reader]
        close = nearest(str(reader), self.parts.promises)
        hint = f"; did you mean {close!r}?" if close else "."
        raise refused(
            self.mark, f"there is no promise towards {reader!r}{hint} Write .promise({reader!r}, epsilon=…) first."
        )

    def columns(self, names: Sequence[str]) -> tuple[DeclaredColumn, ...]:
        """Columns of the study, each by its name."""
        return tuple(self.read(lambda n=name: self.find(n)) for name in names)

    def check_table(self, name: str, columns: Mapping[str, Any], rows_per_person: Any, missing: str | None) -> None:
        """Refuse a table that cannot be declared, whosever its rows are."""
        if name in self.parts.tables:
            raise refused(self.mark, f"there is a table {name!r} already.")
        if not columns:
            raise refused(self.mark, "no column is declared: columns={'age': Interval(0, 110)}.")
        if missing not in (None, "skip", "never"):
            raise refused(self.mark, f"missing={missing!r} is not known; write missing='skip' or missing='never'.")
        if isinstance(rows_per_person, bool) or not isinstance(rows_per_person, int) or rows_per_person < 1:
            raise refused(self.mark, "rows_per_person must be a whole number of at least 1.")
        if twice := [column for column in columns if column in self.parts.columns]:
            told = f"{twice[0]!r} is a column of another table already; one name stands for one variable."
            raise refused(self.mark, told)

    def unit(self, name: str | None) -> Term:
        """What one of those who are protected is in the language: said with the first table."""
        known, word = self.parts.person, word_of(self.parts.person)
        if name is None or not self.parts.tables:
            return known if name is None else Compound(fresh(name, self.parts.taken), (Variable("P"),))
        if fresh(name, ()) != word:
            raise refused(self.mark, f"the first table says that each is one {word}; unit= is one for all tables.")
        return known

    def declared(self, columns: Mapping[str, Any], unit: str) -> list[DeclaredColumn]:
        """New columns, each with a word of its own."""
        taken, found = {*self.parts.taken, unit}, []
        for name, given in columns.items():
            domain = self.read(lambda d=given, n=name: domain_of(n, d))
            found.append(DeclaredColumn(name, fresh(name, taken), domain))
            taken |= {found[-1].functor, listing(found[-1])}
        return found

    def check_rows(
        self, table: str, person: str | None, rows_per_person: int, data: Any, columns: Mapping[str, Any]
    ) -> None:
        """Refuse rows of nobody where somebody is needed, and names that the table does not have."""
        if person is None and rows_per_person != 1:
            raise refused(self.mark, "rows_per_person needs to know whose a row is: person='column'.")
        if person is None and self.parts.tables:
            raise refused(self.mark, "rows of a second table must say whose they are: person='column'.")
        known = self.read(lambda: column_names(data))
        if told := alike_names(table, known or ()):
            raise refused(self.mark, f"{told}. Rename one.")
        for name in (*([person] if person is not None else []), *columns):
            if known is not None and name not in known:
                close = nearest(name, known)
                hint = f"; did you mean {close!r}?" if close else "."
                raise refused(self.mark, f"the table has no column {name!r}{hint}")

    def check_form(
        self, form: BuilderMethod, options: Mapping[str, Any], groups: Sequence[str], where: str | None
    ) -> None:
        """Refuse what is no part of this question."""
        if unknown := options.keys() - {option.name for option in form.options}:
            raise refused(self.mark, f"{min(unknown)} is no part of this question.")
        if (groups and not form.grouped) or (where and not form.chosen):
            raise refused(self.mark, f"{'by=' if groups else 'where='} is no part of this question.")

    def check_amount(
        self, epsilon: float | None, delta: float, mu: float | None, rho: float | None, depending: bool
    ) -> None:
        """Refuse a promise that is not said in one way."""
        if sum(given is not None for given in (epsilon, mu, rho)) != 1:
            told = "give exactly one of epsilon, mu and rho: how much may be learned about one person."
            raise refused(self.mark, told)
        if delta and epsilon is None:
            raise refused(self.mark, "delta goes together with epsilon.")
        if epsilon is None and depending:
            raise refused(self.mark, "households= and memory= go together with epsilon.")

    def new_dependence(self, tied: str) -> list[str]:
        """The line that says who depends on whom, unless the study has it already; it has one at most."""
        known = [line for line, _ in self.parts.lines if line.startswith("correlated(")]
        if tied and known and known != [tied]:
            raise refused(self.mark, f"who depends on whom is said already: {known[0]} It is one for all readers.")
        return [tied] if tied and not known else []

    def wishes(self, name: str, given: Mapping[str, float]) -> list[str]:
        """The lines of what is wished of a publication; its first call says them."""
        lines = []
        for word, value in given.items():
            if self.parts.questions.get(name) is not None:
                told = f"{name!r} is asked for already; {word}= belongs to the first of the calls."
                raise refused(self.mark, told)
            number = "" if value is True else f", {self.read(lambda v=value: number_text(v))}"
            lines.append(f"{word}({show(Compound(name))}{number}).")
        return lines

    def subject(self, form: BuilderMethod, names: tuple[str, ...]) -> tuple[DeclaredColumn, ...]:
        """The columns a question is about."""
        if form.subject == "nothing" and names:
            raise refused(self.mark, "it needs no column; give groups with by= and a condition with where=.")
        if form.subject in ("number", "any") and len(names) != 1:
            raise refused(self.mark, "it is about one column; ask once for each.")
        if form.subject in ("numbers", "columns") and not names:
            raise refused(self.mark, "say which columns it is about.")
        found = self.columns(names)
        if len(set(names)) < len(names):
            raise refused(self.mark, "a column is named twice.")
        if form.subject in ("number", "numbers"):
            self._check_numbers(form, found)
        return found

    def _check_numbers(self, form: BuilderMethod, columns: Sequence[DeclaredColumn]) -> None:
        for column in columns:
            if not column.holds_numbers:
                other = f".{form.of_categories}({column.name!r}{', …' if form.of_categories != 'histogram' else ''})"
                told = f"{column.name} has categories and no numbers; ask for a {other}."
                raise refused(self.mark, told)

    def groups(
        self, form: BuilderMethod, names: tuple[str, ...], cuts: Mapping[str, Any]
    ) -> tuple[DeclaredColumn, ...]:
        """The columns whose categories, or classes between cut points, are the groups."""
        found = self.columns(names)
        if cuts and not form.by_itself:
            told = "groups by cut points are no part of this question; ask it once for each, with where=."
            raise refused(self.mark, told)
        for column in found:
            if isinstance(column.domain, Categories) == (column.name in cuts) or isinstance(column.domain, AnyText):
                raise refused(self.mark, f"by={column.name!r} {_known_groups(column)}")
        return found


def _known_groups(column: DeclaredColumn) -> str:
    """What groups of a column need: they must be known before anybody is counted."""
    if isinstance(column.domain, Categories):
        return f"has categories and needs no cut points; write by={{{column.name!r}: None}}."
    if isinstance(column.domain, AnyText):
        return (
            "needs categories: groups must be known before anybody is counted. List those that matter, "
            "Categories(['…', 'other'], null='other', unknown='other') in columns=; "
            f".groups({column.name!r}, …) finds out which values occur often."
        )
    unit = column.domain.calendar if isinstance(column.domain, Interval) else ""
    example = {"date": "['2020-02-01', '2020-03-01']", "time": "['08:00', '16:00']"}.get(unit, "[18, 65]")
    return (
        "needs categories, or cut points: groups must be known before anybody is counted. Write, for example, "
        f"by={{{column.name!r}: {example}}}."
    )
