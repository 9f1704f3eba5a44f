"""Arrays in files of NumPy and SciPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma.datasets.dataset import Dataset
from omma.datasets.formats.folder import stored
from omma.datasets.formats.sound import archive, array


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
    if labels is not None:
        features, target = _matrix(file, ("X",)), _matrix(Path(labels), ("y", "Y"))
    else:
        features, target = _both(file)
    if target.ndim == 2 and target.shape[1] == 1 and task != "multilabel":
        target = target.toarray().ravel() if sparse.issparse(target) else target.ravel()
    guess = "multilabel" if target.ndim == 2 else "binary" if _zero_one(target) else "multiclass"
    return Dataset(name or file.stem, task or guess, features, target, split)


def _matrix(path: Path, names: tuple[str, ...]) -> Any:
    if path.suffix.lower() == ".npy":
        return array(path)
    return stored(path, names)


def _both(path: Path) -> tuple[Any, Any]:
    found: tuple[str, ...] = ("one array",)
    if path.suffix.lower() == ".npz":
        with archive(path) as file:
            target = next((name for name in ("y", "Y") if name in file), None)
            if "X" in file and target is not None:
                return file["X"], file[target]
            found = tuple(file.files)
    raise ValueError(
        f"{path}: expected arrays X and y, or a second file passed as labels=, "
        f"got {', '.join(found)}"
    )


def _zero_one(target: Any) -> bool:
    return bool(len(target)) and set(np.unique(target).tolist()) == {0, 1}
