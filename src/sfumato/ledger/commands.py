"""The commands that a message of the ledger tells to write: complete, with every name, amount and path.

In:   a dataset, an amount, the ledger's file.
Out:  commands as one types them; each one works as it stands (tests/laws/test_ledger_words.py runs them).
Not here: how much must be granted (ledger/grants.py), what the commands do (cli/ledger.py).
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

from sfumato.core import ZCDP, Adjacency, ApproxDP, Chains, GaussianDP, Guarantee, Pufferfish, PureDP, RenyiDP

__all__ = ["doubled", "grant_command", "history_command", "raise_command", "settle_command", "show_command"]


def grant_command(dataset: str, total: Guarantee, ledger: Path, who: Adjacency | None = None) -> str:
    """The command that grants `total`, whatever was granted before.

    >>> grant_command("people", PureDP(0.5, adjacency=Adjacency("patient", "replace-one")), Path("/data/l.db"))
    'sfumato ledger grant people --epsilon 0.5 --unit patient --relation replace-one --ledger /data/l.db'
    """
    who = who or total.adjacency
    unit = ["--unit", who.unit, "--relation", who.relation] if who else []
    return _command("grant", dataset, [*_amount(total), *_depending(total), *unit], ledger)


def raise_command(dataset: str, total: Guarantee, ledger: Path, unit: str) -> str:
    """The command that raises a budget of the same kind to `total`.

    >>> raise_command("people", ApproxDP(0.5, 1e-6), Path("/data/l.db"), "patient")
    'sfumato ledger raise people --epsilon 0.5 --delta 1e-06 --unit patient --ledger /data/l.db'
    """
    return _command("raise", dataset, [*_amount(total), "--unit", unit], ledger)


def settle_command(dataset: str, unit: str, ledger: Path) -> str:
    """The command that records open reservations as spent.

    >>> settle_command("people", "patient", Path("/data/l.db"))
    'sfumato ledger settle people --unit patient --ledger /data/l.db --yes'
    """
    return f"{_command('settle', dataset, ['--unit', unit], ledger)} --yes"


def show_command(dataset: str | None, ledger: Path) -> str:
    """The command that shows what is granted, spent and left.

    >>> show_command("my people", Path("/data/l.db"))
    "sfumato ledger show 'my people' --ledger /data/l.db"
    """
    return _command("show", dataset, [], ledger)


def history_command(dataset: str, ledger: Path) -> str:
    """The command that shows every entry about a dataset.

    >>> history_command("people", Path("/data/l.db"))
    'sfumato ledger history people --ledger /data/l.db'
    """
    return _command("history", dataset, [], ledger)


def doubled(granted: Guarantee) -> Guarantee:
    """A budget of twice the amount and of the same kind, for examples.

    >>> doubled(GaussianDP(0.5))
    GaussianDP(adjacency=None, mu=1.0)
    """
    match granted:
        case GaussianDP(mu=mu):
            return dataclasses.replace(granted, mu=2 * mu)
        case ZCDP(rho=rho):
            return dataclasses.replace(granted, rho=2 * rho)
        case ApproxDP(eps=eps, delta_=delta):
            return ApproxDP(2 * eps, delta, adjacency=granted.adjacency)
        case Pufferfish(eps=eps, delta_=delta):
            return Pufferfish(2 * eps, delta, granted.dependence, adjacency=granted.adjacency)
        case PureDP(eps=eps) | RenyiDP(eps=eps):
            return dataclasses.replace(granted, eps=2 * eps)
    raise ValueError(f"{type(granted).__name__} cannot be granted")


def _command(verb: str, dataset: str | None, options: list[str], ledger: Path) -> str:
    name = [] if dataset is None else [dataset] if not dataset.startswith("-") else ["--", dataset]
    words = ["sfumato", "ledger", verb]
    place = ["--ledger", str(ledger.resolve())]
    return shlex.join([*words, *options, *place, *name] if name[:1] == ["--"] else [*words, *name, *options, *place])


def _amount(total: Guarantee) -> list[str]:
    match total:
        case ApproxDP(eps=eps, delta_=delta) | Pufferfish(eps=eps, delta_=delta):
            return ["--epsilon", repr(eps), "--delta", repr(delta)]
        case GaussianDP(mu=mu):
            return ["--mu", repr(mu)]
        case ZCDP(rho=rho):
            return ["--rho", repr(rho)]
        case RenyiDP(alpha=alpha, eps=eps):
            return ["--epsilon", repr(eps), "--alpha", repr(alpha)]
        case PureDP(eps=eps):
            return ["--epsilon", repr(eps)]
    raise ValueError(f"{type(total).__name__} cannot be granted")


def _depending(total: Guarantee) -> list[str]:
    if not isinstance(total, Pufferfish):
        return []
    known = total.dependence
    if known.single:
        raise ValueError("a known law is granted by a run alone")
    if not isinstance(known, Chains):
        return ["--groups", str(known.together)]
    return ["--memory", repr(known.memory), *(["--longest", str(known.longest)] if known.longest else [])]
