"""A rule: what people deploy. Two numbers a label, and a budget."""

from __future__ import annotations

import json
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._html import html_table
from omma._json import parse_json
from omma._types import Arrays, Decisions, Given, Sparse
from omma._validate import check_budget, check_number, check_positive_int, require, shown
from omma.kernels.calibrate import LARGE
from omma.kernels.layout import LEAST, MOST
from omma.plan import Plan, fixed_plan
from omma.replaying import Sequence, replay
from omma.rows.arrays import DenseProbabilities, read_probabilities
from omma.rows.batch import Batch
from omma.rows.frames import Names, opened, read_names

ENTRIES = 2**16  # decided at once by NumPy: what is worked out on the way stays in the cache
TINY, NEAR_ONE = np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0)


@dataclass(frozen=True, eq=False)
class Rule:
    """Predict label j where ``slope[j] * eta[j] + offset[j] >= 0``, or the k largest of these.

    A rule needs nothing of this library: the formula above is all there is to it, with two
    conventions. A label of probability zero is not a candidate; and equal gains go to the lowest
    label. Slope and offset matter up to one positive factor.

    Parameters
    ----------
    slope, offset : array-like of shape (m,)
    k : int, optional
        Exactly k labels a row; None has no budget.
    matrix : array-like of shape (m, m), optional
        With a cost matrix the gains are ``slope * eta + offset + eta @ matrix``, and every label is
        a candidate.
    names : sequence of str, optional
        The names of the labels. Columns of a frame are then found by name.
    at_most : int, optional
        Up to so many labels a row: of those whose gain is at least 0, the largest.
    calibration : tuple (a, b, b_j), optional
        Probabilities are calibrated first: ``σ(a·logit(eta) + b + b_j)`` takes the place of eta
        where eta is above 0, with eta kept from 1e-12 to 1 - 1e-7; b_j has a number a label.

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
    calibration: tuple[float, float, NDArray[np.float64]] | None = None

    def __post_init__(self) -> None:
        slope, offset = _frozen("slope", self.slope, 1), _frozen("offset", self.offset, 1)
        if len(slope) != len(offset):
            raise ValueError(
                f"slope and offset of Rule must be of one length, got {len(slope)} and "
                f"{len(offset)}"
            )
        check_positive_int("Rule", "k", self.k, optional=True)
        check_budget("Rule", self.k, len(slope))
        object.__setattr__(self, "k", None if self.k is None else int(self.k))
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "offset", offset)
        if self.matrix is not None:
            matrix = _frozen("matrix", self.matrix, 2)
            if matrix.shape != (len(slope), len(slope)) or self.k is None:
                raise ValueError(
                    f"a matrix of Rule needs a budget k and the shape ({len(slope)}, "
                    f"{len(slope)}), got k={self.k} and shape {matrix.shape}"
                )
            object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "names", read_names("Rule", self.names, len(slope)))
        at_most = check_positive_int("Rule", "at_most", self.at_most, optional=True)
        object.__setattr__(self, "at_most", at_most)
        if self.at_most is not None and (self.k is not None or self.at_most > len(slope)):
            raise ValueError(
                f"at_most of Rule goes without k and up to the number of labels, {len(slope)}, got "
                f"at_most={self.at_most} and k={self.k}"
            )
        object.__setattr__(self, "calibration", _calibration(self.calibration, len(slope)))

    @property
    def m(self) -> int:
        """Number of labels."""
        return len(self.slope)

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The probability from which each label is predicted; for rules without a budget.

        Where the slope is zero the offset alone decides: 0 (always) or infinity (never). Where it
        is negative the label is predicted *below* a probability, and the threshold is NaN.
        """
        if self.k is not None:
            raise ValueError(
                f"a rule with a budget (k={self.k}) has no thresholds: it ranks labels by "
                "rule.slope * eta + rule.offset; use rule.predict(eta)"
            )
        if self.calibration is not None:
            return replace(self, at_most=None).folded().thresholds
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = -self.offset / self.slope
        found = np.where(self.slope == 0, np.where(self.offset >= 0, 0.0, np.inf), found)
        found = np.where(self.slope < 0, np.nan, found)
        return found + 0.0  # not minus zero

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
        """The same rule with these names of the labels; None leaves it as it is.

        >>> Rule([1.0, 2.0], [-0.5, -0.2]).named(["sports", "music"]).names
        ('sports', 'music')
        """
        return self if names is None else replace(self, names=tuple(names))

    def folded(self) -> Rule:
        """The same decisions without calibration, where thresholds can take it in.

        A rule that ranks labels needs calibrated probabilities, and stays as it is.

        >>> rule = Rule([1.0], [-0.5], calibration=(2.0, 1.0, [0.0]))
        >>> rule.folded().thresholds.round(4)
        array([0.3775])
        """
        if self.calibration is None or self.k is not None or self.at_most is not None:
            return self
        a, b, own = self.calibration
        low, high = _sigmoid(a * _logit(np.array([[LEAST], [MOST]])) + (b + own))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cut = -self.offset / self.slope
        # Calibration takes what is outside of LEAST and MOST for these: so a cut that lies beyond
        # them lets a label through always, or never. Such a label has no slope.
        sign = np.sign(self.slope)
        always, never = (
            np.where(sign > 0, one, other)
            for one, other in ((low >= cut, high <= cut), (high < cut, low > cut))
        )
        fixed = np.where(always, 0.0, -1.0)
        inside = (sign != 0) & ~always & ~never
        # As near to one as a float gets: a sigmoid that rounds to one is one there.
        at = _sigmoid((_logit(np.clip(np.where(inside, cut, 0.5), TINY, NEAR_ONE)) - b - own) / a)
        offset = np.where(sign == 0, self.offset, np.where(inside, -sign * at, fixed))
        slope = np.where(inside, sign, 0.0)
        return replace(self, slope=slope, offset=offset, calibration=None)

    @overload
    def predict(self, eta: Arrays) -> Decisions: ...
    @overload
    def predict(self, eta: Sparse) -> sparse.csr_array: ...
    @overload
    def predict(self, eta: Given) -> Given: ...

    def predict(self, eta: Any) -> Any:
        """Decide rows of probabilities: (n, m) or one row (m,), or a CSR matrix.

        Returns int8 indicators of the same shape: a sparse matrix where eta is one, a frame with
        the same columns where eta is a frame. If the rule has names, the columns may come in any
        order.
        """
        table = opened("Rule.predict", "eta", eta, self.names, row=self.m > 1)
        return table.close(self._decided(table.values))

    def _decided(self, eta: Any) -> Any:
        single = not hasattr(eta, "tocsr") and np.ndim(eta) == 1 and self.m > 1
        rows = read_probabilities("Rule.predict", np.asarray(eta)[np.newaxis] if single else eta)
        if rows.m != self.m:
            raise ValueError(f"eta of Rule.predict must have {self.m} labels, got {rows.m}")
        predictions, ranked = None, (self.k, self.at_most, self.calibration)
        # Where each label has a cut of its own, and it takes no more than that.
        if isinstance(rows, DenseProbabilities) and all(one is None for one in ranked):
            predictions = _decided_by_thresholds(rows, self.slope, self.offset)
        if predictions is None:  # the kernels also say what is wrong with probabilities
            given = Sequence(Batch(rows))
            predictions = replay("Rule.predict", self.plan, given, timed=False).predictions
        return predictions[0] if single else predictions

    @property
    def plan(self) -> Plan:
        """The rule as the kernels see it."""
        return fixed_plan(
            self.slope,
            self.offset,
            self.k,
            matrix=None if self.matrix is None else np.array(self.matrix),
            at_most=self.at_most,
            calibration=self.calibration,
        )

    def to_json(self) -> str:
        """The rule as JSON; numbers are written so that they read back the same.

        >>> print(Rule([1.0], [-0.5]).to_json())
        {"format": "omma-rule-1", "k": null, "slope": [1.0], "offset": [-0.5]}
        """
        content: dict[str, Any] = {
            "format": "omma-rule-1",
            "k": self.k,
            "slope": self.slope.tolist(),
            "offset": self.offset.tolist(),
        }
        if self.matrix is not None:
            content["matrix"] = self.matrix.tolist()
        if self.names is not None:
            content["names"] = list(self.names)
        if self.at_most is not None:
            content["at_most"] = self.at_most
        if self.calibration is not None:
            a, b, own = self.calibration
            content["calibration"] = [a, b, own.tolist()]
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """Read what ``to_json`` wrote."""
        content = parse_json("text of Rule.from_json", text)
        if not isinstance(content, dict) or content.get("format") != "omma-rule-1":
            raise ValueError(
                'text of Rule.from_json must be an object with "format": "omma-rule-1", got '
                f"{shown(text)}"
            )
        missing = [name for name in ("k", "slope", "offset") if name not in content]
        if missing:
            raise ValueError(f"text of Rule.from_json must have {', '.join(missing)}")
        names = content.get("names")
        if names is not None and not (
            isinstance(names, list) and all(isinstance(name, str) for name in names)
        ):
            raise ValueError(f"names of Rule must be a list of texts, got {shown(names)}")
        return cls(
            content["slope"],
            content["offset"],
            content["k"],
            content.get("matrix"),
            None if names is None else tuple(names),
            content.get("at_most"),
            content.get("calibration"),
        )

    # Where models go: each target is a file of ``omma.export``, imported when it is asked for

    def to_onnx(self, *, dtype: str = "float32", name: str = "omma_rule") -> Any:
        """The rule as an ONNX model: ``eta`` of shape (n, m) in, ``decisions`` (int8) out.

        With k = 1 there is a second output, ``classes``. Gains are computed in double precision
        with the rule's own conventions on ties, so a runtime decides as ``predict`` does.

        Parameters
        ----------
        dtype : {"float32", "float64"}
            That of the probabilities; models tend to give single precision.
        name : str
            That of the graph, for merging with others.

        >>> model = Rule([1.0, 2.0], [-0.5, -0.2]).to_onnx()
        >>> [one.name for one in model.graph.output]
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
        """The rule as a SELECT that decides where the probabilities are.

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

        ``torch.jit.script`` takes it, and it goes where the model goes (``.to(device)``).

        >>> import torch  # doctest: +SKIP
        >>> head = Rule([1.0, 2.0], [-0.5, -0.2]).to_torch()  # doctest: +SKIP
        >>> head(torch.tensor([[0.6, 0.05], [0.4, 0.3]])).tolist()  # doctest: +SKIP
        [[1, 0], [0, 1]]
        """
        require("torch", "Rule.to_torch needs", '"omma[torch]"')
        from omma.export.torch import RuleHead

        return RuleHead(self).eval()

    def to_sklearn(self, estimator: Any, *, pos_label: Any = None) -> Any:
        """The rule on top of a classifier of scikit-learn, trained or not.

        A ``FixedThresholdClassifier`` where the rule is one threshold, for two classes; else an
        ``omma.sklearn.RuledClassifier``.

        >>> from sklearn.linear_model import LogisticRegression
        >>> float(Rule([1.0], [-0.2]).to_sklearn(LogisticRegression()).threshold)
        0.2
        """
        from omma.export.sklearn import classifier_of

        return classifier_of(self, estimator, pos_label=pos_label)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rule):
            return NotImplemented
        if (self.matrix is None) != (other.matrix is None):
            return False
        return (
            self.k == other.k
            and self.names == other.names
            and self.at_most == other.at_most
            and _same_calibration(self.calibration, other.calibration)
            and np.array_equal(self.slope, other.slope)
            and np.array_equal(self.offset, other.offset)
            and (self.matrix is None or np.array_equal(self.matrix, other.matrix))  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.names is not None and self.k is None:
            return self._named_repr()
        show = {"threshold": 6, "edgeitems": 2, "precision": 6}
        slope, offset = (
            np.array2string(values, **show)  # type: ignore[arg-type]
            for values in (self.slope, self.offset)
        )
        budget = "" if self.k is None else f", k={self.k}"
        budget += "" if self.at_most is None else f", at_most={self.at_most}"
        budget += "" if self.calibration is None else ", calibration=…"
        costs = "" if self.matrix is None else ", matrix=…"
        names = "" if self.names is None else f", names={shown(list(self.names))}"
        return f"Rule(slope={slope}, offset={offset}{budget}{costs}{names})"

    def _named_repr(self) -> str:
        """Thresholds by name: what a rule without a budget comes to, calibration included."""
        found = list(self.named_thresholds.items())
        parts = [f"{name!r}: {value:.4g}" for name, value in found]
        shown_parts = parts if len(parts) <= 6 else [*parts[:2], "…", *parts[-2:]]
        bound = "" if self.at_most is None else f", at_most={self.at_most}"
        return f"Rule(thresholds={{{', '.join(shown_parts)}}}{bound})"

    def _repr_html_(self) -> str:
        labels = map(str, range(self.m)) if self.names is None else self.names
        bound = "" if self.at_most is None else f"up to {self.at_most} labels a row"
        if self.k is None:
            cut = zip(labels, self.thresholds.tolist(), strict=True)
            return html_table("Rule", ("label", "threshold"), cut, self.m, bound)
        gains = zip(labels, self.slope.tolist(), self.offset.tolist(), strict=True)
        title = f"Rule: the {self.k} largest of slope · η + offset"
        notes = ", and costs of pairs" if self.matrix is not None else ""
        notes += ", with η calibrated" if self.calibration is not None else ""
        return html_table(title + notes, ("label", "slope", "offset"), gains, self.m)


def _logit(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.log(eta / (1.0 - eta))
    return found


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 1.0 / (1.0 + np.exp(np.minimum(-x, LARGE)))
    return found


def _calibration(given: Any, m: int) -> tuple[float, float, NDArray[np.float64]] | None:
    if given is None:
        return None
    try:
        a, b, own = given
    except (TypeError, ValueError):
        a = b = own = None
    bias = _frozen("calibration", [] if own is None else own, 1)
    if len(bias) != m:
        raise ValueError(
            f"calibration of Rule must be (a, b, b_j) with {m} numbers b_j, got {shown(given)}"
        )
    slope = check_number("Rule", "a of calibration", a, low=0.0, strict=True)
    return slope, check_number("Rule", "b of calibration", b), bias


def _same_calibration(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    return bool(first[:2] == second[:2] and np.array_equal(first[2], second[2]))


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
    array.flags.writeable = False
    return array


def _decided_by_thresholds(
    eta: DenseProbabilities, slope: NDArray[np.float64], offset: NDArray[np.float64]
) -> NDArray[np.int8] | None:
    """Decisions on dense rows without a budget; None where some of eta is no probability.

    Each label is decided by itself, so NumPy does it, with the arithmetic of the kernels: setting
    up a kernel takes as long as deciding a thousand rows.
    """
    flags = np.empty((eta.n, eta.m), dtype=bool)
    step = max(1, ENTRIES // max(1, eta.m))
    for start in range(0, eta.n, step):
        part = np.asarray(eta.array[start : start + step], dtype=np.float64)  # as kernels widen it
        # Whatever is NaN makes both ends NaN, which compare as false.
        if not (part.min() >= 0.0 and part.max() <= 1.0):
            return None
        gains = part * slope
        gains += offset
        chosen = flags[start : start + step]
        np.greater_equal(gains, 0.0, out=chosen)
        chosen &= part > 0.0
    decided = flags.view(np.int8)
    return decided[:, 0] if eta.vector else decided
