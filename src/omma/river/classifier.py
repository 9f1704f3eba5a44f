"""A river classifier whose decisions maximize a metric."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river import base

from omma._types import Feedback
from omma._validate import check_number, check_positive_int, shown
from omma.counts import Counts
from omma.limits import LimitStatus
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.metrics.scoring import value_with
from omma.online.codec import Decision
from omma.policies import OMMA, Auto
from omma.policies.auto import auto_or_omma
from omma.policies.omma import check_at_most
from omma.river.growing import GrowingCounts
from omma.river.hedge import Hedge
from omma.river.metric import (
    check_label,
    check_labels,
    check_positive,
    is_multi,
    is_single,
    refuse_for_streams,
)
from omma.river.waiting import WaitingRows


class HedgedDecision(NamedTuple):
    """A row's decision, which waits for its labels: one of two, the policy's and the model's own.

    All are indicators of the labels met so far. The policy's also has the probabilities.
    """

    tuned: Decision
    own: NDArray[np.int8]
    predicted: NDArray[np.int8]


class MetricClassifier(base.Wrapper, base.Estimator):  # type: ignore[type-arg]
    """Turns a model's probabilities into the decisions that maximize a metric.

    The wrapped model learns and gives probabilities as before. `Auto` decides: OMMA
    ([Kotłowski et al., 2024](https://proceedings.mlr.press/v235/kotlowski24a.html)) with
    probabilities that are calibrated as labels come. It keeps a few counts for each label, and
    predicts whatever raises the metric most, given the counts so far. The model may be binary,
    multi-class or multi-label; labels and classes may appear while the stream runs. Memory grows
    with the number of labels, not of rows. At first, and wherever tuned decisions do not pay off,
    the model's own decisions are returned.

    A row is counted with the decision that was made when it was predicted, however late its label
    comes. Decisions wait for `learn_one` by the content of `x`. A row that was never predicted is
    decided when it is learned, before the model sees its label. `x` must be the same at both times,
    so wrap a whole pipeline: `MetricClassifier(scaler | model)`. In
    `scaler | MetricClassifier(model)` a row is scaled differently later on, and is decided again.

    Parameters
    ----------
    model
        A river classifier, multi-label classifier, or pipeline that ends in one. It must have
        `predict_proba_one`.
    metric
        The metric to maximize: a name, such as `"f1"` for binary problems, `"multiclass_gmean"` for
        one class per row, `"macro_f1"` for classes or labels; or a metric of `omma.metrics`.
    k
        The exact number of labels per row, for a multi-label model. By default, each label that
        raises the metric is predicted. For one class per row it is always 1.
    feedback
        By default, `Auto` decides, which uses labels and probabilities. If given, plain OMMA
        decides: `"labels"` counts true labels, `"estimates"` counts the model's probabilities
        instead.
    prior
        The prior of plain OMMA, added to each of the four cells of each label; 1e-6 if only
        `feedback` is given.
    subject_to
        Constraints, such as `"precision >= 0.9"`, `"recall[spam] >= 0.8"` or a list of these; see
        `omma.at_least`. `limits` has their status.
    pos_val
        Value to treat as "positive", for a binary metric. Required if labels are text.
    hedge
        Whether to switch between the model's own decisions and the tuned ones, to whichever gives
        the higher metric over the whole stream, as estimated from the rows so far. By default,
        True with `Auto` and without `subject_to`, which the model's own decisions ignore.
    max_pending
        The largest number of decisions that wait for labels. Beyond it, the oldest is dropped, and
        its row is decided again when the label comes.
    at_most
        For a multi-label model, the labels that raise the metric, up to this number per row; not
        with `k`. While fewer labels are known, it has no effect.

    Examples
    --------
    >>> from river import datasets, evaluate, linear_model, multioutput, preprocessing
    >>> from omma.river import Metric, MetricClassifier

    >>> model = preprocessing.StandardScaler() | multioutput.ClassifierChain(
    ...     linear_model.LogisticRegression()
    ... )
    >>> evaluate.progressive_val_score(
    ...     datasets.Yeast().take(1000), model.clone(), Metric("macro_f1")
    ... )
    macro_f1: 37.23%

    >>> model = MetricClassifier(model, metric="macro_f1")
    >>> evaluate.progressive_val_score(datasets.Yeast().take(1000), model, Metric("macro_f1"))
    macro_f1: 42.81%

    >>> model.value
    0.4281

    """

    def __new__(cls, model: Any = None, *_: Any, **__: Any) -> Any:
        """Make the subclass for the model: river distinguishes its classifiers by their type."""
        if cls is MetricClassifier:
            cls = MultiLabelMetricClassifier if is_multi(model) else SingleLabelMetricClassifier
        return super().__new__(cls)

    def __init__(
        self,
        model: base.Classifier | base.MultiLabelClassifier,
        metric: MetricName | str | Metric,
        k: int | None = None,
        feedback: Feedback | None = None,
        prior: float | None = None,
        pos_val: Any = True,
        max_pending: int = 10_000,
        subject_to: Any = None,
        hedge: bool | None = None,
        at_most: int | None = None,
    ) -> None:
        self.model = model
        self.metric = metric
        self.k = k
        self.feedback = feedback
        self.prior = prior
        self.pos_val = pos_val
        self.max_pending = max_pending
        self.subject_to = subject_to
        self.hedge = hedge
        self.at_most = at_most
        check_positive_int("MetricClassifier", "max_pending", max_pending)
        if hedge not in (None, False, True):
            raise ValueError(
                f"hedge of MetricClassifier must be True, False or None, got {shown(hedge)}"
            )
        self._metric = find_metric(metric)
        self._binary = self._metric.binary
        refuse_for_streams("MetricClassifier", self._metric)
        # Parameters stay as they came, as river clones by them. Everything else is made here.
        self._growing = GrowingCounts(self._policy())
        self._waiting = WaitingRows(max_pending)
        policy = self._growing.policy
        if hedge and policy.limits:
            raise ValueError(
                "hedge of MetricClassifier must be False or None with subject_to: the model's own "
                "decisions know nothing of limits"
            )
        hedged = isinstance(policy, Auto) and not policy.limits if hedge is None else hedge
        self._hedge = Hedge(self._metric) if hedged else None

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, multioutput, naive_bayes

        logistic = linear_model.LogisticRegression()
        if cls is not MultiLabelMetricClassifier:
            yield {"model": logistic, "metric": "f1"}
            yield {"model": logistic, "metric": "macro_f1", "feedback": "estimates"}
            yield {"model": naive_bayes.GaussianNB(), "metric": "multiclass_gmean"}
        if cls is not SingleLabelMetricClassifier:
            chain = multioutput.ClassifierChain(logistic)
            yield {"model": chain, "metric": "macro_f1"}
            yield {"model": chain, "metric": "micro_f1", "k": 3, "feedback": "estimates"}

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The labels that are counted, in the order of `counts`."""
        return self._growing.labels

    @property
    def counts(self) -> Counts | None:
        """True labels against decisions so far; None before the first label."""
        # With a hedge, not all predictions are those of the policy.
        if self._hedge is None or not self.labels:
            return self._growing.counts
        return self._hedge.counts(len(self.labels))

    @property
    def value(self) -> float | None:
        """The metric of all decisions learned so far; None before the first."""
        counts = self.counts
        if counts is None or counts.n <= 0:
            return None
        return value_with(self._metric, counts, 0.0)

    @property
    def limits(self) -> tuple[LimitStatus, ...]:
        """The status of each limit of `subject_to`: value so far, price, and whether it holds."""
        return self._growing.limits

    def predict_proba_one(self, x: Any, **kwargs: Any) -> Any:
        """The wrapped model's own probabilities.

        Parameters
        ----------
        x
            A dictionary of features.
        kwargs
            Passed on to the model.

        Returns
        -------
        As of the model.

        """
        return self.model.predict_proba_one(x, **kwargs)

    def predict_one(self, x: Any, **kwargs: Any) -> Any:
        """Decide a row, and remember the decision until its label is learned.

        Parameters
        ----------
        x
            A dictionary of features.
        kwargs
            Passed on to the model.

        Returns
        -------
        A label, or a dictionary from labels to True or False; None of a model that knows no class.

        """
        prediction, decision = self._decide(x, kwargs)
        self._waiting.put(x, decision)
        return prediction

    def learn_one(self, x: Any, y: Any, **kwargs: Any) -> None:
        """Count the decision made for a row, and teach the model.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            A label, or a dictionary of labels; a label that is not in it counts as False.
        kwargs
            `w` is the weight of the row: it counts as `w` rows, and is passed on if the model takes
            weights. It is no cost: all rows share the rule. All else is passed on.

        """
        weight = 1.0
        if "w" in kwargs:
            weight = check_number("learn_one", "w", kwargs["w"], low=0.0)
            if not _takes_weights(self.model):  # it learns each row once
                kwargs = {name: value for name, value in kwargs.items() if name != "w"}
        true = self._true(y)
        waiting = self._waiting.find(x)
        # A row that was not predicted is decided before the model sees its label.
        decision = self._decide(x, {})[1] if waiting is None else waiting[1]
        self.model.learn_one(x, y, **kwargs)
        if waiting is not None:  # the model took the row: from here on nothing fails
            self._waiting.drop(waiting[0])
        if decision is None:
            return
        growing, tuned = self._growing, decision.tuned
        growing.count(tuned, true, weight)
        if self._hedge is not None:
            row = (growing.indicators(true), decision.own, tuned.prediction, decision.predicted)
            self._hedge.count(tuple(map(growing.widened, row)), weight)

    def _hedged(self, eta: dict[Hashable, float], own: Collection[Hashable]) -> HedgedDecision:
        """Decide a row, of which the model itself predicts the labels ``own``."""
        tuned, by_model = self._growing.decide(eta), self._growing.indicators(own)
        follows_tuned = self._hedge is None or self._hedge.tuned
        return HedgedDecision(tuned, by_model, tuned.prediction if follows_tuned else by_model)

    @abstractmethod
    def _policy(self) -> OMMA | Auto:
        """The policy that decides; refuses models and options that do not go with it."""

    @abstractmethod
    def _decide(self, x: Any, kwargs: dict[str, Any]) -> tuple[Any, HedgedDecision | None]:
        """The prediction in river's form, and the decision to count; None without any label."""

    @abstractmethod
    def _true(self, y: Any) -> Collection[Hashable]:
        """The labels that count as present."""


class SingleLabelMetricClassifier(MetricClassifier, base.Classifier):
    """A `MetricClassifier` of a binary or multi-class model, with the same parameters.

    Examples
    --------
    >>> from river import naive_bayes
    >>> from omma.river import MetricClassifier
    >>> type(MetricClassifier(naive_bayes.GaussianNB(), "multiclass_gmean")).__name__
    'SingleLabelMetricClassifier'

    """

    def _policy(self) -> OMMA | Auto:
        if not is_single(self.model):
            raise TypeError(
                "model of MetricClassifier must be a river classifier or multi-label classifier, "
                f"got {shown(self.model)}"
            )
        if self.k not in (None, 1):
            raise ValueError(
                "k of MetricClassifier must be 1 or None for a model that predicts one class a "
                f"row, got {shown(self.k)}"
            )
        if self.at_most is not None:
            raise ValueError(
                "at_most of MetricClassifier must be None for a model that predicts one class a "
                f"row, got {shown(self.at_most)}"
            )
        return auto_or_omma(self, self.metric, None if self._binary else 1, None)

    def _decide(self, x: Any, kwargs: dict[str, Any]) -> tuple[Any, HedgedDecision | None]:
        eta = self.predict_proba_one(x, **kwargs)
        if not eta:
            return None, None
        likeliest = max(eta, key=eta.__getitem__)
        if not self._binary:
            decision = self._hedged(eta, (likeliest,))
            return self.labels[int(decision.predicted.argmax())], decision
        positive = self.pos_val
        own = (positive,) if likeliest == positive else ()
        decision = self._hedged({positive: eta.get(positive, 0.0)}, own)
        if decision.predicted.any():
            return positive, decision
        # The model itself may predict the positive class: then the likeliest of the others.
        others = [label for label in eta if label != positive]
        return max(others, key=eta.__getitem__, default=not positive), decision

    def _true(self, y: Any) -> Collection[Hashable]:
        check_label("learn_one", "y", y)
        if not self._binary:
            return (y,)
        if y == self.pos_val:
            return (self.pos_val,)
        check_positive("learn_one", "y", y, self.pos_val, self._metric)
        return ()


class MultiLabelMetricClassifier(MetricClassifier, base.MultiLabelClassifier):
    """A `MetricClassifier` of a multi-label model, with the same parameters.

    Examples
    --------
    >>> from river import linear_model, multioutput
    >>> from omma.river import MetricClassifier
    >>> model = multioutput.ClassifierChain(linear_model.LogisticRegression())
    >>> type(MetricClassifier(model, "macro_f1")).__name__
    'MultiLabelMetricClassifier'

    """

    def _policy(self) -> OMMA | Auto:
        if not is_multi(self.model):
            raise TypeError(
                "model of MultiLabelMetricClassifier must be a river multi-label classifier, got "
                f"{shown(self.model)}"
            )
        metric = self._metric
        if metric.binary or metric.multiclass:
            name = metric.name.removeprefix("multiclass_")
            raise ValueError(
                f"metric of MetricClassifier must be a metric of many labels for a multi-label "
                f"model, such as macro_f1 or micro_f1, got {name}"
            )
        check_at_most("MetricClassifier", metric, self.k, self.at_most)
        return auto_or_omma(self, metric, self.k, self.at_most)

    def _decide(self, x: Any, kwargs: dict[str, Any]) -> tuple[Any, HedgedDecision | None]:
        eta = {
            label: _probability(label, of_label)
            for label, of_label in self.predict_proba_one(x, **kwargs).items()
        }
        if not eta:
            return {}, None
        decision = self._hedged(eta, self._own(eta))
        predicted = decision.predicted.astype(bool).tolist()
        return dict(zip(self.labels, predicted, strict=True)), decision

    def _own(self, eta: dict[Hashable, float]) -> list[Hashable]:
        """What the model would predict: the most probable k, or all labels above one half."""
        most = self.at_most if self.k is None else self.k
        likely = [label for label in eta if self.k is not None or eta[label] > 0.5]
        return sorted(likely, key=eta.__getitem__, reverse=True)[:most]  # of equals, the first

    def _true(self, y: Any) -> Collection[Hashable]:
        check_labels("learn_one", "y", y)
        for label, value in y.items():
            if value not in (False, True):
                raise ValueError(
                    f"y of learn_one must be True or False for each label, got {shown(value)} for "
                    f"{shown(label)}"
                )
        self._growing.meet(y)
        return [label for label, value in y.items() if value]


def _probability(label: Hashable, eta: dict[Any, float]) -> float:
    """The probability that a label is True; zero if the model has not seen the label."""
    if eta and True not in eta and False not in eta:
        raise ValueError(
            "MetricClassifier needs labels that are True or False, got the values "
            f"{shown(list(eta))} for {shown(label)}"
        )
    return eta.get(True, 0.0)


def _takes_weights(model: Any) -> bool:
    parameters = inspect.signature(model.learn_one).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    return "w" in parameters or inspect.Parameter.VAR_KEYWORD in kinds


# Tools and river's checks read the signature: show the parameters, not those of __new__.
MetricClassifier.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    list(inspect.signature(MetricClassifier.__init__).parameters.values())[1:]
)
