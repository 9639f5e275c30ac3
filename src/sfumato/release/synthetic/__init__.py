"""Synthetic rows: a table people can use, made from noisy counts."""

from sfumato.release.synthetic.release import Measured, SyntheticRelease, SyntheticTable

__all__ = ["Measured", "SyntheticRelease", "SyntheticTable"]
