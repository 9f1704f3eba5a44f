"""Calibration that learns a row at a time: the part of ``omma.Auto`` that looks at probabilities.

c = σ(a (z − z̄_j) + e z̄_j + b + b_j) for the logit z of η and the mean logit z̄_j of each label, with
a, e and b for all labels and a bias b_j for each. What is learned is plain arrays of a fixed size,
and two of them can be added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma import npz
from omma._validate import check_positive_int, check_seed
from omma.calibration.reliability import Reliability, brier, log_loss, read_sample, reliability
from omma.kernels.calibrate import Learning, Settled
from omma.kernels.calibration_rows import calibrate_dense, calibrate_sparse
from omma.kernels.layout import BIAS, ENTRIES, WORK
from omma.kernels.replay import Sparse
from omma.rows.arrays import (
    SparseProbabilities,
    blocks,
    csr,
    read_probabilities,
    read_weights,
)
from omma.rows.batch import Batch, read_labelled
from omma.rows.frames import open_table
from omma.state import aligned, padded
from omma.state_parts import Calibration, check_array

WHAT = "omma calibrator"
Array = NDArray[Any]


@dataclass(frozen=True)
class Scores:
    """Scores of probabilities; lower is better.

    Attributes
    ----------
    log_loss, brier, expected_error : float
        As the functions of the same names in ``omma.calibration`` give them.
    """

    log_loss: float
    brier: float
    expected_error: float


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Probabilities before and after calibration, each row calibrated by those before it.

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
        before, after = self.before, self.after
        return (
            f"<calibrated: log-loss {before.log_loss:.4f} → {after.log_loss:.4f}, "
            f"Brier {before.brier:.4f} → {after.brier:.4f}, "
            f"calibration error {before.expected_error:.4f} → {after.expected_error:.4f}>"
        )


class OnlineCalibrator:
    """Calibrates probabilities by the labels seen so far.

    This is what ``omma.Auto`` does with probabilities before it decides, with the same numbers.
    Until the first label comes, probabilities pass as they are. A label of probability zero stays
    there: it is no candidate. Memory does not grow with the number of rows.

    Parameters
    ----------
    n_labels : int
        The number of labels, or of classes, each of which is calibrated as a label of its own.
    classes : bool
        Whether each row has one class. Logits of labels beyond 6 are squashed; those of classes are
        taken as they are, as a softmax over many classes gives small ones.

    Examples
    --------
    >>> import omma
    >>> from omma.calibration import OnlineCalibrator
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> wrong = eta ** 3  # far too low
    >>> calibrator = OnlineCalibrator(20)
    >>> result = calibrator.replay(wrong, y)
    >>> result.after.log_loss < 0.8 * result.before.log_loss
    True
    >>> calibrator.predict(wrong).shape
    (2000, 20)
    """

    def __init__(self, n_labels: int, *, classes: bool = False) -> None:
        m: int = check_positive_int("OnlineCalibrator", "n_labels", n_labels)
        self._learned = Calibration.start(m, classes=classes)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self._learned.bias)

    @property
    def slope(self) -> float:
        """The slope a within labels: above one where probabilities were too timid."""
        return self._learned.slope

    @property
    def between(self) -> float:
        """The slope e of the mean logits of labels."""
        return self._learned.between

    @property
    def intercept(self) -> float:
        """The shift b of the logits of all labels."""
        return self._learned.intercept

    @property
    def bias(self) -> NDArray[np.float64]:
        """The further shift b_j of the logits of each label."""
        return np.array(self._learned.bias)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean logit z̄_j of the probabilities of each label; 0 where there was none."""
        return np.array(self._learned.mean)

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
        table = open_table(owner, "eta", eta, row=self.n_labels > 1)
        calibrated, _ = self._run(owner, self._read(owner, table.values), Settled)
        return table.restore_type(calibrated[0] if self._is_row(table.values) else calibrated)

    def update(self, eta: Any, y: Any, weight: float | ArrayLike | None = None) -> None:
        """Learn from a row and its labels, or from several rows one after another.

        Parameters
        ----------
        eta : array-like of shape (m,), or rows as ``predict`` takes them
            Probabilities as they came, not calibrated.
        y : indicators in the shape of eta, a class id for each row, or None
            None is a row whose labels are not known, NaN a label that is not: only the mean logits
            follow it.
        weight : float or array-like, optional
            A row of weight w counts as w rows.
        """
        owner = "OnlineCalibrator.update"
        batch = self._read(owner, eta, y)
        if weight is not None and np.ndim(weight) == 0:
            weight = np.full(batch.n, weight)
        weights = read_weights(owner, weight, batch.n, "weight")
        # Where one of the rows is wrong, ``_run`` raises and nothing is learned.
        _, self._learned = self._run(owner, replace(batch, weights=weights), Learning)

    def replay(
        self,
        eta: Any,
        y: Any,
        *,
        weights: ArrayLike | None = None,
        seed: int | None = None,
        bins: int = 10,
    ) -> Calibrated:
        """Calibrate each row by all that was learned before it, then learn from its labels.

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
        if self._is_row(eta):
            raise ValueError(f"eta of {owner} must be rows of probabilities, at least one")
        check_positive_int(owner, "bins", bins)
        self._check_width(owner, eta)
        batch = read_labelled(owner, eta, y, weights)
        # What is refused here is not learned.
        before, curve_before = self._scores(owner, batch, bins)
        if seed is None:
            calibrated, self._learned = self._run(owner, batch, Learning)
        else:
            order = np.random.default_rng(seed).permutation(batch.n)
            in_order, self._learned = self._run(owner, batch.take(order), Learning)
            calibrated = in_order[np.argsort(order)]
        by_others = replace(batch, eta=read_probabilities(owner, calibrated))
        after, curve_after = self._scores(owner, by_others, bins)
        curves = {"as given": curve_before, "calibrated": curve_after}
        return Calibrated(batch.restore_type(calibrated), before, after, curves)

    @staticmethod
    def _scores(owner: str, rows: Batch, bins: int) -> tuple[Scores, Reliability]:
        """The scores of rows of probabilities with labels, and their reliability curve."""
        sample = read_sample(owner, rows, None, None)
        curve = reliability(sample, bins=bins)
        return Scores(log_loss(sample), brier(sample), curve.expected_error), curve

    def _read(self, owner: str, eta: Any, y: Any = None) -> Batch:
        """Read rows, or a single one as a batch of one, and their labels if there are any."""
        # Kernels take blocks: a single row is a block of one.
        if self._is_row(eta):
            eta = np.asarray(open_table(owner, "eta", eta).values)[np.newaxis]
            # Labels of a row come without a dimension for rows, as its probabilities do.
            if y is not None and not hasattr(y, "tocsr"):
                y = np.asarray(open_table(owner, "y", y).values)[np.newaxis]
        self._check_width(owner, eta)
        return Batch.read(owner, eta, y)

    def _is_row(self, eta: Any) -> bool:
        """Whether probabilities are a single row."""
        return not hasattr(eta, "tocsr") and np.ndim(eta) == (1 if self.n_labels > 1 else 0)

    def _check_width(self, owner: str, rows: Any) -> None:
        """Refuse rows of another number of labels."""
        m = np.shape(rows)[1] if np.ndim(rows) == 2 else 1
        if m != self.n_labels:
            raise ValueError(f"eta of {owner} must have {self.n_labels} labels, got {m}")

    def _run(
        self, owner: str, batch: Batch, kind: type[Learning | Settled]
    ) -> tuple[Any, Calibration]:
        """Calibrate rows one after another; returns them, and what is then learned.

        A calibrator that is ``Settled`` learns nothing.
        """
        rows, m, own = batch.eta, batch.m, self._learned
        # What is learned goes into a copy: its numbers of each label are columns, as in a state.
        table = aligned(ENTRIES + 1, padded(m))
        table[BIAS:, :m] = own.bias, own.precision, own.mean, own.entries
        learned = Calibration(own.shared.copy(), *table[BIAS:, :m])
        calibrator = kind(learned.shared)
        if isinstance(rows, SparseProbabilities):
            out, pointer = np.empty(rows.matrix.nnz), rows.matrix.indptr
            # A sparse row is gathered into columns of its own, a dense one uses those of the table.
            width = padded(batch.longest + 1)
            columns = aligned(ENTRIES + 1, width)
            ids = Sparse(np.zeros(width, dtype=np.int32), np.zeros(m, dtype=np.int32))
        else:
            out, width = np.empty((rows.n, m)), padded(m)
        work = aligned(WORK, width)
        for start, block in blocks(rows.n, rows.rows_per_block, None):
            stop = start + len(block)
            arrays = (*batch.block(block, is_sparse=batch.is_sparse), batch.extras(block))
            if batch.is_sparse:
                part = out[pointer[start] : pointer[stop]]
                good = calibrate_sparse(*arrays, ids, calibrator, columns, table, work, part)
            else:
                good = calibrate_dense(*arrays, calibrator, table, work, out[start:stop])
            if good < len(block):
                raise ValueError(f"eta of {owner} must hold {rows.explain(start + good)}")
        if isinstance(rows, SparseProbabilities):
            matrix = rows.matrix
            return csr((out, matrix.indices, matrix.indptr), matrix.shape, type(matrix)), learned
        return (out[:, 0] if rows.vector else out), learned

    def __add__(self, calibrator: Any) -> OnlineCalibrator:
        """Combine what two calibrators learned on different rows."""
        if not isinstance(calibrator, OnlineCalibrator):
            return NotImplemented
        if self.n_labels != calibrator.n_labels:
            raise ValueError(
                "calibrators can be added for the same number of labels only, got "
                f"{self.n_labels} and {calibrator.n_labels}"
            )
        if self._learned.curve[-1] != calibrator._learned.curve[-1]:
            raise ValueError("a calibrator of classes and one of labels cannot be added")
        total = OnlineCalibrator(self.n_labels)
        total._learned = self._learned.combined(calibrator._learned, 1.0)
        return total

    def arrays(self) -> dict[str, Array]:
        """All that was learned, as plain arrays, one for all labels and others for each."""
        return {name: array.copy() for name, array in vars(self._learned).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> OnlineCalibrator:
        """Make a calibrator of what ``arrays`` returned.

        >>> from omma.calibration import OnlineCalibrator
        >>> calibrator = OnlineCalibrator(3)
        >>> OnlineCalibrator.from_arrays(calibrator.arrays()) == calibrator
        True
        """
        bias = arrays.get("bias")
        if not isinstance(bias, np.ndarray) or bias.ndim != 1:
            raise ValueError("arrays of OnlineCalibrator must have a bias for each label")
        calibrator = cls(len(bias))
        for name, array in vars(calibrator._learned).items():
            check_array(name, arrays.get(name), array.shape)
            array[...] = arrays[name]
        calibrator._learned.check()
        return calibrator

    def save(self, path: str | Path) -> None:
        """Write it to a file of plain arrays (.npz)."""
        npz.write(path, self.arrays())

    @classmethod
    def load(cls, path: str | Path) -> OnlineCalibrator:
        """Read what ``save`` wrote; nothing in the file is run."""
        with npz.opened(path, WHAT) as archive:
            names = [name for name in vars(Calibration.start(0)) if name in archive]
            return cls.from_arrays({name: archive.array(name, kinds="f") for name in names})

    def __eq__(self, calibrator: object) -> bool:
        if not isinstance(calibrator, OnlineCalibrator):
            return NotImplemented
        # Two calibrators differ in nothing but what they learned.
        mine, theirs = vars(self._learned), vars(calibrator._learned)
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<OnlineCalibrator of {self.n_labels} labels, {self.rows:g} rows: "
            f"σ({self.slope:.3g}·(z - z̄_j) + {self.between:.3g}·z̄_j + {self.intercept:.3g} + b_j)>"
        )
