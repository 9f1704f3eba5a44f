"""The text format of the Extreme Classification Repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy import sparse

from omma.datasets.dataset import Dataset
from omma.datasets.formats.pairs import Line, divide, read_rows
from omma.datasets.formats.part import Part, assemble
from omma.datasets.formats.text import bare_name, numbered_lines, wrong

HEADER = "a header of three whole numbers: rows, features, labels"


def read_xc(
    path: str | Path, test: str | Path | None = None, *, name: str | None = None
) -> Dataset:
    r"""Read text of the Extreme Classification Repository.

    The first line has the numbers of rows, features and labels; every other line is a row,
    ``label,label feature:value feature:value``, both counted from 0. A row may have no labels (it
    begins with a blank) and no features.

    Parameters
    ----------
    path : str or Path
        Plain or compressed (.gz, .bz2, .xz).
    test : str or Path, optional
        File of the test part.
    name : str, optional
        By default that of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_xc
    >>> _ = Path("toy.txt").write_text("2 3 4\n0,3 1:0.5 2:1\n 0:2\n")
    >>> toy = read_xc("toy.txt")
    >>> toy.X.toarray().tolist(), toy.y.toarray().tolist()
    ([[0.0, 0.5, 1.0], [2.0, 0.0, 0.0]], [[1, 0, 0, 1], [0, 0, 0, 0]])
    """
    paths = [Path(one) for one in (path, test) if one is not None]
    return assemble(name or bare_name(paths[0]), [_part(one) for one in paths])


def header_of(line: str) -> tuple[int, int, int] | None:
    """The three numbers of a header, or None if the line is none."""
    words = line.split()
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        return None
    n, d, m = map(int, words)
    return n, d, m


def _part(path: Path) -> Part:
    lines = numbered_lines(path)
    line = next(lines, (1, ""))[1]
    header = header_of(line)
    if header is None:
        raise wrong(path, 1, f"{HEADER} (without one, read it as svmlight)", line)
    n, d, m = header
    features, labels = read_rows(path, _rows(path, lines, n), with_labels=True)
    if features.shape[0] != n:
        raise wrong(path, features.shape[0] + 1, f"{n} rows, as the header says", features.shape[0])
    return Part(_widen(path, features, d, "feature"), _widen(path, labels, m, "label"))


def _rows(path: Path, lines: Iterator[tuple[int, str]], n: int) -> Iterator[Line]:
    """As many rows as the header says, then nothing but empty lines."""
    for number, line in lines:
        if number <= n + 1:
            yield divide(number, line)
        elif line.strip():
            raise wrong(path, number, f"no more than {n} rows, as the header says", line)


def _widen(path: Path, matrix: Any, width: int, what: str) -> Any:
    """As wide as the header says."""
    if matrix.shape[1] > width:
        row = (matrix.indices >= width).argmax()
        line = int(matrix.indptr.searchsorted(row, side="right")) + 1
        raise wrong(path, line, f"{what}s from 0 to {width - 1}", int(matrix.indices[row]))
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return sparse.csr_array(parts, shape=(matrix.shape[0], width))
