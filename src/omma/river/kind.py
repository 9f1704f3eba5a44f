"""What a river model decides: one label a row, or several."""

from __future__ import annotations

from typing import Any

from river import base


def last_step(model: Any) -> Any:
    """The model at the end of a pipeline, however many pipelines are inside one another."""
    while hasattr(model, "_last_step"):
        model = model._last_step
    return model


def is_single(model: Any) -> bool:
    """Whether a model predicts one label a row: yes or no, or one of several classes."""
    return isinstance(last_step(model), base.Classifier)


def is_multi(model: Any) -> bool:
    """Whether a model says yes or no for each of many labels."""
    return isinstance(last_step(model), base.MultiLabelClassifier)
