"""A model of river that only hands on probabilities."""

from __future__ import annotations

from typing import Any

from river import base


class Recorded(base.Classifier):
    """A model whose probabilities are in the row."""

    _multiclass = True

    def predict_proba_one(self, x: dict[str, Any], **kwargs: Any) -> Any:
        return x["eta"]

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        pass
