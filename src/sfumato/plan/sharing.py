"""How several institutions draw the noise of one sum: the ways beside noise at one trusted party.

In:   how many institutions there are, how many may collude or stay away.
Out:  Sharing: the mechanism behind a draw, how much noise is in the sum, in words and in numbers.
Not here: who sends what to whom (centres/), what it takes in seconds and bytes (run/publish_centres.py).
Proof: docs/proofs/distributed_noise.md, docs/proofs/centre_sums.md
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from sfumato.core import Adjacency
from sfumato.errors import PlanError
from sfumato.lang.spec import Spec
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.shares import Shares
from sfumato.plan.laws.law import DrawLaw

if TYPE_CHECKING:
    from sfumato.plan.request import Request

__all__ = [
    "Masks",
    "NoiseAtEach",
    "NoiseAtEveryone",
    "Sharing",
    "because",
    "centres_of",
    "check_left",
    "mechanism_class",
    "needs_rows",
    "sharing_from_dict",
    "ways_of",
]


@dataclass(frozen=True)
class Sharing(ABC):
    """The noise of a sum over `centres`, of which `included` are in it. Abstract.

    Up to `colluders` of them pool what they know with everybody who reads the result, up to `absences` stay away.
    """

    #: What prefer/2 and forbid/2 call it.
    way: ClassVar[str]
    #: The notes in docs/proofs/ that it rests on, beside its own.
    proofs: ClassVar[tuple[str, ...]] = ()

    centres: int
    colluders: int = 0
    absences: int = 0
    included: int = 0

    def __post_init__(self) -> None:
        if not self.included:
            object.__setattr__(self, "included", self.centres)

    @abstractmethod
    def mechanism(
        self, law: DrawLaw, scale: float, sensitivity: float, adjacency: Adjacency, dimension: int, seed: int | None
    ) -> Additive:
        """What one individual's part of the sum is protected by."""

    @abstractmethod
    def rehearsed(self, mechanism: Callable[[int], Additive], size: int) -> np.ndarray:
        """The noise of all included centres, drawn here with the seeds 0, 1, …: for rehearsals."""

    @property
    @abstractmethod
    def times(self) -> float:
        """How often the variance of that noise is in the sum of the included centres."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The way, as a plan names it; of a sum that some stayed away from, as it was."""

    @property
    def present(self) -> str:
        """How many centres are in the sum: 3, or 2 of 3."""
        return f"{self.centres}" if self.included == self.centres else f"{self.included} of {self.centres}"

    @property
    @abstractmethod
    def trust(self) -> str:
        """Whom one has to trust."""

    def refusal(self) -> str:
        """Why it cannot be used; empty where it can."""
        return ""

    def keeps(self, adjacency: Adjacency) -> bool:
        """Whether it keeps a promise to these neighbours."""
        return True

    def among(self, individuals: float, adjacency: Adjacency) -> Sharing:
        """The same for a dataset of so many individuals; PlanError where it keeps no promise to them."""
        return self

    def opened(self, included: int, individuals: float) -> Sharing:
        """Of a sum over so many centres, with so many individuals."""
        return replace(self, included=included)

    @property
    def declared(self) -> Sharing:
        """As the study says it, whatever the numbers of individuals."""
        return self

    #: Whether it is taken only where the study prefers it.
    only_preferred: ClassVar[bool] = False
    #: Why one act on a sum goes this way.
    reason: ClassVar[str] = "one act on the sum needs less noise than one on every individual"
    #: By what a scale is multiplied where several sums are priced together (docs/proofs/centre_sums.md).
    certain: ClassVar[float] = 1.0

    def to_dict(self) -> dict[str, Any]:
        return {"way": self.way, **asdict(self)}


