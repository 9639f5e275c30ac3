"""Meaning: domains, adjacency, guarantees, events, and how they compose. Imports nothing else of sfumato but errors."""

from sfumato.core.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from sfumato.core.compose import ComposedDP, Partition, WorstOf, compose, parallel
from sfumato.core.dependence import Chains, Dependence, Groups, Known, Reach
from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.events.centre import SharedGaussianEvent, SharedLaplaceEvent
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.disjoint import DisjointEvent
from sfumato.core.events.event import (
    BoxEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NormGammaEvent,
    RandomizedResponseEvent,
    Repeated,
    SelectionEvent,
)
from sfumato.core.events.groups import GroupCountsEvent
from sfumato.core.events.joint import JointObjectiveEvent
from sfumato.core.events.learning import ObjectiveDP, ObjectivePerturbationEvent
from sfumato.core.events.linear import LinearGaussianEvent
from sfumato.core.events.quantiles import QuantilesEvent
from sfumato.core.events.together import TogetherEvent
from sfumato.core.fairness import Fairness, MeasuredGap
from sfumato.core.fisher import AttackerError, attacker_error
from sfumato.core.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_scale
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP, RenyiDP
from sfumato.core.noise import BoxNoise, GaussianNoise, LaplaceNoise, Noise, SummedNoise
from sfumato.core.pufferfish import Pufferfish, together
from sfumato.core.records import event_from_dict, guarantee_from_dict
from sfumato.core.schema import Schema

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "AttackerError",
    "BoxEvent",
    "BoxNoise",
    "Categories",
    "Chains",
    "ChannelEvent",
    "ComposedDP",
    "Dependence",
    "DisjointEvent",
    "Domain",
    "Event",
    "Fairness",
    "GaussianDP",
    "GaussianEvent",
    "GaussianNoise",
    "GroupCountsEvent",
    "Groups",
    "Guarantee",
    "Interval",
    "JointObjectiveEvent",
    "Known",
    "LaplaceEvent",
    "LaplaceNoise",
    "LinearGaussianEvent",
    "MeasuredGap",
    "NoGuarantee",
    "Noise",
    "NormGammaEvent",
    "ObjectiveDP",
    "ObjectivePerturbationEvent",
    "Partition",
    "Pufferfish",
    "PureDP",
    "QuantilesEvent",
    "RandomizedResponseEvent",
    "Reach",
    "RenyiDP",
    "Repeated",
    "Schema",
    "SelectionEvent",
    "SharedGaussianEvent",
    "SharedLaplaceEvent",
    "SummedNoise",
    "TogetherEvent",
    "WorstOf",
    "attacker_error",
    "compose",
    "event_from_dict",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_scale",
    "guarantee_from_dict",
    "parallel",
    "together",
]
