"""Delimited text: CSV, TSV, and numbers with blanks between them.

Every part of omma that reads or writes such text does it here, a line at a time or a whole file. So
separator, header, id, number, class and missing value mean the same to the datasets and to all
commands.
"""

import csv
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.datasets.text import opened_bytes

# Words for a label that is true, and one that is not. Each pair goes together: a column of "y" and
# "no" is a column of classes.
TRUTH_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("positive", "negative"))
TRUTHS = {word: 1.0 - place for pair in TRUTH_PAIRS for place, word in enumerate(pair)}
MISSING = ("", "nan", "na", "n/a", "null", "<na>")  # as pandas, R and SQL write an unknown value
SEPARATORS = ("\t", ";", "|", ",")
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
QUOTED = re.compile(r'"[^"]*"')
# The end of a line on old Macs, about which readers of CSV disagree.
LONE_RETURN = re.compile(rb"\r(?!\n)")
# How formulas begin in spreadsheets (OWASP, "CSV Injection"), the wide signs of East Asia included.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
SAMPLE = 50  # lines that tell the separator, and rows that tell what a column holds
LARGE = 1 << 20  # bytes: below it, importing pyarrow takes longer than reading
WIDEST = 4096  # columns: above, a table of pyarrow costs more than it saves
BLOCK = 1 << 20  # numbers written at a time: 8 MB where a sparse matrix becomes dense

Names = tuple[str, ...] | None
Row = tuple[int, list[str]]  # the number of the line, and its cells


class TableColumns(NamedTuple):
    """Columns of numbers, columns of text, and the number of each row's line."""

    numbers: NDArray[np.float64]
    texts: list[list[str]]
    lines: Sequence[int]


# Lines to cells.


def separator_of(lines: Sequence[str], default: str | None) -> str | None:
    """What stands between the cells of the first lines; ``default`` where nothing tells.

    >>> [separator_of(lines, ",") for lines in (["a;b", "0,5;1"], ["a|b"], ["a", "0,5"])]
    [';', '|', ';']
    """
    bare = [QUOTED.sub("", line) for line in lines if line.strip()][:2]
    for sign in SEPARATORS:
        counts = {line.count(sign) for line in bare}
        if len(counts) == 1 and 0 not in counts:  # each line has as many cells
            return sign
    first = bare[0] if bare else ""
    if default is not None and default in first:
        return default
    ragged = next((sign for sign in SEPARATORS if sign in first), None)
    # One column of numbers with decimal commas has no separator at all.
    is_decimal = len(bare) > 1 and DECIMAL_COMMA.fullmatch(bare[1].strip())
    return ragged or (";" if is_decimal else default)


def rows(
    lines: Iterable[str], separator: str | None, path: Path | str | None = None
) -> Iterator[Row]:
    """Number and cells of each line that is not blank; cells in quotes may go over several lines.

    Without a separator there are blanks between cells. Errors name the ``path`` and the line where
    there is one.
    """
    if separator is None:  # any number of blanks is one separator
        lines, separator = (" ".join(line.split()) for line in lines), " "
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for cells in reader:
            if cells and cells != [""]:  # a blank line is no row
                yield reader.line_num, list(map(str.strip, cells))
    except csv.Error as error:  # a cell of more than 131,072 characters, or a lone \r
        where = "" if path is None else f"{path}, line {reader.line_num}: "
        raise ValueError(f"{where}expected cells, got something else ({error})") from error


def split(line: str, separator: str | None) -> list[str]:
    """The cells of one line."""
    return next((cells for _, cells in rows([line], separator)), [])