@final
@dataclass(frozen=True)
class NoiseAtEach(Sharing):
    """Every centre adds all the noise a promise needs to its own sum: nobody is trusted, and the noise adds up.

    >>> NoiseAtEach(5).times
    5
    """

    way: ClassVar[str] = "each_centre"

    def mechanism(
        self, law: DrawLaw, scale: float, sensitivity: float, adjacency: Adjacency, dimension: int, seed: int | None
    ) -> Additive:
        return law.mechanism(scale, sensitivity, adjacency, dimension, seed)

    def rehearsed(self, mechanism: Callable[[int], Additive], size: int) -> np.ndarray:
        return np.sum([mechanism(place)(np.zeros(size)) for place in range(self.included)], axis=0)

    @property
    def times(self) -> float:
        return self.included

    @property
    def words(self) -> str:
        return f"noise at each of {self.present} centres"

    @property
    def trust(self) -> str:
        return "nobody: what leaves a centre is private already"


@final
@dataclass(frozen=True)
class NoiseAtEveryone(Sharing):
    """Every centre adds, for each of its individuals, all the noise a promise needs: what local privacy would publish.

    The centre draws it, and it knows the rows anyway: nobody is protected better than by noise at each centre.

    >>> NoiseAtEveryone(5, individuals=900).times
    900
    """

    way: ClassVar[str] = "local"
    only_preferred: ClassVar[bool] = True
    reason: ClassVar[str] = "every individual's own part gets noise before it is summed"

    #: In the sum: expected where it is planned, counted where it was opened.
    individuals: float = 0.0

    def mechanism(
        self, law: DrawLaw, scale: float, sensitivity: float, adjacency: Adjacency, dimension: int, seed: int | None
    ) -> Additive:
        return law.mechanism(scale, sensitivity, adjacency, dimension, seed)

    def rehearsed(self, mechanism: Callable[[int], Additive], size: int) -> np.ndarray:
        return np.asarray(mechanism(0).sample(np.zeros(size), round(self.individuals)).sum(axis=0))

    @property
    def times(self) -> float:
        return self.individuals

    def keeps(self, adjacency: Adjacency) -> bool:
        # Somebody more is one noise more: how much noise there is would tell who is there.
        return adjacency.relation == "replace-one"

    def among(self, individuals: float, adjacency: Adjacency) -> Sharing:
        if not self.keeps(adjacency):
            raise PlanError(
                "noise at each individual tells how many there are, which add/remove protects. Leave adjacency(…, "
                "add_remove) out, or take each_centre or masks. Nothing was planned and nothing was spent."
            )
        return replace(self, individuals=individuals)

    def opened(self, included: int, individuals: float) -> Sharing:
        return replace(self, included=included, individuals=individuals)

    @property
    def declared(self) -> Sharing:
        return replace(self, individuals=0.0)

    @property
    def words(self) -> str:
        return f"noise at each individual of {self.present} centres"

    @property
    def trust(self) -> str:
        return (
            "nobody beyond one's own centre, which has the rows and draws it: no more is protected than by noise at "
            "each centre, and less where the centre itself is not trusted than on a machine of one's own (`sfumato "
            "privatize --channel`)"
        )


