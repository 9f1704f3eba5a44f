"""A learner in a file: JSON and plain arrays, read as if an enemy had written them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma import npz
from omma._validate import check_positive_int
from omma.metrics import Metric, metric_from_json
from omma.online.pending import SPOILED, Pending
from omma.online.steps import Decided
from omma.policies import Policy, policy_from_json

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier

FORMAT = "omma-learner-2"
FIRST = "omma-learner-1"  # what the first release wrote
WHAT = "omma learner"
JOURNAL = {"journal", "generation", "first"}  # its name, which snapshot, number of the next record


def write(
    path: str | Path | BinaryIO, learner: OnlineClassifier, journal: dict[str, Any] | None = None
) -> None:
    """Write a learner beside the path first, then move it into place.

    ``journal`` says which snapshot of which journal this is; ``journal_of`` reads it again.
    """
    own, pending = learner.policy.objective, learner.waiting
    last = None if learner._last is None else learner._last.as_matrix(learner.n_labels)
    content = {
        "format": FORMAT,
        "policy": learner.policy.to_json(),
        "n_labels": learner.n_labels,
        "gap": learner._certificate is not None,
        "names": learner.names,
        "metric": None if learner.metric in (None, own) else learner.metric.to_json(),
        "last": None if last is None else {"names": last.names, "moved": last.moved},
        "max_waiting": pending.limit,
        "max_age": pending.max_age if pending.clock is None else None,
        "max_seconds": None if pending.clock is None else pending.max_age,
        "refused": learner._refusals.counts,
        "journal": journal,
    }
    parts: dict[str, Any] = {f"state_{name}": one for name, one in learner.state.arrays().items()}
    if learner._pairs is not None:
        parts["pairs"] = learner._pairs
    if learner._certificate is not None:
        parts |= {f"gap_{name}": one for name, one in learner._certificate.arrays().items()}
    parts |= {f"waiting_{name}": one for name, one in pending.arrays().items()}
    if last is not None:
        parts["prediction"] = last.prediction
        parts |= {} if last.eta is None else {"eta": last.eta}
    npz.write(path, {"content": json.dumps(content), **parts})


def read(cls: type[OnlineClassifier], path: str | Path, metric: Metric | None) -> OnlineClassifier:
    """Read what ``write`` wrote; nothing in the file is run, and no more of it read than fits."""
    if Path(path).is_dir():
        raise ValueError(f"{path} is not a sound {WHAT}: it is a folder")
    with npz.opened(path, WHAT) as archive:
        try:
            content = archive.json("content")
        except ValueError as error:
            raise ValueError(f"{path} is not an {WHAT}: {error}") from error
        known = isinstance(content, dict) and content.get("format") in (FORMAT, FIRST)
        if not known or {"policy", "n_labels"} - set(content):
            raise ValueError(f"{path} is not an {WHAT} of the format {FORMAT}")
        try:
            return _learner(cls, archive, content, metric)
        except (*SPOILED, AttributeError) as error:
            if isinstance(error, ValueError) and str(path) in str(error):
                raise
            reason = " ".join(str(error).split())[:400]
            reason = f"it has no {reason}" if isinstance(error, KeyError) else reason
            raise ValueError(f"{path} is not a whole {WHAT}: {reason}") from error


def journal_of(path: Path) -> dict[str, Any] | None:
    """Which snapshot of which journal a sound file is; None where it does not say."""
    with npz.opened(path, WHAT) as archive:
        entry: Any = archive.json("content").get("journal")
    if entry is not None and (type(entry) is not dict or set(entry) != JOURNAL):
        raise ValueError(f"{path} is not a whole {WHAT}: journal must have {sorted(JOURNAL)}")
    return entry


def _learner(
    cls: type[OnlineClassifier], archive: npz.Archive, content: dict[str, Any], metric: Any
) -> OnlineClassifier:
    m = check_positive_int(f"{archive.path}, a {WHAT},", "n_labels", content["n_labels"])
    # What is counted says how many labels there are, before room is made for them.
    archive.array("state_cells", kinds="f", shape=(3, m), finite=True)
    judge = content.get("metric")
    for_judge = metric is not None and judge == metric.to_json()
    policy: Policy = policy_from_json(content["policy"], None if for_judge else metric)
    judged_by = metric if for_judge else None if judge is None else metric_from_json(judge)
    learner = cls(
        policy,
        m,
        metric=judged_by,
        gap=bool(content.get("gap", False)),
        names=content.get("names"),
        max_waiting=content.get("max_waiting", 10_000),
        max_age=content.get("max_age"),
        max_seconds=content.get("max_seconds"),
    )
    _restore(learner, archive)
    if "waiting_ids" in archive:
        _restore_waiting(learner, archive, content.get("refused"))
    if "prediction" in archive or "prediction_data" in archive:
        learner._last = _last(archive, m, content.get("last") or {})
    return learner


def _restore(learner: OnlineClassifier, archive: npz.Archive) -> None:
    """Put the counts in; what does not fit is refused before anything is changed."""
    m = learner.n_labels
    learner.state.restore(_arrays(archive, "state_", learner.state.shapes()))
    if learner._certificate is not None:
        shapes = learner._certificate.shapes()
        learner._certificate.restore(_arrays(archive, "gap_", shapes))
    if learner._pairs is not None:
        pairs = archive.array("pairs", shape=(m, m), finite=True, low=-1e-6)
        learner._pairs[...] = pairs


def _restore_waiting(learner: OnlineClassifier, archive: npz.Archive, refused: Any) -> None:
    """The decisions that wait by their ids, and what was refused so far."""
    own = learner.waiting
    found = _arrays(archive, "waiting_", dict.fromkeys(own.arrays()))
    options: Any = {"limit": own.limit, "max_age": own.max_age, "clock": own.clock}
    options["check"] = lambda one: learner._check_made(one, learner._keeps_late)
    learner.wait_for(Pending.from_arrays(found, own.n_labels, **options))
    learner._refusals.restore(refused)


def _arrays(
    archive: npz.Archive, start: str, shapes: Mapping[str, tuple[int, ...] | None]
) -> dict[str, NDArray[Any]]:
    """The members that a learner asks for, if they have these shapes; no others are unpacked."""
    found = {}
    for name, shape in shapes.items():
        member = start + name
        if member not in archive and name.startswith("labels_"):
            member = name.replace("labels_", "truth_", 1)  # as the first release called it
        if member in archive:  # what is missing is named by whoever misses it
            found[name] = archive.array(member, shape=shape)
    return found


def _last(archive: npz.Archive, m: int, said: dict[str, Any]) -> Any:
    """The decision that waits for its labels."""
    eta: Any = None
    if "prediction_data" in archive:
        prediction: Any = archive.csr("prediction", shape=(None, m), low=0, high=1)
        prediction = sparse.csr_array(prediction, dtype=np.int8)
        if "eta_data" in archive:
            eta = archive.csr("eta", shape=prediction.shape, kinds="f", low=0, high=1)
    else:
        prediction = archive.array("prediction", kinds="iu", low=0, high=1).astype(np.int8)
        if prediction.shape[-1:] != (m,) and prediction.ndim != 1:
            raise archive.refuse("prediction", f"rows of {m} labels", prediction.shape)
        if "eta" in archive:
            shape = prediction.shape
            eta = archive.array("eta", kinds="f", shape=shape, finite=True, low=0, high=1)
    names = said.get("names")
    return Decided(
        prediction, eta, None if names is None else tuple(names), bool(said.get("moved", False))
    )
