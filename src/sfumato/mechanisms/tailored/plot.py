"""A picture of a channel.

In:   a channel.
Out:  a figure: the probability matrix, and the error of each input beside Laplace and Gaussian noise.
Not here: anything that draws noise; the rivals' errors are computed from their densities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from sfumato.core.gaussian import gaussian_scale
from sfumato.mechanisms.tailored.uses import Use

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.mechanisms.tailored.noise import TailoredNoise

__all__ = ["clipped_errors", "draw_channel", "gaussian_below", "laplace_below"]

_DELTA = 1e-5
_CELLS = 4000


def laplace_below(channel: TailoredNoise, away: np.ndarray) -> np.ndarray:
    """The distribution function of Laplace noise of the channel's ε."""
    scale = channel.domain.width / channel.epsilon
    return np.where(away < 0, 0.5 * np.exp(np.minimum(away, 0) / scale), 1 - 0.5 * np.exp(-np.abs(away) / scale))


def gaussian_below(channel: TailoredNoise, away: np.ndarray) -> np.ndarray:
    """The distribution function of Gaussian noise of the channel's ε and δ; of 1e-5 where it has none."""
    return ndtr(away / gaussian_scale(channel.epsilon, channel.delta or _DELTA, channel.domain.width))


def clipped_errors(
    channel: TailoredNoise, use: Use, below_of: Callable[[TailoredNoise, np.ndarray], np.ndarray]
) -> np.ndarray:
    """E[(use(clip(x + noise)) - use(x))²] for each input, with noise of the same ε put back into the domain.

    Laplace noise is ε-DP; Gaussian noise needs a δ.
    """
    low, high = channel.domain.low, channel.domain.high
    edges = np.linspace(low, high, _CELLS + 1)
    middles = use.moved((edges[1:] + edges[:-1]) / 2, low, high, channel.guard or 0.0)
    away = edges[None, :] - channel.inputs[:, None]
    below = below_of(channel, away)
    masses = np.diff(below, axis=1)
    masses[:, 0] += below[:, 0]
    masses[:, -1] += 1 - below[:, -1]
    return (masses * (use(middles)[None, :] - use(channel.inputs)[:, None]) ** 2).sum(axis=1)


def draw_channel(channel: TailoredNoise, figure: Figure | None = None) -> Figure:
    """Left the probabilities, right the root mean squared error of the first use, input by input."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained") if figure is None else figure
    matrix, errors = figure.subplots(1, 2)
    use = channel.uses[0]
    image = matrix.pcolormesh(np.arange(len(channel.outputs) + 1), channel.edges, channel.probabilities, cmap="viridis")
    places = np.unique(np.linspace(0, len(channel.outputs) - 1, 6).round().astype(int))
    matrix.set_xticks(places + 0.5, [f"{channel.outputs[at]:.3g}" for at in places])
    matrix.set(xlabel="published value", ylabel="true value", title=f"{channel.guarantee().describe()}, per record")
    figure.colorbar(image, ax=matrix, label="probability")
    delta = channel.delta or _DELTA
    series = {
        "tailored": channel.mean_squared_errors(use),
        "Laplace, clipped": clipped_errors(channel, use, laplace_below),
        f"Gaussian, clipped (δ = {delta:g})": clipped_errors(channel, use, gaussian_below),
    }
    for label, squares in series.items():
        errors.plot(channel.inputs, np.sqrt(squares), label=label)
    errors.set(xlabel="true value", ylabel=f"root mean squared error of {use.name}", yscale="log")
    errors.set_title("error by true value")
    errors.legend()
    return figure
