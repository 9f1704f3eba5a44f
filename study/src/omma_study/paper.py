"""The paper's tables: their values, and how they name and order policies and metrics."""

from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd

from omma_study.policies import VARIANTS

# As the paper heads its columns.
AVERAGES = {"micro": "Micro", "macro": "Macro", "multiclass": "Multi-class"}
RATES = {
    "f1": "F1", "recall": "recall", "precision": "precision", "gmean": "G-mean",
    "hmean": "H-mean", "qmean": "Q-mean", "jaccard": "Jaccard", "mcc": "MCC",
}  # fmt: skip


@cache
def paper_values() -> pd.DataFrame:
    """The 682 values of the paper's tables, as fractions.

    >>> float(paper_values().loc[("fixed", "News20", "omma", "macro_f1", 3), "value"])
    0.7284
    """
    with (resources.files("omma_study") / "paper.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    # In the file they are in %, as printed.
    for name in ("value", "std"):
        table[name] = (table[name] / 100).round(6)
    return table.set_index(["cpe", "dataset", "method", "metric", "k"]).sort_index()


def paper_name(policy: str) -> str:
    """The paper's name of a policy, where ours is a variant that decides as the paper's code.

    >>> paper_name("online_fw_paper_eta"), paper_name("omma")
    ('online_fw_eta', 'omma')
    """
    while policy in VARIANTS:
        policy = VARIANTS[policy]
    return policy


def paper_value(protocol: str, dataset: str | None, policy: str, metric: str, k: int | None) -> Any:
    """The paper's value of a cell, under the paper's name of the dataset; None if it has none."""
    method = "top_k_or_half" if policy == "baseline" else paper_name(policy)
    return paper_values()["value"].get((protocol, dataset, method, metric, k or 0))


def is_label_fed(policy: str, target: str) -> bool:
    """Whether the paper's value under Greedy(η̂) is that of Greedy.

    The authors' script runs both rows of recall@3 and precision@3 with labels: mean and deviation
    are identical in all 26 cells.

    >>> is_label_fed("greedy_plug_in_eta", "macro_recall@3"), is_label_fed("greedy_eta", "macro_f1")
    (True, False)
    """
    return paper_name(policy) == "greedy_eta" and target in ("macro_recall@3", "macro_precision@3")


def decides_as_paper(policy: str, policies: Collection[str]) -> bool:
    """Whether a policy is, of those that were run, the nearest to the one of the paper.

    >>> decides_as_paper("greedy", ["greedy"])
    True
    >>> decides_as_paper("greedy", ["greedy", "greedy_plug_in"])
    False
    """
    return not any(VARIANTS.get(variant) == policy for variant in policies)


def title(metric: str, k: int | None) -> str:
    """A metric with its budget.

    >>> title("macro_f1", 3), title("micro_f1", None)
    ('macro_f1@3', 'micro_f1')
    """
    return metric if k is None else f"{metric}@{k}"


def heading(target: str) -> str:
    """A column's head as in the paper.

    >>> heading("macro_f1@3"), heading("multiclass_gmean@1")
    ('Macro F1@3', 'Multi-class G-mean')
    """
    metric, _, k = target.partition("@")
    average, _, rate = metric.partition("_")
    if average not in AVERAGES or rate not in RATES:
        return target
    budget = "" if average == "multiclass" or not k else f"@{k}"
    return f"{AVERAGES[average]} {RATES[rate]}{budget}"


def column_order(target: tuple[str, int | None]) -> tuple[Any, ...]:
    """The paper's order of columns: F1, macro with a budget, then means."""
    metric, k = target
    order = ["micro_f1", "macro_f1", "macro_recall", "macro_precision", "macro_gmean",
             "macro_hmean", "multiclass_gmean", "multiclass_hmean", "multiclass_qmean"]  # fmt: skip
    budgeted = k is not None and k > 1
    ahead = metric.startswith("macro") if budgeted else metric in order[:2]
    rank = order.index(metric) if metric in order else len(order)
    return not ahead, ahead and budgeted, rank, metric, k or 0
