"""Labels in a file: numbers, or classes by their names in one column of text."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, takewhile, tee
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from omma._validate import nearest, shown
from omma.datasets import Matrix, read_matrix
from omma.datasets.csv_text import Row, is_missing, is_number, is_truth, meant, rows, separated
from omma.datasets.matrices import TABLES, file_ending, read_table, split_address
from omma.datasets.text import opened_text

Names = tuple[str, ...]


def read_labels(
    path: str, names: tuple[str, ...] | None, id_column: str | None, positive: str | None = None
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
        labels = None
        if names is not None:
            labels = _classes(path, lines, TABLES[ending], names, id_column, positive)
        if labels is None:
            del lines  # or all that is read now would be kept for it
            labels = read_table(Path(path), again, id_column, empty_is_nan=True)
    return labels


def _classes(
    path: str,
    lines: Iterable[str],
    separator: str,
    names: tuple[str, ...],
    id_column: str | None,
    positive: str | None,
) -> Matrix | None:
    """What a column of words says: ids of the columns that they name; None if it holds numbers."""
    table = (row for row in rows(lines, separator, path) if any(row[1]))
    first = list(islice(table, 2))
    which = _id_place(path, first, id_column)
    width = 1 if which is None else 2
    if len(first) < 2 or any(len(cells) != width for _, cells in first):
        return None
    place = 0 if which is None else 1 - which
    first += _until_known(table, first[-1], place, width)
    if len(first[-1][1]) != width:
        return None
    word = first[-1][1][place]
    if word not in names and (is_truth(word) or separated(word, separator)):
        return None  # numbers, or something that the reader of numbers explains
    if is_number(word):
        return None
    body = [*first, *table]
    for number, cells in body:
        if len(cells) != width:
            raise ValueError(f"{path}, line {number}: expected {width} cells, got {len(cells)}")
    top = body[0][1][place]
    again = any(cells[place] == top for _, cells in body[1:])
    if which is not None or (top not in names and not again):
        body = body[1:]
    ids = None if which is None else tuple(cells[which] for _, cells in body)
    words = [(number, cells[place]) for number, cells in body]
    if positive is not None:
        return Matrix(_one_or_other(path, words, positive), None, ids)
    known = bare(names, {word for _, word in words if word in names or not is_missing(word)})
    places = {name: place for place, name in enumerate(known)}
    return Matrix(np.array([_class(path, *word, places) for word in words]), None, ids)


def _until_known(rows: Iterator[Row], last: Row, place: int, width: int) -> Iterator[Row]:
    """Further rows up to one whose class is known: what it is tells words from numbers."""
    while len(last[1]) == width and is_missing(last[1][place]):
        following = next(rows, None)
        if following is None:
            return
        last = following
        yield last


def _id_place(path: str, first: list[Row], id_column: str | None) -> int | None:
    head = first[0][1] if first else []
    if id_column not in head:
        return None
    if head.count(id_column) > 1:
        raise ValueError(f"{path}, line 1: expected distinct names, got {id_column!r} twice")
    return head.index(id_column)


def _class(path: str, number: int, word: str, places: dict[str, int]) -> float:
    if word not in places and is_missing(word):
        return np.nan
    if word not in places:
        raise ValueError(
            f"{path}, line {number}: expected the name of a column of the probabilities, got "
            f"{shown(word)}{nearest(word, places) or meant(word)}"
        )
    return places[word]


def _one_or_other(path: str, words: list[tuple[int, str]], positive: str) -> NDArray[np.float64]:
    found = np.array([np.nan if is_missing(word) else word == positive for _, word in words])
    if not (found == 1).any():
        others = dict.fromkeys(word for _, word in words if not is_missing(word))
        hint = nearest(positive, others) or meant(next(iter(others), ""))
        hint = hint or f"; it has {', '.join(map(shown, islice(others, 3)))}"
        raise ValueError(
            f"{path} must hold {positive!r} in some rows, as the column of the probabilities is "
            f"called, got it in none{hint}"
        )
    return found


def stems(names: Sequence[str]) -> Names:
    """Names without what all of them start with, and then without what all of them end in.

    >>> stems(["p_red", "p_blue"])
    ('red', 'blue')
    """
    return _headless([name[::-1] for name in _headless(names)], turned=True)


def bare(names: Names, words: Collection[str]) -> Names:
    """Names without what all start with or end in, if words are then among them, else as they are.

    >>> bare(("p_sport", "p_art"), {"art", "sport"})
    ('sport', 'art')
    """
    start = len(names[0]) - len(_headless(names)[0])
    turned = [name[::-1] for name in names]
    end = len(names[0]) - len(_headless(turned)[0])
    head, tail = names[0][:start], names[0][len(names[0]) - end :]
    for before in range(start + 1):
        if not all(word.startswith(head[before:]) for word in words):
            continue
        for after in range(end + 1):
            if all(word.endswith(tail[: end - after]) for word in words):
                found = tuple(name[before : len(name) - after] for name in names)
                if set(words) <= set(found):
                    return found
    return names


def _headless(names: Sequence[str], turned: bool = False) -> Names:
    alike = takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False))
    start = sum(1 for _ in alike)
    return tuple(name[start:][:: -1 if turned else 1] for name in names)
