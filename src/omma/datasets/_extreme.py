"""Text files of the Extreme Classification Repository: the size, then a line for each row.

After ``n m`` a line holds ``label:value label:value …``, or ``label,label,…`` alone. In data files
the size is ``n d m``, and a line ``label,label feature:value …``; of those, labels are read. Labels
are numbered from zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.npz import HIGHEST

BLOCK = 4096  # lines parsed at a time


def looks_like(lines: list[str]) -> bool:
    """Whether the first line is a size, and what follows is no table of numbers."""
    if not lines or not _is_size(lines[0].split()):
        return False
    body = next((line for line in lines[1:] if line.strip()), "")
    return ":" in body or len(body.split()) < 2


def _is_size(cells: list[str]) -> bool:
    return len(cells) in (2, 3) and all(cell.isdecimal() and len(cell) < 19 for cell in cells)


def read(path: Path, lines: list[str]) -> Any:
    """A CSR matrix: values, or ones where the file holds labels."""
    size = [int(cell) for cell in lines[0].split()]
    rows, m, data = size[0], size[-1], len(size) == 3
    if m > HIGHEST:
        raise ValueError(f"{path}, line 1: expected at most {HIGHEST} labels, got {m}")
    body = lines[1:]
    while len(body) > rows and not body[-1].strip():  # a row may be empty, so only what is over
        body.pop()
    if len(body) != rows:
        raise ValueError(f"{path}, line 1: promises {rows} rows, got {len(body)}")
    if data:
        body = [_labels_of(line) for line in body]
    valued = any(":" in line for line in body)
    indptr = np.zeros(rows + 1, dtype=np.int64)
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for start in range(0, rows, BLOCK):
        block = body[start : start + BLOCK]
        indptr[start + 1 : start + 1 + len(block)] = [_entries(line, valued) for line in block]
        numbers = _numbers(path, block, start, m, valued, int(indptr[start + 1 :].sum()))
        parts.append(numbers)
    np.cumsum(indptr, out=indptr)
    ids = np.concatenate([one for one, _ in parts]) if parts else np.empty(0, dtype=np.int32)
    values = np.concatenate([one for _, one in parts]) if parts else np.empty(0)
    matrix = sparse.csr_array((values, ids, indptr), shape=(rows, m))
    matrix.sort_indices()
    _refuse_twice(path, matrix)
    return matrix


def _labels_of(line: str) -> str:
    """The labels of a line of a data file, which come before the features."""
    first = line.partition(" ")[0]
    return "" if ":" in first else first


def _entries(line: str, valued: bool) -> int:
    if valued:
        return line.count(":")
    return line.count(",") + 1 if line.strip() else 0


def _numbers(
    path: Path, block: list[str], start: int, m: int, valued: bool, count: int
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Labels and values of some lines."""
    tokens = "\n".join(block).replace(":" if valued else ",", " ").split()
    try:
        found = np.array(tokens, dtype=np.float64)
    except ValueError:
        _explain(path, block, start, m, valued)
    ids = found[::2] if valued else found
    if (
        len(found) != count * (1 + valued)
        or not ((ids >= 0) & (ids < m) & (ids == np.floor(ids))).all()
    ):
        _explain(path, block, start, m, valued)
    values = found[1::2].copy() if valued else np.ones(count, dtype=np.int8)
    return ids.astype(np.int32), values


def _explain(path: Path, block: list[str], start: int, m: int, valued: bool) -> NoReturn:
    """Find the entry that could not be read."""
    for number, line in enumerate(block, start=start + 2):
        for entry in line.split() if valued else line.split(",") if line.strip() else []:
            label, colon, value = entry.strip().partition(":")
            right = label.isdecimal() and len(label) < 19 and (bool(colon) == valued)
            if right and valued:
                try:
                    float(value)
                except ValueError:
                    right = False
            if not right:
                wanted = "label:value" if valued else "a label"
                raise ValueError(f"{path}, line {number}: expected {wanted}, got {shown(entry)}")
            if int(label) >= m:
                raise ValueError(
                    f"{path}, line {number}: expected labels from 0 to {m - 1}, as line 1 says, "
                    f"got {label}"
                )
    raise ValueError(f"{path}, lines {start + 2} to {start + 1 + len(block)} cannot be read")


def _refuse_twice(path: Path, matrix: Any) -> None:
    same = np.flatnonzero(np.diff(matrix.indices) == 0)
    rows = np.searchsorted(matrix.indptr, same, side="right") - 1
    inside = same + 1 < matrix.indptr[rows + 1]
    if inside.any():
        at = int(np.flatnonzero(inside)[0])
        raise ValueError(
            f"{path}, line {int(rows[at]) + 2}: expected each label once, got "
            f"{matrix.indices[same[at]]} twice"
        )


def write(file: TextIO, matrix: Any) -> None:
    """``n m``, then labels where all values are one, else ``label:value``."""
    csr = sparse.csr_array(matrix if matrix.ndim == 2 else matrix.reshape(-1, 1))
    csr.eliminate_zeros()
    file.write(f"{csr.shape[0]} {csr.shape[1]}\n")
    plain = csr.dtype.kind in "iub" and bool((csr.data == 1).all())
    for row in range(csr.shape[0]):
        entries = slice(csr.indptr[row], csr.indptr[row + 1])
        ids = csr.indices[entries].tolist()
        if plain:
            file.write(",".join(map(str, ids)) + "\n")
        else:
            pairs = zip(ids, csr.data[entries].tolist(), strict=True)
            file.write(" ".join(f"{label}:{value!r}" for label, value in pairs) + "\n")
