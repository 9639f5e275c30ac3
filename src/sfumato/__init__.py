"""sfumato: publish something about people without exposing them.

The names below are what most people need; the rooms (`sfumato.core`, `sfumato.mechanisms`, …) hold the rest.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    Categories,
    GaussianDP,
    Guarantee,
    Interval,
    NoGuarantee,
    PureDP,
    RenyiDP,
    Schema,
    compose,
    gaussian_mu,
)
from sfumato.evidence import Certificate, audit, verify
from sfumato.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    NormGamma,
    PermuteAndFlip,
    RandomizedResponse,
)
from sfumato.run import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.lang import Spec
    from sfumato.network.network import Network
    from sfumato.plan.plan import Plan
    from sfumato.run.study import Release

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Categories",
    "Certificate",
    "Exponential",
    "Gaussian",
    "GaussianDP",
    "Guarantee",
    "Interval",
    "Laplace",
    "Ledger",
    "NoGuarantee",
    "NormGamma",
    "PermuteAndFlip",
    "PureDP",
    "RandomizedResponse",
    "RenyiDP",
    "Schema",
    "audit",
    "compose",
    "gaussian_mu",
    "load",
    "make_plan",
    "run_plan",
    "verify",
]


def load(path_or_text: str | os.PathLike[str]) -> Spec:
    """The Spec of a study file or of a study's text; a StudyError says everything that is wrong with it.

    See `sfumato.lang.load`. The logic engine is imported when it is first needed.
    """
    from sfumato.lang import load as load_study

    return load_study(path_or_text)


def make_plan(spec_or_network: Spec | Network | str | Path, tables: Any = None, **options: Any) -> Plan:
    """The plan of least expected error that keeps a study's promises; see `sfumato.plan.make.make_plan`."""
    from sfumato.run.planning import make_plan as make

    return make(spec_or_network, tables, **options)


def run_plan(plan: Plan, data: Any, ledger: Ledger | str | Path | None, **options: Any) -> Release:
    """What a plan publishes from `data`, charged to the ledger; see `sfumato.run.study.run_plan`."""
    from sfumato.run.study import run_plan as run

    return run(plan, data, ledger, **options)
