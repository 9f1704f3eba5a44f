"""Datasets in files of NumPy and SciPy, and in folders of such files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma import npz
from omma._atomic import replacing
from omma._json import parse_json
from omma._validate import shown
from omma.datasets.dataset import LARGEST, TASKS, Dataset, dense
from omma.datasets.matrices import read_matrix

FILES = ("X.npz", "Y.npz", "meta.json")


def read_arrays(
    path: str | Path,
    labels: str | Path | None = None,
    *,
    task: str | None = None,
    split: int | None = None,
    name: str | None = None,
) -> Dataset:
    """Read features and labels from .npz or .npy files.

    Parameters
    ----------
    path : str or Path
        An .npz file with arrays X and y (or Y); or, with ``labels``, an .npy file, a sparse matrix
        saved by SciPy, or an .npz file with an array X.
    labels : str or Path, optional
        File of the labels: class ids, or an indicator matrix, dense or sparse.
    task : {"binary", "multiclass", "multilabel"}, optional
        By default multi-label for a matrix, binary for ids of 0 and 1.
    split : int, optional
        Index of the first test row.
    name : str, optional
        By default that of the file.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import read_arrays
    >>> np.savez("toy.npz", X=np.eye(3), y=[0, 2, 1])
    >>> read_arrays("toy.npz")
    Dataset('toy', multiclass, 3 rows, 3 features, 3 classes, no split)
    """
    file = Path(path)
    stored = _stored_names(file)
    if labels is None and ("X" not in stored or not {"y", "Y"} & {*stored}):
        raise ValueError(
            f"{file}: expected arrays X and y, or a second file passed as labels=, "
            f"got {', '.join(stored) or 'nothing'}"
        )
    features = _features(file)
    target = _matrix(file if labels is None else Path(labels), ("y", "Y"))
    # A single column, as pandas exports class ids, is no matrix of one label.
    if target.ndim == 2 and target.shape[1] == 1 and task != "multilabel":
        target = dense(target).ravel()
    two = target.ndim == 1 and set(np.unique(target).tolist()) == {0, 1}
    guess = "multilabel" if target.ndim == 2 else "binary" if two else "multiclass"
    return Dataset(name or file.stem, task or guess, features, target, split)


def _stored_names(path: Path) -> tuple[str, ...]:
    if path.suffix.lower() != ".npz":
        return ("one array",)
    with npz.opened(path) as archive:
        return tuple(archive.members)


def _matrix(path: Path, titles: tuple[str, ...]) -> Any:
    """The array with one of these names, a sparse matrix, or the only array of a file."""
    stored = _stored_names(path)
    title = next((title for title in titles if title in stored), None)
    if title is None and len(stored) != 1 and "format" not in stored:  # which SciPy writes
        raise ValueError(
            f"{path}: expected a sparse matrix or an array named {' or '.join(titles)}, "
            f"got {', '.join(stored) or 'nothing'}"
        )
    return read_matrix(path if title is None else f"{path}:{title}").values


def _features(path: Path) -> Any:
    """Features, all of which float32 can hold."""
    features = _matrix(path, ("X",))
    values = features.data if sparse.issparse(features) else features
    bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        raise ValueError(
            f"{path}: expected features of finite numbers, got {values[bad].ravel()[0]}"
        )
    return features


def read_folder(path: str | Path) -> Dataset:
    """Read a folder of ``X.npz``, ``Y.npz`` and ``meta.json``.

    ``X.npz`` holds a SciPy sparse matrix, or a NumPy array named X. ``Y.npz`` holds a sparse
    indicator matrix, or class ids named y. ``meta.json`` has the name, the task and the split, and
    may have the names of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import Dataset, read_folder, write_folder
    >>> write_folder(Dataset("toy", "binary", X=np.eye(3), y=[0, 1, 0]), "toy")
    >>> read_folder("toy")
    Dataset('toy', binary, 3 rows, 3 features, 2 classes, no split)
    """
    folder = Path(path)
    for name in FILES:
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder}: expected {' and '.join(FILES)}, {name} is missing")
    file = folder / "meta.json"
    meta = parse_json(str(file), file.read_bytes())
    if not isinstance(meta, dict) or meta.get("task") not in TASKS:
        raise ValueError(f"{file}: expected an object that names the task, one of {TASKS}")
    if not isinstance(meta.get("labels", []), list | type(None)):
        raise ValueError(f"{file}: expected a list of labels, got {shown(meta['labels'])}")
    if not isinstance(meta.get("m", 0), int):
        raise ValueError(f"{file}: expected a whole number m, got {shown(meta['m'])}")
    data = Dataset(
        str(meta.get("name", folder.name)),
        meta["task"],
        _features(folder / "X.npz"),
        _matrix(folder / "Y.npz", ("y", "Y")),
        meta.get("split"),
        meta.get("labels"),
        m=0 if meta["task"] == "multilabel" else meta.get("m", 0),
    )
    # Files may have been exchanged by hand: meta.json must agree with the arrays.
    for key in ("n", "d", "m"):
        if meta.get(key, getattr(data, key)) != getattr(data, key):
            raise ValueError(
                f"{file}: expected {key} to be {getattr(data, key)} as in the "
                f"arrays, got {meta[key]}"
            )
    return data


def write_folder(
    dataset: Dataset, path: str | Path, *, source: str = "", licence: str = "", note: str = ""
) -> None:
    """Write a dataset for ``read_folder``, with its source and licence.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import Dataset, write_folder
    >>> toy = Dataset("toy", "binary", X=np.eye(3), y=[0, 1, 0])
    >>> write_folder(toy, "toy", licence="CC0", source="three rows by hand")
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("X", dataset.X), ("y", dataset.y)):
        content = npz.sparse_parts(array) if sparse.issparse(array) else {name: array}
        npz.write(folder / f"{name.upper()}.npz", content, pack=True)
    meta: dict[str, Any] = {
        "name": dataset.name,
        "task": dataset.task,
        "n": dataset.n,
        "d": dataset.d,
        "m": dataset.m,
        "split": dataset.split,
        "features": "sparse" if sparse.issparse(dataset.X) else "dense",
        "source": source,
        "licence": licence,
        "note": note,
    }
    if dataset.labels is not None:
        meta["labels"] = list(dataset.labels)
    with replacing(folder / "meta.json") as file:
        file.write(json.dumps(meta, indent=1).encode())
