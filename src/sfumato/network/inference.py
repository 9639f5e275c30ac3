"""Expectations under the declared network: what a variable is on average, given the individual's own cells.

In:   what a draw of every random variable is computed from, the public ranges of everything else.
Out:  expressions of cells (and of other variables without randomness) for the expectation of any expression; bounds.
Not here: closed forms (network/moments.py), points (network/quadrature.py), which nodes there are (network/nodes.py).
Proof: docs/proofs/expectations.md

An expression is first written in random numbers of their own (atoms): a variable that is computed from random parents
is replaced by its formula, one that is drawn is an atom. So variables that share an ancestor are as dependent as the
study says. Then the atoms are integrated out, children before parents: sums over levels, moments, the rest by points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from sfumato.errors import SchemaError
from sfumato.network.algebra import MINUS_ONE, folded, quotient, size_of, times, total, within
from sfumato.network.bounds import Bounds, hull
from sfumato.network.discrete import Latent, bind, level_probability, states, summed_out
from sfumato.network.expression import Call, Constant, Distribution, Expression, Level, Lookup, Power, Ranges, Reference
from sfumato.network.indicator import Chance, Indicator, rebuilt
from sfumato.network.moments import expectation_over
from sfumato.network.quadrature import Atom, Expectation, terms_for
from sfumato.network.support import support_of

__all__ = ["Inference", "affine", "guarded", "is_random"]

#: Parts of one expression.
_LARGEST = 100_000
#: What stands for a draw without bounds, and the size from which a result counts as growing with it.
_HUGE_DRAW, _HUGE_RESULT = 1e150, 1e30
#: Combinations of levels for each of which points are taken.
_MOST_CASES = 64


@dataclass
class Inference:
    """The random variables of one individual: `formulas` says what a draw is computed from, `levels` which are finite.

    `ranges` bounds everything that is not random.

    >>> noisy = Inference({"o": Distribution("normal", (Reference("x"), Constant(1.0)))}, {}, {"x": Bounds(0, 1)})
    >>> float(noisy.expected(Power(Reference("o"), 2)).evaluate({"x": 0.5}))
    1.25
    """

    formulas: dict[str, Expression] = field(default_factory=dict)
    levels: dict[str, tuple[Level, ...]] = field(default_factory=dict)
    ranges: dict[str, object] = field(default_factory=dict)
    _atoms: dict[str, Atom] = field(default_factory=dict, init=False)
    _expanded: dict[str, Expression] = field(default_factory=dict, init=False)

    def expected(self, expression: Expression) -> Expression:
        """The expectation, as an expression of what is not random; its enclosure holds for what is computed."""
        body = self._checked(self._expand(expression, ""))
        found = self._integrated(body, self._needed(body))
        return within(folded(found), self._support(body), self.ranges)  # type: ignore[arg-type]

    def support(self, expression: Expression) -> Bounds:
        """Where the value of the expression lies, whatever is drawn."""
        return self._support(self._checked(self._expand(expression, "")))

    def without_chances(self, expression: Expression) -> Expression:
        """The expression with every probability(…) in it computed."""
        return rebuilt(expression, lambda part: self._chance(part) if isinstance(part, Chance) else None)

    def _support(self, body: Expression) -> Bounds:
        return self._reach(body, self._needed(body))

    def _reach(self, body: Expression, atoms: list[Atom]) -> Bounds:
        """Where the body lies; unbounded, with the reason, where it grows with what has no bounds.

        A draw is always a number. So its range may be taken as finite, if only far beyond anything that can be drawn:
        tanh and exp(-abs(·)) of it are then bounded, and what still comes out huge is not.
        """
        found = body.interval(self._wider(atoms))
        if not found.bounded or found.magnitude <= _HUGE_RESULT:
            return found
        ranges = self._wider(atoms)
        reason = next((bounds.reason for atom in atoms if not (bounds := support_of(atom.law, ranges)).bounded), None)
        return found if reason is None else Bounds.unbounded(reason)

    def _wider(self, atoms: Iterable[Atom]) -> Ranges:
        """The ranges of cells and of atoms, each after those its law refers to."""
        found: dict[str, object] = dict(self.ranges)
        for atom in atoms:
            bounds = support_of(atom.law, found)  # type: ignore[arg-type]
            found[atom.name] = Bounds(max(bounds.low, -_HUGE_DRAW), min(bounds.high, _HUGE_DRAW))
        return found  # type: ignore[return-value]

    # ── writing expressions in atoms ─────────────────────────────────────────────────────────────────────────────────

    def _expand(self, expression: Expression, owner: str) -> Expression:
        def change(part: Expression) -> Expression | None:
            match part:
                case Reference(variable=name) if name in self.formulas:
                    return self._value(name)
                case Distribution():
                    return self._drawn(part, owner)
                case Chance():
                    return self._chance(part)
            return None

        return rebuilt(expression, change)

    def _chance(self, part: Chance) -> Expression:
        return self.expected(Indicator(part.condition))

    def _value(self, name: str) -> Expression:
        if name not in self._expanded:
            formula = self.formulas[name]
            if name in self.levels or isinstance(formula, Distribution):
                self._atoms[name] = Atom(name, self._law(formula, name), self.levels.get(name) or _levels(formula))
                self._expanded[name] = Reference(name)
            else:
                self._expanded[name] = self._checked(self._expand(formula, name))
        return self._expanded[name]

    def _law(self, law: Expression, owner: str) -> Expression:
        """A law stays one; its parameters are written in atoms."""
        match law:
            case Distribution(kind=kind, arguments=arguments, levels=levels):
                return Distribution(kind, tuple(self._expand(part, owner) for part in arguments), levels)
            case Lookup(parents=parents, rows=rows):
                return Lookup(parents, tuple((key, self._law(part, owner)) for key, part in rows))
        return self._expand(law, owner)

    def _drawn(self, law: Distribution, owner: str) -> Expression:
        """A law inside a formula: a random number without a name."""
        name = f"{owner}~{len(self._atoms)}"
        self._atoms[name] = Atom(name, self._law(law, owner), _levels(law))
        return Reference(name)

    def _checked(self, body: Expression) -> Expression:
        if size_of(body) > _LARGEST:
            raise SchemaError(
                f"An expectation would be computed from an expression of more than {_LARGEST} parts. Give some of the "
                "variables on the way a column, or use fewer parents. Nothing was run and nothing was spent."
            )
        return body

    def _needed(self, body: Expression) -> list[Atom]:
        """The atoms an expression rests on, each after those its law refers to."""
        found: dict[str, Atom] = {}

        def visit(names: Iterable[str]) -> None:
            for name in sorted(names):
                if name in self.formulas and name not in self._atoms:
                    self._value(name)
                if name in self._atoms and name not in found:
                    visit(self._atoms[name].law.references())
                    found[name] = self._atoms[name]

        visit(body.references())
        return list(found.values())

    # ── integrating them out ─────────────────────────────────────────────────────────────────────────────────────────

    def _integrated(self, body: Expression, atoms: list[Atom]) -> Expression:
        left = list(atoms)
        while left:
            if all(atom.levels for atom in left):
                return self._summed_out(body, left)
            leaf = self._eliminated(body, left)
            if leaf is None:
                break
            body, left = leaf
        if not left:
            return body
        terms = _terms(body)
        if len(terms) > 1:
            parts = [times(factor, self._integrated(term, _restricted(term, left))) for factor, term in terms]
            return total(parts)
        return self._by_cases(body, left)

    def _eliminated(self, body: Expression, left: list[Atom]) -> tuple[Expression, list[Atom]] | None:
        """The expectation over one atom on which no other depends, and the others; None if that has no closed form."""
        used = frozenset().union(*(atom.law.references() for atom in left))
        ranges = self._wider(left)
        for atom in reversed(left):
            if atom.name in used:
                continue
            others = [other for other in left if other is not atom]
            if atom.name not in body.references():
                return body, others
            found = _summed(body, atom) if atom.levels else _closed(body, atom, ranges)
            if found is not None and size_of(found) <= _LARGEST:
                return found, others
        return None

    def _summed_out(self, body: Expression, atoms: list[Atom]) -> Expression:
        """The sum over all levels; a mean of values lies between the least and the greatest of them."""
        found = summed_out(body, _latents(atoms))
        if math.prod(len(atom.levels) for atom in atoms) > _MOST_CASES:
            return found
        cases = states(frozenset(atom.name for atom in atoms), _latents(atoms))
        return self._between(found, [bind(body, state) for _, state in cases])

    def _between(self, found: Expression, cases: list[Expression]) -> Expression:
        reach = hull(case.interval(self.ranges) for case in cases)  # type: ignore[arg-type]
        return within(found, reach, self.ranges)  # type: ignore[arg-type]

    def _by_cases(self, body: Expression, left: list[Atom]) -> Expression:
        """Finite atoms whose levels do not depend on the others are told apart; each case is integrated by itself."""
        finite = _free_of_numbers(left)
        cases = math.prod(len(atom.levels) for atom in finite)
        if not finite or cases > _MOST_CASES:
            return self._by_points(body, left)
        rest = [atom for atom in left if atom not in finite]
        weights, parts = [], []
        for weight, state in states(frozenset(atom.name for atom in finite), _latents(finite)):
            bound = [Atom(atom.name, bind(atom.law, state), atom.levels) for atom in rest]
            weights.append(weight)
            parts.append(self._integrated(folded(bind(body, state)), bound))
        return self._between(total(times(w, part) for w, part in zip(weights, parts, strict=True)), parts)

    def _by_points(self, body: Expression, left: list[Atom]) -> Expression:
        needed = _restricted(body, left)
        bounds = self._reach(body, needed)
        terms = 0
        if len(needed) == 1 and isinstance(needed[0].law, Distribution) and needed[0].law.kind == "poisson":
            terms = terms_for(needed[0].law.arguments[0].interval(self.ranges))  # type: ignore[arg-type]
        return Expectation(body, tuple(needed), bounds.low, bounds.high, terms, bounds.reason)


def is_random(expression: Expression, random: Mapping[str, object]) -> bool:
    """Whether its value is drawn, or computed from what is drawn."""
    match expression:
        case Distribution():
            return True
        case Reference(variable=name):
            return name in random
        case Chance():
            return False
        case Lookup(parents=parents) if random.keys() & set(parents):
            return True
        case Indicator() if random.keys() & expression.references():
            return True
    return any(is_random(part, random) for part in expression.parts())


def affine(expression: Expression, random: Mapping[str, object]) -> bool:
    """Whether its expectation is the same expression of its references' expectations.

    >>> affine(Constant(2.0) * Reference("o") + Reference("x"), {"o": None}), affine(Power(Reference("o"), 2), {"o": 0})
    (True, False)
    """
    if not is_random(expression, random):
        return True
    match expression:
        case Reference():
            return True
        case Power(base=base, exponent=1):
            return affine(base, random)
        case Distribution():
            return _affine_law(expression, random)
        case Call():
            return _affine_call(expression, random)
        case Lookup(parents=parents, rows=rows):
            return not random.keys() & set(parents) and all(affine(part, random) for _, part in rows)
    return False


def guarded(law: Expression, ranges: Ranges) -> Expression:
    """The law with parameters that are always possible: a probability from 0 to 1, a rate from 0 on.

    >>> print(guarded(Distribution("bernoulli", (Reference("x"),)), {"x": Bounds(0, 2)}))
    bernoulli(clip(x, 0, 1))
    """

    def change(part: Expression) -> Expression | None:
        if not isinstance(part, Distribution) or part.kind in ("normal", "uniform"):
            return None
        inner = [guarded(argument, ranges) for argument in part.arguments]
        if part.kind in ("poisson", "exponential"):
            made = [one if one.interval(ranges).low >= 0.0 else Call("max", (one, Constant(0.0))) for one in inner]
        else:
            made = [within(one, Bounds(0.0, 1.0), ranges) for one in inner]
        return Distribution(part.kind, tuple(made), part.levels)

    return rebuilt(law, change)


def _levels(law: Expression) -> tuple[Level, ...]:
    if isinstance(law, Distribution):
        return (0, 1) if law.kind == "bernoulli" else law.levels
    return ()


def _latents(atoms: Iterable[Atom]) -> dict[str, Latent]:
    return {atom.name: Latent(atom.name, atom.levels, atom.law) for atom in atoms}


def _summed(body: Expression, atom: Atom) -> Expression:
    """Σ over the levels of one finite atom."""
    parts = ((level_probability(atom.law, level), bind(body, {atom.name: level})) for level in atom.levels)
    return total(times(chance, folded(value)) for chance, value in parts)


def _closed(body: Expression, atom: Atom, ranges: Ranges) -> Expression | None:
    return expectation_over(body, atom.name, atom.law, ranges) if isinstance(atom.law, Distribution) else None


def _affine_law(law: Distribution, random: Mapping[str, object]) -> bool:
    match law:
        case Distribution(kind="normal", arguments=(mean, _)):
            return affine(mean, random)
        case Distribution(kind="exponential", arguments=(rate,)):
            return not is_random(rate, random)
    return not law.categorical and all(affine(part, random) for part in law.arguments)


def _affine_call(call: Call, random: Mapping[str, object]) -> bool:
    match call.function, call.arguments:
        case (("+" | "-" | "sum" | "mean" | "negate"), arguments):
            return all(affine(part, random) for part in arguments)
        case "*", arguments:
            return not all(is_random(part, random) for part in arguments) and all(affine(p, random) for p in arguments)
        case "/", (above, below):
            return not is_random(below, random) and affine(above, random)
    return False


def _terms(body: Expression) -> list[tuple[Expression, Expression]]:
    """A sum as (constant factor, term) pairs; the expectation of each is taken by itself."""
    match body:
        case Call(function="+" | "sum", arguments=arguments):
            return list(chain.from_iterable(map(_terms, arguments)))
        case Call(function="-", arguments=(left, right)):
            return [*_terms(left), *_scaled(MINUS_ONE, right)]
        case Call(function="negate", arguments=(inner,)):
            return _scaled(MINUS_ONE, inner)
        case Call(function="mean", arguments=arguments):
            return [pair for part in arguments for pair in _scaled(Constant(1.0 / len(arguments)), part)]
        case Call(function="*", arguments=(Constant() as factor, inner) | (inner, Constant() as factor)):
            return _scaled(factor, inner)
        case Call(function="/", arguments=(inner, Constant(value=value) as factor)) if value != 0.0:
            return _scaled(quotient(Constant(1.0), factor), inner)
    return [(Constant(1.0), body)]


def _scaled(factor: Expression, body: Expression) -> list[tuple[Expression, Expression]]:
    return [(times(factor, other), term) for other, term in _terms(body)]


def _restricted(body: Expression, atoms: list[Atom]) -> list[Atom]:
    """Those of the atoms that the body rests on, in their order."""
    needed = set(body.references())
    for atom in reversed(atoms):
        if atom.name in needed:
            needed |= atom.law.references()
    return [atom for atom in atoms if atom.name in needed]


def _free_of_numbers(atoms: list[Atom]) -> list[Atom]:
    """Finite atoms without an ancestor that is not."""
    tied: set[str] = set()
    for atom in atoms:
        if not atom.levels or atom.law.references() & tied:
            tied.add(atom.name)
    return [atom for atom in atoms if atom.name not in tied]
