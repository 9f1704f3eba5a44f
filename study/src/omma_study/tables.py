"""Tables of records: means over sequences with the best λ, and the paper's figures beside them.

A section holds the records of one dataset with one estimator in one suite.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from omma_study.datasets import CATALOGUE
from omma_study.policies import POLICIES, VARIANTS, name_of, supports
from omma_study.records import Record

# As the paper heads its columns.
AVERAGES = {"micro": "Micro", "macro": "Macro", "multiclass": "Multi-class"}
RATES = {
    "f1": "F1", "recall": "recall", "precision": "precision", "gmean": "G-mean",
    "hmean": "H-mean", "qmean": "Q-mean", "jaccard": "Jaccard", "mcc": "MCC",
}  # fmt: skip
UNSUPPORTED, MISSING, PARTIAL, LABEL_FED = "×", "–", "†", "‡"
CELL = ["policy", "target"]


@cache
def figures() -> pd.DataFrame:
    """The 682 figures of the paper's tables, as fractions.

    >>> float(figures().loc[("fixed", "News20", "omma", "macro_f1", 3), "value"])
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


def find(protocol: str, dataset: str | None, policy: str, metric: str, k: int | None) -> Any:
    """The paper's value of a cell, under the paper's name of the dataset; None if it has none."""
    method = "top_k_or_half" if policy == "baseline" else paper_name(policy)
    place = (protocol, dataset, method, metric, k or 0)
    return float(figures().loc[place, "value"]) if place in figures().index else None


def is_label_fed(policy: str, target: str) -> bool:
    """Whether the paper's figure under Greedy(η̂) is that of Greedy.

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


def policy_of(record: Record) -> str:
    """The name of a record's policy, its kind of feedback included."""
    return name_of(record["spec"]["policy"], record["spec"]["feedback"])


def points(difference: float) -> str:
    """A difference in percentage points.

    >>> points(0.0123), points(-0.5)
    ('+1.23', '−50.00')
    """
    return f"{100 * difference:+.2f}".replace("-", "−")


def _place(target: tuple[str, int | None]) -> tuple[Any, ...]:
    """The paper's order of columns: F1, macro with a budget, then means."""
    metric, k = target
    order = ["micro_f1", "macro_f1", "macro_recall", "macro_precision", "macro_gmean",
             "macro_hmean", "multiclass_gmean", "multiclass_hmean", "multiclass_qmean"]  # fmt: skip
    budgeted = k is not None and k > 1
    ahead = metric.startswith("macro") if budgeted else metric in order[:2]
    rank = order.index(metric) if metric in order else len(order)
    return not ahead, ahead and budgeted, rank, metric, k or 0


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
        # Figures of the paper stand beside results on its own data, or on data made like them.
        # The paper has News20 as a multi-class problem only.
        synthetic, entry = spec.get("made") or {}, CATALOGUE.get(self.dataset)
        is_same = entry and not synthetic and entry.task == self.task
        self.paper = entry.paper if entry and is_same else None
        self.stands_for = synthetic.get("name") if synthetic.get("by") == "like" else None
        # Targets of failed runs count, too: their cells are shown as missing.
        targets = {(record["spec"]["metric"], record["spec"]["k"]) for record in records}
        self.targets = {title(*target): target for target in sorted(targets, key=_place)}
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
        place = (policy, target)
        return float(self.cells.at[place, "mean"]) if place in self.cells.index else None

    def figure(self, policy: str, target: str) -> Any:
        """The paper's value of a cell, where data are the same or made to be like them."""
        return find(self.protocol, self.paper or self.stands_for, policy, *self.targets[target])

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
            spec = record["spec"]
            key = (record["suite"], spec["dataset"], repr(sorted(spec["estimator"].items())))
            groups.setdefault(key, []).append(record)
    return [
        Section(group) for group in groups.values() if any(record["result"] for record in group)
    ]


class Table(NamedTuple):
    """Texts under heads; the first ``words`` columns are words, the others numbers."""

    title: str
    frame: pd.DataFrame
    words: int = 1
    note: str = ""


