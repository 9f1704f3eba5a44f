"""Calibration that learns a row at a time: the part of ``omma.Auto`` that looks at probabilities.

c = σ(a·logit(η) + b + b_j), with a and b for all labels and a bias for each. What is learned is
plain arrays of a fixed size, and two of them can be added.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma import npz
from omma._validate import check_positive_int, check_seed
from omma.calibration.reliability import Reliability, brier, log_loss, reliability
from omma.engine import NO_NUMBERS, work_space
from omma.kernels.calibrate import INTERCEPT, Learning
from omma.kernels.calibration_rows import calibrate_dense, calibrate_sparse
from omma.kernels.layout import BIAS, PRECISION
from omma.kernels.replay import Sparse
from omma.replaying import extras_of, ids_of, indicators_of, longest_row
from omma.rows.arrays import (
    Probabilities,
    Rows,
    SparseProbabilities,
    blocks,
    csr,
    entries_of,
    read_probabilities,
    read_weights,
)
from omma.rows.frames import opened, opened_pair
from omma.rows.labels import Labels, read_labels
from omma.state import Calibration, aligned, padded

WHAT = "omma calibrator"
Array = NDArray[Any]


@dataclass(frozen=True)
class Scores:
    """How good probabilities are; of each, less is better.

    Attributes
    ----------
    log_loss, brier, expected_error : float
        As the functions of the same names in ``omma.calibration`` give them.
    """

    log_loss: float
    brier: float
    expected_error: float

    @classmethod
    def of(cls, eta: Any, y: Any, bins: int = 10, weights: Any = None) -> Scores:
        """Those of some probabilities."""
        found = (log_loss(eta, y, weights=weights), brier(eta, y, weights=weights))
        return cls(*found, reliability(eta, y, bins, weights=weights).expected_error)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Probabilities as they came and as they were calibrated, each row by those before it.

    Attributes
    ----------
    probabilities : ndarray, CSR matrix or frame
        Calibrated, in the shape and order of those given.
    before, after : Scores
        Of the probabilities as given, and of the calibrated ones.
    curves : dict of str to Reliability
        Both, for ``omma.plots.plot_reliability``.
    """

    probabilities: Any
    before: Scores
    after: Scores
    curves: dict[str, Reliability]

    def __repr__(self) -> str:
        told = ", ".join(
            f"{title} {getattr(self.before, name):.4f} → {getattr(self.after, name):.4f}"
            for name, title in (
                ("log_loss", "log-loss"),
                ("brier", "Brier"),
                ("expected_error", "calibration error"),
            )
        )
        return f"<calibrated: {told}>"


