"""What people mean by names of metrics that do not exist."""

from __future__ import annotations

from omma.metrics import NAMES

# They judge probabilities, or their order, and no decision can be better by them than another.
OF_SCORES = (
    *("auc", "roc_auc", "auroc", "pr_auc", "average_precision", "map", "ndcg"),
    *("log_loss", "cross_entropy", "brier", "brier_score"),
)
OTHERS = {
    "matthews_corrcoef": "mcc",
    "cohen_kappa": "multiclass_kappa",
    "kappa": "multiclass_kappa",
    "iou": "jaccard",
    "sensitivity": "recall",
    "tpr": "recall",
    "tnr": "specificity",
    "f_score": "f1",
    "f1_measure": "f1",
    "geometric_mean": "gmean",
    "g_mean": "gmean",
}
AVERAGES = ("macro", "micro", "multiclass", "weighted", "samples")


def metric_hint(name: str) -> str | None:
    """What to write in place of a name that is no metric's; None where nobody can tell.

    >>> metric_hint("f1_macro")
    "unknown metric 'f1_macro'; did you mean 'macro_f1'?"
    >>> metric_hint("multiclass_f1")
    "unknown metric 'multiclass_f1'; for one class a row use 'macro_f1' with -k 1"
    >>> metric_hint("something") is None
    True
    """
    average, bare = _parts(name.lower().replace("-", "_").removesuffix("_score"))
    if bare in OF_SCORES:
        return (
            f"{name} judges probabilities, not decisions, and no threshold can raise it: choose "
            "what decisions are judged by, such as macro_f1, micro_f1 or balanced_accuracy"
        )
    if f"macro_{bare}" in NAMES and average in ("weighted", "samples"):
        return f"unknown metric {name!r}: averages are macro_{bare} and micro_{bare}"
    if f"macro_{bare}" in NAMES and average == "multiclass":
        return f"unknown metric {name!r}; for one class a row use 'macro_{bare}' with -k 1"
    meant = f"{average}_{bare}" if average else bare
    return f"unknown metric {name!r}; did you mean {meant!r}?" if meant in NAMES else None


def _parts(name: str) -> tuple[str, str]:
    """The average and what is averaged, whichever comes first; ``""`` where there is no average."""
    for average in AVERAGES:
        for bare in (name.removeprefix(f"{average}_"), name.removesuffix(f"_{average}")):
            if bare != name:
                return average, OTHERS.get(bare, bare)
    return "", OTHERS.get(name, name)
