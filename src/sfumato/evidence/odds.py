"""What a promise means for whoever guesses about one individual, from the acts that were drawn, in three registers.

In:   what was asked for, and the guarantee of the acts themselves.
Out:  Odds and sentences.
Not here: the probability itself (core/odds.py), everything else that is told (evidence/explain.py).

δ is not the probability that the odds move further than e^ε. That one is the tail of the privacy loss, twenty times
as large for a usual Gaussian promise, and for a promise whose acts are unknown it has no bound at ε itself: there the
factor named is twice e^ε, which is exceeded with probability 2δ at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeGuard

from sfumato.core import ApproxDP, Guarantee, Pufferfish, PureDP, Reach
from sfumato.core.odds import loss_tail

__all__ = ["USUAL_DELTA", "Odds", "guesses", "odds_of", "odds_sentence", "one_in", "stated_point"]

#: δ at which an ε is named for promises that have none of their own, such as μ or ρ.
USUAL_DELTA = 1e-6
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

    @property
    def shown(self) -> str:
        """`sure` as it is told everywhere."""
        return guesses(self.sure)

    @property
    def bound(self) -> str:
        """What happens to the odds, in words, the probability rounded up."""
        if not self.chance:
            return f"by at most {self.factor}"
        return (
            f"for what is true by more than {self.factor} with a probability of at most {_rounded_up(self.chance)}, "
            "and for what is false less often still"
        )


def stated_point(guarantee: Guarantee) -> tuple[float, float]:
    """(ε, δ) as it was promised, or at a usual δ where the promise is a curve.

    >>> stated_point(ApproxDP(0.5, 1e-5)), stated_point(PureDP(1.0))
    ((0.5, 1e-05), (1.0, 0.0))
    """
    delta = USUAL_DELTA
    if isinstance(guarantee, PureDP | ApproxDP | Pufferfish):
        delta = 0.0 if isinstance(guarantee, PureDP) else guarantee.delta_
    return guarantee.epsilon(delta), delta


def odds_of(asked: Guarantee, drawn: Guarantee | None = None) -> Odds:
    """What `asked` comes to, given the guarantee of the acts that were `drawn` for it.

    >>> from sfumato.core import GaussianDP
    >>> odds = odds_of(ApproxDP(1.0, 1e-6), GaussianDP(0.2366))
    >>> odds.factor, odds.bound[:70]
    ('2.72', 'for what is true by more than 2.72 with a probability of at most 2e-05')
    """
    # What others tell is in the promise and not in the acts, whose cost is that of one unit.
    acts = asked.point if isinstance(asked, Pufferfish) else drawn or asked
    epsilon = stated_point(asked)[0]
    chance = loss_tail(acts, epsilon)
    if chance > _RARE and math.isfinite(epsilon):
        epsilon += math.log(2)
        chance = loss_tail(acts, epsilon)
    unit = asked.adjacency.unit if asked.adjacency else "record"
    return Odds(unit, epsilon, _factor(epsilon), chance, 50 + 50 * asked.advantage())


def odds_sentence(asked: Guarantee, drawn: Guarantee | None = None, register: str = "analyst") -> str:
    """For an analyst or an observer, a lawyer, or a person in the data ("subject")."""
    odds = odds_of(asked, drawn)
    if register == "subject":
        return _to_a_subject(odds, asked)
    unit = odds.unit
    head = f"Whatever somebody believed about one {unit} before, what is published multiplies the odds {odds.bound}."
    tie = (
        f"This is what the data of that one {unit} add. It is all that is learned about one {unit} if different "
        f"{unit}s are independent given what that somebody knows; who can infer one {unit} from others, as in a "
        "family, learns from each of them."
    )
    if _counts_others(asked):
        tie = (
            f"This counts what others tell of that one {unit} as well, for {asked.dependence.words}. Assumed: "
            f"{asked.dependence.assumed[0].lower()}{asked.dependence.assumed[1:]}."
        )
    guess = (
        f"Who has to guess which of two versions of one {unit}'s data was used, and starts at 50 %, is right in at "
        f"most {odds.shown} % of all cases."
    )
    if register == "lawyer" and odds.chance:
        tie = f"The probability is that of the noise that is drawn; it is not the δ of the promise. {tie}"
    return f"{head} {tie} {guess}"


def _to_a_subject(odds: Odds, asked: Guarantee) -> str:
    often = f"more than {odds.factor} in at most 1 of {math.floor(1 / odds.chance):,} cases" if odds.chance else ""
    return (
        "Somebody who suspects something true about you becomes surer of it, in odds, by a factor of "
        f"{often or f'at most {odds.factor}'}. Who has to guess which of two versions of your entry was used, and "
        f"starts at 50 %, is right in at most {odds.shown} % of all cases. {_others(asked)}"
    )


def _counts_others(asked: Guarantee) -> TypeGuard[Pufferfish]:
    """Whether a promise is about what others tell as well; one's own data in several rows are one's own."""
    return isinstance(asked, Pufferfish) and not isinstance(asked.dependence, Reach)


def _others(asked: Guarantee) -> str:
    if _counts_others(asked):
        return f"This counts what other entries tell about yours as well, if this is so: {asked.dependence.assumed}."
    return (
        "This counts what your own entry adds: who can tell about you from other people's entries, such as your "
        "family's, learns from theirs as well."
    )


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