class OnlineCalibrator:
    """Probabilities that are calibrated by the labels seen so far.

    This is what ``omma.Auto`` does with probabilities before it decides, with the same numbers.
    Until the first label comes, probabilities pass as they are. A label of probability zero stays
    there: it is no candidate. Memory does not grow with the number of rows.

    Parameters
    ----------
    n_labels : int
        The number of labels, or of classes, each of which is calibrated as a label of its own.

    Examples
    --------
    >>> import omma
    >>> from omma.calibration import OnlineCalibrator
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> wrong = eta ** 3  # far too low
    >>> calibrator = OnlineCalibrator(20)
    >>> found = calibrator.replay(wrong, y)
    >>> found.after.log_loss < 0.8 * found.before.log_loss
    True
    >>> calibrator.predict(wrong).shape
    (2000, 20)
    """

    def __init__(self, n_labels: int) -> None:
        m = check_positive_int("OnlineCalibrator", "n_labels", n_labels)
        assert m is not None
        self._learned = Calibration.start(int(m))

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self._learned.bias)

    @property
    def slope(self) -> float:
        """What logits are multiplied by: above one where probabilities were too timid."""
        return self._learned.slope

    @property
    def intercept(self) -> float:
        """What is added to the logits of all labels."""
        return float(self._learned.shared[INTERCEPT])

    @property
    def bias(self) -> NDArray[np.float64]:
        """What is added to the logits of each label besides."""
        return np.array(self._learned.bias)

    @property
    def rows(self) -> float:
        """The number of rows that it has learned from, or their weight."""
        return self._learned.rows

    def predict(self, eta: Any) -> Any:
        """Calibrated probabilities of rows (n, m), of one row (m,), of a CSR matrix or a frame.

        With one label a number is one row. Nothing is learned by asking.

        >>> from omma.calibration import OnlineCalibrator
        >>> OnlineCalibrator(2).predict([0.2, 0.7])
        array([0.2, 0.7])
        """
        owner = "OnlineCalibrator.predict"
        table = opened(owner, "eta", eta, row=self.n_labels > 1)
        rows, single = self._rows(owner, table.values)
        found = self._through(owner, rows, self._learned)
        return table.close(found[0] if single else found)

    def update(self, eta: Any, y: Any, weight: float | ArrayLike | None = None) -> None:
        """Learn from a row and its labels, or from several rows one after another.

        Parameters
        ----------
        eta : array-like of shape (m,), or rows as ``predict`` takes them
            Probabilities as they came, not calibrated.
        y : indicators in the shape of eta, a class id for each row, or None
            None is a row whose labels are not known, NaN a label that is not; nothing is learned
            from it.
        weight : float or array-like, optional
            A row of weight w counts as w rows.
        """
        owner = "OnlineCalibrator.update"
        table, y = opened_pair(owner, eta, y)
        rows, single = self._rows(owner, table.values)
        if y is None:
            return
        y = np.asarray(y)[np.newaxis] if single and not hasattr(y, "tocsr") else y
        labels = read_labels(owner, y, rows.n, rows.m)
        weights = None if weight is None else np.broadcast_to(np.asarray(weight), (rows.n,))
        self._learn(owner, rows, labels, read_weights(owner, weights, rows.n, "weight"), None)

    def replay(
        self,
        eta: Any,
        y: Any,
        *,
        weights: ArrayLike | None = None,
        seed: int | None = None,
        bins: int = 10,
    ) -> Calibrated:
        """Calibrate each row by those before it, then learn from its labels; go on from there.

        Parameters
        ----------
        eta, y, weights, seed
            As for ``omma.replay``; scores and curves weigh rows alike.
        bins : int
            Of the reliability curves.

        Returns
        -------
        Calibrated
            Every row was calibrated before its own labels were seen, so the scores are fair.
        """
        owner = "OnlineCalibrator.replay"
        if seed is not None:
            check_seed(owner, seed)
        table, y = opened_pair(owner, eta, y, weights=weights)
        rows, single = self._rows(owner, table.values)
        if single or not rows.n:
            raise ValueError(f"eta of {owner} must be rows of probabilities, at least one")
        if y is None:
            raise ValueError(f"y of {owner} must be given, got None")
        check_positive_int(owner, "bins", bins)
        labels = read_labels(owner, y, rows.n, rows.m)
        if labels.known is not None and not labels.known.any():
            raise ValueError(f"y of {owner} must have labels that are known, got nan alone")
        order = None if seed is None else np.random.default_rng(seed).permutation(rows.n)
        weighed = read_weights(owner, weights, rows.n)
        given, weights = table.values, weighed if len(weighed) else None
        before = Scores.of(given, y, bins, weights)  # first: what it refuses is not learned
        found = self._learn(owner, rows, labels, weighed, order)
        return Calibrated(
            table.close(found),
            before,
            Scores.of(found, y, bins, weights),
            {
                "as given": reliability(given, y, bins, weights=weights),
                "calibrated": reliability(found, y, bins, weights=weights),
            },
        )

    def _rows(self, owner: str, eta: Any) -> tuple[Probabilities, bool]:
        """What was given as rows, and whether it was one."""
        m = self.n_labels
        single = not hasattr(eta, "tocsr") and np.ndim(eta) == (1 if m > 1 else 0)
        rows = read_probabilities(owner, np.asarray(eta)[np.newaxis] if single else eta)
        if rows.m != m:
            raise ValueError(f"eta of {owner} must have {m} labels, got {rows.m}")
        return rows, single

    def _learn(
        self, owner: str, rows: Probabilities, labels: Labels, weights: Array, order: Rows | None
    ) -> Any:
        """Learn from all rows, or where one of them is wrong from none."""
        learned = Calibration(**{name: one.copy() for name, one in self.arrays().items()})
        found = self._through(owner, rows, learned, labels, weights, order)
        self._learned = learned
        return found

    def _through(
        self,
        owner: str,
        rows: Probabilities,
        learned: Calibration,
        labels: Labels | None = None,
        weights: Array = NO_NUMBERS,
        order: Rows | None = None,
    ) -> Any:
        """Rows calibrated one after another, with what is learned on the way."""
        calibrator, width = Learning(learned.shared), padded(rows.m)
        kept = aligned(PRECISION + 1, width)
        kept[BIAS, : rows.m], kept[PRECISION, : rows.m] = learned.bias, learned.precision
        if isinstance(rows, SparseProbabilities):
            out = np.empty(rows.matrix.nnz)
            pointer = rows.matrix.indptr.astype(np.int64)
            longest = padded(longest_row(rows) + 1)
            ids = np.zeros(longest, dtype=np.int32), np.zeros(rows.m, dtype=np.int32)
            space = (Sparse(*ids), calibrator, aligned(PRECISION + 1, longest), kept)
            _, work, _ = work_space(longest)
        else:
            out = np.empty((rows.n, rows.m))
            _, work, _ = work_space(width)
        for _, block in blocks(rows.n, rows.rows_per_block, order):
            extras = extras_of(labels, block, weights)
            if isinstance(rows, SparseProbabilities):
                where = entries_of(pointer[block], pointer[block + 1])
                part = np.empty(len(where))
                given: Any = (*rows.block(block), *ids_of(labels, block), extras, *space)
                good = int(calibrate_sparse(*given, work, part))
            else:
                where, part = block, np.empty((len(block), rows.m))
                given = (*rows.block(block), *indicators_of(labels, block), extras)
                good = int(calibrate_dense(*given, calibrator, kept, work, part))
            out[where] = part
            if good < len(block):
                raise ValueError(f"eta of {owner} must hold {rows.explain(int(block[good]))}")
        learned.bias[...], learned.precision[...] = kept[BIAS, : rows.m], kept[PRECISION, : rows.m]
        if isinstance(rows, SparseProbabilities):
            matrix = rows.matrix
            return csr((out, matrix.indices, matrix.indptr), matrix.shape, type(matrix))
        return out[:, 0] if rows.vector else out

    def __add__(self, other: Any) -> OnlineCalibrator:
        """What two learned on different rows, together."""
        if not isinstance(other, OnlineCalibrator):
            return NotImplemented
        if self.n_labels != other.n_labels:
            raise ValueError(
                "calibrators can be added for the same number of labels only, got "
                f"{self.n_labels} and {other.n_labels}"
            )
        made = OnlineCalibrator(self.n_labels)
        made._learned = self._learned + other._learned
        return made

    def arrays(self) -> dict[str, Array]:
        """All that was learned, as plain arrays: ``shared``, ``bias`` and ``precision``."""
        return {name: one.copy() for name, one in self._learned.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> OnlineCalibrator:
        """What ``arrays`` gave.

        >>> from omma.calibration import OnlineCalibrator
        >>> calibrator = OnlineCalibrator(3)
        >>> OnlineCalibrator.from_arrays(calibrator.arrays()) == calibrator
        True
        """
        bias = arrays.get("bias")
        if not isinstance(bias, np.ndarray) or bias.ndim != 1:
            raise ValueError("arrays of OnlineCalibrator must have a bias for each label")
        made = cls(len(bias))
        made._learned.restore(arrays)
        return made

    def save(self, path: str | Path) -> None:
        """Write it to a file of plain arrays (.npz)."""
        npz.write(path, self.arrays())

    @classmethod
    def load(cls, path: str | Path) -> OnlineCalibrator:
        """Read what ``save`` wrote; nothing in the file is run."""
        with npz.opened(path, WHAT) as archive:
            names = ("shared", "bias", "precision")
            return cls.from_arrays({one: archive.array(one, kinds="f") for one in names})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OnlineCalibrator):
            return NotImplemented
        mine, others = self._learned.arrays(), other._learned.arrays()
        return all(np.array_equal(mine[name], others[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<OnlineCalibrator of {self.n_labels} labels, {self.rows:g} rows: "
            f"σ({self.slope:.3g}·logit + {self.intercept:.3g} + b_j)>"
        )
