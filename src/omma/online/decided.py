"""What was decided last, and sparse predictions of one row that cost no building of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.rows.frames import Names
from omma.rows.row import SparseRow

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
