"""A rule to deploy: a slope and an offset for each label, and a budget."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence as Several
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._html import html_table
from omma._json import parse_json
from omma._types import Arrays, Decisions, Frame, SparseMatrix
from omma._validate import check_budget, check_number, check_positive_int, require, shown
from omma.engine import Engine
from omma.kernels.calibrate import STRAIGHT
from omma.kernels.layout import LEAST, MOST
from omma.plan import Plan, fixed_plan
from omma.rows.arrays import Probabilities, SparseProbabilities, read_probabilities
from omma.rows.batch import Batch
from omma.rows.frames import Names, open_table, read_names
from omma.state_parts import Curve

FORMAT = "omma-rule-1"
# Entries of eta up to which NumPy decides: starting a kernel takes longer, above all the first one.
SMALL = 2**14
TINY, NEAR_ONE = np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0)
LEAST_LOGIT = -27.7  # just below that of LEAST


@dataclass(frozen=True, eq=False)
class Rule:
    """Predict label j if ``slope[j] * eta[j] + offset[j] >= 0``, or the k labels with the largest.

    A rule is plain data and can be used without this library. Besides the formula there are two
    conventions: a label of probability zero is not a candidate, and ties go to the lowest label.
    A common positive factor of slope and offset changes nothing. They are α and −β of the paper, in
    Eq. (5) for one label and in Eq. (6) for many.

    Parameters
    ----------
    slope, offset : array-like of shape (m,)
    k : int, optional
        Exactly k labels per row; None has no budget.
    matrix : array-like of shape (m, m), optional
        A cost matrix: gains are ``slope * eta + offset + eta @ matrix``, and every label is a
        candidate.
    names : sequence of str, optional
        The names of the labels. Columns of a frame are then matched by name.
    at_most : int, optional
        Up to this number of labels per row: those with the largest gains that are at least 0.
    calibration : tuple (a, b, b_j) or (a, b, b_j, s), optional
        Calibrate probabilities first: replace eta above 0 by ``σ(a·z + b + b_j)`` with
        z = logit(eta), and eta clipped to the range from 1e-12 to 1 - 1e-7. b_j has one number per
        label; from a calibrator it contains (e - a)·z̄_j, too (docs/calibration.md). With s,
        logits beyond s are compressed first: z becomes z·r·(2 - r), r = s / max(abs(z), s).

    Examples
    --------
    >>> from omma import Rule
    >>> rule = Rule(slope=[1.0, 2.0], offset=[-0.5, -0.2])
    >>> rule.predict([[0.6, 0.05], [0.4, 0.3]])
    array([[1, 0],
           [0, 1]], dtype=int8)
    >>> rule.thresholds
    array([0.5, 0.1])
    >>> Rule.from_json(rule.to_json()) == rule
    True
    """

    slope: NDArray[np.float64]
    offset: NDArray[np.float64]
    k: int | None = None
    matrix: NDArray[np.float64] | None = None
    names: Names | None = None
    at_most: int | None = None
    calibration: tuple[float, float, NDArray[np.float64]] | Curve | None = None

    def __post_init__(self) -> None:
        slope, offset = _frozen("slope", self.slope, 1), _frozen("offset", self.offset, 1)
        m = len(slope)
        if m != len(offset):
            raise ValueError(
                f"slope and offset of Rule must be of one length, got {m} and {len(offset)}"
            )
        k = check_positive_int("Rule", "k", self.k, optional=True)
        check_budget("Rule", k, m)
        at_most = check_positive_int("Rule", "at_most", self.at_most, optional=True)
        if at_most is not None and (k is not None or at_most > m):
            raise ValueError(
                f"at_most of Rule must be at most {m}, the number of labels, and without k, got "
                f"at_most={at_most} and k={k}"
            )
        matrix = None if self.matrix is None else _frozen("matrix", self.matrix, 2)
        if matrix is not None and (matrix.shape != (m, m) or k is None):
            raise ValueError(
                f"a matrix of Rule needs a budget k and the shape ({m}, {m}), got k={k} and shape "
                f"{matrix.shape}"
            )
        # A frozen dataclass has no other way to replace what was passed by what was read of it.
        self.__dict__.update(
            slope=slope,
            offset=offset,
            k=k,
            matrix=matrix,
            names=read_names("Rule", self.names, m),
            at_most=at_most,
            calibration=_read_calibration(self.calibration, m),
        )

    @property
    def m(self) -> int:
        """Number of labels."""
        return len(self.slope)

    @property
    def curve(self) -> Curve | None:
        """The calibration as (a, b, b_j, s), whether or not it squashes logits; None without one.

        >>> Rule([1.0], [-0.5], calibration=(2.0, 1.0, [0.5])).curve
        (2.0, 1.0, array([0.5]), 1000.0)
        """
        if self.calibration is None:
            return None
        a, b, biases = self.calibration[:3]
        return a, b, biases, self.calibration[3] if len(self.calibration) == 4 else STRAIGHT

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The probability from which on each label is predicted; for rules without a budget.

        If the slope is zero, the threshold is 0 (always predicted) or infinity (never). If it is
        negative, the label is predicted *below* a probability, and the threshold is NaN.
        """
        if self.k is not None:  # whether a label is predicted depends on the others
            raise ValueError(
                f"a rule with a budget (k={self.k}) has no thresholds: it ranks labels by "
                "rule.slope * eta + rule.offset; use rule.predict(eta)"
            )
        if self.calibration is not None:
            return replace(self, at_most=None).folded().thresholds
        without_slope = np.where(self.offset >= 0, 0.0, np.inf)
        thresholds = np.where(self.slope == 0, without_slope, self._zero_gain)
        return np.where(self.slope < 0, np.nan, thresholds) + 0.0  # not minus zero

    @property
    def _zero_gain(self) -> NDArray[np.float64]:
        """The probability of gain zero: where slope * eta + offset changes its sign."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return -self.offset / self.slope

    @property
    def named_thresholds(self) -> dict[str, float]:
        """The threshold of each label by its name.

        >>> Rule([1.0, 2.0], [-0.5, -0.2], names=["sports", "music"]).named_thresholds
        {'sports': 0.5, 'music': 0.1}
        """
        if self.names is None:
            raise ValueError(
                "named_thresholds of Rule needs names, and this rule has none: use "
                "rule.named([...]), or rule.thresholds"
            )
        return dict(zip(self.names, self.thresholds.tolist(), strict=True))

    def named(self, names: Several[str] | None) -> Rule:
        """The same rule with these names of the labels; None changes nothing.

        >>> Rule([1.0, 2.0], [-0.5, -0.2]).named(["sports", "music"]).names
        ('sports', 'music')
        """
        return self if names is None else replace(self, names=tuple(names))

    def folded(self) -> Rule:
        """The same decisions without calibration, if thresholds can express it.

        A rule that ranks labels needs calibrated probabilities, and is not changed.

        >>> rule = Rule([1.0], [-0.5], calibration=(2.0, 1.0, [0.0]))
        >>> rule.folded().thresholds.round(4)
        array([0.3775])
        """
        curve = self.curve
        if curve is None or self.k is not None or self.at_most is not None:
            return self  # nothing to fold, or gains are compared and not only their signs
        from scipy.special import expit, logit  # late: nothing else of a rule needs it

        a, b, biases, s = curve
        # Calibration rises with eta, which it takes for LEAST or MOST where it is beyond them.
        low, high = expit(a * squashed(logit(np.array([[LEAST], [MOST]])), s) + (b + biases))
        cut, is_rising = self._zero_gain, self.slope > 0
        # A cut outside of what calibration gives lets a label through always, or never.
        always = np.where(is_rising, low >= cut, high <= cut)
        never = np.where(is_rising, high < cut, low > cut)
        inside = (self.slope != 0) & ~always & ~never
        # As near to one as a float gets: a sigmoid that rounds to one is one there.
        calibrated = np.clip(np.where(inside, cut, 0.5), TINY, NEAR_ONE)
        squashed_logit = (logit(calibrated) - b - biases) / a
        size = np.abs(squashed_logit)
        # The inverse of 2 s − s² / |z|; rounding may leave a size of 2 s, where it has none.
        unsquashed = s * s / np.maximum(2.0 * s - size, s * s / -LEAST_LOGIT)
        threshold = expit(np.where(size > s, np.sign(squashed_logit) * unsquashed, squashed_logit))
        slope = np.where(inside, np.sign(self.slope), 0.0)
        fixed = np.where(self.slope == 0, self.offset, np.where(always, 0.0, -1.0))
        offset = np.where(inside, -slope * threshold, fixed)
        return replace(self, slope=slope, offset=offset, calibration=None)

    @overload
    def predict(self, eta: Arrays) -> Decisions: ...
    @overload
    def predict(self, eta: SparseMatrix) -> sparse.csr_array: ...
    @overload
    def predict(self, eta: Frame) -> Frame: ...

    def predict(self, eta: Any) -> Any:
        """Decide rows of probabilities: (n, m) or one row (m,), or a CSR matrix.

        Returns int8 indicators of the same shape and type: array, sparse matrix or frame. If the
        rule has names, the columns of a frame may be in any order.
        """
        table = open_table("Rule.predict", "eta", eta, self.names, row=self.m > 1)
        eta = table.values
        is_row = not hasattr(eta, "tocsr") and np.ndim(eta) == 1 and self.m > 1
        rows = read_probabilities("Rule.predict", np.asarray(eta)[np.newaxis] if is_row else eta)
        if rows.m != self.m:
            raise ValueError(f"eta of Rule.predict must have {self.m} labels, got {rows.m}")
        decisions = self._decide_few(rows)
        if decisions is None:
            engine = Engine.start(self.plan, self.m)
            decisions = engine.replay("Rule.predict", Batch(rows)).predictions
        return table.restore_type(decisions[0] if is_row else decisions)

    def _decide_few(self, rows: Probabilities) -> NDArray[np.int8] | None:
        """Decide a few dense rows by thresholds; None for all else, which kernels decide."""
        has_thresholds = self.k is None and self.at_most is None and self.calibration is None
        is_small = 0 < rows.n * rows.m <= SMALL
        if isinstance(rows, SparseProbabilities) or not (has_thresholds and is_small):
            return None
        eta = np.asarray(rows.array, dtype=np.float64)  # the kernels widen it, too
        if not (eta.min() >= 0.0 and eta.max() <= 1.0):  # also NaN: the kernels say what is wrong
            return None
        decisions = ((eta * self.slope + self.offset >= 0.0) & (eta > 0.0)).astype(np.int8)
        return decisions[:, 0] if rows.vector else decisions

    @property
    def plan(self) -> Plan:
        """The rule as the kernels see it."""
        return fixed_plan(
            self.slope,
            self.offset,
            self.k,
            matrix=None if self.matrix is None else np.array(self.matrix),
            at_most=self.at_most,
            calibration=self.curve,
        )

    def to_json(self) -> str:
        """The rule as JSON. Numbers keep their full precision.

        >>> print(Rule([1.0], [-0.5]).to_json())
        {"format": "omma-rule-1", "k": null, "slope": [1.0], "offset": [-0.5]}
        """
        return json.dumps(self._content())

    def _content(self) -> dict[str, Any]:
        """The rule as plain numbers and text; options that are None have no entry."""
        optional = {
            "matrix": None if self.matrix is None else self.matrix.tolist(),
            "names": None if self.names is None else list(self.names),
            "at_most": self.at_most,
            "calibration": None,
        }
        if self.calibration is not None:
            a, b, biases, *squash = self.calibration
            optional["calibration"] = [a, b, biases.tolist(), *squash]
        return {
            "format": FORMAT,
            "k": self.k,
            "slope": self.slope.tolist(),
            "offset": self.offset.tolist(),
            **{name: value for name, value in optional.items() if value is not None},
        }

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """Read what ``to_json`` wrote."""
        content = parse_json("text of Rule.from_json", text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(
                f'text of Rule.from_json must be an object with "format": "{FORMAT}", got '
                f"{shown(text)}"
            )
        missing = [name for name in ("k", "slope", "offset") if name not in content]
        if missing:
            raise ValueError(f"text of Rule.from_json must have {', '.join(missing)}")
        # Fields are called as in the JSON, and the class checks them.
        fields: Any = {field.name: content.get(field.name) for field in dataclasses.fields(cls)}
        return cls(**fields)

    # Exports: each target is a file of ``omma.export``, imported when it is used

    def to_onnx(self, *, dtype: str = "float32", name: str = "omma_rule") -> Any:
        """The rule as an ONNX model: ``eta`` of shape (n, m) in, ``decisions`` (int8) out.

        With k = 1 there is a second output, ``classes``. The model computes gains in double
        precision and breaks ties like ``predict``, so its decisions are the same.

        Parameters
        ----------
        dtype : {"float32", "float64"}
            The type of the probabilities; most models return single precision.
        name : str
            The name of the graph, for merging with others.

        >>> model = Rule([1.0, 2.0], [-0.5, -0.2]).to_onnx()
        >>> [output.name for output in model.graph.output]
        ['decisions']
        """
        from omma.export.onnx import model_of

        return model_of(self, dtype=dtype, name=name)

    def to_sql(
        self,
        dialect: str,
        *,
        table: str = "probabilities",
        layout: str = "long",
        row_id: str = "id",
        label: str = "label",
        eta: str = "eta",
        columns: Several[str] | None = None,
    ) -> str:
        """The rule as a SELECT statement that decides in the database.

        Parameters
        ----------
        dialect : {"postgresql", "duckdb", "spark", "bigquery", "sqlite"}
        table : str
            The table of probabilities; dots separate schema and table.
        layout : {"long", "wide"}
            A row for each (id, label, eta), of which those not stored are zero: the query returns
            (id, label) of what is predicted. Or, without a budget, a column of probabilities for
            each label: the query returns the same columns with 0 and 1.
        row_id, label, eta : str
            Names of columns. Labels are the rule's names, or else numbers from 0 on.
        columns : sequence of str, optional
            Those of the wide layout, in the order of the labels (default: the rule's names).

        >>> print(Rule([1.0], [-0.5]).to_sql("duckdb", layout="wide"))
        SELECT
          "id",
          CASE WHEN "eta" > 0 AND CAST(1.0e0 AS DOUBLE) * CAST("eta" AS DOUBLE) + CAST(-0.5e0 AS DOUBLE) >= 0 THEN 1 ELSE 0 END AS "eta"
        FROM "probabilities"
        """  # noqa: E501
        from omma.export.sql import query_of

        return query_of(self, dialect, table, layout, row_id, label, eta, columns)

    def to_torch(self) -> Any:
        """The rule as an ``nn.Module``: probabilities in, int8 indicators of their shape out.

        It can be scripted by ``torch.jit.script`` and moved by ``.to(device)``.

        >>> import torch  # doctest: +SKIP
        >>> head = Rule([1.0, 2.0], [-0.5, -0.2]).to_torch()  # doctest: +SKIP
        >>> head(torch.tensor([[0.6, 0.05], [0.4, 0.3]])).tolist()  # doctest: +SKIP
        [[1, 0], [0, 1]]
        """
        require("torch", "Rule.to_torch needs", '"omma-learn[torch]"')
        from omma.export.torch import RuleHead

        return RuleHead(self).eval()

    def to_sklearn(self, estimator: Any, *, pos_label: Any = None) -> Any:
        """A scikit-learn classifier that decides by the rule, around an estimator, trained or not.

        It is a ``FixedThresholdClassifier`` if the rule is one threshold for two classes, and
        otherwise an ``omma.sklearn.RuledClassifier``.

        >>> from sklearn.linear_model import LogisticRegression
        >>> float(Rule([1.0], [-0.2]).to_sklearn(LogisticRegression()).threshold)
        0.2
        """
        from omma.export.sklearn import classifier_of

        return classifier_of(self, estimator, pos_label=pos_label)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rule):
            return NotImplemented
        return self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.names is not None and self.k is None:  # its thresholds say it all
            at_most = "" if self.at_most is None else f", at_most={self.at_most}"
            cuts = [f"{name!r}: {value:.4g}" for name, value in self.named_thresholds.items()]
            cuts = cuts if len(cuts) <= 6 else [*cuts[:2], "…", *cuts[-2:]]
            return f"Rule(thresholds={{{', '.join(cuts)}}}{at_most})"
        show: Any = {"threshold": 6, "edgeitems": 2, "precision": 6}
        slope, offset = (np.array2string(part, **show) for part in (self.slope, self.offset))
        options = {
            "k": self.k,
            "at_most": self.at_most,
            "calibration": None if self.calibration is None else "…",
            "matrix": None if self.matrix is None else "…",
            "names": None if self.names is None else shown(list(self.names)),
        }
        parts = [f", {name}={value}" for name, value in options.items() if value is not None]
        return f"Rule(slope={slope}, offset={offset}{''.join(parts)})"

    def _repr_html_(self) -> str:
        labels = map(str, range(self.m)) if self.names is None else self.names
        bound = "" if self.at_most is None else f"up to {self.at_most} labels a row"
        if self.k is None:
            cuts = zip(labels, self.thresholds.tolist(), strict=True)
            return html_table("Rule", ("label", "threshold"), cuts, self.m, bound)
        gains = zip(labels, self.slope.tolist(), self.offset.tolist(), strict=True)
        title = f"Rule: the {self.k} largest of slope · η + offset"
        notes = ", and costs of pairs" if self.matrix is not None else ""
        notes += ", with η calibrated" if self.calibration is not None else ""
        return html_table(title + notes, ("label", "slope", "offset"), gains, self.m)


def simple_rule(k: int | None, m: int, at_most: int | None = None) -> Rule:
    """The rule before anything is known: the threshold 0.5, or the k most probable of m labels."""
    return Rule(np.ones(m), np.full(m, -0.5 if k is None else 0.0), k, at_most=at_most)


def squashed(logits: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    """Squash logits beyond s, as kernels do: z becomes z·r·(2 − r), r = s / max(abs(z), s).

    >>> squashed(np.array([-3.0, 9.0]), 6.0)
    array([-3.,  8.])
    """
    r = s / np.maximum(np.abs(logits), s)
    return np.asarray(logits * (r * (2.0 - r)))


def calibrated(eta: Any, curve: Curve) -> Any:
    """Probabilities (n, m), calibrated as kernels do it; a CSR matrix stays one.

    >>> calibrated(np.array([[0.0, 0.5]]), (2.0, 1.0, np.zeros(2), 1000.0)).round(2)
    array([[0.  , 0.73]])
    """
    from scipy.special import expit, logit  # late, as in ``folded``

    a, b, biases, s = curve
    if sparse.issparse(eta):
        matrix = eta.copy()
        matrix.data = calibrated(eta.data, (a, b, biases[eta.indices], s))
        return matrix
    values = np.asarray(eta, dtype=np.float64)
    logits = squashed(logit(np.clip(values, LEAST, MOST)), s)
    # A label of probability zero stays there: it is no candidate.
    return np.where(values > 0.0, expit(a * logits + b + biases), 0.0)


def _read_calibration(calibration: Any, m: int) -> Any:
    if calibration is None:
        return None
    parts = tuple(calibration) if isinstance(calibration, Iterable) else ()
    biases = _frozen("calibration", parts[2], 1) if len(parts) in (3, 4) else ()
    if len(biases) != m:
        raise ValueError(
            f"calibration of Rule must be (a, b, b_j) or (a, b, b_j, s) with {m} numbers b_j, got "
            f"{shown(calibration)}"
        )
    a = check_number("Rule", "a of calibration", parts[0], low=0.0, strict=True)
    b = check_number("Rule", "b of calibration", parts[1])
    name = "s of calibration"
    return a, b, biases, *(check_number("Rule", name, s, low=0.0, strict=True) for s in parts[3:])


def _frozen(name: str, values: ArrayLike, ndim: int) -> NDArray[np.float64]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # text, rows of several lengths, 10**400
        array = np.empty(0)
    if array.ndim != ndim or not array.size or not np.isfinite(array).all():
        raise ValueError(
            f"{name} of Rule must be finite numbers in {ndim} dimension{'s' * (ndim > 1)}, got "
            f"{shown(values)}"
        )
    array.flags.writeable = False  # a rule that was handed out never changes
    return array
