"""Folders of X.npz, Y.npz and meta.json: how this library keeps data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma.datasets.dataset import Dataset
from omma.datasets.formats.sound import archive

FILES = ("X.npz", "Y.npz", "meta.json")


def is_folder(path: Path) -> bool:
    """Whether all three files are there."""
    return all((path / name).is_file() for name in FILES)


def read_folder(path: str | Path) -> Dataset:
    """Read a folder of ``X.npz``, ``Y.npz`` and ``meta.json``.

    ``X.npz`` holds a SciPy sparse matrix, or a NumPy array named X. ``Y.npz`` holds a sparse
    indicator matrix, or class ids named y. ``meta.json`` says name, task and split, and may name
    the labels.

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
    meta = _meta(folder / "meta.json")
    data = Dataset(
        str(meta.get("name", folder.name)),
        meta["task"],
        stored(folder / "X.npz", ("X",)),
        stored(folder / "Y.npz", ("y", "Y")),
        meta.get("split"),
        meta.get("labels"),
        m=0 if meta["task"] == "multilabel" else meta.get("m", 0),
    )
    for key in ("n", "d", "m"):
        if meta.get(key, getattr(data, key)) != getattr(data, key):
            raise ValueError(
                f"{folder / 'meta.json'}: expected {key} to be {getattr(data, key)} as in the "
                f"arrays, got {meta[key]}"
            )
    return data


def write_folder(
    dataset: Dataset, path: str | Path, *, source: str = "", licence: str = "", note: str = ""
) -> None:
    """Write a dataset as ``read_folder`` reads it, and where it comes from.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import Dataset, write_folder
    >>> toy = Dataset("toy", "binary", X=np.eye(3), y=[0, 1, 0])
    >>> write_folder(toy, "toy", licence="CC0", source="three rows by hand")
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    _store(folder / "X.npz", "X", dataset.X)
    _store(folder / "Y.npz", "y", dataset.y)
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
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def stored(path: Path, names: tuple[str, ...]) -> Any:
    """The sparse matrix in an npz file, or its array of one of these names, or its only array."""
    with archive(path) as file:
        if "format" in file and "shape" in file:
            return sparse.load_npz(path)
        name = next((name for name in names if name in file), None)
        if name is None and len(file.files) == 1:
            name = file.files[0]
        if name is None:
            raise ValueError(
                f"{path}: expected a sparse matrix or an array named {' or '.join(names)}, "
                f"got {', '.join(file.files) or 'nothing'}"
            )
        return file[name]


def _store(path: Path, name: str, array: Any) -> None:
    if sparse.issparse(array):
        sparse.save_npz(path, array)
    else:
        np.savez_compressed(path, **{name: array})


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: expected JSON, {error.msg}") from error
    if not isinstance(meta, dict) or "task" not in meta:
        raise ValueError(f"{path}: expected an object that names the task")
    return meta