# What a cell or a line means.


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or comma."""
    try:
        float(cell)
    except ValueError:
        return DECIMAL_COMMA.fullmatch(cell) is not None
    return True


def to_number(cell: str, separator: str | None = ",") -> float:
    """A number; true is 1 and false is 0. Beside other separators a comma is a decimal one.

    >>> [to_number(cell) for cell in ("0.5", "True", "FALSE")], to_number("0,5", ";")
    ([0.5, 1.0, 0.0], 0.5)
    """
    try:
        return float(cell)
    except ValueError:  # the rare case last: most cells are numbers
        if cell.lower() in TRUTH_PAIRS[0]:
            return TRUTHS[cell.lower()]
        if separator != "," and DECIMAL_COMMA.fullmatch(cell):
            return float(cell.replace(",", "."))
        raise


def to_label(cell: str, separator: str | None = ",") -> float:
    """A label as a number: yes, true, t, y and positive are 1; a missing one is NaN.

    >>> [to_label(cell) for cell in ("1", "yes", "N", "")]
    [1.0, 1.0, 0.0, nan]
    """
    word = cell.lower()
    if word in TRUTHS:
        return TRUTHS[word]
    return float("nan") if word in MISSING else to_number(cell, separator)


def is_missing(cell: str) -> bool:
    """Whether a cell says that its value is not known.

    >>> [is_missing(cell) for cell in ("", "NaN", "nancy")]
    [True, True, False]
    """
    return cell.lower() in MISSING


def meant(cell: str) -> str:
    """What a cell that is no number may mean, as the end of a sentence; or nothing.

    >>> meant("0,5")
    '; if the comma is a decimal one, write a point: 0.5'
    >>> meant("45 %")
    '; if these are percent, pass percent=True'
    """
    word = cell.strip()
    if DECIMAL_COMMA.fullmatch(word):
        return f"; if the comma is a decimal one, write a point: {word.replace(',', '.')}"
    if word.endswith("%") and is_number(word[:-1]):
        return "; if these are percent, pass percent=True"
    return ""


def is_header(cells: list[str], below: Sequence[list[str]] = ()) -> bool:
    """Whether the first line has names: words, or the numbers of the columns from zero on.

    Words such as yes and no are names only where the line below has no word of their pair; a single
    letter, such as y, also where it does not come again. The numbers 0 and 1 may be labels, too:
    they are names where fractions follow.
    """
    words = [cell for cell in cells if not is_number(cell)]
    after = below[0] if below else []
    if not words:
        # pandas calls columns without names 0, 1, 2, …
        numbered = cells == [str(number) for number in range(len(cells))]
        return numbered and (len(cells) > 2 or bool(_fractions(after)))
    if len(cells) == len(after) and all(
        _is_truth_row(cell, [row[place] for row in below if place < len(row)])
        for place, cell in enumerate(cells)
    ):
        return False  # labels without a header
    fractions = _fractions(cells)
    if fractions:
        raise ValueError(
            f"expected names of columns or numbers, got {shown(words[0])} and "
            f"{shown(fractions[0])}; if a column names the rows, put a line with names first"
        )
    return True


def _is_truth_row(first: str, below: list[str]) -> bool:
    """Whether the first cell of a column is a label as those below it, and not its name."""
    if is_number(first):
        return True
    word = first.lower()
    pair = next((pair for pair in TRUTH_PAIRS if word in pair), ())
    return below[0].lower() in pair and (len(word) > 1 or first in below)


def _fractions(cells: list[str]) -> list[str]:
    return [cell for cell in cells if is_number(cell) and not cell.isdecimal()]


def parse_cell(
    where: str,
    column: str | int,
    cell: str,
    *,
    separator: str | None = ",",
    is_label: bool = False,
    percent: bool = False,
    ids_by: str | None = None,
) -> float:
    """The number in a cell; the error says what the cell, or its column by name or place, may mean.

    ``ids_by`` is the parameter that takes the name of a column of ids, where there is one.
    """
    text = cell.rstrip("% ") if percent else cell
    try:
        return to_label(text, separator) if is_label else to_number(text, separator)
    except ValueError as error:
        title = f"the column {shown(column)}" if isinstance(column, str) else f"column {column + 1}"
        hint = meant(text)
        if not hint and isinstance(column, str) and ids_by is not None:
            hint = f"; if it names rows, pass {ids_by}={shown(column)}"
        got = f"{shown(text)}{hint}" if text else "nothing"
        raise ValueError(f"{where}: expected a number in {title}, got {got}") from error


# Whole files.


class CsvTable:
    """The rows of a file, of which the first have been looked at.

    ``header`` says whether the first row has names; by default its cells tell. Without a
    ``separator`` the first lines tell it, or else the ``default``. Errors call the parameter that
    takes the name of a column of ids ``ids_by``.
    """

    def __init__(
        self,
        path: Path,
        lines: Iterable[str],
        *,
        separator: str | None = None,
        default: str | None = ",",
        header: bool | None = None,
        ids_by: str | None = None,
    ) -> None:
        lines = iter(lines)
        start = list(islice(lines, SAMPLE))
        self.path, self.ids_by = path, ids_by
        self.separator = separator or separator_of(start, default)
        self._rows = rows(chain(start, lines), self.separator, path)
        self._start = list(islice(self._rows, SAMPLE + 1))
        if not self._start:
            raise ValueError(f"{path}, line 1: expected names of columns or numbers, got nothing")
        self.first = self._start[0][1]
        self.width = len(self.first)
        if header is None:
            try:
                header = is_header(self.first, [cells for _, cells in self._start[1:]])
            except ValueError as error:
                raise ValueError(f"{path}, line 1: {error}") from error
        self.names: Names = tuple(self.first) if header else None

    def is_text(self, place: int) -> bool:
        """Whether the first value of a column that is known is a word."""
        below = self._start[self.names is not None :]
        cells = (row[place] for _, row in below if place < len(row))
        first = next((cell for cell in cells if not is_missing(cell)), "0")
        return not is_number(first.rstrip("% "))

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        labels: Sequence[int] = (),
        *,
        may_lack: bool = False,
        percent: bool = False,
    ) -> TableColumns:
        """Columns of numbers and columns of text, by their places; others are passed over.

        Of the ``numbers``, those at ``labels`` may be words such as yes and no, or missing; with
        ``may_lack`` any may be missing. With ``percent`` a sign % after a number is left out.
        """
        # Lines above the first row would shift the numbers of all others.
        if self._start[0][0] == 1:
            columns = _by_pyarrow(self, numbers, texts)
            if columns is not None:
                return columns
        values, lines = array("d"), array("q")  # a quarter of what lists of floats take
        words: list[list[str]] = [[] for _ in texts]
        label_places = frozenset(labels)
        for number, cells in chain(self._start[self.names is not None :], self._rows):
            if len(cells) != self.width:
                raise ValueError(
                    f"{self.path}, line {number}: expected {self.width} cells, as in line 1, got "
                    f"{len(cells)}"
                )
            try:
                values.extend(list(map(float, [cells[place] for place in numbers])))
            except ValueError:  # some cell is no plain number
                for place in numbers:
                    value = parse_cell(
                        f"{self.path}, line {number}",
                        place if self.names is None else self.names[place],
                        cells[place],
                        separator=self.separator,
                        is_label=place in label_places or (may_lack and not cells[place]),
                        percent=percent,
                        ids_by=self.ids_by,
                    )
                    values.append(value)
            for column, place in zip(words, texts, strict=True):
                column.append(cells[place])
            lines.append(number)
        table = np.frombuffer(values, np.float64).reshape(len(lines), len(numbers))
        return TableColumns(table, words, lines)


def _by_pyarrow(
    table: CsvTable, numbers: Sequence[int], texts: Sequence[int]
) -> TableColumns | None:
    """The columns of a large file, several times as fast as row by row, to the same bits.

    None where the file is small, unusual or wrong, or pyarrow is not installed: then rows are read
    one by one, and what is wrong is said.
    """
    is_small = table.path.stat().st_size < LARGE or table.width > WIDEST or not numbers
    separator = table.separator or ""
    if is_small or len(separator.encode()) != 1:
        return None
    try:
        arrow, library = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return None
    with opened_bytes(table.path) as file:
        data = file.read()
    has_header = table.names is not None
    start = data.find(b"\n") + 1 if has_header else 3 * (data[:3] == b"\xef\xbb\xbf")
    # Quotes, bytes that are no text, and ends of lines as nobody writes them.
    is_unusual = any(data.find(sign, start) >= 0 for sign in (b'"', b"\0"))
    if is_unusual or LONE_RETURN.search(data, start):
        return None
    kinds = {str(place): arrow.float64() for place in numbers}
    kinds |= {str(place): arrow.string() for place in texts}
    is_decimal = separator != "," and data.find(b",", start) >= 0
    try:
        content = library.read_csv(
            arrow.BufferReader(arrow.py_buffer(memoryview(data)[start:])),
            library.ReadOptions(column_names=[str(place) for place in range(table.width)]),
            # A blank line has no number, which is an error, and so rows are lines.
            library.ParseOptions(delimiter=separator, quote_char=False, ignore_empty_lines=False),
            library.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=[],
                strings_can_be_null=False,
                decimal_point="," if is_decimal else ".",
            ),
        )
        words = [
            [cell.strip() for cell in content.column(str(place)).to_pylist()] for place in texts
        ]
        # A batch fits into the cache, a column may not.
        batches = content.select([str(place) for place in numbers]).to_batches()
        values = np.concatenate([np.column_stack(batch.columns) for batch in batches])
    except (ValueError, OverflowError, MemoryError):  # as it says that something is wrong
        return None
    return TableColumns(values, words, range(1 + has_header, 1 + has_header + len(values)))


# Writing.


def write(
    file: TextIO,
    matrix: Any,
    names: Names,
    separator: str,
    ids: tuple[str, tuple[str, ...]] | None,
) -> None:
    """A line for each row, some rows at a time where the matrix is sparse."""
    if names is not None:
        file.write(csv_line(names if ids is None else (ids[0], *names), separator))
    digits = "%d" if matrix.dtype.kind in "iub" else "%.17g"  # so many read back the same
    columns = 1 if matrix.ndim == 1 else max(1, matrix.shape[1])
    step = max(1, BLOCK // columns)
    for start in range(0, matrix.shape[0], step):
        block = matrix[start : start + step]
        dense = block.toarray() if sparse.issparse(block) else block
        if ids is None:
            np.savetxt(file, dense, fmt=digits, delimiter=separator)
            continue
        for name, row in zip(ids[1][start : start + step], dense, strict=True):
            numbers = (digits % number for number in np.ravel(row).tolist())
            file.write(separator.join((csv_cell(name, separator), *numbers)) + "\n")


def csv_line(cells: Iterable[str], separator: str = ",") -> str:
    r"""A line of CSV.

    >>> csv_line(["a", "b,c"])
    'a,"b,c"\n'
    """
    return (separator.join(csv_cell(cell, separator) for cell in cells) or '""') + "\n"


def csv_cell(cell: str, separator: str = ",") -> str:
    """A cell of CSV, in quotes where it needs them: ``csv.writer`` forgets carriage returns."""
    if any(sign in cell for sign in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def spreadsheet_text(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula: an apostrophe makes it text.

    >>> [spreadsheet_text(cell) for cell in ("=1+1", "-5", "a=b")]
    ["'=1+1", '-5', 'a=b']
    """
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) and not is_number(cell) else cell