BOLD_ITALIC = {
    "markdown": ("**{}**", "*{}*"),
    "latex": (r"\textbf{{{}}}", r"\textit{{{}}}"),
    "html": ("<b>{}</b>", "<i>{}</i>"),
    "terminal": ("{} *", "{}  "),  # a star marks the best
}


def _marks(values: pd.Series, form: str) -> pd.Series:
    """How to write the values of a column: the best is bold, the second best italic."""
    # Values that look equal share a rank.
    shown = (100 * values).map("{:.2f}".format).astype(float)
    ranks = shown.rank(method="dense", ascending=False)
    return ranks.map(dict(enumerate(BOLD_ITALIC[form], start=1))).fillna("{}")


def table_of(
    section: Section,
    form: str = "markdown",
    *,
    extended: bool = False,
    policies: Sequence[str] | None = None,
) -> Table:
    """Policies against metrics in %: means ± deviations, best bold, second italic.

    Figures of the paper stand below ours, in brackets. ``extended`` adds seconds; ``policies`` are
    those to show, all by default.
    """
    policies = section.policies if policies is None else policies
    texts: dict[str, list[str]] = {"policy": [POLICIES[name].title for name in policies]}
    below = "<br>" if form in ("markdown", "html") else " "
    for target, (metric, k) in section.targets.items():
        # NaN where a policy was not run, or where the paper has no figure.
        values, paper = (
            pd.Series({policy: value(policy, target) for policy in policies}, dtype=float)
            for value in (section.mean, section.figure)
        )
        marks, paper_marks = _marks(values, form), _marks(paper[values.notna()], form)
        column = []
        for policy in policies:
            if math.isnan(values[policy]):
                column.append(MISSING if supports(policy, metric, k) else UNSUPPORTED)
                continue
            cell = section.cells.loc[(policy, target)]
            text = with_deviation(cell["mean"], cell["std"])
            text += f" ({duration(cell['seconds'])})" if extended else ""
            text += "" if section.is_complete(policy, target) else PARTIAL
            text = marks[policy].format(text)
            if not math.isnan(paper[policy]):
                note = LABEL_FED if is_label_fed(policy, target) else ""
                text += f"{below}[{paper_marks[policy].format(f'{100 * paper[policy]:.2f}')}{note}]"
            column.append(text)
        texts[heading(target)] = column
    return Table(section.title, pd.DataFrame(texts), 1, " ".join(_notes(section)))


def with_deviation(mean: float, deviation: float) -> str:
    """A mean over sequences in %, with its standard deviation; one sequence has none.

    >>> with_deviation(0.51234, 0.0012), with_deviation(0.5, math.nan)
    ('51.23 ± 0.12', '50.00')
    """
    return f"{100 * mean:.2f}" + ("" if math.isnan(deviation) else f" ± {100 * deviation:.2f}")


def paper_tables(sections: Iterable[Section], form: str, *, extended: bool = False) -> list[Table]:
    """Tables in the paper's layout: one for each suite, in which sets are blocks of rows."""
    suites: dict[str, list[Section]] = {}
    for section in sections:
        suites.setdefault(section.suite, []).append(section)
    tables = []
    for suite, group in suites.items():
        blocks = []
        for section in group:
            frame = table_of(section, form, extended=extended).frame
            # The dataset stands in the first row of its block.
            names = [escaped(section.title, form), *[""] * (len(frame) - 1)]
            blocks.append(frame.assign(dataset=names)[["dataset", *frame]])
        # Each sentence once: most hold for all datasets.
        notes = dict.fromkeys(note for section in group for note in _notes(section))
        tables.append(Table(suite, pd.concat(blocks).fillna(MISSING), 2, " ".join(notes)))
    return tables


def duration(seconds: float) -> str:
    """A time that people can read.

    >>> duration(0.00123), duration(75.2)
    ('1.23 ms', '75.2 s')
    """
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def plain(number: float) -> str:
    """A number as people write it.

    >>> plain(0.0), plain(1e-6), plain(0.001)
    ('0', '1e-6', '0.001')
    """
    return f"{number:g}".replace("e-0", "e-")


