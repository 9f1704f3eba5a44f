"""What was decided last, and everything that an update will count, checked before it is counted.

Sparse predictions of one row cost no building of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_number
from omma.metrics import Metric
from omma.online.pending import Id
from omma.policies import Policy
from omma.rows.arrays import HEAVIEST, read_numbers, read_weights
from omma.rows.frames import Names
from omma.rows.row import (
    Partly,
    Row,
    SparseRow,
    are_ids,
    class_rows,
    indicator_rows,
    label_rows,
    probability_rows,
)

CSR = (sparse.csr_array, sparse.csr_matrix)


class Decided(NamedTuple):
    """What was decided and waits for its labels.

    ``eta`` is kept where the policy learns from it; ``names``, ``moved`` and ``index`` say how the
    frame that it came in was laid out. Of a ``thin`` one, a single sparse row, ``prediction`` has
    the ids of chosen labels, and ``eta`` is a pair of ids and values.
    """

    prediction: Any
    eta: Any = None
    names: Names | None = None
    moved: bool = False
    index: Any = None
    thin: bool = False

    def as_matrix(self, m: int) -> Decided:
        """The same with sparse matrices in place of ids."""
        if not self.thin:
            return self
        eta = None if self.eta is None else stored_row(self.eta[0], self.eta[1], m)
        return self._replace(prediction=indicated_row(self.prediction, m), eta=eta, thin=False)


def stored_row(ids: NDArray[Any], values: NDArray[Any], m: int, kind: Any = CSR[0]) -> Any:
    """A sparse matrix of one row, which takes over the arrays.

    SciPy's constructor looks for errors in them, which takes longer than deciding the row: so all
    but the arrays is taken from a matrix that it made before.
    """
    template = _templates.get((kind, m))
    if template is None:
        template = dict(kind((1, m), dtype=np.int8).__dict__)
        if len(_templates) > 100:
            _templates.clear()
        _templates[kind, m] = template
    made = kind.__new__(kind)
    made.__dict__.update(template)
    made.data, made.indices = values, ids
    made.indptr = np.array((0, len(ids)), dtype=np.int32)
    return made


_templates: dict[tuple[Any, int], dict[str, Any]] = {}


def indicated_row(ids: NDArray[np.int32], m: int, kind: Any = CSR[0]) -> Any:
    """A sparse row with ones at the labels of these ids.

    >>> indicated_row(np.array([2, 0], dtype=np.int32), 3).toarray()
    array([[1, 0, 1]], dtype=int8)
    """
    return stored_row(ids.copy(), np.ones(len(ids), dtype=np.int8), m, kind)


def stored_of(matrix: Any, m: int) -> SparseRow | None:
    """Ids and values of one row, as they are, if kernels can read them; None leaves it to others.

    Nothing is said about what the ids are.
    """
    if type(matrix) not in CSR or matrix.shape != (1, m):
        return None
    ids, values, indptr = matrix.indices, matrix.data, matrix.indptr
    sound = len(ids) == len(values) == indptr[1] and indptr[0] == 0
    kinds = ids.dtype == np.int32 and values.dtype == np.float64
    return (ids, values) if sound and kinds and ids.flags.carray and values.flags.carray else None


def true_ids(y: Any, m: int) -> NDArray[np.int32] | None:
    """The labels that a sparse row of indicators stores; None leaves it to others."""
    if type(y) not in CSR or y.shape != (1, m):
        return None
    ids, values, indptr = y.indices, y.data, y.indptr
    if not len(ids) == len(values) == indptr[1] or indptr[0] != 0 or ids.dtype != np.int32:
        return None
    if len(ids) and not (ids[0] >= 0 and ids[-1] < m and (values == 1).all()):
        return None
    rising = len(ids) < 2 or bool((ids[1:] > ids[:-1]).all())
    return ids.copy() if rising else None


def array_of(values: list[Any]) -> Any:
    """A list as an array, if it can be one; others say what is wrong with it."""
    try:
        return np.array(values)
    except ValueError:
        return values


class Step(NamedTuple):
    """One row in the form that kernels take; None is what nobody needs, or nobody knows."""

    row: Row | None
    true: Any
    chosen: NDArray[Any]
    weight: float


class Task(NamedTuple):
    """What updates are read for; ``soft`` where decisions look at probabilities."""

    policy: Policy
    metric: Metric | None
    m: int
    soft: bool


def read_steps(
    task: Task, y: Any, eta: Any, prediction: Any, weight: Any, *, keeps: bool
) -> list[Step]:
    """The rows of an update; ``keeps`` says that probabilities are needed."""
    thin = sparse.issparse(prediction)
    chosen = indicator_rows("update", "prediction", prediction, np.int8, thin, task.m)
    rows: Sequence[Row | None] = [None] * len(chosen)
    if eta is not None:
        rows = probability_rows("update", eta, thin, task.m)
    elif keeps:
        why = "which learns from it" if task.policy.needs_eta else "whose gap needs it"
        raise ValueError(f"eta of update must be given with prediction= for {task.policy!r}, {why}")
    true = true_rows(task, y, len(chosen), thin)
    if not len(rows) == len(true) == len(chosen):
        raise ValueError(
            f"y, eta and prediction of update must have as many rows, got {len(true)}, "
            f"{len(rows)} and {len(chosen)}"
        )
    weights = weights_of(weight, len(chosen))
    return [Step(*one) for one in zip(rows, true, chosen, weights, strict=True)]


def _refuse_without(task: Task, what: str) -> None:
    """Refuse a row without labels where nothing else is learned from."""
    if task.policy.needs_labels or not task.soft:
        raise ValueError(f"{what}: only what counts estimates, as omma.Auto, learns without labels")


def weights_of(weight: Any, count: int) -> list[float]:
    """The weight of each row."""
    weights = read_numbers("update", "weight", weight).ravel()
    if len(weights) == 1:
        check_number("update", "weight", weights[0].item(), low=0.0, high=HEAVIEST)
        weights = np.repeat(weights, count)
    else:
        weights = read_weights("update", weights, count, "weight")
    found: list[float] = weights.astype(np.float64).tolist()
    return found


def true_rows(task: Task, y: Any, count: int, thin: bool) -> list[Any]:
    """True labels of each row, None where they are unknown."""
    if y is None:
        _refuse_without(task, "y of update must be given")
        return [None] * count
    if are_ids(y, count, task.m):
        rows: list[Any] = class_rows("update", y, thin, task.m, task.policy.budget)
    else:
        rows = label_rows("update", y, thin, task.m)
    if any(row is None for row in rows):
        _refuse_without(task, "y of update must have a label that is known in each row")
    if any(isinstance(row, Partly) for row in rows):
        why = task.policy.whole_rows(task.metric)
        if why is not None:
            raise ValueError(f"y of update must have all labels of a row or none{why}, got a part")
    metric = task.metric
    if metric is not None and metric.single_label:
        for row in rows:
            if row is None or isinstance(row, Partly):
                continue
            found = len(row) if thin else int(row.sum())
            if found != 1:
                raise ValueError(
                    f"y of update must have exactly one label a row for {metric.name}, got {found}"
                )
    return rows


def check_as_many(owner: str, what: str, rows: int, keys: list[Id]) -> None:
    """Refuse another number of rows than of ids."""
    if rows != len(keys):
        raise ValueError(
            f"{what} of {owner} must have as many rows as there are ids, {len(keys)}, got {rows}"
        )


def rows_of(decided: Decided, m: int) -> list[tuple[NDArray[Any], Row | None]]:
    """The prediction and the probabilities of each row, as kernels take them."""
    if decided.thin or decided.prediction.shape == (m,):
        return [(decided.prediction, decided.eta)]
    thin = sparse.issparse(decided.prediction)
    chosen = indicator_rows("predict", "prediction", decided.prediction, np.int8, thin, m)
    if decided.eta is None:
        return [(one, None) for one in chosen]
    rows = probability_rows("predict", decided.eta, thin, m)
    return list(zip(chosen, rows, strict=True))
