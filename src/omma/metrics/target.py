"""Names of metrics with their budgets, as people write them: "macro_f1@3"."""

import re
from typing import Any, NamedTuple

from omma._validate import nearest, shown

BARE = ("precision", "recall", "f1", "jaccard")  # what scikit-learn averages, as f1_macro
AVERAGES = ("macro", "micro", "weighted")
# Functions of scikit-learn take vectors of classes; its averages are told by their names.
FUNCTIONS = {
    "accuracy_score": "multiclass_accuracy",
    "balanced_accuracy_score": "multiclass_balanced_accuracy",
    "matthews_corrcoef": "multiclass_mcc",
    "cohen_kappa_score": "multiclass_kappa",
    "cohen_kappa": "multiclass_kappa",
    "kappa": "multiclass_kappa",
    "geometric_mean_score": "multiclass_gmean",
    "f1_score": "f1",
    "precision_score": "precision",
    "recall_score": "recall",
    "jaccard_score": "jaccard",
    "sensitivity": "recall",
    "iou": "jaccard",
}
# Metrics of probabilities: thresholds do not change them.
RANKINGS = re.compile(
    r"(macro_|micro_|neg_)?(roc_?auc|auc|auroc|auprc|pr_auc|average_precision|map|ap|log_?loss|"
    r"cross_entropy|brier|d2_log_loss|d2_brier|ndcg|dcg|mrr|label_ranking|coverage_error)(_.*)?"
)
YOUDEN = "it is 2·balanced_accuracy − 1: use 'balanced_accuracy', or its macro_ or micro_ average"
# Names that people try, and what to use in their place.
INSTEAD = {
    "hamming_loss": "it is 1 − micro_accuracy, which is to be maximized",
    "zero_one_loss": "it is 1 − multiclass_accuracy, which is to be maximized",
    "fbeta_score": "omma.metrics.fbeta(2.0) is the F-measure with beta = 2",
    "top_k_accuracy": "it is micro_recall with a budget k, as in 'micro_recall@3'",
    "exact_match": "it is no function of the counts of labels",
    "subset_accuracy": "it is no function of the counts of labels",
    **dict.fromkeys(("youden", "youden_j", "j_statistic", "informedness"), YOUDEN),
}


class Target(NamedTuple):
    """The name of a metric and its budget; ``str`` writes it as it is read.

    >>> str(Target("macro_f1", 3)), str(Target("macro_f1", None))
    ('macro_f1@3', 'macro_f1')
    """

    name: str
    k: int | None

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"


def parse_target(text: Any) -> Target:
    """A metric's name in omma's spelling, and the budget after an @.

    scikit-learn's spellings are understood, such as "f1_macro" or "matthews_corrcoef". A name that
    is not in the catalogue is returned as it is; ``omma.metric`` then suggests similar ones.

    >>> parse_target("macro_f1@3")
    Target(name='macro_f1', k=3)
    >>> parse_target("f1_micro"), str(parse_target("Macro-F1@5"))
    (Target(name='micro_f1', k=None), 'macro_f1@5')
    >>> parse_target("roc_auc")
    Traceback (most recent call last):
    ...
    ValueError: 'roc_auc' is not a metric of decisions: it judges probabilities, and no decision can
    raise it
    """
    if not isinstance(text, str):
        raise TypeError(f"a metric must be a name or a metric, got {shown(text)}")
    spelled, at, after = text.strip().partition("@")
    k = None
    if at:
        number = after.strip()
        # Nine digits: more would be no number of labels, and may be hostile.
        if not (number.isascii() and number.isdigit()) or len(number) > 9 or int(number) < 1:
            raise ValueError(
                "a whole number of at least 1 must follow the @ of a metric, as in 'macro_f1@3', "
                f"got {shown(text)}"
            )
        k = int(number)
    name = _own_name(spelled.strip())
    if k is not None and name in BARE:
        raise ValueError(
            f"{name} is a metric of one label and takes no budget, got {text!r}: use "
            f"'micro_{name}@{k}' or 'macro_{name}@{k}'"
        )
    return Target(name, k)


def _own_name(spelled: str) -> str:
    """The name as omma spells it; refuses names that people try and no decision can maximize."""
    from omma.metrics.catalog import NAMES  # the catalogue reads names with this file

    # "Macro-F1" and "macro f1" are macro_f1.
    name = re.sub(r"[\s\-]+", "_", spelled.lower())
    name = FUNCTIONS.get(name, name)
    if name in NAMES:
        return name
    if RANKINGS.fullmatch(name):
        raise ValueError(
            f"{spelled!r} is not a metric of decisions: it judges probabilities, and no decision "
            "can raise it"
        )
    of_label = name.removeprefix("macro_").removeprefix("micro_")
    if of_label in INSTEAD:
        raise ValueError(f"there is no metric {spelled!r}: {INSTEAD[of_label]}")
    if name.endswith("_samples"):
        raise ValueError(
            f"{spelled!r} is a mean over rows, and no function of the counts of labels: use "
            f"'micro_{name.removesuffix('_samples')}'"
        )
    # Over classes these are averages, of which there are several.
    bare = name.removeprefix("multiclass_")
    if name != bare and bare in (*BARE, "specificity"):
        raise ValueError(
            f"there is no metric {spelled!r}: use macro_{bare} with k=1, as in 'macro_{bare}@1'"
        )
    # f1_macro, or f1_score_macro, as macro_f1.
    base, _, average = name.rpartition("_")
    base = base.removesuffix("_score")
    if average in AVERAGES and base:
        name = f"{average}_{base}"
    base = name.removeprefix("weighted_")
    if name != base and name not in NAMES and not re.fullmatch(r"f\d+(\.\d+)?", base):
        raise ValueError(
            f"there is no metric {spelled!r}: averages are macro_ and micro_"
            f"{nearest(f'macro_{base}', NAMES, 1)}"
        )
    return name
