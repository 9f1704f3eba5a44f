"""A classifier whose decisions maximize a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _raise_for_params

from omma._types import Feedback
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.metrics.scoring import check_zero_division
from omma.sklearn._checks import checked, is_prefit, policy_of, route, vector
from omma.sklearn._deciding import History
from omma.sklearn._going_on import GoesOn
from omma.sklearn._passes import find_rule
from omma.sklearn._probabilities import probabilities, trained
from omma.sklearn._target import LABELS, OWNER, read_target


class MetricClassifier(GoesOn, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with the decisions that maximize a metric, for any kind of problem.

    It is to every metric and task what ``TunedThresholdClassifierCV`` is to binary problems.
    ``fit`` takes probabilities by cross-validation, runs ``omma.Auto`` over them once, lets the
    rule settle, and keeps the best it saw; then the estimator is trained on all rows. ``predict``
    applies the rule and changes nothing. ``partial_fit`` and ``step`` go on learning, row by row.

    Probabilities that are too bold, too timid or too high are calibrated on the way, and the rule
    has that in it. Where labels are decided by cuts of their own (two classes; macro metrics of
    labels, without a budget), the best cut of each of 30 drawings of the rows is looked for as
    well, and the rule takes as many rows as these do in the mean: half way to what calibration
    says, unless the cuts do better on rows that their drawings left out.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Trained or not. A ``FrozenEstimator`` is taken as it is.
    metric : str or omma.Metric, default="macro_f1"
        What to maximize. Names mean what they mean in scikit-learn: for two classes, ``"f1"`` is
        that of the positive class, ``pos_label``, and ``"macro_f1"`` the mean over both.
    k : int, optional
        For multi-label problems, exactly so many labels a row. None has no such budget.
    at_most : int, optional
        For multi-label problems, the labels that gain, but no more than so many a row; without k.
    feedback : {"labels", "estimates", "both"}, optional
        By default ``omma.Auto`` makes the rule, which needs no choice. Given, ``omma.OMMA`` does,
        and counts true labels, probabilities in their place, or both.
    prior : float, optional
        λ of ``omma.OMMA``, added to each cell of each label's counts where the rule is made; 1e-6
        where only ``feedback`` is given.
    subject_to : str, omma.Limit, or list of these, optional
        What must hold while the metric is maximized: ``"precision >= 0.9"``, ``"recall[spam] >=
        0.8"``, ``omma.at_most("labels_per_row", 2)``. The rule that is kept meets it on the rows
        given to ``fit``, and as it was chosen by them, other rows scatter about the bound;
        ``omma.at_least("precision", 0.9, margin=1.28)`` stays so many standard errors away.
    cv : int, splitter, iterable or "prefit", optional
        How rows are split to get probabilities of unseen ones; None is 5 folds, stratified where
        classes are predicted. ``"prefit"`` takes a trained estimator as it is: give ``fit`` rows
        that it was not trained on.
    refit : bool, default=True
        Whether to train the estimator on all rows in the end. False needs ``cv`` of one split, and
        keeps the estimator trained on it.
    random_state : int, RandomState or None, default=0
        What ``fit`` draws from: the order of the rows in the online pass, and the drawings of rows
        by which cuts are tuned. With an int every ``fit`` on the same rows is the same; with
        None, NumPy's global generator is drawn from, and rule and predictions may differ a little
        from run to run. ``estimator`` and ``cv`` have a ``random_state`` of their own, that this
        one does not touch; ``partial_fit``, ``step`` and ``predict`` draw nothing.
    pos_label : int, float, bool or str, optional
        The positive one of two classes, for metrics of one label such as ``"f1"``. None is 1 where
        classes are 0 and 1, -1 and 1, or False and True, and is refused for others, such as text.
        For metrics of both classes it changes nothing.
    zero_division : float, default=0.0
        What a rate of 0/0 is worth where rules are compared, and in ``value_``. NaN leaves labels
        out whose rate is one, as scikit-learn does.
    n_jobs : int, optional
        How many folds are trained at a time; -1 is all cores. None is 1, unless in a
        ``joblib.parallel_config``.
    verbose : int, default=0
        From 1 on joblib reports folds as they are done; the higher, the more often.

    Attributes
    ----------
    estimator_ : estimator
        The trained estimator.
    classes_ : ndarray
        The classes, or for multi-label problems the numbers of the labels.
    rule_ : omma.Rule
        What decides. It has the names of classes, or of the columns of a frame of labels.
    thresholds_ : ndarray
        The probability from which each label is predicted, where there is no budget; with
        ``at_most``, where no others gain more.
    counts_ : omma.Counts
        True labels against decisions: of the kept rule on unseen rows, then of every step.
    value_ : float
        The metric of these counts.
    limits_ : tuple of omma.held.Held
        How the limits of ``subject_to`` stand by these counts.
    history_ : History
        ``rows`` and ``values``: the metric so far, in the online pass and after each later step.
    n_samples_seen_ : int
        How many rows ``fit`` and ``partial_fit`` have trained ``estimator_`` on: with
        ``refit=False`` those of its part of the split, and 0 where it came trained. How many the
        rule has learned from is ``counts_.n``.
    n_features_in_, feature_names_in_
        Those of the estimator, where it has them.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : One threshold, for binary problems.

    Notes
    -----
    ``score`` is accuracy, as with every classifier of scikit-learn. To choose among settings, give
    the search a ``scoring`` of its own.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import f1_score
    >>> from omma.sklearn import MetricClassifier
    >>> X, y = make_classification(4000, weights=[0.95], flip_y=0.03, random_state=0)
    >>> model = LogisticRegression()
    >>> round(f1_score(y[2000:], model.fit(X[:2000], y[:2000]).predict(X[2000:])), 1)
    0.3
    >>> tuned = MetricClassifier(model, metric="f1", random_state=0).fit(X[:2000], y[:2000])
    >>> round(f1_score(y[2000:], tuned.predict(X[2000:])), 1)
    0.4
    >>> tuned.thresholds_.round(2)
    array([0.23])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        metric: MetricName | str | Metric = "macro_f1",
        k: int | None = None,
        at_most: int | None = None,
        feedback: Feedback | None = None,
        prior: float | None = None,
        subject_to: Any = None,
        cv: Any = None,
        refit: bool = True,
        random_state: Any = 0,
        pos_label: Any = None,
        zero_division: float = 0.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.k = k
        self.at_most = at_most
        self.feedback = feedback
        self.prior = prior
        self.subject_to = subject_to
        self.cv = cv
        self.refit = refit
        self.random_state = random_state
        self.pos_label = pos_label
        self.zero_division = zero_division
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> MetricClassifier:
        """Train the estimator, and find the rule.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or indicators of shape (n_samples, n_labels)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w rows; also given to the estimator, if it takes weights.
        **params : dict
            Passed on as metadata routing says, where that is enabled.
        """
        check_zero_division(OWNER, self.zero_division)
        X, y, weights = checked(X, y, sample_weight, "fit")
        prefit = is_prefit(self.estimator, self.cv)
        known = getattr(self.estimator, "classes_", None) if prefit else None
        target = read_target(y, find_metric(self.metric), vector(known), self.pos_label)
        policy = policy_of(self, target)
        if prefit:
            _raise_for_params(params, self, "fit")
            sample = probabilities(self.estimator, X, target)
            sample = sample.labelled(OWNER, target.encode(y), weights).ready()
            estimator, trained_on = self.estimator, 0
        else:
            y = y if target.kind == LABELS else np.asarray(y).reshape(-1)
            routed = route(self, "fit", sample_weight, params)
            estimator, sample, trained_on = trained(self, X, y, target, routed, weights)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        found = find_rule(policy, sample, int(seed), self.zero_division)
        self._begin(estimator, target, policy)
        self._learner.merge(found.best.counts, found.best.state)
        self._keep(found.best.rule.named(target.names), trained_on)
        self.history_ = History(found.rows, found.values)
        return self

    def get_metadata_routing(self) -> Any:
        """What metadata goes where."""
        mapping = (
            MethodMapping()
            .add(caller="fit", callee="fit")
            .add(caller="partial_fit", callee="partial_fit")
        )
        splits = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=mapping)
            .add(splitter=None if isinstance(self.cv, str) else self.cv, method_mapping=splits)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
        return tags
