"""Large tables of plain numbers, by pyarrow or pandas where one of them is installed.

They are ten times as fast as reading lines in Python, and say little of what is wrong. So they are
only asked for tables in which nothing is unusual, and whatever they refuse is read again by the
library's own readers, which have the last word and the messages. Both ways give the same bits.
"""

import io
import mmap
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.datasets.text import OPENERS, opened_bytes

LARGE = 1 << 20  # bytes: below it, importing pyarrow takes longer than reading
WIDEST = 4096  # columns: above, a table of columns costs more than it saves
STEP = 1 << 18  # bytes looked at in one go: they fit into the cache
Found = tuple[NDArray[np.float64], list[list[str]]]


def read_large(
    path: Path, separator: str | None, width: int, *, named: bool, words: tuple[int, ...] = ()
) -> Found | None:
    """All numbers of a table of ``width`` columns, and those at ``words`` by themselves.

    None where the file is small, unusual or wrong, or none of the libraries is there. ``named``
    says that the first line has names.
    """
    small = path.stat().st_size < LARGE or width > WIDEST
    if small or separator is None or len(separator.encode()) > 1:
        return None
    with opened_bytes(path) as file:
        packed = path.suffix.lower() in OPENERS
        data: Any = file.read() if packed else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = data.find(b"\n") + 1 if named else 3 * (data[:3] == b"\xef\xbb\xbf")
    body = memoryview(data)[start:]
    # Quotes, bytes that are no text, and ends of lines as nobody writes them.
    odd = any(data.find(sign, start) >= 0 for sign in (b'"', b"\0"))
    returns = _count(body, b"\r")
    if odd or (returns and returns != _count(body, b"\r\n")):
        return None
    found = _parsed(body, separator, width, words)
    cells = None if found is None else _count(body, separator.encode()) + len(found[0])
    # Neither library minds a cell too few in a row.
    return found if found is not None and cells == len(found[0]) * width else None


def _count(body: memoryview, sign: bytes) -> int:
    """How often a sign of one byte or two occurs; the latter may lie across two pieces."""
    letters, found = np.frombuffer(body, dtype=np.uint8), 0
    for at in range(0, len(letters), STEP):
        here = letters[at : at + STEP] == sign[0]
        if len(sign) > 1:
            after = letters[at + 1 : at + STEP + 1] == sign[1]
            here = here[: len(after)] & after
        found += int(np.count_nonzero(here))
    return found


def _parsed(body: Any, separator: str, width: int, words: tuple[int, ...]) -> Found | None:
    for name, read in (("pyarrow.csv", _by_pyarrow), ("pandas", _by_pandas)):
        try:
            library = import_module(name)
        except ImportError:
            continue
        try:
            return read(library, body, separator, width, words)
        except (ValueError, OverflowError, MemoryError):  # as both say that something is wrong
            return None
    return None


def _by_pyarrow(csv: Any, body: Any, separator: str, width: int, words: tuple[int, ...]) -> Found:
    arrow = import_module("pyarrow")
    names = [str(place) for place in range(width)]
    kinds = {name: arrow.float64() for name in names}
    kinds |= {str(place): arrow.string() for place in words}
    table = csv.read_csv(
        arrow.BufferReader(arrow.py_buffer(body)),
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter=separator, quote_char=False),
        csv.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
    )
    texts = [table.column(place).to_pylist() for place in words]
    numbers = table.drop_columns([str(place) for place in words])
    values = np.empty((numbers.num_rows, numbers.num_columns))
    at = 0
    for batch in numbers.to_batches():  # some rows at a time fit into the cache
        rows = values[at : at + batch.num_rows]
        for place, column in enumerate(batch.columns):
            rows[:, place] = column.to_numpy(zero_copy_only=False)
        at += batch.num_rows
    return values, texts


def _by_pandas(pandas: Any, body: Any, separator: str, width: int, words: tuple[int, ...]) -> Found:
    # Before 3.1 its own way to read numbers was off by a bit now and then.
    exact = [int(part) for part in pandas.__version__.split(".")[:2]] >= [3, 1]
    more = {} if exact else {"float_precision": "round_trip"}
    table = pandas.read_csv(
        io.BytesIO(body),
        sep=separator,
        header=None,
        dtype={place: str if place in words else np.float64 for place in range(width)},
        na_filter=False,
        quoting=3,  # none
        on_bad_lines="error",
        low_memory=False,
        **more,
    )
    if table.shape[1] != width:
        raise ValueError("another number of columns")
    texts = [table[place].astype(str).tolist() for place in words]
    numbers = table.drop(columns=list(words)).to_numpy(np.float64)
    return np.ascontiguousarray(numbers), texts
