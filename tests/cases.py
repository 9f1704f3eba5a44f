"""The table of policies and streams that properties of the engine and of kernels run over."""

import numpy as np
from scipy import sparse
from streams import class_stream, one_hot, stream

import omma

M = 10  # more than one group of eight labels, and not a whole number of them


def own_jaccard(tp, fp, fn, tn):
    return tp / (tp + fp + fn + 1e-9)


OWN = omma.metrics.custom(own_jaccard, average="macro")
COSTS = omma.metrics.costs(np.eye(M) - 0.2 * np.eye(M, k=1))
SOME_LABELS = ["labels_per_row <= 2", "recall[1] >= 0.6", "precision[8] >= 0.4"]
RULES = [omma.Rule(np.linspace(1, 2, M), np.full(M, -cut)) for cut in (0.3, 0.6)]

OVER_LABELS = {
    "OMMA macro_f1": omma.OMMA("macro_f1"),
    "OMMA macro_f1 k": omma.OMMA("macro_f1", k=3),
    "OMMA macro_f1 at most": omma.OMMA("macro_f1", at_most=3),
    "OMMA macro_gmean": omma.OMMA("macro_gmean"),
    "OMMA macro_hmean k": omma.OMMA("macro_hmean", k=3),
    "OMMA macro_qmean at most": omma.OMMA("macro_qmean", at_most=2),
    "OMMA macro_mcc k": omma.OMMA("macro_mcc", k=2, prior=0.1),
    "OMMA micro_f1": omma.OMMA("micro_f1", prior=1.0),
    "OMMA micro_gmean k": omma.OMMA("micro_gmean", k=3),
    "OMMA sum k": omma.OMMA(0.5 * omma.metric("macro_f1") - omma.metric("micro_jaccard"), k=2),
    "OMMA own": omma.OMMA(OWN),
    "OMMA own k": omma.OMMA(OWN, k=2),
    "estimates macro_f1": omma.OMMA("macro_f1", feedback="estimates"),
    "estimates micro_mcc k": omma.OMMA("micro_mcc", k=3, feedback="estimates"),
    "both macro_gmean": omma.OMMA("macro_gmean", feedback="both"),
    "both macro_precision k": omma.OMMA("macro_precision", k=2, feedback="both"),
    "calibrated": omma.OMMA("macro_f1", feedback="estimates", calibration="online"),
    "auto": omma.Auto("macro_f1"),
    "auto k": omma.Auto("micro_f1", k=3),
    "auto at most": omma.Auto("macro_recall", at_most=2),
    "auto own": omma.Auto(OWN),
    "auto limits": omma.Auto("macro_f1", subject_to=[*SOME_LABELS, "micro_precision >= 0.5"]),
    "auto limits k": omma.Auto("macro_f1", k=2, subject_to="macro_recall >= 0.3"),
    "OMMA limits": omma.OMMA("macro_f1", subject_to=[*SOME_LABELS, "macro_recall >= 0.5"]),
    "estimates limits": omma.OMMA("macro_f1", feedback="estimates", subject_to=SOME_LABELS),
    "greedy": omma.Greedy("macro_f1"),
    "greedy k": omma.Greedy("macro_gmean", k=2),
    "greedy plug_in": omma.Greedy("macro_f1", k=3, expectation="plug_in"),
    "greedy rows": omma.Greedy("macro_f1", k=3, expectation="plug_in", rows=500),
    "greedy estimates": omma.Greedy("macro_f1", feedback="estimates", expectation="plug_in"),
    "ofo macro": omma.OFO("macro"),
    "ofo micro": omma.OFO("micro", feedback="estimates"),
    "threshold": omma.Threshold(0.375),  # a value that streams with ties have
    "top k": omma.TopK(3),
    "fixed rule": omma.FixedRule(omma.Rule(RULES[0].slope, RULES[0].offset, k=4)),
    "mixture": omma.Mixture(RULES, [0.3, 0.7], "macro_f1"),
    "online frank wolfe": omma.OnlineFrankWolfe("macro_f1", k=2, first=5),
    "forgetting labels": omma.Forgetting(omma.OMMA("macro_f1"), half_life=15),
    "forgetting auto": omma.Forgetting(omma.Auto("macro_gmean"), half_life=15),
    "forgetting limits": omma.Forgetting(
        omma.Auto("macro_f1", subject_to=SOME_LABELS), half_life=15
    ),
    "window labels": omma.Window(omma.OMMA("micro_f1", k=2), rows=12),
    "window auto": omma.Window(omma.Auto("macro_f1"), rows=12),
    "window limits": omma.Window(omma.Auto("macro_f1", subject_to=SOME_LABELS), rows=12),
}
OVER_CLASSES = {
    "classes accuracy": omma.OMMA("multiclass_accuracy"),
    "classes gmean": omma.OMMA("multiclass_gmean"),
    "classes hmean estimates": omma.OMMA("multiclass_hmean", feedback="estimates"),
    "classes qmean k": omma.OMMA("multiclass_qmean", k=3),
    "classes kappa": omma.OMMA("multiclass_kappa"),
    "classes mcc estimates": omma.OMMA("multiclass_mcc", feedback="estimates"),
    "classes sum": omma.OMMA(omma.metric("multiclass_gmean") + omma.metric("macro_f1")),
    "classes costs": omma.OMMA(COSTS),
    "classes costs and gmean": omma.OMMA(COSTS + omma.metric("multiclass_gmean")),
    "classes greedy": omma.Greedy("multiclass_balanced_accuracy"),
    "classes auto": omma.Auto("multiclass_kappa"),
    "classes auto min": omma.Auto("multiclass_min_recall"),
    "classes forgetting": omma.Forgetting(omma.OMMA("multiclass_mcc"), half_life=15),
    "classes window": omma.Window(omma.OMMA("multiclass_kappa"), rows=12),
}
POLICIES = {**OVER_LABELS, **OVER_CLASSES}
LABELLING = ("whole", "some rows", "in part")


