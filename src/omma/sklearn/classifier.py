"""A classifier whose decisions maximize a metric."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from omma._candidates import warn_of_rows
from omma._types import Feedback
from omma._validate import shown
from omma.counts import Counts
from omma.limits import LimitStatus, limit_statuses
from omma.metrics import Metric, MetricName, metric as find_metric
from omma.metrics.scoring import check_zero_division, value_with
from omma.policies import OMMA, Auto
from omma.policies.auto import auto_or_omma
from omma.policies.base import check_task
from omma.policies.omma import check_at_most
from omma.rows.arrays import read_weights
from omma.rows.batch import Batch
from omma.rule import simple_rule
from omma.sklearn._problem import (
    BINARY,
    MULTICLASS,
    MULTILABEL,
    Problem,
    decision_scores,
    read_problem,
)
from omma.sklearn._rule_search import (
    JudgedRule,
    counts_of_rows,
    find_rule,
    number_of_rows,
    out_of_fold,
)

OWNER = "MetricClassifier"
# Nearly always an array. Forests of many labels return a list of arrays; with that in the type,
# checkers would refuse ``predict_proba(X)[:, 1]`` of every estimator.
Probabilities = NDArray[np.float64] | Any
Method = TypeVar("Method", bound=Callable[..., Any])


class ScoreHistory(NamedTuple):
    """The metric so far, at some numbers of rows: ``history_`` of a ``MetricClassifier``.

    Attributes
    ----------
    rows : ndarray of int
        Numbers of rows that were decided.
    values : ndarray of float
        The metric of all decisions up to there.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.sklearn import ScoreHistory
    >>> rows, values = ScoreHistory(np.array([10, 20]), np.array([0.4, 0.5]))
    """

    rows: NDArray[np.int64]
    values: NDArray[np.float64]


def where_inner_has(name: str) -> Callable[[Method], Method]:
    """A decorator: the method exists if the estimator, fitted or not, has one of this name."""

    def check(self: Any) -> bool:
        # ``available_if`` shows the AttributeError of the estimator itself.
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return available_if(check)  # type: ignore[no-any-return]


class MetricClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose decisions maximize a metric: binary, multiclass or multilabel.

    It generalizes ``TunedThresholdClassifierCV`` to all metrics and tasks. ``fit`` computes
    out-of-fold probabilities by cross-validation, runs ``omma.Auto`` over them, and keeps the best
    rule; then it trains the estimator on all rows. ``predict`` applies the rule and changes
    nothing. ``partial_fit`` and ``step`` continue learning, row by row.

    The rule includes a calibration of the probabilities. If each label has its own threshold (two
    classes; macro metrics of labels without a budget), the threshold predicts as many positives as
    30 bootstrap-tuned thresholds do on average. It is moved halfway to the calibrated rule, unless
    out-of-bag rows favour the former.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Trained or not. A ``FrozenEstimator`` is not trained again.
    metric : str or omma.Metric, default="macro_f1"
        The metric to maximize. Names have the meaning of scikit-learn: for two classes, ``"f1"`` is
        F1 of the positive class, ``pos_label``, and ``"macro_f1"`` the mean over both.
    k : int, optional
        For multilabel problems, exactly k labels per row. None has no budget.
    at_most : int, optional
        For multilabel problems, the labels that raise the metric, up to this number; not with k.
    feedback : {"labels", "estimates", "both"}, optional
        By default, ``omma.Auto`` learns the rule, which has no such option. If given, ``omma.OMMA``
        learns it, and counts true labels, probabilities in their place, or both.
    prior : float, optional
        λ of ``omma.OMMA``, added to each cell of each label's counts; 1e-6 if only ``feedback`` is
        given.
    subject_to : str, omma.Limit, or list of these, optional
        Constraints: ``"precision >= 0.9"``, ``"recall[spam] >= 0.8"``,
        ``omma.at_most("labels_per_row", 2)``. The rule meets them on the rows of ``fit``. On new
        rows, rates scatter around the bound; ``omma.at_least("precision", 0.9, margin=1.28)`` keeps
        a distance of 1.28 standard errors.
    cv : int, splitter, iterable or "prefit", optional
        How rows are split for out-of-fold probabilities. None is 5 folds, stratified if classes are
        predicted. ``"prefit"`` does not train the estimator: pass rows to ``fit`` that it was not
        trained on.
    refit : bool, default=True
        Whether to train the estimator on all rows at the end. False needs ``cv`` of one split, and
        keeps the estimator trained on it.
    random_state : int, RandomState or None, default=0
        Seed of ``fit``: the order of rows in the online pass, and the bootstrap of thresholds. With
        None, the rule may differ slightly from run to run. ``estimator`` and ``cv`` have their own
        ``random_state``. ``partial_fit``, ``step`` and ``predict`` are not random.
    pos_label : int, float, bool or str, optional
        The positive class of two, for metrics of one label such as ``"f1"``. None is 1 if classes
        are 0 and 1, -1 and 1, or False and True, and is refused for others, such as text. Metrics
        of both classes ignore it.
    zero_division : float, default=0.0
        The value of a rate of 0/0 where rules are compared, and in ``value_``. With NaN, labels
        with such a rate are left out, as in scikit-learn.
    n_jobs : int, optional
        The number of folds trained in parallel; -1 uses all cores. None is 1, unless in a
        ``joblib.parallel_config``.
    verbose : int, default=0
        The verbosity of joblib while folds are trained.

    Attributes
    ----------
    estimator_ : estimator
        The trained estimator.
    classes_ : ndarray
        The classes, or for multilabel problems the numbers of the labels.
    rule_ : omma.Rule
        The rule of ``predict``, with the names of classes or of the columns of a frame of labels.
    thresholds_ : ndarray
        The probability from which on each label is predicted, without ``k``.
    counts_ : omma.Counts
        Counts of true labels and decisions: of the rule on out-of-fold rows, then of every step.
    value_ : float
        The metric of these counts.
    limits_ : tuple of omma.limits.LimitStatus
        The status of ``subject_to`` by these counts.
    history_ : ScoreHistory
        ``rows`` and ``values``: the running metric, in the online pass and after each later step.
    n_samples_seen_ : int
        The number of rows that ``estimator_`` was trained on by ``fit`` and ``partial_fit``; 0 for
        a prefit estimator. The rule has learned from ``counts_.n`` rows.
    n_features_in_, feature_names_in_
        Those of the estimator, if it has them.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : One threshold, for binary problems.

    Notes
    -----
    ``score`` returns ``metric`` and not accuracy, as ``GridSearchCV.score`` returns its
    ``scoring``. A search over hyperparameters maximizes it, too, unless it has its own ``scoring``.

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

    # Learning.

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> MetricClassifier:
        """Train the estimator and learn the rule.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or indicators of shape (n_samples, n_labels)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w rows. The estimator gets weights, too, if it takes them.
            Weights are not costs: see ``omma.metrics.RowCosts``.
        **params : dict
            Passed on by metadata routing, if that is enabled.

        Returns
        -------
        MetricClassifier
            Itself.

        Raises
        ------
        ValueError, TypeError
            If rows, labels or options do not fit together.
        """
        check_zero_division(OWNER, self.zero_division)
        X, y, weights = _check_rows(X, y, sample_weight, "fit")
        prefit = self._is_prefit()
        classes = getattr(self.estimator, "classes_", None) if prefit else None
        problem = read_problem(OWNER, y, find_metric(self.metric), classes, self.pos_label)
        policy = self._make_policy(problem)
        if prefit:  # it was not trained on these rows, so that no folds are needed
            _refuse_params(params, "fit")
            eta = problem.eta(self.estimator, X)
            sample = Batch.read(OWNER, eta, problem.encode(y), weights).ready()
            estimator, trained_on = self.estimator, 0
        else:
            y = y if problem.kind == MULTILABEL else np.asarray(y).reshape(-1)
            routed = self._route("fit", sample_weight, params)
            estimator, sample, trained_on = out_of_fold(self, X, y, problem, routed, weights)
        # One seed for the order of the online pass and for the bootstrap of thresholds.
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        best, history = find_rule(policy, sample, int(seed), self.zero_division)
        # Nothing below can fail: a fit that fails leaves an earlier one as it was.
        self._start(estimator, problem, policy)
        return self._publish(best, trained_on, ScoreHistory(history.rows, history.values))

    @where_inner_has("partial_fit")
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        **params: Any,
    ) -> MetricClassifier:
        """Continue learning: first the rule, by deciding these rows, then the estimator.

        The estimator predicts the rows before it is trained on them. The very first rows only train
        the estimator; until more come, decisions are those of the 0.5 threshold or the top k. If
        the estimator refuses the rows, the rule does not change.

        Parameters
        ----------
        X, y, sample_weight, params
            As of ``fit``.
        classes : array-like, optional
            All classes; needed in the first call, unless y holds indicators.

        Returns
        -------
        MetricClassifier
            Itself.
        """
        X, y, weights = _check_rows(X, y, sample_weight, "partial_fit")
        first = not hasattr(self, "estimator_")
        if first:
            problem = read_problem(OWNER, y, find_metric(self.metric), classes, self.pos_label)
            if classes is None and problem.kind != MULTILABEL:
                raise ValueError("classes must be passed on the first call to partial_fit.")
        else:
            problem = self._problem
            problem.check_same_classes(classes)
        labels, y = problem.encode(y), problem.ordered(y)
        fit_params = self._route("partial_fit", sample_weight, params).estimator.partial_fit
        if classes is not None:  # estimators need them in their first call, and check them later
            fit_params = {"classes": classes, **fit_params}
        if first:
            policy, estimator = self._make_policy(problem), clone(self.estimator)
            estimator.partial_fit(X, y, **fit_params)
            self._start(estimator, problem, policy)
            rule = simple_rule(policy.budget, problem.m, policy.at_most)
            nothing = Counts.zeros(problem.m, matrix=policy.objective.needs_matrix)
            usual = JudgedRule(rule, nothing, policy.init(problem.m))
            history = ScoreHistory(np.empty(0, dtype=np.int64), np.empty(0))
            return self._publish(usual, labels.shape[0], history)
        # Before the estimator has seen these rows: afterwards its probabilities would be too good.
        _, learned = self._decide_rows(X, labels, weights)
        self.estimator_.partial_fit(X, y, **fit_params)
        return self._publish(learned, labels.shape[0])

    def step(self, X: Any, y: Any, sample_weight: Any = None) -> NDArray[Any] | sparse.csr_matrix:
        """Decide rows one after another, and learn the labels of each before the next.

        Only the rule learns; ``partial_fit`` trains the estimator, too. Each row is decided before
        its labels are seen, so the decisions can be scored by them.

        Parameters
        ----------
        X, y, sample_weight
            As of ``fit``.

        Returns
        -------
        ndarray or sparse matrix
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
        X, y, weights = _check_rows(X, y, sample_weight, "step")
        decisions, learned = self._decide_rows(X, self._problem.encode(y), weights)
        decoded = self._problem.decode(decisions)
        self._publish(learned, 0)
        return decoded

    def _decide_rows(
        self, X: Any, labels: Any, weights: NDArray[Any] | None
    ) -> tuple[Any, JudgedRule]:
        """Decide rows and learn each before the next; returns what ``_publish`` takes, too."""
        policy, metric = self._policy, self._policy.objective
        state = self._state.copy()  # if anything below fails, the old state is unchanged
        rows = Batch.read(OWNER, self._problem.eta(self.estimator_, X), labels, weights)
        check_task(OWNER, rows, policy.budget, metric)
        run = policy.engine(state).replay(OWNER, rows)
        if run.filled and not metric.needs_matrix:  # with costs, every label is a candidate
            warn_of_rows(OWNER, rows.eta, policy.budget, run.filled)
        counts = self.counts_ + counts_of_rows(metric, rows, run.predictions)
        return run.predictions, JudgedRule(policy.rule(state), counts, state)

    def _start(self, estimator: Any, problem: Problem, policy: OMMA | Auto) -> None:
        """Start anew, with nothing learned."""
        self.estimator_, self.classes_, self.n_samples_seen_ = estimator, problem.classes, 0
        self._problem, self._policy = problem, policy

    def _publish(
        self, learned: JudgedRule, trained_on: int, history: ScoreHistory | None = None
    ) -> MetricClassifier:
        """Set the attributes that change with learning, once all else is done.

        Without a ``history``, the present one gets another point.
        """
        counts = learned.counts
        self._state, self.counts_ = learned.state, counts
        self.rule_ = learned.rule.named(self._problem.names)
        self.value_: float | None = None
        if counts.n > 0:  # the first partial_fit counts nothing
            self.value_ = value_with(find_metric(self.metric), counts, self.zero_division)
        self.n_samples_seen_ += trained_on
        if history is None:
            rows, values = self.history_
            value = np.nan if self.value_ is None else self.value_
            history = ScoreHistory(np.append(rows, round(counts.n)), np.append(values, value))
        self.history_: ScoreHistory = history
        return self

    # Decisions, which learn nothing.

    def predict(self, X: Any) -> NDArray[Any] | sparse.csr_matrix:
        """Decide rows by the rule. Nothing is learned.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or indicators of shape (n_samples, n_labels)
            Classes, or indicators in the type of y: sparse if y or the probabilities are.
        """
        check_is_fitted(self)
        eta = self._problem.eta(self.estimator_, X)
        return self._problem.decode(self.rule_.predict(eta))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score decisions by the metric that the classifier maximizes, not by accuracy.

        ``GridSearchCV.score`` uses its ``scoring`` in the same way. A rate of 0/0 has the value
        ``zero_division``. Columns of a frame of labels are matched by name.

        Parameters
        ----------
        X, y, sample_weight
            As of ``fit``.

        Returns
        -------
        float
            ``metric`` of ``predict(X)`` against y.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.metrics import f1_score
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from omma.sklearn import MetricClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> model = MetricClassifier(GaussianNB(), metric="macro_f1").fit(X[::2], y[::2])
        >>> bool(model.score(X, y) == f1_score(y, model.predict(X), average="macro"))
        True
        """
        check_is_fitted(self)
        metric, problem = find_metric(self.metric), self._problem
        # A table of costs goes by the order of all classes.
        by_place = metric.needs_matrix and problem.kind == MULTICLASS
        return metric.score(
            problem.ordered(y),
            self.predict(X),
            sample_weight,
            labels=problem.classes.tolist() if by_place else None,
            pos_label=problem.classes[problem.positive] if problem.kind == BINARY else None,
            zero_division=self.zero_division,
        )

    @where_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Probabilities:
        """The estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @where_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Probabilities:
        """The logarithms of the estimator's probabilities."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    @where_inner_has("predict_proba")
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the rule: above zero, ``predict`` predicts the label.

        Of several classes, ``predict`` returns the one with the largest score. Meta-estimators that
        decide by scores, such as ``OneVsRestClassifier``, therefore decide by the rule.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, else (n_samples, n_classes or n_labels)
        """
        check_is_fitted(self)
        eta = self._problem.eta(self.estimator_, X)
        return decision_scores(self.rule_, eta, self._problem)

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """The probability from which on each label is predicted."""
        check_is_fitted(self)
        if self.rule_.k is not None:  # so that ``hasattr`` is False
            raise AttributeError(
                f"thresholds_ of {OWNER} exist where each label is decided by itself; here "
                f"{self.rule_.k} a row are ranked by rule_.slope * probability + rule_.offset"
            )
        return self.rule_.thresholds

    @property
    def n_features_in_(self) -> int:
        """The number of features, if the estimator knows it."""
        return self.estimator_.n_features_in_  # type: ignore[no-any-return]

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, if the estimator knows them."""
        return self.estimator_.feature_names_in_  # type: ignore[no-any-return]

    @property
    def limits_(self) -> tuple[LimitStatus, ...]:
        """The status of the limits, by ``counts_``."""
        check_is_fitted(self)
        return limit_statuses(self._policy.limits, self._state)

    # Parameters, and metadata for the estimator and the splitter.

    def _is_prefit(self) -> bool:
        """Whether the estimator is trained already, and is not trained again."""
        if not isinstance(self.cv, str):
            return isinstance(self.estimator, FrozenEstimator)
        if self.cv != "prefit":  # scikit-learn would take other text for an iterable of splits
            raise ValueError(
                f"cv of {OWNER} must be a number, a splitter, splits, None or 'prefit', got "
                f"{self.cv!r}"
            )
        check_is_fitted(self.estimator)
        return True

    def _make_policy(self, problem: Problem) -> OMMA | Auto:
        """The policy of the parameters: Auto, unless an option of OMMA is given."""
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator of {OWNER} must have predict_proba, got {shown(self.estimator)}: wrap "
                "it in sklearn.calibration.CalibratedClassifierCV"
            )
        if problem.kind == MULTICLASS and self.k not in (None, 1):
            raise ValueError(f"k of {OWNER} must be None or 1 where y is classes, got {self.k!r}")
        if self.at_most is not None and problem.kind != MULTILABEL:
            raise ValueError(
                f"at_most of {OWNER} must be None where y is classes, got {shown(self.at_most)}"
            )
        k = 1 if problem.kind == MULTICLASS else self.k  # one class per row is a budget of 1
        at_most = check_at_most(OWNER, find_metric(self.metric), self.k, self.at_most)
        policy: OMMA | Auto = auto_or_omma(self, self.metric, k, at_most).for_names(problem.names)
        policy.check_labels(problem.m)
        return policy

    def _route(self, method: str, sample_weight: Any, params: dict[str, Any]) -> Any:
        """The parameters for the estimator and the splitter."""
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, method, sample_weight=sample_weight, **params)
        # Without routing only weights are passed on, as in scikit-learn's own meta-estimators.
        _refuse_params(params, method)
        fit_params = {}
        if sample_weight is not None and has_fit_parameter(self.estimator, "sample_weight"):
            fit_params = {"sample_weight": sample_weight}
        elif sample_weight is not None:
            warnings.warn(
                f"{type(self.estimator).__name__}.{method} takes no sample_weight: the "
                f"weights of {OWNER} count for its rule alone. Metadata routing can pass them "
                "on: sklearn.set_config(enable_metadata_routing=True)",
                UserWarning,
                stacklevel=3,
            )
        return Bunch(estimator=Bunch(**{method: fit_params}), splitter=Bunch(split={}))

    def get_metadata_routing(self) -> Any:
        """The routing of metadata.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        # Weights count for the rule, too, so the classifier asks for them itself.
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
        inner = get_tags(self.estimator)  # the estimator says which X and y it takes
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.multi_label = inner.classifier_tags.multi_label
        return tags


def _refuse_params(params: dict[str, Any], method: str) -> None:
    """Refuse further arguments unless metadata routing is enabled."""
    if params and not get_config()["enable_metadata_routing"]:
        raise ValueError(
            f"{OWNER}.{method} passes {', '.join(map(repr, params))} on to the estimator only with "
            "sklearn.set_config(enable_metadata_routing=True)"
        )


def _check_rows(X: Any, y: Any, sample_weight: Any, method: str) -> tuple[Any, Any, Any]:
    """Rows and labels of one length, and the weights, or None if there are none."""
    if y is None:
        raise ValueError(
            f"This {OWNER} estimator requires y to be passed, but the target y is None."
        )
    X, y = indexable(X, y)
    if sample_weight is not None:
        n = number_of_rows(y) or 0
        sample_weight = read_weights(f"{OWNER}.{method}", sample_weight, n, "sample_weight")
    return X, y, sample_weight
