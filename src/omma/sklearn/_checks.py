"""What a user gives: checked before anything is learned, and metadata sent to whom it is for."""

import warnings
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, indexable
from sklearn.utils.metadata_routing import _raise_for_params, process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from omma._validate import shown
from omma.metrics import metric as find_metric
from omma.policies import OMMA, Auto
from omma.policies.base import check_at_most
from omma.policies.omma import auto_or_omma
from omma.rows.arrays import read_weights
from omma.sklearn._target import CLASSES, LABELS, OWNER, Target


def checked(X: Any, y: Any, sample_weight: Any, method: str) -> Any:
    """Rows, labels and weights of one length."""
    if y is None:
        raise ValueError(
            f"This {OWNER} estimator requires y to be passed, but the target y is None."
        )
    X, y = indexable(X, y)
    owner = f"{OWNER}.{method}"
    weights = read_weights(owner, sample_weight, _num_samples(X), "sample_weight")
    return X, y, weights if sample_weight is not None else None


def policy_of(model: Any, target: Target) -> OMMA | Auto:
    """The policy that the parameters of a model ask for: Auto, unless anything of it is chosen."""
    if not hasattr(model.estimator, "predict_proba"):
        raise TypeError(
            f"estimator of {OWNER} must have predict_proba, got {shown(model.estimator)}: wrap "
            "it in sklearn.calibration.CalibratedClassifierCV"
        )
    if target.kind == CLASSES and model.k not in (None, 1):
        raise ValueError(f"k of {OWNER} must be None or 1 where y is classes, got {model.k!r}")
    k, at_most = 1 if target.kind == CLASSES else model.k, _bound(model, target)
    named: Any = auto_or_omma(model, model.metric, k, at_most).for_names(target.names)
    named.check_labels(target.m)
    return named  # type: ignore[no-any-return]


def _bound(model: Any, target: Target) -> int | None:
    """Up to how many labels a row gets, where it may get several."""
    if model.at_most is not None and target.kind != LABELS:
        raise ValueError(
            f"at_most of {OWNER} must be None where y is classes, got {shown(model.at_most)}"
        )
    return check_at_most(OWNER, find_metric(model.metric), model.k, model.at_most)


def is_prefit(estimator: Any, cv: Any) -> bool:
    """Whether the estimator is trained, and to be taken as it is."""
    if isinstance(cv, str):
        if cv != "prefit":
            raise ValueError(
                f"cv of {OWNER} must be a number, a splitter, splits, None or 'prefit', got {cv!r}"
            )
        check_is_fitted(estimator)
        return True
    return isinstance(estimator, FrozenEstimator)


def check_same_classes(target: Target, classes: Any) -> None:
    """Refuse classes that are not those of the target."""
    known = vector(classes)
    if known is None or target.kind == LABELS:
        return
    if not np.array_equal(np.unique(np.asarray(known)), target.classes):
        raise ValueError(
            f"`classes={shown(classes)}` is not the same as on last call to partial_fit, "
            f"was: {shown(target.classes.tolist())}"
        )


def vector(classes: Any) -> Any:
    """Classes of one output; those of several say nothing that indicators do not."""
    return None if classes is None or np.ndim(classes[0]) else classes


def route(model: Any, method: str, sample_weight: Any, params: dict[str, Any]) -> Any:
    """What the estimator and the splitter are to be given."""
    if get_config()["enable_metadata_routing"]:
        return process_routing(model, method, sample_weight=sample_weight, **params)
    _raise_for_params(params, model, method)
    given = {}
    if sample_weight is not None:
        inner = getattr(model.estimator, method)
        if has_fit_parameter(model.estimator, "sample_weight"):
            given = {"sample_weight": sample_weight}
        else:
            warnings.warn(
                f"{type(model.estimator).__name__}.{inner.__name__} takes no sample_weight: the "
                f"weights of {OWNER} count for its rule alone. Metadata routing can pass them "
                "on: sklearn.set_config(enable_metadata_routing=True)",
                UserWarning,
                stacklevel=3,
            )
    return Bunch(estimator=Bunch(**{method: given}), splitter=Bunch(split={}))
