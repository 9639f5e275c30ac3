"""What a promise means for whoever guesses about one individual, from the acts that were drawn.

In:   what was asked for, and the guarantee of the acts themselves.
Out:  Odds, rounded against us; how they are said in three registers stands in templates/words.txt.
Not here: the probability itself (core/odds.py).

δ is not the probability that the odds move further than e^ε. That one is the tail of the privacy loss, twenty times
as large for a usual Gaussian promise, and for a promise whose acts are unknown it has no bound at ε itself: there the
factor named is twice e^ε, which is exceeded with probability 2δ at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.core import Guarantee, Pufferfish, Reach
from sfumato.core.odds import loss_tail
from sfumato.wording import text

__all__ = ["Odds", "bound_words", "guesses", "odds_of", "odds_sentence", "one_in"]

#: A chance above this says nothing: then the factor is named that is exceeded rarely.
_RARE = 0.5


@dataclass(frozen=True)
class Odds:
    """The odds for what is true are multiplied by more than `factor` with at most this `chance`, over the noise.

    `sure` is in how many of 100 cases the best guesser between two versions of one individual is right at most.
    """

    unit: str
    epsilon: float
    factor: str
    chance: float
    sure: float
    #: What others tell is counted as well, for these dependences, if this is so; empty where only one's own data count.
    dependence: str = ""
    assumed: str = ""
    #: Whether `chance` follows from ε and δ of the promise alone, and not from the noise.
    by_promise: bool = False

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.epsilon)

    @property
    def shown(self) -> str:
        """`sure` as it is told everywhere."""
        return guesses(self.sure)

    @property
    def most(self) -> str:
        """`chance`, rounded up."""
        return _rounded_up(self.chance)

    @property
    def one_of(self) -> str:
        """`chance` as one of so many cases."""
        return f"{math.floor(1 / self.chance):,}"


def odds_of(asked: Guarantee, drawn: Guarantee | None = None) -> Odds:
    """What `asked` comes to, given the guarantee of the acts that were `drawn` for it.

    >>> from sfumato.core import ApproxDP, GaussianDP
    >>> odds = odds_of(ApproxDP(1.0, 1e-6), GaussianDP(0.2366))
    >>> odds.factor, odds.most, odds.shown
    ('2.72', '2e-05', '73.2')
    """
    # What others tell is in the promise and not in the acts, whose cost is that of one unit.
    acts = asked.point if isinstance(asked, Pufferfish) else drawn or asked
    epsilon = asked.stated[0]
    chance = loss_tail(acts, epsilon) if math.isfinite(epsilon) else 1.0
    if chance > _RARE and math.isfinite(epsilon):
        epsilon += math.log(2)
        chance = loss_tail(acts, epsilon)
    unit = asked.adjacency.unit if asked.adjacency else "record"
    sure, by_promise = 50 + 50 * asked.advantage(), isinstance(asked, Pufferfish)
    return Odds(unit, epsilon, _factor(epsilon), chance, sure, *_others(asked), by_promise)


def _others(asked: Guarantee) -> tuple[str, str]:
    """For which dependences a promise counts what others tell; one's own data in several rows are one's own."""
    if isinstance(asked, Pufferfish) and not isinstance(asked.dependence, Reach):
        return asked.dependence.words, asked.dependence.assumed
    return "", ""


def bound_words(odds: Odds) -> str:
    """What happens to the odds, the probability rounded up, and under which condition.

    >>> from sfumato.core import PureDP
    >>> bound_words(odds_of(PureDP(1.0)))
    'by at most 2.72, if individuals are independent given what the observer knows'
    """
    return text("bound.txt", odds=odds).strip()


def odds_sentence(asked: Guarantee, drawn: Guarantee | None = None, register: str = "analyst") -> str:
    """For an analyst or an observer, a lawyer, or a person in the data ("subject").

    >>> from sfumato.core import PureDP
    >>> "by at most 2.72." in odds_sentence(PureDP(1.0))
    True
    """
    return text("odds.txt", odds=odds_of(asked, drawn), register=register).strip()


def guesses(sure: float) -> str:
    """A bound on per cents of right guesses, rounded up, and never to a certainty that is none.

    >>> guesses(73.1058579), guesses(62.5), guesses(99.97)
    ('73.2', '62.5', '99.97')
    """
    for digits in (1, 2, 4):
        shown = math.ceil(sure * 10**digits - 1e-9) / 10**digits
        if shown < 100:
            return f"{shown:.{digits}f}"
    return "100"


def one_in(chance: float) -> str:
    """A small probability as people say it, never smaller than it is.

    >>> one_in(1e-6), one_in(1e-5), one_in(0.003), one_in(2.5e-9), one_in(0.4)
    ('one in a million', 'one in 100,000', 'one in 330', 'one in 400 million', '0.4')
    """
    if not 0 < chance <= 0.1:
        return f"{chance:.4g}"
    many = 1 / chance * (1 + 1e-12)
    unit = 10.0 ** (math.floor(math.log10(many)) - 1)  # two digits, downwards: the probability is rounded up
    many = math.floor(many / unit) * unit
    for word, size in (("billion", 1e9), ("million", 1e6)):
        if size <= many < 1000 * size:
            return f"one in a {word}" if many == size else f"one in {many / size:.4g} {word}"
    return f"one in {many:,.0f}" if many < 1e6 else f"one in {many:.2g}"


def _factor(epsilon: float) -> str:
    if epsilon >= 50:
        return f"e^{epsilon:.3g}"
    factor = math.exp(epsilon)
    unit = 10.0 ** min(math.floor(math.log10(factor)) - 2, 0)  # three digits, upwards: it is a bound
    return f"{math.ceil(factor / unit * (1 - 1e-12)) * unit:.3g}" if epsilon < 6.9 else f"{math.ceil(factor):,}"


def _rounded_up(chance: float) -> str:
    """Two digits, upwards; what is above by a hair of rounding alone stays."""
    if chance >= 1:
        return "1"
    unit = 10.0 ** (math.floor(math.log10(chance)) - 1)
    return f"{math.ceil(chance / unit * (1 - 1e-9)) * unit:.2g}"
