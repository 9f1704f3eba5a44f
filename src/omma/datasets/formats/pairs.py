"""Rows of ``labels feature:value feature:value …``: svmlight, and text of the XC repository.

svmlight is what LIBSVM and LIBLINEAR read, too; the Extreme Classification Repository puts a line
with the numbers of rows, features and labels first.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_choice
from omma.datasets.dataset import TASKS, Dataset
from omma.datasets.formats.part import Part, assemble, from_entries
from omma.datasets.text import numbered_lines, wrong
from omma.npz import HIGHEST

BLOCK = 2000  # rows whose numbers are converted in one go
PAIR = "feature:value, a whole number of at least 0 and a finite number"
LABELS = "labels as whole numbers of at least 0 with commas between"
MATRIX = ("label:value", "a label")
HEADER = "a header of three whole numbers: rows, features, labels"
QUERY = re.compile(r"(?:^|\s)qid:\S*")

Line = tuple[int, str, str]  # number of the line, its labels, its features
Numbers = tuple[list[int], NDArray[np.int32], NDArray[Any]]


def read_svmlight(
    path: str | Path,
    test: str | Path | None = None,
    *,
    task: str | None = None,
    first: int | None = None,
    first_label: int | None = None,
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
    first, first_label : {0, 1}, optional
        The lowest number that a feature, and a label of a multi-label row, can have. By default 0
        if some feature (some label) has that number, else 1.
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
    for option, value in (("first", first), ("first_label", first_label)):
        if value not in (None, 0, 1):
            raise ValueError(f"{option} of read_svmlight must be 0, 1 or None, got {value!r}")
    paths = [Path(one) for one in (path, test) if one is not None]
    many = task == "multilabel" or (task is None and any(map(_has_many, paths)))
    parts = [Part(*read_rows(one, _lines(one, many), with_labels=many)) for one in paths]
    features = _columns("feature", [part.X for part in parts], first, n_features)
    targets = [part.y for part in parts]
    if many:
        targets = _columns("label", targets, first_label, n_labels)
    parts = [Part(*pair) for pair in zip(features, targets, strict=True)]
    return assemble(paths[0], parts, name=name, task=task)


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
    return assemble(paths[0], [_xc_part(one) for one in paths], name=name)


def header_of(line: str, sizes: tuple[int, ...] = (3,)) -> tuple[int, ...] | None:
    """The three numbers of a header, or so many others, or None if the line is none."""
    words = line.split()
    if len(words) not in sizes or not all(word.isdecimal() and len(word) < 19 for word in words):
        return None
    return tuple(map(int, words))


def divide(number: int, line: str) -> Line:
    """Labels end at the first blank; a row that begins with a blank or a pair has none."""
    if not line or line[0].isspace():
        return number, "", line
    head, *tail = line.split(None, 1) if "\t" in line else line.split(" ", 1)
    return (number, "", line) if ":" in head else (number, head, tail[0] if tail else "")


def _lines(path: Path, many: bool) -> Iterator[Line]:
    """Rows without comments; a line with nothing else is none."""
    for number, line in numbered_lines(path):
        bare = line.partition("#")[0].rstrip()
        if not bare:
            continue
        row = divide(number, QUERY.sub("", bare) if "qid:" in bare else bare)
        if not many and not row[1]:
            raise wrong(path, number, "a label before the features", line)
        yield row


def _has_many(path: Path) -> bool:
    """Whether some row has several labels, or none."""
    return any(not head or "," in head for _, head, _ in _lines(path, True))


def _columns(what: str, blocks: list[Any], first: int | None, width: int | None) -> list[Any]:
    """Columns from the first possible number to the last, in all parts alike."""
    zero = any((block.indices == 0).any() for block in blocks)
    if first is None:
        first = 0 if zero else 1
    if first == 1 and zero:
        raise ValueError(f"{what}s counted from 1 were expected by read_svmlight, got number 0")
    seen = max(0, *(block.shape[1] - first for block in blocks))
    wanted = seen if width is None else width
    if seen > wanted:
        raise ValueError(f"n_{what}s of read_svmlight must be at least {seen}, got {wanted}")
    return [
        sparse.csr_array(
            (block.data, block.indices - first, block.indptr), shape=(block.shape[0], wanted)
        )
        for block in blocks
    ]


def _xc_part(path: Path) -> Part:
    lines = numbered_lines(path)
    line = next(lines, (1, ""))[1]
    header = header_of(line)
    if header is None:
        raise wrong(path, 1, f"{HEADER} (without one, read it as svmlight)", line)
    n, d, m = header
    features, labels = read_rows(path, _xc_rows(path, lines, n), with_labels=True)
    if features.shape[0] != n:
        raise wrong(path, features.shape[0] + 1, f"{n} rows, as the header says", features.shape[0])
    return Part(_widen(path, features, d, "feature"), _widen(path, labels, m, "label"))


def _xc_rows(path: Path, lines: Iterator[tuple[int, str]], n: int) -> Iterator[Line]:
    """As many rows as the header says, then nothing but empty lines."""
    for number, line in lines:
        if number <= n + 1:
            yield divide(number, line)
        elif line.strip():
            raise wrong(path, number, f"no more than {n} rows, as the header says", line)


def _widen(path: Path, matrix: Any, width: int, what: str) -> Any:
    """As wide as the header says."""
    if width > HIGHEST:
        raise wrong(path, 1, f"at most {HIGHEST} {what}s", width)
    if matrix.shape[1] > width:
        row = (matrix.indices >= width).argmax()
        line = int(matrix.indptr.searchsorted(row, side="right")) + 1
        raise wrong(path, line, f"{what}s from 0 to {width - 1}", int(matrix.indices[row]))
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return sparse.csr_array(parts, shape=(matrix.shape[0], width))


def read_rows(
    path: Path, lines: Iterator[Line], *, with_labels: bool
) -> tuple[sparse.csr_array, Any]:
    """Features, and indicators or else the text before the pairs of each row."""
    texts: list[str] = []
    features: list[Numbers] = []
    labels: list[Numbers] = []
    while block := list(islice(lines, BLOCK)):
        numbers, heads, tails = zip(*block, strict=True)
        features.append(_convert(path, numbers, tails, pairs_of, PAIR))
        if with_labels:
            labels.append(_convert(path, numbers, heads, labels_of, LABELS))
        else:
            texts.extend(heads)
    if not with_labels:
        return from_entries(*_joined(features)), texts
    indicators = from_entries(*_joined(labels))
    indicators.data[:] = 1  # a label named twice is there once
    return from_entries(*_joined(features)), indicators


def pairs_of(texts: tuple[str, ...], kind: Any = np.float32) -> Numbers:
    """Entries of rows; ValueError if some row is not made of pairs."""
    tokens = " ".join(texts).replace(":", " : ").split()
    if 3 * tokens[1::3].count(":") != len(tokens):
        raise ValueError("not made of pairs")
    count = len(tokens) // 3
    columns = np.fromiter(map(int, tokens[::3]), np.int64, count)
    with np.errstate(over="ignore"):  # which makes it infinite
        values = np.fromiter(map(float, tokens[2::3]), np.float64, count).astype(kind)
    if not np.isfinite(values).all():
        raise ValueError("not finite")
    return [text.count(":") for text in texts], _in_range(columns), values


def labels_of(texts: tuple[str, ...]) -> Numbers:
    """Labels of rows as entries of one; ValueError if some are no whole numbers."""
    counts = [text.count(",") + 1 if text else 0 for text in texts]
    joined = ",".join(text for text in texts if text)
    columns = np.fromiter(map(int, joined.split(",") if joined else ()), np.int64, sum(counts))
    return counts, _in_range(columns), np.ones(len(columns), np.int8)


def _in_range(columns: NDArray[np.int64]) -> NDArray[np.int32]:
    if len(columns) and (columns.min() < 0 or columns.max() >= HIGHEST):
        raise ValueError("out of range")
    return columns.astype(np.int32)


def _convert(
    path: Path,
    numbers: Sequence[int],
    texts: tuple[str, ...],
    convert: Callable[[tuple[str, ...]], Numbers],
    wanted: str,
) -> Numbers:
    """Convert a block; if that fails, go over it piece by piece to say where and why."""
    try:
        return convert(texts)
    except (ValueError, OverflowError) as error:
        cut = {LABELS: "\n", MATRIX[1]: ","}.get(wanted)  # else at blanks
        for number, text in zip(numbers, texts, strict=True):
            for piece in text.split(cut):
                if not _fits(convert, piece) or (text and not piece):
                    raise wrong(path, number, wanted, piece) from error
        raise wrong(path, numbers[0], f"rows of {wanted} from here on", texts[0]) from error


def _fits(convert: Callable[[tuple[str, ...]], Numbers], piece: str) -> bool:
    try:
        convert((piece,))
    except (ValueError, OverflowError):
        return False
    return True


def _joined(blocks: list[Numbers]) -> Numbers:
    counts = [count for block in blocks for count in block[0]]
    columns = [np.empty(0, np.int32), *(block[1] for block in blocks)]
    values = [block[2] for block in blocks] or [np.empty(0, np.float32)]
    return counts, np.concatenate(columns), np.concatenate(values)


def is_sized(lines: list[str]) -> bool:
    """Whether the first line is the size of a matrix, and what follows is no table of numbers."""
    if not lines or header_of(lines[0], (2, 3)) is None:
        return False
    body = next((line for line in lines[1:] if line.strip()), "")
    return ":" in body or len(body.split()) < 2


def read_sized(path: Path, lines: list[str]) -> sparse.csr_array:
    """A matrix as the repository writes it: values, or ones where the file holds labels.

    After ``n m`` a line holds ``label:value label:value …``, or ``label,label,…`` alone. In data
    files, whose size is ``n d m``, labels come before features; of those, labels are read.
    """
    size = [int(cell) for cell in lines[0].split()]
    n, m, body = size[0], size[-1], lines[1:]
    if m > HIGHEST:
        raise wrong(path, 1, f"at most {HIGHEST} labels", m)
    while len(body) > n and not body[-1].strip():  # a row may be empty, so only what is over
        body.pop()
    if len(body) != n:
        raise ValueError(f"{path}, line 1: promises {n} rows, got {len(body)}")
    rows = [(divide(0, line)[1] if len(size) == 3 else line).strip() for line in body]
    valued = any(":" in row for row in rows)
    convert = partial(pairs_of, kind=np.float64) if valued else labels_of
    blocks = [
        _convert(
            path,
            range(start + 2, min(start + BLOCK, n) + 2),
            tuple(rows[start : start + BLOCK]),
            convert,
            MATRIX[not valued],
        )
        for start in range(0, n, BLOCK)
    ]
    return _distinct(path, *_joined(blocks), m)


def _distinct(path: Path, counts: list[int], labels: Any, values: Any, m: int) -> sparse.csr_array:
    """Rows in which each label is one of m, and there once."""
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    line = np.repeat(np.arange(2, len(counts) + 2), counts)
    if len(labels) and labels.max() >= m:
        at = int((labels >= m).argmax())
        expected = f"labels from 0 to {m - 1}, as line 1 says"
        raise wrong(path, int(line[at]), expected, int(labels[at]))
    matrix = sparse.csr_array((values, labels, starts), shape=(len(counts), m))
    matrix.sort_indices()
    twice = (np.diff(matrix.indices) == 0) & (np.diff(line) == 0)
    if twice.any():
        at = int(twice.argmax())
        raise ValueError(
            f"{path}, line {line[at]}: expected each label once, got {matrix.indices[at]} twice"
        )
    return matrix


def write_sized(file: TextIO, matrix: Any) -> None:
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
