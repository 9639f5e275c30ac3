"""sfumato: publish something about people without exposing them.

The names below are what most people need; the rooms (`sfumato.core`, `sfumato.mechanisms`, …) hold the rest. Each is
imported when it is first used: `import sfumato` alone takes no time.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.core.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
    from sfumato.core.calendar_ranges import Dates, Times
    from sfumato.core.certificate import Certificate
    from sfumato.core.compose import compose
    from sfumato.core.dependence import Chains, Groups
    from sfumato.core.domain import Categories, Interval
    from sfumato.core.gaussian import gaussian_mu
    from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, NoGuarantee, PureDP, RenyiDP
    from sfumato.core.pufferfish import Pufferfish
    from sfumato.core.schema import Schema
    from sfumato.evidence.audit import audit
    from sfumato.evidence.verify import verify
    from sfumato.lang import Spec
    from sfumato.ledger.ledger import Ledger
    from sfumato.mechanisms.exponential import Exponential
    from sfumato.mechanisms.gaussian import Gaussian
    from sfumato.mechanisms.laplace import Laplace
    from sfumato.mechanisms.norm_gamma import NormGamma
    from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
    from sfumato.mechanisms.randomized_response import RandomizedResponse
    from sfumato.network.network import Network
    from sfumato.plan.plan import Plan
    from sfumato.run.study import Release
    from sfumato.study.builder import Study

__all__ = [
    "ADD_REMOVE",
    "REPLACE_ONE",
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Categories",
    "Certificate",
    "Chains",
    "Dates",
    "Exponential",
    "Gaussian",
    "GaussianDP",
    "Groups",
    "Guarantee",
    "Interval",
    "Laplace",
    "Ledger",
    "NoGuarantee",
    "NormGamma",
    "PermuteAndFlip",
    "Pufferfish",
    "PureDP",
    "RandomizedResponse",
    "RenyiDP",
    "Schema",
    "Study",
    "Times",
    "audit",
    "compose",
    "gaussian_mu",
    "load",
    "make_plan",
    "run_plan",
    "verify",
]

#: Where each name lives.
_HOME = {
    "ADD_REMOVE": "core.adjacency",
    "REPLACE_ONE": "core.adjacency",
    "ZCDP": "core.guarantee",
    "Adjacency": "core.adjacency",
    "ApproxDP": "core.guarantee",
    "Categories": "core.domain",
    "Chains": "core.dependence",
    "Certificate": "core.certificate",
    "Dates": "core.calendar_ranges",
    "Exponential": "mechanisms.exponential",
    "Gaussian": "mechanisms.gaussian",
    "GaussianDP": "core.guarantee",
    "Groups": "core.dependence",
    "Guarantee": "core.guarantee",
    "Interval": "core.domain",
    "Laplace": "mechanisms.laplace",
    "Ledger": "ledger.ledger",
    "NoGuarantee": "core.guarantee",
    "NormGamma": "mechanisms.norm_gamma",
    "PermuteAndFlip": "mechanisms.permute_and_flip",
    "Pufferfish": "core.pufferfish",
    "PureDP": "core.guarantee",
    "RandomizedResponse": "mechanisms.randomized_response",
    "RenyiDP": "core.guarantee",
    "Schema": "core.schema",
    "Study": "study.builder",
    "Times": "core.calendar_ranges",
    "audit": "evidence.audit",
    "compose": "core.compose",
    "gaussian_mu": "core.gaussian",
    "verify": "evidence.verify",
}


def __getattr__(name: str) -> Any:
    """The names above, from their homes; the rooms themselves, as after an import of each."""
    if name in _HOME:
        value = getattr(import_module(f"sfumato.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in ("core", "evidence", "ledger", "mechanisms", "run", "study"):
        return import_module(f"sfumato.{name}")
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext sfumato`: the cell magic %%sfumato; see `sfumato.study.notebook`."""
    from sfumato.study.notebook import register

    register(shell)


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
