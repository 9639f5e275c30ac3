"""Channels in files: what a curator publishes and a party downloads.

In:   a designed channel; a path.
Out:  channel.json with bins, outputs and a certificate that holds the weights; the channel back from it.
Not here: applying it to a table (cli/privatize.py), full verification (evidence/verify.py).

The weights stand only in the certificate: what is drawn from is what was certified. Everything else in the file is the
plan whose hash the certificate holds. On reading, ε (or δ) is computed from the weights again; a file whose numbers do
not agree, or of which any entry was edited, is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.certificate import Certificate
from sfumato.core.compose import compose
from sfumato.core.domain import Interval
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.core.whole_file import write_whole_file
from sfumato.errors import CertificateError, InputError
from sfumato.mechanisms.tailored.design import ChannelTable, DesignWish
from sfumato.mechanisms.tailored.grid import InputGrid, PrivateQuantiles, PublicEdges
from sfumato.mechanisms.tailored.repair import TOTAL
from sfumato.mechanisms.tailored.uses import Use, as_use

if TYPE_CHECKING:
    from sfumato.mechanisms.tailored.noise import TailoredNoise

__all__ = ["read_channel", "write_channel"]

_FORMAT, _VERSION = "sfumato channel", 3
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def write_channel(channel: TailoredNoise, path: str | os.PathLike[str]) -> None:
    """Writes the file so that a crash leaves the old one or the new one."""
    record: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "domain": [channel.domain.low, channel.domain.high],
        "edges": channel.edges.tolist(),
        "inputs": channel.inputs.tolist(),
        "outputs": channel.outputs.tolist(),
        "prior": channel.table.prior.tolist(),
        "knots": _knots(channel.table.grid),
        "design": {
            "epsilon": channel.epsilon,
            "delta": channel.delta,
            "uses": [{"name": use.name, "weight": use.weight} for use in channel.uses],
            "bias": channel.bias,
            "guard": channel.guard,
            "cost": channel.table.cost,
            "gap": channel.table.gap,
        },
        "note": channel.note,
    }
    record["certificate"] = json.loads(channel.certificate(plan=record).to_json())
    write_whole_file(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def _knots(grid: InputGrid) -> dict[str, list[float]] | None:
    if grid.points is None or grid.positions is None:
        return None
    return {"points": grid.points.tolist(), "positions": grid.positions.tolist()}


def _grid(record: dict[str, Any], edges: np.ndarray, inputs: np.ndarray) -> InputGrid:
    knots = record["knots"]
    if knots is None:
        return InputGrid(edges, inputs)
    points, positions = (np.array(knots[name], dtype=float) for name in ("points", "positions"))
    rising = np.all(np.diff(points) > 0) and np.all(np.diff(positions) >= 0) and len(points) == len(positions) > 1
    if not rising or len(inputs) < 2 or positions[0] < 0 or positions[-1] > len(inputs) - 1:
        raise CertificateError("The knots of the channel file do not fit together. Nothing was drawn.")
    return InputGrid(edges, inputs, points, positions)


def read_channel(path: str | os.PathLike[str]) -> TailoredNoise:
    """The channel in the file; CertificateError if it is none or its numbers contradict each other."""
    name = Path(path).name
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CertificateError(f"{name} cannot be read as a channel file. Nothing was drawn.") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT or record.get("version") != _VERSION:
        raise CertificateError(f"{name} is not a channel file of a version this sfumato reads. Nothing was drawn.")
    try:
        return _channel(record)
    except CertificateError:
        raise
    except (*_MALFORMED, InputError) as error:
        raise CertificateError(f"{name} is damaged: {error}. Ask for it again. Nothing was drawn.") from error


def _channel(record: dict[str, Any]) -> TailoredNoise:
    from sfumato.mechanisms.tailored.noise import TailoredNoise

    certificate = _certificate(record)
    plan = {name: entry for name, entry in record.items() if name != "certificate"}
    if not certificate.is_whole or not certificate.is_of_plan(plan):
        raise CertificateError(
            "The channel file was edited after it was certified. Ask for it again. Nothing was drawn."
        )
    event = certificate.events[0]
    if not isinstance(event, ChannelEvent):
        raise CertificateError("The certificate in the channel file is about something else. Nothing was drawn.")
    wanted, table = record["design"], _table(record, event, certificate.events[1:])
    channel = TailoredNoise(
        table.wish.domain,
        wanted["epsilon"],
        wanted["delta"],
        table.wish.uses,
        table.wish.prior,
        table.wish.bins,
        table.outputs,
        wanted["bias"],
        table.wish.binning,
        wanted["guard"],
        event.adjacency,
        table=table,
    )
    if certificate.composed != compose(channel.events()):
        raise CertificateError("The promise in the channel file is not what its weights give. Nothing was drawn.")
    stated = ApproxDP(channel.epsilon, channel.delta) if channel.delta else PureDP(channel.epsilon)
    if channel.event() != event or event.guarantee().implies(stated.under(event.adjacency)) is not True:
        raise CertificateError("The ε or δ in the channel file is not the certified one. Nothing was drawn.")
    return channel


def _certificate(record: dict[str, Any]) -> Certificate:
    try:
        return Certificate.from_json(json.dumps(record["certificate"]))
    except CertificateError as error:
        raise CertificateError(
            f"The certificate in the channel file cannot be read: {error} Nothing was drawn."
        ) from error


def _table(record: dict[str, Any], event: ChannelEvent, bins: tuple[Any, ...]) -> ChannelTable:
    edges, inputs, outputs, prior = (
        np.array(record[name], dtype=float) for name in ("edges", "inputs", "outputs", "prior")
    )
    weights = np.array(event.weights, dtype=np.int64)
    rising = all(np.all(np.diff(values) > 0) and np.isfinite(values).all() for values in (edges, inputs, outputs))
    fits = weights.shape == (len(inputs), len(outputs)) and len(edges) == len(inputs) + 1 == len(prior) + 1
    if not (rising and fits and sum(event.weights[0]) == TOTAL):
        raise CertificateError("Bins, outputs and weights of the channel file do not fit together. Nothing was drawn.")
    wanted, domain = record["design"], Interval(*record["domain"])
    uses = tuple(_use(item["name"], item["weight"]) for item in wanted["uses"])
    wish = DesignWish(
        domain,
        wanted["epsilon"],
        wanted["delta"],
        uses,
        tuple(prior.tolist()),
        len(inputs),
        tuple(outputs.tolist()),
        wanted["bias"],
        # Bins that were paid for stay paid for: their cost belongs to everybody who reads the file.
        PrivateQuantiles(tuple(edges.tolist()), bins)
        if bins
        else PublicEdges(tuple(edges.tolist()), source="a channel file"),
        wanted["guard"],
    )
    return ChannelTable(wish, _grid(record, edges, inputs), prior, outputs, weights, wanted["cost"], wanted["gap"], 0.0)


def _use(name: str, weight: float) -> Use:
    """A named use, or a stand-in for a function that only the curator has: it is not needed for drawing."""

    def elsewhere(_values: np.ndarray) -> np.ndarray:
        raise InputError(f"The use {name!r} is a function of whoever designed the channel: pass your own copy of it.")

    try:
        return as_use((name, weight))
    except InputError:
        return Use(name, elsewhere, weight=weight)
