"""Pictures in the form of scikit-learn's Displays: the metric by threshold, and reliability."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from omma.calibration import Reliability, reliability
from omma.curves import Curve, curve as curve_of
from omma.metrics import Metric, MetricName, metric as find_metric
from omma.plots import plot_curve, plot_reliability, require_matplotlib
from omma.rows.batch import Batch
from omma.sklearn._problem import read_problem

COLUMNS = 3  # panels side by side, at most


def _read_rows(
    owner: str,
    estimator: Any,
    X: Any,
    y: Any,
    metric: MetricName | str | Metric | None,
    pos_label: Any,
    sample_weight: Any,
) -> Batch:
    """Labels and the estimator's probabilities, or else those in X, with names for panels.

    Without a metric, all classes are read, or of two classes the positive one.
    """
    # All classes of the estimator, if there is one: rows to judge it by may lack some.
    classes = getattr(estimator, "classes_", None)
    if metric is None:
        is_binary = type_of_target(y) == "binary" and (classes is None or len(classes) == 2)
        metric = "f1" if is_binary else "macro_f1"
    problem = read_problem(owner, y, find_metric(metric), classes, pos_label)
    batch = Batch.read(owner, problem.eta(estimator, X), problem.encode(y), sample_weight)
    # Named afterwards: in a batch that is read by names, class ids would be looked up as names.
    return replace(batch, names=problem.names)


class ThresholdCurveDisplay:
    """The metric at every threshold, with a bootstrap band and the best threshold marked.

    Make it by ``from_estimator`` or ``from_predictions``. Macro metrics have a panel for each
    label.

    Parameters
    ----------
    curve : omma.Curve
        What ``omma.curve`` returned.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of them
        The Axes of the picture: one, or one for each panel.
    figure_ : matplotlib Figure
        Their figure.

    See Also
    --------
    omma.curve : The numbers behind the picture.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from omma.sklearn import ThresholdCurveDisplay
    >>> X, y = make_classification(2000, weights=[0.9], random_state=0)
    >>> model = LogisticRegression().fit(X[:1000], y[:1000])
    >>> display = ThresholdCurveDisplay.from_estimator(model, X[1000:], y[1000:], metric="f1")
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('threshold', 'f1, %')
    """

    def __init__(self, curve: Curve) -> None:
        self.curve = curve

    def plot(self, ax: Any = None) -> ThresholdCurveDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, or array or list of them, optional
            Where to draw, an Axes for each line of the curve; default a new figure of pyplot.

        Returns
        -------
        ThresholdCurveDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        require_matplotlib()
        panels = len(self.curve)
        if ax is None:
            # As scikit-learn's own Displays, a figure of pyplot: plt.show() shows it.
            import matplotlib.pyplot as plt

            columns = min(COLUMNS, panels)
            rows = -(-panels // columns)
            size = (3.3 * columns + 1.5, 2.6 * rows + 1.0)  # inches
            figure = plt.figure(figsize=size, layout="constrained")
            ax = [figure.add_subplot(rows, columns, 1 + place) for place in range(panels)]
        self.figure_ = plot_curve(self.curve, ax=ax)
        self.ax_ = np.asarray(ax, dtype=object).ravel()[0] if panels == 1 else np.asarray(ax)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        metric: MetricName | str | Metric | None = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        labels: Any = None,
        bootstrap: int = 200,
        level: float = 0.9,
        seed: int = 0,
        ax: Any = None,
    ) -> ThresholdCurveDisplay:
        """Draw the metric by threshold for a fitted classifier; give it unseen rows.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or indicators of shape (n_samples, n_labels)
        metric : str or omma.Metric, optional
            Of one label, ``macro_`` or ``micro_``; default that of a ``MetricClassifier``, else
            ``"f1"``.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w rows. Weights are not costs: for these, see
            ``omma.metrics.RowCosts``.
        pos_label : int, float, bool or str, optional
            The positive class of two, as of ``MetricClassifier``.
        labels : sequence of int or str, optional
            The labels to draw, of a macro metric; default all.
        bootstrap, level, seed
            Of the band, as of ``omma.curve``.
        ax : matplotlib Axes, or array or list of them, optional
            As of ``plot``.

        Returns
        -------
        ThresholdCurveDisplay

        Raises
        ------
        ValueError
            If the metric has no thresholds, or does not go with y.
        """
        if metric is None:  # a MetricClassifier has a metric of its own
            metric = getattr(estimator, "metric", "f1")
        owner = "ThresholdCurveDisplay.from_estimator"
        rows = _read_rows(owner, estimator, X, y, metric, pos_label, sample_weight)
        curve = curve_of(
            rows, None, metric, labels=labels, bootstrap=bootstrap, level=level, seed=seed
        )
        return cls(curve).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        metric: MetricName | str | Metric = "f1",
        sample_weight: Any = None,
        pos_label: Any = None,
        labels: Any = None,
        bootstrap: int = 200,
        level: float = 0.9,
        seed: int = 0,
        ax: Any = None,
    ) -> ThresholdCurveDisplay:
        """Draw the metric by threshold for probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), or indicators of shape (n_samples, n_labels)
        y_prob : array-like of shape (n_samples,), or (n_samples, n_classes or n_labels)
            The probability of the positive class, or what ``predict_proba`` returned.
        metric, sample_weight, pos_label, labels, bootstrap, level, seed, ax
            As of ``from_estimator``.

        Returns
        -------
        ThresholdCurveDisplay
        """
        owner = "ThresholdCurveDisplay.from_predictions"
        rows = _read_rows(owner, None, y_prob, y_true, metric, pos_label, sample_weight)
        curve = curve_of(
            rows, None, metric, labels=labels, bootstrap=bootstrap, level=level, seed=seed
        )
        return cls(curve).plot(ax)


class ReliabilityDisplay:
    """How often probabilities come true, with two standard errors, and a histogram of them.

    Make it by ``from_estimator`` or ``from_predictions``. All labels of a multi-label problem, or
    all classes, are taken together.

    Parameters
    ----------
    curve : omma.calibration.Reliability
        What ``omma.calibration.reliability`` returned.
    name : str
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of two
        The Axes of the picture.
    figure_ : matplotlib Figure
        Their figure.

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : The same of two classes, without errors and counts.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from omma.sklearn import ReliabilityDisplay
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1000:], y[1000:])
    >>> display.ax_[0].get_ylabel(), display.ax_[1].get_ylabel()
    ('came true, %', 'how many')
    """

    def __init__(self, curve: Reliability, name: str = "probabilities") -> None:
        self.curve = curve
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None) -> ReliabilityDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, or two of them, optional
            Where to draw: on one Axes only how often probabilities come true, on two also the
            histogram. Default a new figure of pyplot.
        name : str, optional
            Another name in the legend.

        Returns
        -------
        ReliabilityDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        require_matplotlib()
        if ax is None:
            import matplotlib.pyplot as plt

            heights = [5, 2]  # of the curve, and of the histogram
            _, ax = plt.subplots(2, 1, figsize=(5.2, 5.6), height_ratios=heights, sharex=True)
        self.figure_ = plot_reliability({name or self.name: self.curve}, ax=ax)
        self.ax_ = ax
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        bins: int = 10,
        strategy: str = "width",
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability of a fitted classifier; give it unseen rows.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or indicators of shape (n_samples, n_labels)
        bins, strategy
            As of ``omma.calibration.reliability``.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w rows. Weights are not costs: for these, see
            ``omma.metrics.RowCosts``.
        pos_label : int, float, bool or str, optional
            The positive class of two, as of ``MetricClassifier``.
        name : str, optional
            The name in the legend; default that of the estimator's class.
        ax : matplotlib Axes, or two of them, optional
            As of ``plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        owner = "ReliabilityDisplay.from_estimator"
        rows = _read_rows(owner, estimator, X, y, None, pos_label, sample_weight)
        curve = reliability(rows, bins=bins, strategy=strategy)
        return cls(curve, name or type(estimator).__name__).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        bins: int = 10,
        strategy: str = "width",
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str = "probabilities",
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), or indicators of shape (n_samples, n_labels)
        y_prob : array-like of shape (n_samples,), or (n_samples, n_classes or n_labels)
            The probability of the positive class, or what ``predict_proba`` returned.
        bins, strategy, sample_weight, pos_label, name, ax
            As of ``from_estimator``.

        Returns
        -------
        ReliabilityDisplay
        """
        owner = "ReliabilityDisplay.from_predictions"
        rows = _read_rows(owner, None, y_prob, y_true, None, pos_label, sample_weight)
        return cls(reliability(rows, bins=bins, strategy=strategy), name).plot(ax)
