"""The svmlight format, which LIBSVM and LIBLINEAR read too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy import sparse

from omma._validate import check_choice
from omma.datasets.dataset import TASKS, Dataset
from omma.datasets.formats.pairs import Line, divide, read_rows
from omma.datasets.formats.part import Part, assemble
from omma.datasets.formats.text import bare_name, numbered_lines, wrong

QUERY = re.compile(r"(?:^|\s)qid:\S*")


def read_svmlight(
    path: str | Path,
    test: str | Path | None = None,
    *,
    task: str | None = None,
    first: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    name: str | None = None,
) -> Dataset:
    r"""Read svmlight or LIBSVM text: ``label feature:value feature:value``.

    Empty lines and what follows ``#`` are passed over, and so is ``qid:…``.

    Parameters
    ----------
    path : str or Path
        Plain or compressed (.gz, .bz2, .xz).
    test : str or Path, optional
        File of the test part.
    task : {"binary", "multiclass", "multilabel"}, optional
        Multi-label rows look like ``1,5 3:0.2``. By default they are expected if some row has a
        comma in its labels, or none.
    first : {0, 1}, optional
        The lowest number a feature, and a label of a multi-label row, can have. By default 1 if
        no feature (no label) has number 0.
    n_features, n_labels : int, optional
        By default as many as the highest number asks for.
    name : str, optional
        By default that of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_svmlight
    >>> _ = Path("toy.svm").write_text("+1 1:0.5 3:1  # comment\n-1 2:2\n")
    >>> toy = read_svmlight("toy.svm")
    >>> toy.X.toarray().tolist(), toy.y.tolist(), toy.labels
    ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [1, 0], ('-1', '1'))
    """
    check_choice("read_svmlight", "task", task, (None, *TASKS))
    if first not in (None, 0, 1):
        raise ValueError(f"first of read_svmlight must be 0, 1 or None, got {first!r}")
    paths = [Path(one) for one in (path, test) if one is not None]
    many = task == "multilabel" or (task is None and any(map(_has_many, paths)))
    parts = [Part(*read_rows(one, _lines(one, many), with_labels=many)) for one in paths]
    features = _columns([part.X for part in parts], first, n_features)
    targets = _columns([part.y for part in parts], first, n_labels) if many else None
    return assemble(
        name or bare_name(paths[0]),
        [
            Part(features[i], parts[i].y if targets is None else targets[i])
            for i in range(len(parts))
        ],
        task=task,
    )


def _lines(path: Path, many: bool) -> Iterator[Line]:
    """Rows without comments; an empty line is a row only if it may be one without labels."""
    for number, line in numbered_lines(path):
        bare = line.partition("#")[0].rstrip()
        if not bare:
            continue
        if "qid:" in bare:
            bare = QUERY.sub("", bare)
        row = divide(number, bare)
        if not many and not row[1]:
            raise wrong(path, number, "a label before the features", line)
        yield row


def _has_many(path: Path) -> bool:
    """Whether some row has several labels, or none."""
    for number, line in numbered_lines(path):
        bare = line.partition("#")[0].rstrip()
        if bare:
            head = divide(number, bare)[1]
            if not head or "," in head:
                return True
    return False


def _columns(blocks: list[Any], first: int | None, width: int | None) -> list[Any]:
    """Columns from the first possible number to the last, in all parts alike."""
    if first is None:
        first = 0 if any((block.indices == 0).any() for block in blocks) else 1
    seen = max(block.shape[1] for block in blocks) - first
    wanted = max(seen, 0) if width is None else width
    if seen > wanted:
        raise ValueError(
            f"a number of read_svmlight must be below {wanted + first}, got {seen - 1 + first}"
        )
    if first == 1 and any((block.indices == 0).any() for block in blocks):
        raise ValueError("first of read_svmlight must be 0 for this file, number 0 occurs")
    return [
        sparse.csr_array(
            (block.data, block.indices - first, block.indptr), shape=(block.shape[0], wanted)
        )
        for block in blocks
    ]
