"""Sections of records: those of one dataset with one estimator in one suite, and their means."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from omma_study.datasets import CATALOGUE
from omma_study.paper import column_order, paper_value, title
from omma_study.policies import POLICIES, name_of
from omma_study.records import Record

CELL = ["policy", "target"]


def policy_of(record: Record) -> str:
    """The name of a record's policy, its kind of feedback included."""
    return name_of(record["spec"]["policy"], record["spec"]["feedback"])


def source_of(record: Record) -> tuple[str, str, str]:
    """The suite, dataset and estimator of a record."""
    spec = record["spec"]
    return record["suite"], spec["dataset"], repr(sorted(spec["estimator"].items()))


class Section:
    """Records of one dataset with one estimator in one suite.

    Attributes
    ----------
    suite, dataset, protocol, task : str
    estimator : dict
        Its name and options, and what it reported of the first run.
    n, m : int
        Rows and labels.
    paper, stands_for : str or None
        The paper's name of the same data, or of those that a stream was made to be like.
    positive : ndarray
        How often each label occurs.
    policies : list of str
    targets : dict of str to (metric, k)
    runs : DataFrame
        A row for each finished run.
    by_prior : DataFrame
        Mean, std, seconds and sequences, by (policy, target, prior); a missing prior is NaN.
    cells : DataFrame
        The same of the best λ, by (policy, target).
    best_runs : DataFrame
        The finished runs with that λ.
    """

    def __init__(self, records: list[Record]) -> None:
        done = [record for record in records if record["result"]]
        first = done[0]
        spec, result = first["spec"], first["result"]
        self.suite, self.dataset = first["suite"], spec["dataset"]
        self.protocol, self.task = spec["protocol"], spec["task"]
        self.estimator = {**spec["estimator"], **(first["estimator"] or {})}
        self.n, self.m = result["rows"], result.get("labels") or len(result["counts"]["tp"])
        # Packed records of many labels have the counts of the first sequence alone.
        counts = [record["result"]["counts"] for record in done if record["result"]["counts"]]
        self.positive = np.array(counts[0]["positive"] if counts else [])
        # Values of the paper stand beside results on its own data, or on data made like them.
        # The paper has News20 as a multi-class problem only.
        synthetic, entry = spec.get("made") or {}, CATALOGUE.get(self.dataset)
        is_same = entry and not synthetic and entry.task == self.task
        self.paper = entry.paper if entry and is_same else None
        self.stands_for = synthetic.get("name") if synthetic.get("by") == "like" else None
        # Targets of failed runs count, too: their cells are shown as missing.
        targets = {(record["spec"]["metric"], record["spec"]["k"]) for record in records}
        self.targets = {title(*target): target for target in sorted(targets, key=column_order)}
        present = {policy_of(record) for record in records}
        self.policies = [policy for policy in POLICIES if policy in present]
        self.runs = pd.DataFrame(
            {
                "policy": policy_of(record),
                "target": title(record["spec"]["metric"], record["spec"]["k"]),
                "prior": record["spec"]["prior"],
                "seed": record["spec"]["seed"],
                "value": record["result"]["value"],
                "seconds": record["seconds"]["run"],
                "history": record["result"]["history"],
            }
            for record in done
        ).astype({"prior": float})
        self.seeds = self.runs["seed"].nunique()
        self.priors = sorted({record["spec"]["prior"] for record in records} - {None})
        # Policies without λ have NaN as prior, which pandas would drop.
        groups = self.runs.sort_values("seed").groupby([*CELL, "prior"], dropna=False)
        self.by_prior = groups.agg(
            mean=("value", "mean"), std=("value", "std"), seconds=("seconds", "mean"),
            sequences=("seed", "nunique"),
        )  # fmt: skip
        # If runs are missing, prefer the λ with more sequences; of equals take the smallest λ.
        order = self.by_prior.reset_index().sort_values(
            ["sequences", "mean", "prior"], ascending=[False, False, True]
        )
        self.cells = order.drop_duplicates(CELL).set_index(CELL).sort_index()
        self.best_runs = self.runs.merge(self.cells["prior"].reset_index())

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.suite}-{self.dataset}-{self.estimator['name']}"

    @property
    def title(self) -> str:
        """As the paper heads its tables."""
        return f"{self.dataset} (m = {self.m}, n = {self.n})"

    def mean(self, policy: str, target: str) -> Any:
        """The mean with the best λ; None where the policy was not run for the metric."""
        return self.cells["mean"].get((policy, target))

    def paper_value(self, policy: str, target: str) -> Any:
        """The paper's value of a cell, where data are the same or made to be like them."""
        dataset = self.paper or self.stands_for
        return paper_value(self.protocol, dataset, policy, *self.targets[target])

    def is_complete(self, policy: str, target: str) -> bool:
        """Whether every λ of a cell was run on every sequence."""
        tried = self.by_prior.loc[(policy, target)]
        n_priors = len(self.priors) if POLICIES[policy].priors else 1
        return len(tried) == n_priors and bool((tried["sequences"] == self.seeds).all())


def sections(records: Iterable[Record]) -> list[Section]:
    """A section for each suite, dataset and estimator with a finished run, in their order."""
    # Groups stand in the order in which records come.
    groups: dict[Any, list[Record]] = {}
    for record in records:
        if record["kind"] == "study":
            groups.setdefault(source_of(record), []).append(record)
    return [
        Section(group) for group in groups.values() if any(record["result"] for record in group)
    ]
