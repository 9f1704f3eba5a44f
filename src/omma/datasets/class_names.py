"""Labels in a file: numbers, or classes by their names in one column of text."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice, product, takewhile, tee
from pathlib import Path

import numpy as np

from omma._validate import nearest, shown
from omma.datasets.csv_text import Row, is_missing, is_number, is_truth, meant, rows, separated
from omma.datasets.matrices import (
    TABLES,
    Matrix,
    file_ending,
    read_matrix,
    read_table,
    split_address,
)
from omma.datasets.text import opened_text

Names = tuple[str, ...]


def read_labels(
    path: str, names: Names | None, id_column: str | None, positive: str | None = None
) -> Matrix:
    """What a file of labels holds: numbers, or words that name columns, told by its first lines.

    With ``positive`` the words need not name columns: this one is 1, all others are 0. Empty cells
    are labels that are not known: NaN.
    """
    ending, _ = file_ending(split_address(path)[0])
    if ending not in TABLES:
        return read_matrix(path, id_column=id_column)
    with opened_text(Path(path)) as file:
        lines, again = tee(file)
        body, id_place = None, None
        if names is not None:
            body, id_place = _words(path, lines, TABLES[ending], names, id_column)
        if body is None or names is None:
            del lines  # or all that is read now would be kept for it
            return read_table(Path(path), again, id_column, empty_is_nan=True)
    ids = None if id_place is None else tuple(cells[id_place] for _, cells in body)
    place = 0 if id_place is None else 1 - id_place
    words = [cells[place] for _, cells in body]
    if positive is not None:
        values = np.array([np.nan if is_missing(word) else word == positive for word in words])
        if not (values == 1).any():
            others = dict.fromkeys(word for word in words if not is_missing(word))
            hint = nearest(positive, others) or meant(next(iter(others), ""))
            hint = hint or f"; it has {', '.join(map(shown, islice(others, 3)))}"
            raise ValueError(
                f"{path} must hold {positive!r} in some rows, as the column of the probabilities "
                f"is called, got it in none{hint}"
            )
        return Matrix(values, None, ids)
    known = bare(names, {word for word in words if word in names or not is_missing(word)})
    class_ids = {name: float(place) for place, name in enumerate(known)}
    for (number, _), word in zip(body, words, strict=True):
        if word not in class_ids and not is_missing(word):
            raise ValueError(
                f"{path}, line {number}: expected the name of a column of the probabilities, got "
                f"{shown(word)}{nearest(word, class_ids) or meant(word)}"
            )
    return Matrix(np.array([class_ids.get(word, np.nan) for word in words]), None, ids)


def _words(
    path: str, lines: Iterable[str], separator: str, names: Names, id_column: str | None
) -> tuple[list[Row] | None, int | None]:
    """The rows of a column of words, without its name, and the place of the column of ids.

    There are no such rows where the column holds numbers, or there are more columns.
    """
    table = (row for row in rows(lines, separator, path) if any(row[1]))
    body = [*islice(table, 1)]
    head = body[0][1] if body else []
    if id_column is not None and head.count(id_column) > 1:
        raise ValueError(f"{path}, line 1: expected distinct names, got {id_column!r} twice")
    id_place = head.index(id_column) if id_column in head else None
    width, place = (1, 0) if id_place is None else (2, 1 - id_place)
    # The first class after the first line that is known tells words from numbers.
    for row in table if len(head) == width else ():
        body.append(row)
        if len(row[1]) != width or not is_missing(row[1][place]):
            break
    if len(body) < 2 or len(body[-1][1]) != width:
        return None, None
    word = body[-1][1][place]
    is_number_or_odd = word not in names and (is_truth(word) or separated(word, separator))
    if is_number(word) or is_number_or_odd:  # what is odd the reader of numbers explains
        return None, None
    body += table
    for number, cells in body:
        if len(cells) != width:
            raise ValueError(f"{path}, line {number}: expected {width} cells, got {len(cells)}")
    # The first line is a name if it is no class: neither that of a column nor of a later row.
    first = head[place]
    is_class = first in names or any(cells[place] == first for _, cells in body[1:])
    return (body if id_place is None and is_class else body[1:]), id_place


def stems(names: Sequence[str]) -> Names:
    """Names without what all of them start with, and then without what all of them end in.

    >>> stems(["p_red", "p_blue"])
    ('red', 'blue')
    """
    start = _shared_start(names)
    tails = [name[start:] for name in names]
    end = _shared_start([tail[::-1] for tail in tails])
    return tuple(tail[: len(tail) - end] for tail in tails)


def bare(names: Names, words: Collection[str]) -> Names:
    """Names without what all start with or end in, if words are then among them, else as they are.

    >>> bare(("p_sport", "p_art"), {"art", "sport"})
    ('sport', 'art')
    """
    start, end = _shared_start(names), _shared_start([name[::-1] for name in names])
    for before, after in product(range(start + 1), range(end + 1)):
        cut = tuple(name[before : len(name) - after] for name in names)
        if set(words) <= set(cut):
            return cut
    return names


def _shared_start(names: Sequence[str]) -> int:
    """How many signs all names start with."""
    return sum(1 for _ in takewhile(lambda signs: len({*signs}) == 1, zip(*names, strict=False)))
