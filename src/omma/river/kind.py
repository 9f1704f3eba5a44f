"""What a river model decides: one label a row, or several."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from river import base

from omma._validate import shown
from omma.metrics import Metric
from omma.metrics.base import OF_CLASSES

USUAL = frozenset({bool, int, str})  # types of labels; to ask for others takes a while
YES_OR_NO = (False, True, -1)


def last_step(model: Any) -> Any:
    """The model at the end of a pipeline, however many pipelines are inside one another."""
    while hasattr(model, "_last_step"):
        model = model._last_step
    return model


def is_single(model: Any) -> bool:
    """Whether a model predicts one label a row: yes or no, or one of several classes."""
    return isinstance(last_step(model), base.Classifier)


def check_label(owner: str, parameter: str, y: Any) -> None:
    """Refuse what cannot be one label: lists, arrays, dictionaries."""
    if type(y) not in USUAL and not isinstance(y, Hashable):
        raise TypeError(f"{parameter} of {owner} must be one class a row, got {shown(y)}")


def check_positive(owner: str, parameter: str, y: Any, pos_val: Any, metric: Metric) -> None:
    """Refuse text and numbers of classes where the positive class is True, as nobody said which.

    >>> from omma.metrics import metric
    >>> check_positive("learn_one", "y", "spam", True, metric("f1"))
    Traceback (most recent call last):
    ...
    ValueError: y of learn_one must be True or False unless pos_val= names the positive \
    class, got 'spam'; f1 over classes is macro_f1
    """
    if pos_val is True and y not in YES_OR_NO:
        over = "multiclass" if metric.name in OF_CLASSES else "macro"
        raise ValueError(
            f"{parameter} of {owner} must be True or False unless pos_val= names the positive "
            f"class, got {shown(y)}; {metric.name} over classes is {over}_{metric.name}"
        )


def check_labels(owner: str, parameter: str, y: Any) -> None:
    """Refuse what is no dictionary of labels."""
    if not isinstance(y, dict):
        raise TypeError(
            f"{parameter} of {owner} must be a dictionary from labels to True or False, got "
            f"{shown(y)}"
        )


def is_multi(model: Any) -> bool:
    """Whether a model says yes or no for each of many labels."""
    return isinstance(last_step(model), base.MultiLabelClassifier)
