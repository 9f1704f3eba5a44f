"""What of the metadata given to ``fit`` goes to the estimator, and what to the splitter."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn import get_config
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    process_routing,
)
from sklearn.utils.validation import has_fit_parameter

from omma.sklearn._target import OWNER


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


def metadata_router(model: Any) -> Any:
    """What may go where, for scikit-learn to ask."""
    mapping = (
        MethodMapping()
        .add(caller="fit", callee="fit")
        .add(caller="partial_fit", callee="partial_fit")
    )
    splits = MethodMapping().add(caller="fit", callee="split")
    return (
        MetadataRouter(owner=type(model).__name__)
        .add_self_request(model)
        .add(estimator=model.estimator, method_mapping=mapping)
        .add(splitter=None if isinstance(model.cv, str) else model.cv, method_mapping=splits)
    )
