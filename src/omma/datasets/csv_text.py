"""Delimited text: CSV, TSV, and numbers with blanks between them.

Every part of omma that reads or writes such text does it here, a line at a time or a whole file. So
header, id, number, class and missing value mean the same to the datasets and to all commands.
"""

import csv
import mmap
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, repeated, shown
from omma.datasets.text import OPENERS, opened_bytes

TRUTHS = {"true": 1.0, "false": 0.0}
# Words that people write for 1 and 0, and that could mean other things, too: they get a hint.
ANSWERS = ("yes", "y", "t", "positive", "no", "n", "f", "negative")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "blanks"}
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
# The end of a line on old Macs, about which readers of CSV disagree.
LONE_RETURN = re.compile(rb"\r(?!\n)")
# What programs call a column that numbers the rows; pandas leaves the name of its own empty.
ID_NAMES = ("", "id", "ids", "index", "row", "row_id", "rowid", "unnamed: 0", "__index_level_0__")
# How formulas begin in spreadsheets (OWASP, "CSV Injection"), the wide signs of East Asia included.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
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
    """Whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_truth(cell: str) -> bool:
    """Whether a cell says true or false, as pandas and others write it."""
    return cell.lower() in TRUTHS


def to_number(cell: str) -> float:
    """A number; true is 1 and false is 0.

    >>> [to_number(cell) for cell in ("0.5", "True", "FALSE")]
    [0.5, 1.0, 0.0]
    """
    try:
        return float(cell)
    except ValueError:  # the rare case last: most cells are numbers
        if not is_truth(cell):
            raise
        return TRUTHS[cell.lower()]


def is_missing(cell: str) -> bool:
    """Whether a cell says that its value is not known.

    >>> [is_missing(cell) for cell in ("", "NaN", "nancy")]
    [True, True, False]
    """
    return cell.lower() in ("", "nan")


def meant(cell: str) -> str:
    """What a cell that is no number may mean, as the end of a sentence; or nothing.

    >>> meant("0,5")
    '; if the comma is a decimal one, write a point: 0.5'
    >>> meant("yes")
    '; write 1 for yes and 0 for no'
    >>> meant("45 %")
    '; write 0.45 for 45 %'
    """
    word = cell.strip().lower()
    if DECIMAL_COMMA.fullmatch(word):
        return f"; if the comma is a decimal one, write a point: {word.replace(',', '.')}"
    if word in ANSWERS:
        return "; write 1 for yes and 0 for no"
    if word.endswith("%") and is_number(word[:-1]):
        return f"; write {float(word[:-1]) / 100:g} for {cell.strip()}"
    return ""


def separated(line: str, separator: str | None) -> str:
    """What else stands between the cells of a line, as the end of a sentence; or nothing.

    >>> separated("a;b;c", ",")
    '; semicolons seem to stand between its cells: write commas'
    """
    expected = SEPARATORS[separator or " "]
    for sign in (";", "\t", "|", ","):
        if sign != separator and sign in line and (separator or " ") not in line.strip():
            more = ", or let its name end in .tsv" if sign == "\t" and separator else ""
            more = ", or let its name end in .csv" if sign == "," else more
            return f"; {SEPARATORS[sign]} seem to stand between its cells: write {expected}{more}"
        # As spreadsheets write in most of Europe.
        if sign == ";" and separator == "," and re.search(r"\d,\d+\s*;", line):
            return "; semicolons seem to stand between its cells, and decimal commas in them: " + (
                "write commas between cells and a point in numbers"
            )
    return ""


def is_header(cells: list[str], after: list[str] | None = None) -> bool:
    """Whether the first line has names: words, or the numbers of the columns from zero on.

    True and false are names only where the line after them is not of the same kind. The numbers 0
    and 1 may be labels too: they are names where fractions follow.
    """
    words = [cell for cell in cells if not is_number(cell)]
    if not words:
        # pandas calls columns without names 0, 1, 2, …
        numbered = cells == [str(number) for number in range(len(cells))]
        return numbered and (len(cells) > 2 or bool(_fractions(after or [])))
    if after is not None and _are_truths(cells) and _are_truths(after):
        return False  # labels as pandas writes them, without a header
    fractions = _fractions(cells)
    if fractions:
        raise ValueError(
            f"expected names of columns or numbers, got {shown(words[0])} and "
            f"{shown(fractions[0])}; if a column names the rows, put a line with names first"
        )
    return True


def _are_truths(cells: list[str]) -> bool:
    """Whether a line is of true and false, with numbers among them or not."""
    return any(map(is_truth, cells)) and all(is_truth(cell) or is_number(cell) for cell in cells)


def _fractions(cells: list[str]) -> list[str]:
    return [cell for cell in cells if is_number(cell) and not cell.isdecimal()]


def named_columns(
    path: Path | str, names: tuple[str, ...], id_column: str | None
) -> tuple[tuple[str, ...], int | None]:
    """Names of the labels, and the place of the column that names rows."""
    place = None
    if id_column is not None:
        if id_column not in names:
            hint = nearest(id_column, names) or f"; it has {shown(list(names))}"
            raise ValueError(f"{path} has no column {id_column!r}{hint}")
        place = names.index(id_column)
    elif not names[0] and len(names) > 1:  # the index of a pandas frame
        raise ValueError(
            f"{path}, line 1: expected labels only, got the unnamed first column, which seems to "
            "number rows (write the CSV with index=False, or pass --id '', which is id_column='')"
        )
    elif names[0].lower() in ID_NAMES and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the column {names[0]!r}, which seems to "
            f"name rows: pass id_column={names[0]!r} (--id {names[0]}), or leave it out"
        )
    twice = repeated(names)
    if twice is not None:
        raise ValueError(f"{path}, line 1: expected distinct names, got {shown(twice)} twice")
    if place is not None and len(names) == 1:
        raise ValueError(f"{path} must have columns of numbers beside {id_column!r}, got none")
    return (names, None) if place is None else (names[:place] + names[place + 1 :], place)


def no_number(where: str, column: str | int, cell: Any, hint: str = "") -> ValueError:
    """The error of a cell that is no number: what it, or its column by name or place, may mean."""
    title = f"the column {shown(column)}" if isinstance(column, str) else f"column {column + 1}"
    if isinstance(cell, str) and not cell:
        return ValueError(f"{where}: expected a number in {title}, got nothing{hint}")
    hint = hint or (meant(cell) if isinstance(cell, str) else "")
    if not hint and isinstance(column, str):
        hint = f"; if it names rows, pass id_column={shown(column)} (--id {column[:60]})"
    return ValueError(f"{where}: expected a number in {title}, got {shown(cell)}{hint}")


# Whole files.


class CsvFile:
    """The rows of a file, of which the first two have been looked at."""

    def __init__(
        self,
        path: Path,
        lines: Iterable[str],
        separator: str | None,
        convert: Callable[[str], float] = to_number,
    ) -> None:
        self.path, self.separator, self.convert = path, separator, convert
        self._rows = rows(lines, separator, path)
        # The second row tells whether the first has names.
        self._start = [row for row in (next(self._rows, None), next(self._rows, None)) if row]
        if not self._start:
            raise ValueError(f"{path}, line 1: expected names of columns or numbers, got nothing")
        self.first = self._start[0][1]

    @property
    def has_header(self) -> bool:
        """Whether the first row has names of columns."""
        try:
            return is_header(self.first, self._start[1][1] if len(self._start) > 1 else None)
        except ValueError as error:
            raise ValueError(f"{self.path}, line 1: {error}") from error

    def columns(
        self, header: bool, text_places: tuple[int, ...] = (), names: Names = None
    ) -> TableColumns:
        """All columns; those at ``text_places`` are text, the others numbers.

        ``header`` says that the first row has names; ``names``, where given, are told in errors.
        """
        width = len(self.first)
        if self._start[0][0] == 1:  # else there is more above the rows than one line of names
            columns = _by_pyarrow(self.path, self.separator, width, header, text_places)
            if columns is not None:
                return columns
        places = [place for place in range(width) if place not in text_places]
        numbers, lines = array("d"), array("q")  # a quarter of what lists of floats take
        texts: list[list[str]] = [[] for _ in text_places]
        for number, cells in chain(self._start[header:], self._rows):
            try:
                if len(cells) != width:
                    raise ValueError("too few or too many")
                numbers.extend(list(map(self.convert, [cells[place] for place in places])))
            except ValueError as error:
                raise self._error(number, cells, places, names) from error
            for text, place in zip(texts, text_places, strict=True):
                text.append(cells[place])
            lines.append(number)
        values = np.frombuffer(numbers, np.float64).reshape(len(lines), len(places))
        return TableColumns(values, texts, lines)

    def _error(self, number: int, cells: list[str], places: list[int], names: Names) -> ValueError:
        """What is wrong with a row, and what it may mean."""
        where, width = f"{self.path}, line {number}", len(self.first)
        hint = separated((self.separator or " ").join(cells), self.separator)
        if len(cells) != width:
            return ValueError(
                f"{where}: expected {width} cells, as in line 1, got {len(cells)}{hint}"
            )
        for order, place in enumerate(places):
            try:
                self.convert(cells[place])
            except ValueError:
                column = place if names is None else names[order]
                return no_number(where, column, cells[place], hint)
        raise AssertionError(cells)  # every cell is a number


def read(
    path: Path,
    lines: Iterable[str],
    separator: str | None,
    id_column: str | None,
    empty_is_nan: bool = False,
) -> tuple[NDArray[np.float64], Names, Names]:
    """Numbers, with names where the first line has words, and ids where a column has them."""
    convert = (lambda cell: to_number(cell or "nan")) if empty_is_nan else to_number
    table = CsvFile(path, lines, separator, convert)
    names: Names = None
    id_place = None
    header = table.has_header
    if header:
        try:
            names, id_place = named_columns(path, tuple(table.first), id_column)
        except ValueError as error:
            hint = separated((separator or " ").join(table.first), separator)
            raise ValueError(f"{error}{hint}") from error
    elif id_column is not None:
        raise ValueError(
            f"{path}, line 1: expected names of columns, {id_column!r} among them, got none"
        )
    columns = table.columns(header, () if id_place is None else (id_place,), names)
    if not len(columns.numbers):
        raise ValueError(f"{path} must have rows of numbers, got none")
    return columns.numbers, names, None if id_place is None else tuple(columns.texts[0])


def first_names(path: Path, lines: Iterable[str], separator: str | None) -> Names:
    """What the first line calls the columns, if it has words."""
    table = CsvFile(path, lines, separator)
    return tuple(table.first) if table.has_header else None


def _by_pyarrow(
    path: Path, separator: str | None, width: int, header: bool, text_places: tuple[int, ...]
) -> TableColumns | None:
    """The columns of a large file, several times as fast as row by row, to the same bits.

    None where the file is small, unusual or wrong, or pyarrow is not installed: then rows are read
    one by one, and what is wrong is said.
    """
    small = path.stat().st_size < LARGE or width > WIDEST
    if small or separator is None or len(separator.encode()) > 1:
        return None
    try:
        arrow, library = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return None
    with opened_bytes(path) as file:
        packed = path.suffix.lower() in OPENERS
        data: Any = file.read() if packed else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = data.find(b"\n") + 1 if header else 3 * (data[:3] == b"\xef\xbb\xbf")
    # Quotes, bytes that are no text, and ends of lines as nobody writes them.
    unusual = any(data.find(sign, start) >= 0 for sign in (b'"', b"\0"))
    if unusual or LONE_RETURN.search(data, start):
        return None
    kinds = {str(j): arrow.string() if j in text_places else arrow.float64() for j in range(width)}
    try:
        table = library.read_csv(
            arrow.BufferReader(arrow.py_buffer(memoryview(data)[start:])),
            library.ReadOptions(column_names=list(kinds)),
            library.ParseOptions(delimiter=separator, quote_char=False),
            library.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
        )
        texts = [[cell.strip() for cell in table.column(j).to_pylist()] for j in text_places]
    except (ValueError, OverflowError, MemoryError):  # as it says that something is wrong
        return None
    # It does not mind a cell too few in a row, and skips blank lines, so that lines are not rows.
    letters, n = np.frombuffer(data, np.uint8, offset=start), table.num_rows
    cells = np.count_nonzero(letters == ord(separator)) + n
    ends = np.count_nonzero(letters == ord("\n")) + (data[-1:] != b"\n")
    if cells != n * width or ends != n:
        return None
    table = table.drop_columns([str(place) for place in text_places])
    numbers, row = np.empty((n, table.num_columns)), 0
    for batch in table.to_batches():  # a batch fits into the cache, a column may not
        for place, column in enumerate(batch.columns):
            numbers[row : row + batch.num_rows, place] = column.to_numpy(zero_copy_only=False)
        row += batch.num_rows
    return TableColumns(numbers, texts, range(1 + header, 1 + header + n))


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
