"""Large tables of plain numbers, by pyarrow or pandas where one of them is installed.

They are ten times as fast as reading lines in Python, and say little of what is wrong. So they are
only asked for tables in which nothing is unusual, and whatever they refuse is read again by the
library's own readers, which have the last word and the messages. Both ways give the same bits.
"""

from __future__ import annotations

import io
import mmap
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.datasets.text import OPENERS, opened_bytes

LARGE = 1 << 20  # bytes: below it, importing pyarrow takes longer than reading
UNUSUAL = re.compile(rb'["\0]|\r(?!\n)')  # quotes, no text, ends of lines as nobody writes them
Found = tuple[NDArray[np.float64], list[list[str]]]


def read_large(
    path: Path, separator: str | None, width: int, *, named: bool, words: tuple[int, ...] = ()
) -> Found | None:
    """All numbers of a large table, and columns of words by themselves.

    None where the file is small, unusual or wrong, or none of the libraries is there.

    Parameters
    ----------
    path : Path
    separator : str, optional
        What stands between cells.
    width : int
        The number of columns.
    named : bool
        Whether the first line has names.
    words : tuple of int
        Places of columns that are no numbers.
    """
    if separator is None or len(separator) > 1 or path.stat().st_size < LARGE:
        return None
    with opened_bytes(path) as file:
        packed = path.suffix.lower() in OPENERS
        data: Any = file.read() if packed else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = data.find(b"\n") + 1 if named else 3 * (data[:3] == b"\xef\xbb\xbf")
    if UNUSUAL.search(data, start):
        return None
    with memoryview(data) as view, view[start:] as body:
        found = _parsed(body, separator, width, words)
        cells = None if found is None else _count(body, separator) + len(found[0])
    return found if found is not None and cells == len(found[0]) * width else None


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


def _by_pyarrow(
    csv: Any, body: Any, separator: str, width: int, words: tuple[int, ...]
) -> Found | None:
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
    # Some rows at a time, which fit into the cache while they are turned.
    blocks = [
        np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
        for batch in numbers.to_batches()
    ]
    return (np.concatenate(blocks), texts) if blocks else None


def _by_pandas(pandas: Any, body: Any, separator: str, width: int, words: tuple[int, ...]) -> Found:
    table = pandas.read_csv(
        io.BytesIO(body),
        sep=separator,
        header=None,
        names=range(width),
        dtype={place: str if place in words else np.float64 for place in range(width)},
        float_precision="round_trip",  # its own way is off by a bit now and then
        na_filter=False,
        quoting=3,  # none
        index_col=False,
        on_bad_lines="error",
        low_memory=False,
    )
    texts = [table[place].astype(str).tolist() for place in words]
    numbers = table.drop(columns=list(words)).to_numpy(np.float64)
    return np.ascontiguousarray(numbers), texts


def _count(body: Any, separator: str) -> int:
    """How many separators there are: neither library minds a cell too few everywhere."""
    signs, step = np.frombuffer(body, np.uint8), 1 << 24
    found = (
        np.count_nonzero(signs[at : at + step] == ord(separator))
        for at in range(0, len(signs), step)
    )
    return int(sum(found))