@final
@dataclass(frozen=True)
class Masks(Sharing):
    """Masks hide every centre's sum, and the shares of the noise add up to what one centre alone would have to add.

    >>> Masks(5).times, Masks(5, colluders=1, absences=1).times
    (1.0, 1.6666666666666667)
    """

    way: ClassVar[str] = "masks"
    proofs: ClassVar[tuple[str, ...]] = ("distributed_noise", "secure_aggregation")
    #: Sums of rounded shares are paid for by a relative 1e-12 of μ (docs/proofs/distributed_noise.md).
    certain: ClassVar[float] = 1 - 2e-12

    @property
    def honest(self) -> int:
        """So many shares make up the whole noise."""
        return self.centres - self.colluders - self.absences

    def mechanism(
        self, law: DrawLaw, scale: float, sensitivity: float, adjacency: Adjacency, dimension: int, seed: int | None
    ) -> Additive:
        shares = self.honest, self.centres, self.colluders
        assert law.shares is not None  # no other law is planned over centres
        return law.shares(scale, sensitivity, adjacency, dimension, seed, *shares)

    def rehearsed(self, mechanism: Callable[[int], Additive], size: int) -> np.ndarray:
        shares = [mechanism(place) for place in range(self.included)]
        return np.sum([one.share(size) * one.grid for one in shares if isinstance(one, Shares)], axis=0)

    @property
    def times(self) -> float:
        return self.included / self.honest

    @property
    def words(self) -> str:
        return f"masked sums of {self.present} centres"

    @property
    def bears_liars(self) -> bool:
        """Whether the promise holds whatever the coordinator sends: more than half of the honest stay to the end."""
        most = (self.centres + self.colluders) // 2 + 1
        return self.colluders < most <= self.centres - self.absences

    @property
    def trust(self) -> str:
        common = (
            f"that no more than {self.colluders} centres collude with the coordinator, and that {self.honest} centres "
            "draw their shares of the noise"
        )
        if self.bears_liars:
            return common
        return (
            f"{common}; and that the coordinator follows the protocol: where {self.absences} of {self.centres} centres "
            "may be absent, one that tells two halves two different lists of who is there could open the figures of "
            "one centre behind its own share of the noise alone"
        )

    def refusal(self) -> str:
        if self.honest < 1 or self.colluders >= self.centres - self.absences:
            return "colluders and absences leave too few honest centres"
        return ""


_WAYS: dict[str, type[Sharing]] = {one.way: one for one in (NoiseAtEach, Masks, NoiseAtEveryone)}


def sharing_from_dict(record: Mapping[str, Any] | None) -> Sharing | None:
    """The inverse of `to_dict`; None for noise at one party."""
    if record is None:
        return None
    try:
        return _WAYS[record["way"]](**{name: value for name, value in record.items() if name != "way"})
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError("The plan shares its noise in no known way. Make it again. Nothing was spent.") from error


def mechanism_class(law: DrawLaw, sharing: Sharing | None) -> type[Additive]:
    """What a draw of this law is calibrated as."""
    if isinstance(sharing, Masks) and law.shares is not None:
        return law.shares
    return law.mechanism


def centres_of(spec: Spec) -> tuple[str, ...]:
    """The centres that hold rows; all that are declared where nobody says who holds what."""
    holders = {one.centre for one in spec.holds}
    return tuple(dict.fromkeys(one.name for one in spec.centres if not holders or one.name in holders))


def ways_of(spec: Spec) -> tuple[Sharing | None, ...]:
    """The ways to add up what a study asks; None is noise at one party that sees all rows.

    Of several with the same error the first is taken: the one that needs the least trust.
    """
    count = len(centres_of(spec))
    if count < 2:
        return (None,)
    apart = NoiseAtEach(count, absences=spec.absences)
    shared = Masks(count, spec.colluders, spec.absences)
    # A party that has all rows in one table cannot tell whose they are: no promise to a centre holds there.
    alone = (None,) if spec.trusted and not spec.centre_promises else ()
    return (*alone, apart, shared, NoiseAtEveryone(count, absences=spec.absences))


def check_left(left: tuple[Sharing | None, ...], banned: set[str], place: str) -> None:
    """PlanError where forbid leaves no way."""
    if not left:
        raise PlanError(
            f"{place}every way to add up over the centres is forbidden ({', '.join(sorted(banned))}) or cannot be "
            "used. There are masks, each_centre and, with trusted(Party), central; local has to be preferred: "
            "prefer(Name, local). Take one forbid(…) back. Nothing was planned and nothing was spent."
        )


def because(reason: str, sharing: Sharing | None) -> str:
    """A reason, and whom one has to trust for it."""
    return reason if sharing is None else f"{reason}; one has to trust {sharing.trust}"


def needs_rows(request: Request) -> PlanError:
    """One value per individual is no sum."""
    return PlanError(
        f"{request.position}{request.name} shows one value per {request.adjacency.unit}, and no party sees the rows of "
        "all centres. Let each centre publish its own from a study of its own, publish an aggregate, or name who may "
        "see all rows: trusted(Party). Nothing was planned and nothing was spent."
    )
