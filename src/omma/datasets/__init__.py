"""Datasets and scored rows in files of many formats, and streams whose η is known."""

import inspect
from pathlib import Path
from typing import Any

from omma._validate import check_choice, nearest
from omma.datasets.arff import read_arff
from omma.datasets.arrays import read_arrays, read_folder, write_folder
from omma.datasets.csv_dataset import read_csv
from omma.datasets.dataset import Dataset
from omma.datasets.matrices import Matrix, read_matrix, write_matrix
from omma.datasets.scored import Scored, read_scored
from omma.datasets.svmlight import header_of, read_svmlight, read_xc
from omma.datasets.synthetic import long_tail
from omma.datasets.text import ending, numbered_lines

_MOVED = ("CATALOGUE", "Entry", "File", "like", "load")

READERS: dict[str, Any] = {
    "svmlight": read_svmlight,
    "xc": read_xc,
    "arff": read_arff,
    "csv": read_csv,
    "arrays": read_arrays,
    "folder": read_folder,
}
ENDINGS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "csv",
    ".npz": "arrays",
    ".npy": "arrays",
}


def read(path: str | Path, format: str | None = None, **options: Any) -> Dataset:  # noqa: A002
    r"""Read a dataset from a file or folder.

    Parameters
    ----------
    path : str or Path
        A file, plain or compressed (.gz, .bz2, .xz), or a folder.
    format : {"svmlight", "xc", "arff", "csv", "arrays", "folder"}, optional
        By default the ending of the name decides: .svm, .svmlight, .libsvm; .arff; .csv, .tsv;
        .npz, .npy. A .txt file with a header of the Extreme Classification Repository is read as
        "xc", any other .txt file as "svmlight".
    **options
        Parameters of the reader of the format: see ``read_svmlight``, ``read_xc``, ``read_arff``,
        ``read_csv``, ``read_arrays``. Text formats take ``test=``, the file of the test part.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read
    >>> _ = Path("toy.csv").write_text("1,2,cat\n3,4,dog\n")
    >>> read("toy.csv", header=False)
    Dataset('toy', binary, 2 rows, 2 features, 2 classes, no split)
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file}: expected a file or folder, there is none")
    check_choice("read", "format", format, (None, *READERS))
    chosen = format or _format_of(file)
    reader = READERS[chosen]
    known = list(inspect.signature(reader).parameters)[1:]
    for option in options:
        if option not in known:
            takes = f"takes {', '.join(known)}" if known else "takes no options"
            raise TypeError(
                f"read of the format {chosen!r} {takes}, got {option!r}{nearest(option, known)}"
            )
    return reader(file, **options)  # type: ignore[no-any-return]


def _format_of(path: Path) -> str:
    """Guess the format from the name, or from the first line of a .txt file."""
    if path.is_dir():
        return "folder"
    kind = ending(path)
    if kind == ".txt":
        line = next(numbered_lines(path), (1, ""))[1]
        return "xc" if header_of(line) else "svmlight"
    if kind not in ENDINGS:
        raise ValueError(
            f"{path}: expected a name that ends in {', '.join([*ENDINGS, '.txt'])}, or format= "
            f"with one of {', '.join(READERS)}"
        )
    return ENDINGS[kind]


def __getattr__(name: str) -> Any:
    """Say where a name has moved to."""
    if name in _MOVED:
        raise AttributeError(
            f"omma.datasets.{name} moved to the package omma-study: pip install omma-study, then "
            f"omma_study.datasets.{name}"
        )
    raise AttributeError(f"module 'omma.datasets' has no attribute {name!r}")


__all__ = [
    "Dataset",
    "Matrix",
    "Scored",
    "long_tail",
    "read",
    "read_arff",
    "read_arrays",
    "read_csv",
    "read_folder",
    "read_matrix",
    "read_scored",
    "read_svmlight",
    "read_xc",
    "write_folder",
    "write_matrix",
]
