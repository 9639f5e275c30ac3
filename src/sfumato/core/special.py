"""The special functions `core` needs, scipy's, imported when the first one is called.

In:   numbers or arrays.
Out:  what scipy.special returns.
Not here: anything of our own. Importing scipy.special takes a quarter of a second, and reading or checking a study
needs none of it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["erfcx", "erfinv", "gammaln", "log_ndtr", "ndtr", "ndtri"]


def erfcx(x: Any) -> Any:
    """exp(x²) erfc(x)."""
    from scipy import special

    return special.erfcx(x)


def erfinv(x: Any) -> Any:
    """The inverse of erf."""
    from scipy import special

    return special.erfinv(x)


def gammaln(x: Any) -> Any:
    """ln |Γ(x)|."""
    from scipy import special

    return special.gammaln(x)


def ndtr(x: Any) -> Any:
    """Φ(x)."""
    from scipy import special

    return special.ndtr(x)


def log_ndtr(x: Any) -> Any:
    """ln Φ(x)."""
    from scipy import special

    return special.log_ndtr(x)


def ndtri(x: Any) -> Any:
    """Φ⁻¹(x)."""
    from scipy import special

    return special.ndtri(x)