def judge(policy):
    """A metric to measure a policy by that has none of its own."""
    return policy.objective or "macro_f1"


def data(name, seed=0, n=40, ties=False):
    """Probabilities and indicators that a policy of the table can be given.

    Rows without candidates, rows with fewer than any budget, and a label that never occurs are
    among them; with ``ties`` there are few different probabilities, so that many gains are equal.
    """
    if name in OVER_CLASSES:
        eta, ids = class_stream(seed, n, M)
        y = one_hot(ids, M)
    else:
        eta, y = stream(seed, n, M, zeros=0.4)
        y[:, 2] = 0
    if ties:
        eta = np.round(eta * 8) / 8
    eta[3 % n] = 0.0
    eta[5 % n, 1:] = 0.0
    return eta, y


def labelled(policy, y, labelling, seed=0):
    """Labels of which some are NaN; None where the policy cannot be given such labels."""
    if labelling == "whole":
        return y
    rng = np.random.default_rng(seed + 1)
    if labelling == "some rows":
        known = rng.random(len(y)) < 0.6
        known[0] = True
        return None if policy.feedback == "labels" else np.where(known[:, np.newaxis], y, np.nan)
    partly = np.where(rng.random(y.shape) < 0.3, np.nan, y)
    partly[::3] = y[::3]
    partly[:, 0] = y[:, 0]  # in each row a label is known
    return partly


def weights_of(name, n):
    """Weights of rows: none, fractions and large ones among them; the last row has one.

    A matrix of confusions is added up in another order by a replay than by a learner: for metrics
    that need one, weights add up without rounding.
    """
    exact = "costs" in name
    values = [0.0, 0.25, 1.0, 2.0, 7.5] if exact else [0.0, 0.3, 1.0, 2.0, 7.7]
    weights = np.random.default_rng(2).choice(values, size=n)
    weights[-1] = 1.0
    return weights


def csr(eta, seed=0):
    """The same probabilities as stored entries, among them half of those that are zero."""
    stored = (eta > 0) | (np.random.default_rng(seed + 3).random(eta.shape) < 0.5)
    rows, columns = np.nonzero(stored)
    ends = np.concatenate(([0], np.cumsum(stored.sum(axis=1))))
    return sparse.csr_array((eta[rows, columns], columns.astype(np.int32), ends), shape=eta.shape)


def row_of(matrix, t):
    """Row t as a learner takes it: a vector, or a sparse matrix of one row."""
    return matrix[[t]] if sparse.issparse(matrix) else matrix[t]
