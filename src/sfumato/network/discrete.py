"""Exact forward inference over unobserved variables with finitely many levels.

In:   the laws of these variables, and an expression that refers to them.
Out:  the expression with them summed out: Σ over their levels of probability times value.
Not here: variables with a column (their level is known), random numbers (network/inference.py).

The sum runs over all combinations of the unobserved categorical ancestors (Pr(x) = Π Pr(x_i | Pa(x_i)), thesis
§2.8.2.6), so parents that share an ancestor are treated as the dependent variables they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sfumato.errors import SchemaError
from sfumato.network.algebra import ONE, ZERO, folded, times, total
from sfumato.network.expression import Call, Constant, Distribution, Expression, Level, Lookup, Power, Reference
from sfumato.network.indicator import Indicator, settled

__all__ = ["Latent", "bind", "clipped_level", "clipped_levels", "level_probability", "states", "summed_out"]

#: Combinations of levels one variable's inference may run over.
_MOST_STATES = 20_000


@dataclass(frozen=True, slots=True)
class Latent:
    """An unobserved variable, its levels, its law given its parents."""

    name: str
    levels: tuple[Level, ...]
    law: Expression


def summed_out(expression: Expression, latents: Mapping[str, Latent]) -> Expression:
    """The expectation of `expression` over the unobserved variables it refers to.

    >>> coin = Latent("coin", (0, 1), Distribution("bernoulli", (Constant(0.25),)))
    >>> print(summed_out(Power(Reference("coin") + Constant(1.0), 2), {"coin": coin}))
    1.75
    """
    return total(
        times(weight, folded(bind(expression, state))) for weight, state in states(expression.references(), latents)
    )


def bind(expression: Expression, state: Mapping[str, Level]) -> Expression:
    """The expression with some variables at known levels."""
    match expression:
        case Reference(variable=name) if name in state:
            level = state[name]
            if isinstance(level, str):
                raise SchemaError(
                    f"{name} is a category and stands where a number is needed. Use lookup([{name}], …) to give "
                    "each level a number. Nothing was run and nothing was spent."
                )
            return Constant(float(level))
        case Power(base=base, exponent=exponent):
            return Power(bind(base, state), exponent)
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(bind(part, state) for part in arguments))
        case Distribution(kind=kind, arguments=arguments, levels=levels):
            return Distribution(kind, tuple(bind(part, state) for part in arguments), levels)
        case Lookup():
            return _bind_lookup(expression, state)
        case Indicator(condition=condition):
            return Indicator(settled(condition, state, lambda part: bind(part, state)))
    return expression


def _bind_lookup(table: Lookup, state: Mapping[str, Level]) -> Expression:
    kept = [place for place, name in enumerate(table.parents) if name not in state]
    fitting = [
        (tuple(key[place] for place in kept), bind(part, state))
        for key, part in table.rows
        if all(state.get(name, level) == level for name, level in zip(table.parents, key, strict=True))
    ]
    if not kept:
        return fitting[0][1]
    return Lookup(tuple(table.parents[place] for place in kept), tuple(fitting))


def states(needed: frozenset[str], latents: Mapping[str, Latent]) -> Iterator[tuple[Expression, dict[str, Level]]]:
    """Every combination of levels of the unobserved ancestors that is not impossible, with its probability."""
    order = _ancestors(needed, latents)
    size = 1
    for latent in order:
        size *= len(latent.levels)
    if size > _MOST_STATES:
        raise SchemaError(
            f"{order[-1].name}: exact inference would run over {size} combinations of levels (at most {_MOST_STATES}). "
            "Give some of its ancestors a column, or fewer levels. Nothing was run and nothing was spent."
        )
    waiting: list[tuple[Expression, dict[str, Level]]] = [(ONE, {})]
    for latent in order:
        waiting = [
            (times(weight, chance), state | {latent.name: level})
            for weight, state in waiting
            for level in latent.levels
            if (chance := level_probability(bind(latent.law, state), level)) != ZERO
        ]
    yield from waiting


def _ancestors(needed: frozenset[str], latents: Mapping[str, Latent]) -> list[Latent]:
    found: dict[str, Latent] = {}

    def visit(name: str) -> None:
        if name in latents and name not in found:
            for parent in sorted(latents[name].law.references()):
                visit(parent)
            found[name] = latents[name]

    for name in sorted(needed):
        visit(name)
    return list(found.values())


def level_probability(law: Expression, level: Level) -> Expression:
    """How likely a law makes a level, all its unobserved parents being bound."""
    match law:
        case Distribution(kind="discrete", levels=levels, arguments=arguments):
            return folded(arguments[levels.index(level)]) if level in levels else ZERO
        case Distribution(kind="bernoulli", arguments=(chance,)):
            if level not in (0, 1):
                return ZERO
            return folded(chance if level == 1 else Call("-", (ONE, chance)))
        case Lookup(parents=parents, rows=rows):
            return Lookup(parents, tuple((key, level_probability(part, level)) for key, part in rows))
        case Constant(value=value):
            return ONE if value == level else ZERO
    raise SchemaError(
        f"{law} is not a law over finitely many levels. Write discrete([Level: Probability, …]), bernoulli(P) or a "
        "lookup of those. Nothing was run and nothing was spent."
    )


def clipped_level(level: Level, low: float, high: float) -> Level:
    """A number put into the range; words are left alone.

    >>> clipped_level(4, 0.0, 3.0), clipped_level(1, 0.0, 3.0), clipped_level("high", 0.0, 3.0)
    (3, 1, 'high')
    """
    if isinstance(level, str) or low <= level <= high:
        return level
    end = low if level < low else high
    return int(end) if end.is_integer() else end


def clipped_levels(law: Expression, low: float, high: float) -> Expression:
    """The law of a finite draw after it is put into the range: levels that become equal are one.

    >>> print(clipped_levels(Distribution("discrete", (Constant(0.5), Constant(0.5)), (4, -2)), -1.0, 3.0))
    discrete([3: 0.5, -1: 0.5])
    >>> print(clipped_levels(Distribution("bernoulli", (Constant(0.25),)), 2.0, 3.0))
    discrete([2: 1])
    """
    match law:
        case Lookup(parents=parents, rows=rows):
            return Lookup(parents, tuple((key, clipped_levels(part, low, high)) for key, part in rows))
        case Distribution(kind="bernoulli" | "discrete"):
            listed: tuple[Level, ...] = (0, 1) if law.kind == "bernoulli" else law.levels
            chances: dict[Level, list[Expression]] = {}
            for level in listed:
                chances.setdefault(clipped_level(level, low, high), []).append(level_probability(law, level))
            if tuple(chances) == listed:
                return law
            return Distribution("discrete", tuple(folded(total(parts)) for parts in chances.values()), tuple(chances))
    return law
