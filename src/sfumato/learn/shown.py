"""How a fitted estimator shows itself in a notebook: what was promised, then scikit-learn's picture of its settings.

In:   an estimator with `guarantee_`.
Out:  HTML.
Not here: the card (sfumato/card.py), words about the training (`explain`).
"""

from __future__ import annotations

from typing import Any

from sfumato.card import Card

__all__ = ["FittedShown"]


class FittedShown:
    """Mixin, first among the bases of an estimator. Before `fit` scikit-learn's picture stands alone."""

    def _repr_html_(self) -> str:
        settings = super()._repr_html_()  # type: ignore[misc]  # BaseEstimator's
        promised = getattr(self, "guarantee_", None)
        if promised is None:
            return settings
        classes = getattr(self, "classes_", None)
        facts = {"promise": str(promised)}
        facts |= {"classes": ", ".join(map(str, list(classes)[:8]))} if classes is not None else {}
        certificate = getattr(self, "certificate_", None)
        notes = list(certificate.notes) if certificate is not None else []
        return Card(type(self).__name__, facts, notes=notes, kind="fitted").to_html() + settings

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
