"""How a fitted estimator shows itself in a notebook: what was promised, then scikit-learn's picture of its settings.

In:   an estimator with `guarantee_`.
Out:  HTML, for the estimator alone and wherever scikit-learn draws it as a part of something.
Not here: the card (sfumato/card.py), words about the training (`explain`).

Newer scikit-learn lists every attribute of a fitted estimator in its picture, those too that were counted on private
rows without noise. The picture here is of the settings alone.
"""

from __future__ import annotations

from typing import Any

from sfumato.card import Card
from sfumato.errors import UnprovedError

__all__ = ["FittedShown", "SettingsShown"]


class SettingsShown:
    """Mixin, first among the bases: scikit-learn's pictures of it, or of what it is a part of, hold its settings."""

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """What scikit-learn would list of the fitted attributes: nothing."""
        return {}


class FittedShown(SettingsShown):
    """Mixin, first among the bases of an estimator. Before `fit` scikit-learn's picture stands alone."""

    def _repr_html_(self) -> str:
        settings = super()._repr_html_()  # type: ignore[misc]  # BaseEstimator's
        promised = getattr(self, "guarantee_", None)
        if promised is None:
            return settings
        classes = getattr(self, "classes_", None)
        facts = {"promise": str(promised)}
        facts |= {"classes": ", ".join(map(str, list(classes)[:8]))} if classes is not None else {}
        return Card(type(self).__name__, facts, notes=self._notes(), kind="fitted").to_html() + settings

    def _notes(self) -> list[str]:
        """Those of the certificate, or why there is none."""
        try:
            certificate = getattr(self, "certificate_", None)
        except UnprovedError as error:
            return [str(error)]
        return list(certificate.notes) if certificate is not None else []

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
