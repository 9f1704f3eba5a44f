"""Rows of ``labels feature:value feature:value …``: svmlight, and text of the XC repository.

LIBSVM and LIBLINEAR read svmlight, too. Files of the Extreme Classification Repository start with a
line of sizes: the numbers of rows, features and labels. Matrices of labels are written alike.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

from scipy import sparse

from omma._validate import check_choice, repeated
from omma.datasets.dataset import LARGEST, TASKS, Dataset, SparseRows, assemble
from omma.datasets.text import numbered_lines, wrong
from omma.npz import HIGHEST

PAIR = "feature:value, a whole number of at least 0 and a finite number"
LABELS = "labels as whole numbers of at least 0 with commas between"
HEADER = "a header of three whole numbers: rows, features, labels"
# Groups of ranking problems, as SVMrank writes them: rows are decided one by one here.
QUERY = re.compile(r"(?:^|\s)qid:\S*")

Line = tuple[int, str, str]  # number of the line, its labels, its features
Entries = tuple[list[int], list[float]]  # columns of a row, and their values


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

    Empty lines, comments after ``#`` and ``qid:…`` are ignored.

    Parameters
    ----------
    path : str or Path
        Plain or compressed (.gz, .bz2, .xz).
    test : str or Path, optional
        File of the test part.
    task : {"binary", "multiclass", "multilabel"}, optional
        Multi-label rows look like ``1,5 3:0.2``. By default a file is multi-label if some row has
        a comma in its labels, or has no label.
    first, first_label : {0, 1}, optional
        The number of the first feature, and of the first label of multi-label rows. By default 0
        if some feature (some label) has that number, else 1.
    n_features, n_labels : int, optional
        By default the highest number that occurs is that of the last feature (label).
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
    paths = [Path(file) for file in (path, test) if file is not None]
    needs_label = task in ("binary", "multiclass")
    parts = [_features(file, _lines(file, needs_label)) for file in paths]
    # Both parts must agree on the first number and on the width, so they are renumbered together.
    features = _from_first("feature", [matrix for matrix, _ in parts], first, n_features)
    heads = [own_heads for _, own_heads in parts]
    targets: list[Any] = [[head for _, head in own_heads] for own_heads in heads]
    if task == "multilabel" or (
        task is None and not all(head and "," not in head for names in targets for head in names)
    ):
        blocks = list(map(_indicators, paths, heads))
        targets = _from_first("label", blocks, first_label, n_labels)
    return assemble(paths[0], features, targets, name=name, task=task)


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
    paths = [Path(file) for file in (path, test) if file is not None]
    features, targets = [], []
    for file in paths:
        lines = numbered_lines(file)
        line = next(lines, (1, ""))[1]
        header = header_of(line)
        if header is None:
            raise wrong(file, 1, f"{HEADER} (without one, read it as svmlight)", line)
        n, d, m = header
        matrix, heads = _features(file, (divide(*row) for row in _counted(file, lines, n)))
        targets.append(_widen(file, _indicators(file, heads), m, "label"))
        features.append(_widen(file, matrix, d, "feature"))
    return assemble(paths[0], features, targets, name=name)


def header_of(line: str, sizes: tuple[int, ...] = (3,)) -> tuple[int, ...] | None:
    """The numbers of a header, of which there are three or one of ``sizes``; None if it is none."""
    words = line.split()
    # Up to 18 digits fit into 64 bits.
    if len(words) not in sizes or not all(word.isdecimal() and len(word) < 19 for word in words):
        return None
    return tuple(map(int, words))


def divide(number: int, line: str) -> Line:
    """Split a line at the first blank, where labels end; a line may start with its features."""
    if not line or line[0].isspace():
        return number, "", line
    head, *tail = line.split(None, 1) if "\t" in line else line.split(" ", 1)
    # A line that starts with a pair has no labels, as in files of the repository.
    return (number, "", line) if ":" in head else (number, head, tail[0] if tail else "")


def _lines(path: Path, needs_label: bool) -> Iterator[Line]:
    """Rows without comments; lines that are then empty are skipped."""
    for number, line in numbered_lines(path):
        bare = line.partition("#")[0].rstrip()
        if not bare:
            continue
        row = divide(number, QUERY.sub("", bare) if "qid:" in bare else bare)
        if needs_label and not row[1]:
            raise wrong(path, number, "a label before the features", line)
        yield row


def _features(path: Path, lines: Iterable[Line]) -> tuple[Any, list[tuple[int, str]]]:
    """Features, and the number and the labels of each line, which only all lines can explain."""
    rows, heads = SparseRows(), []
    for number, head, tail in lines:
        rows.add(*_parsed(path, number, tail, parse_pairs, PAIR))
        heads.append((number, head))
    return rows.matrix(), heads


def _indicators(path: Path, heads: Iterable[tuple[int, str]]) -> sparse.csr_array:
    """Indicators from the label lists of lines."""
    rows = SparseRows("b")
    for number, head in heads:
        rows.add(*_parsed(path, number, head, parse_labels, LABELS, cut="\n"))
    indicators = rows.matrix()
    indicators.data[:] = 1  # a label that is listed twice counts once
    return indicators


def _parsed(
    path: Path,
    number: int,
    text: str,
    parse: Callable[[str], Entries],
    expected: str,
    cut: str | None = None,
) -> Entries:
    """Parse the text of a line; an error quotes its first wrong piece, of those between ``cut``."""
    try:
        return parse(text)
    except (ValueError, OverflowError) as error:
        piece = next((piece for piece in text.split(cut) if _is_wrong(piece, parse)), text)
        raise wrong(path, number, expected, piece) from error


def _is_wrong(piece: str, parse: Callable[[str], Entries]) -> bool:
    try:
        columns, _ = parse(piece)
    except (ValueError, OverflowError):
        return True
    return not columns


def parse_pairs(text: str, largest: float = LARGEST) -> Entries:
    """Columns and values of ``column:value column:value …``; ValueError if the text is wrong."""
    # Three tokens an entry: one call parses all columns, and another one all values.
    tokens = text.replace(":", " : ").split()
    if 3 * tokens[1::3].count(":") != len(tokens):
        raise ValueError("not made of pairs")
    values = list(map(float, tokens[2::3]))
    # A sum is finite only where all values are.
    if values and not (isfinite(sum(values)) and max(map(abs, values)) <= largest):
        raise ValueError("not finite")
    return _in_range(list(map(int, tokens[::3]))), values


def parse_labels(text: str) -> Entries:
    """Columns and ones of ``label,label,…``; ValueError if the text is wrong."""
    labels = _in_range(list(map(int, text.split(",")))) if text else []
    return labels, [1] * len(labels)


def _in_range(columns: list[int]) -> list[int]:
    if columns and not 0 <= min(columns) <= max(columns) < HIGHEST:
        raise ValueError("out of range")
    return columns


def _from_first(noun: str, blocks: list[Any], first: int | None, width: int | None) -> list[Any]:
    """Renumber the columns of all parts from 0, and make all parts of one width."""
    # LIBSVM counts from 1 and many other programs from 0: the file of a number 0 counts from 0.
    zero = any((block.indices == 0).any() for block in blocks)
    if first is None:
        first = 0 if zero else 1
    if first == 1 and zero:
        raise ValueError(f"{noun}s counted from 1 were expected by read_svmlight, got number 0")
    least = max(0, *(block.shape[1] - first for block in blocks))
    if width is not None and least > width:
        raise ValueError(f"n_{noun}s of read_svmlight must be at least {least}, got {width}")
    return [
        sparse.csr_array(
            (block.data, block.indices - first, block.indptr),
            shape=(block.shape[0], least if width is None else width),
        )
        for block in blocks
    ]


def _counted(path: Path, lines: Iterable[tuple[int, str]], n: int) -> Iterator[tuple[int, str]]:
    """The rows that a header counts; only empty lines may follow."""
    last = 1
    for number, line in lines:
        if number <= n + 1:
            last = number
            yield number, line
        elif line.strip():
            raise wrong(path, number, f"no more than {n} rows, as the header says", line)
    if last != n + 1:
        raise wrong(path, last, f"{n} rows, as the header says", last - 1)


def _widen(path: Path, matrix: Any, width: int, noun: str) -> Any:
    """The matrix with as many columns as the header says."""
    if width > HIGHEST:
        raise wrong(path, 1, f"at most {HIGHEST} {noun}s", width)
    if matrix.shape[1] > width:
        entry = (matrix.indices >= width).argmax()
        line = int(matrix.indptr.searchsorted(entry, side="right")) + 1
        raise wrong(path, line, f"{noun}s from 0 to {width - 1}", int(matrix.indices[entry]))
    matrix.resize(matrix.shape[0], width)
    return matrix


def is_sized(lines: list[str]) -> bool:
    """Whether the first line has the size of a matrix, and the next lines are no plain table."""
    if not lines or header_of(lines[0], (2, 3)) is None:
        return False
    # Two whole numbers may also be the first row of a table with two columns.
    body = next((line for line in lines[1:] if line.strip()), "")
    return ":" in body or len(body.split()) < 2


def read_sized(path: Path, lines: list[str]) -> sparse.csr_array:
    """A matrix in the format of the repository: of values, or of ones if lines list labels.

    After the size ``n m`` a line is ``label:value label:value …`` or ``label,label,…``. In data
    files, whose size is ``n d m``, labels come before features; only the labels are read.
    """
    size = [int(cell) for cell in lines[0].split()]
    body = [
        (number, (divide(number, line)[1] if len(size) == 3 else line).strip())
        for number, line in _counted(path, enumerate(lines[1:], start=2), size[0])
    ]
    has_values = any(":" in text for _, text in body)
    # Here values are float64; features, above, must fit into float32.
    pairs = partial(parse_pairs, largest=sys.float_info.max)
    parsing = (pairs, "label:value", None) if has_values else (parse_labels, "a label", ",")
    rows = SparseRows("d" if has_values else "b")
    for number, text in body:
        labels, values = _parsed(path, number, text, *parsing)
        twice = repeated(labels)
        if twice is not None:
            raise ValueError(f"{path}, line {number}: expected each label once, got {twice} twice")
        rows.add(labels, values)
    return _widen(path, rows.matrix(), size[-1], "label")


def write_sized(file: TextIO, matrix: Any) -> None:
    """Write the size ``n m``, then labels if all values are one, else ``label:value``."""
    csr = sparse.csr_array(matrix if matrix.ndim == 2 else matrix.reshape(-1, 1))
    csr.eliminate_zeros()
    file.write(f"{csr.shape[0]} {csr.shape[1]}\n")
    # Decisions are ones; the repr of a float64 is read as the same number.
    plain = csr.dtype.kind in "iub" and bool((csr.data == 1).all())
    for row in range(csr.shape[0]):
        entries = slice(csr.indptr[row], csr.indptr[row + 1])
        ids = csr.indices[entries].tolist()
        if plain:
            file.write(",".join(map(str, ids)) + "\n")
        else:
            pairs = zip(ids, csr.data[entries].tolist(), strict=True)
            file.write(" ".join(f"{label}:{value!r}" for label, value in pairs) + "\n")
