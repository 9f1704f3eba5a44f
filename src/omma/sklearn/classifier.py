"""A classifier whose decisions maximize a metric."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import _raise_for_params
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from omma._types import Feedback
from omma.counts import Counts
from omma.held import Held
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.metrics.scoring import check_zero_division, value_with
from omma.online import OnlineClassifier
from omma.policies import OMMA, Auto
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.sklearn._checks import check_same_classes, checked, is_prefit, policy_of, vector
from omma.sklearn._decision import decision_scores
from omma.sklearn._folds import out_of_fold
from omma.sklearn._passes import find_rule
from omma.sklearn._probabilities import probabilities
from omma.sklearn._routing import metadata_router, route
from omma.sklearn._steps import decide_rows
from omma.sklearn._target import LABELS, OWNER, Target, read_target


class History(NamedTuple):
    """The metric so far, at some numbers of rows."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]


def _inner_has(method: str) -> Callable[[Any], bool]:
    """Whether the estimator, fitted or not, has a method; if not, its own error says so."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class MetricClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with the decisions that maximize a metric, for any kind of problem.

    It is to every metric and task what ``TunedThresholdClassifierCV`` is to binary problems.
    ``fit`` takes probabilities by cross-validation, runs ``omma.Auto`` over them once, lets the
    rule settle, and keeps the best it saw; then the estimator is trained on all rows. ``predict``
    applies the rule and changes nothing. ``partial_fit`` and ``step`` go on learning, row by row.

    Probabilities that are too bold, too timid or too high are calibrated on the way, and the rule
    has that in it. Where labels are decided by cuts of their own (two classes; macro metrics of
    labels, without a budget), cuts tuned on labels take its place, if they do better on rows that
    they were not tuned on.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Trained or not. A ``FrozenEstimator`` is taken as it is.
    metric : str or omma.Metric, default="macro_f1"
        What to maximize. Names mean what they mean in scikit-learn: for two classes, ``"f1"`` is
        that of the positive class, ``pos_label``, and ``"macro_f1"`` the mean over both.
    k : int, optional
        For multi-label problems, exactly so many labels a row. None has no such budget.
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
        What ``fit`` draws from: the order of the rows in the online pass, and the halves on which
        cuts tuned on labels are tried. With an int every ``fit`` on the same rows is the same; with
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
        The probability from which each label is predicted, where there is no budget.
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

    _learner: OnlineClassifier
    n_samples_seen_: int

    def __init__(
        self,
        estimator: Any,
        *,
        metric: MetricName | str | Metric = "macro_f1",
        k: int | None = None,
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

    # Learning

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
            estimator, sample, trained_on = self._trained(X, y, target, routed, weights)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        found = find_rule(policy, sample, int(seed), self.zero_division)
        self._begin(estimator, target, policy)
        self._learner.merge(found.best.counts, found.best.state)
        self._keep(found.best.rule.named(target.names), trained_on)
        self.history_ = History(found.rows, found.values)
        return self

    def _trained(
        self,
        X: Any,
        y: Any,
        target: Target,
        routed: Any,
        weights: NDArray[Any] | None,
    ) -> tuple[Any, Batch, int]:
        """The estimator, probabilities by models that did not see the rows, and how many it saw."""
        cv = check_cv(self.cv, y=y, classifier=target.kind != LABELS)
        splits = list(cv.split(X, y, **routed.splitter.split))
        if not self.refit and len(splits) != 1:
            raise ValueError(
                f"refit of {OWNER} must be True where cv has several splits, got False with "
                f"{len(splits)}: which of their estimators should be kept is not clear"
            )
        params = routed.estimator.fit
        work: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        sample, models = out_of_fold(self.estimator, X, y, target, splits, params, weights, **work)
        if self.refit:
            return clone(self.estimator).fit(X, y, **params), sample, _num_samples(X)
        part = np.arange(_num_samples(X))[splits[0][0]]  # by ids or by flags
        return models[0], sample, len(part)

    @available_if(_inner_has("partial_fit"))  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        **params: Any,
    ) -> MetricClassifier:
        """Go on learning: first the rule, by deciding these rows, and then the estimator.

        The rows are decided one after another by the estimator as it was before it saw them. The
        very first rows cannot be: they train the estimator alone, and until more come, decisions
        are the usual ones. Where the estimator refuses the rows, the rule is as it was.

        Parameters
        ----------
        X, y, sample_weight, params
            As of ``fit``.
        classes : array-like, optional
            All classes that may come; needed in the first call, unless y holds indicators.
        """
        X, y, weights = checked(X, y, sample_weight, "partial_fit")
        first = not hasattr(self, "estimator_")
        extra: dict[str, Any] = {} if classes is None else {"classes": classes}
        target: Target = self._first_target(y, classes) if first else self._target
        if not first:
            check_same_classes(target, classes)
        labels, y = target.encode(y), target.ordered(y)
        estimator = clone(self.estimator) if first else self.estimator_
        routed = route(self, "partial_fit", sample_weight, params).estimator.partial_fit
        if first:
            policy = policy_of(self, target)
            estimator.partial_fit(X, y, **extra, **routed)
            self._begin(estimator, target, policy)
            self._keep(_usual(policy, target), _num_samples(X))
            self.history_ = History(np.empty(0, dtype=np.int64), np.empty(0))
            return self
        _, learner = self._decided(X, labels, weights)
        estimator.partial_fit(X, y, **extra, **routed)
        self._go_on(learner, _num_samples(X))
        return self

    def step(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Decide rows one after another, learning the labels of each before the next.

        The rule learns, the estimator does not: ``partial_fit`` does both. What is returned was
        decided before the labels were looked at, so that it can be judged by them.

        Returns
        -------
        As of ``predict``.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.linear_model import LogisticRegression
        >>> from omma.sklearn import MetricClassifier
        >>> X, y = make_classification(1000, weights=[0.9], random_state=0)
        >>> model = MetricClassifier(LogisticRegression(), metric="f1", random_state=0)
        >>> decided = model.fit(X[:500], y[:500]).step(X[500:], y[500:])
        >>> decided.shape, model.counts_.n
        ((500,), 1000.0)
        """
        check_is_fitted(self)
        X, y, weights = checked(X, y, sample_weight, "step")
        decisions, learner = self._decided(X, self._target.encode(y), weights)
        found = self._target.decode(decisions)
        self._go_on(learner, 0)
        return found

    def _decided(
        self, X: Any, labels: Any, weights: NDArray[Any] | None
    ) -> tuple[Any, OnlineClassifier]:
        """Decisions on rows, each learned before the next, and a learner that has learned all."""
        learner = deepcopy(self._learner)  # should anything fail on the way, ours is as it was
        eta = probabilities(self.estimator_, X, self._target).values
        return decide_rows(learner, eta, labels, weights, self._target), learner

    def _go_on(self, learner: OnlineClassifier, trained_on: int) -> None:
        """Take over what a learner has learned, once all else is done."""
        rows, values = self.history_
        value = self._value(learner)
        worth = np.nan if value is None else value
        self.history_ = History(np.append(rows, round(learner.counts.n)), np.append(values, worth))
        self._learner = learner
        self._keep(learner.rule, self.n_samples_seen_ + trained_on)

    # Deciding

    def predict(self, X: Any) -> Any:
        """Decide rows by the rule; nothing changes.

        Returns
        -------
        Classes, or indicators in the type of y: sparse where y was, or where probabilities are.
        """
        check_is_fitted(self)
        eta = probabilities(self.estimator_, X, self._target).values
        return self._target.decode(self.rule_.predict(eta))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; for labels, the part of rows with every label right, columns found by name."""
        check_is_fitted(self)
        return float(super().score(X, self._target.ordered(y), sample_weight))

    @available_if(_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_inner_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    @available_if(_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """How far probabilities are above what the rule asks for.

        Where it is above zero, ``predict`` says yes; among several classes the largest is
        predicted. So what decides by scores, such as ``OneVsRestClassifier``, decides by the rule.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes or n_labels)
        """
        check_is_fitted(self)
        eta = probabilities(self.estimator_, X, self._target).values
        return decision_scores(self.rule_, eta, self._target)

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """The probability from which each label is predicted."""
        check_is_fitted(self)
        if self.rule_.k is not None:
            raise AttributeError(
                f"thresholds_ of {OWNER} exist where each label is decided by itself; here "
                f"{self.rule_.k} a row are ranked by rule_.slope * probability + rule_.offset"
            )
        return self.rule_.thresholds

    @property
    def limits_(self) -> tuple[Held, ...]:
        """How limits stand, by ``counts_``."""
        check_is_fitted(self)
        return self._learner.limits

    # Bookkeeping

    def _first_target(self, y: Any, classes: Any) -> Target:
        target = read_target(y, find_metric(self.metric), vector(classes), self.pos_label)
        if classes is None and target.kind != LABELS:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return target

    def _begin(self, estimator: Any, target: Target, policy: OMMA | Auto) -> None:
        """Forget what was learned before."""
        self.estimator_ = estimator
        self.classes_ = target.classes
        self._target = target
        self._learner = OnlineClassifier(policy, target.m, names=target.names)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _keep(self, rule: Rule, rows: int) -> None:
        self.rule_ = rule
        self.counts_: Counts = self._learner.counts
        self.value_ = self._value(self._learner)
        self.n_samples_seen_ = int(rows)

    def _value(self, learner: OnlineClassifier) -> float | None:
        """The metric of what a learner has counted; None before that."""
        if learner.value is None:
            return None
        return value_with(find_metric(self.metric), learner.counts, self.zero_division)

    # Metadata

    def get_metadata_routing(self) -> Any:
        """What metadata goes where."""
        return metadata_router(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
        return tags


def _usual(policy: OMMA | Auto, target: Target) -> Rule:
    """What is decided before anything was counted."""
    offset = -0.5 if policy.budget is None else 0.0
    rule = Rule(np.ones(target.m), np.full(target.m, offset), policy.budget)
    return rule.named(target.names)