def _notes(section: Section) -> list[str]:
    """Sentences below a table: how λ was chosen and η estimated."""
    estimator, name = section.estimator, section.estimator["name"]
    notes = [f"Mean ± standard deviation over {section.seeds} shuffled sequences, in %."]
    if len(section.priors) > 1:
        tried = ", ".join(map(plain, section.priors))
        notes.append(f"λ is the best of {tried} for each entry, chosen with hindsight.")
    notes.append(f"{UNSUPPORTED} not supported, {PARTIAL} some runs are missing.")
    keys = ("C", "learning_rate", "train_rows")
    options = ", ".join(f"{key} = {estimator[key]}" for key in keys if key in estimator)
    origin = "as the data were drawn with" if name == "known" else f"by {name}"
    notes.append(f"{section.dataset}: η̂ {origin}{f' ({options})' * bool(options)}.")
    if section.paper or section.stands_for:
        notes.append(
            f"In brackets the paper's figure; {LABEL_FED} is the paper's Greedy with labels."
        )
    return notes


def markdown(frame: pd.DataFrame, words: int = 1) -> str:
    """A table in Markdown; its first ``words`` columns are words, the others numbers."""
    heads, cells = list(frame.columns), frame.astype(str).to_numpy().tolist()
    rule = [":--"] * words + ["--:"] * (len(heads) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *cells))


def escaped(text: str, form: str = "markdown") -> str:
    """A text that Markdown, HTML or LaTeX shows as it is."""
    if form == "html":
        return html.escape(text)
    signs = r"([\\|<*`])" if form == "markdown" else r"([&%$#_{}])"
    return re.sub(signs, r"\\\1", text)


def _latex(text: str) -> str:
    """A text of a table, whose braces and backslashes are marks of LaTeX already."""
    return re.sub(r"(?<!\\)([%_])", r"\\\1", text).replace("η̂", r"$\hat\eta$")


def written(tables: Iterable[Table], form: str) -> str:
    """Tables one after another, as text for a terminal, Markdown, LaTeX, HTML or CSV."""
    parts = []
    for table in tables:
        title, frame, words, note = table
        if form == "markdown":
            text = markdown(frame, words)
            parts.append(f"### {escaped(title)}\n\n{text}\n\n{escaped(note)}\n")
        elif form == "latex":
            frame = frame.map(_latex).rename(columns=_latex)
            caption = escaped(f"{title}. {note}", form)
            # Words to the left, numbers to the right.
            left = "l" * words + "r" * (frame.shape[1] - words)
            parts.append(frame.to_latex(index=False, caption=caption, column_format=left))
        elif form == "html":
            body = frame.to_html(index=False, escape=False, border=0)
            parts.append(f"<h2>{escaped(title, form)}</h2>\n{body}\n<p>{escaped(note, form)}</p>\n")
        elif form == "csv":
            parts.append(frame.to_csv(index=False))
        else:
            text = frame.to_string(index=False, line_width=100)
            parts.append(f"\n{title}\n{text}\n{note}\n")
    return "\n".join(parts)


def cells_csv(records: Iterable[Record]) -> str:
    """A line for each policy, metric and λ of each section; ``chosen`` marks the best λ."""
    frames = []
    for section in sections(records):
        frame = section.by_prior.reset_index()
        metrics, budgets = zip(*frame["target"].map(section.targets), strict=True)
        frame["metric"], frame["k"] = metrics, pd.array(budgets, dtype="Int64")
        chosen = section.cells["prior"].reindex(pd.MultiIndex.from_frame(frame[CELL])).to_numpy()
        # Policies without λ have nothing to choose.
        frame["chosen"] = (frame["prior"] == chosen) | frame["prior"].isna()
        values = [section.figure(*place) for place in frame[CELL].itertuples(index=False)]
        frame["paper"] = pd.Series(values, dtype=float).where(frame["chosen"])
        frame["difference"] = frame["mean"] - frame["paper"]
        names = ("suite", "dataset", "protocol", "n", "m")
        head = {name: getattr(section, name) for name in names}
        frames.append(frame.assign(**head, estimator=section.estimator["name"]))
    return pd.concat(frames).to_csv(index=False)
