"""Every engine keeps the contract's three calls; an engine that breaks one law of it is found."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import SfumatoError
from sfumato.run.engine.conformance import check_engine
from sfumato.run.engine.engine import Engine, LocalEngine, Total, computed, guarded


def test_the_contract_is_three_calls():
    assert Engine.__abstractmethods__ == {"map", "sum", "keep"}


def test_every_engine_keeps_the_contract(engine):
    check_engine(engine)


class Planted(Engine):
    """A right engine; the relatives below break one law each."""

    name = "planted"

    def map(self, function, tasks):
        guard = guarded(function)
        for position in reversed(range(len(tasks))):
            yield position, guard(tasks[position])

    def sum(self, function, tasks):
        found = [part for _, part in self.map(function, tasks)]
        while len(found) > 1:
            found = [self.plus(found[at : at + 3]) for at in range(0, len(found), 3)]
        return found[0]

    def plus(self, parts):
        result = parts[0]
        for part in parts[1:]:
            result = result.plus(part)
        return result

    def keep(self, parts):
        return computed(parts)


class LosesTheLast(Planted):
    def map(self, function, tasks):
        return super().map(function, tasks[:-1] if len(tasks) > 3 else tasks)


class WorksTwice(Planted):
    def map(self, function, tasks):
        for one in super().map(function, tasks):
            yield from (one, one)


class MixesUp(Planted):
    def map(self, function, tasks):
        for place, (_, result) in enumerate(super().map(function, tasks)):
            yield place, result


class Rounds(Planted):
    def plus(self, parts: list[Any]) -> Any:
        if isinstance(parts[0], Total):
            return Total.of([sum(part.values[0] for part in parts)])
        return super().plus(parts)


class AddsNumbersAlone(Planted):
    def plus(self, parts):
        return parts[0] if not isinstance(parts[0], Total) else super().plus(parts)


class PassesErrorsOn(Planted):
    def map(self, function, tasks):
        for position, task in enumerate(tasks):
            yield position, function(task)


class TellsTheCause(Planted):
    def map(self, function, tasks):
        for position, task in enumerate(tasks):
            try:
                yield position, function(task)
            except SfumatoError:
                raise
            except ValueError as error:
                raise SfumatoError("A task failed.") from error


class ComputesAgain(Planted):
    def keep(self, parts):
        return [computed([part])[0] for part in parts for _ in (0, 1)][::2]


def test_the_right_one_passes():
    check_engine(Planted())
    check_engine(LocalEngine())


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (LosesTheLast, "once"),
        (WorksTwice, "once"),
        (MixesUp, "whose a result is"),
        (Rounds, "every cut"),
        (AddsNumbersAlone, "whatever has a plus"),
        (PassesErrorsOn, "quotes"),
        (TellsTheCause, "quotes"),
        (ComputesAgain, "every part once"),
    ],
)
def test_an_engine_that_breaks_a_law_is_found(wrong, law):
    with pytest.raises(AssertionError, match=law):
        check_engine(wrong())
