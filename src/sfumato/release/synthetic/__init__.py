"""Synthetic rows: a table people can use, made from noisy counts."""

from sfumato.release.synthetic.release import SyntheticRelease
from sfumato.release.synthetic.result import Measured, SyntheticTable, one_way

__all__ = ["Measured", "SyntheticRelease", "SyntheticTable", "one_way"]
