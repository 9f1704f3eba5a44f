"""Roles of columns: which of them hold ids, probabilities and labels, as their names tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product, takewhile
from typing import NamedTuple

from omma._validate import nearest, repeated, shown
from omma.datasets.tables import Table

Names = tuple[str, ...]

# Usual names of the column of the true class.
CLASS_NAMES = ("y", "y_true", "label", "class", "target")
# Usual names of a column that numbers the rows; pandas leaves the name of an index empty.
ID_NAMES = ("", "id", "ids", "index", "row", "row_id", "rowid", "unnamed: 0", "__index_level_0__")
SHOWN = 9  # names that an error lists
LONGEST = 200  # characters of this list


class Roles(NamedTuple):
    """Places of the columns of a table; those of probabilities and labels have a label's name."""

    id: int | None
    eta: dict[int, str]
    labels: dict[int, str]


def find_roles(
    path: str,
    names: Names,
    id_column: str | None,
    probability: Sequence[str] = (),
    label: Sequence[str] = (),
    *,
    needs_labels: bool = True,
) -> Roles:
    """Find the role of each column in a table of probabilities and labels.

    >>> find_roles("scored.csv", ("id", "sport", "y_sport"), None)
    Roles(id=0, eta={1: 'sport'}, labels={2: 'sport'})
    """
    twice = repeated(names)
    if twice is not None:
        raise ValueError(f"{path}: expected distinct names, got {shown(twice)} twice")
    if id_column is None and "id" in names and "id" not in (*probability, *label):
        id_column = "id"
    if id_column is not None and id_column not in names:
        raise no_column(path, names, id_column, "id")
    id_place = None if id_column is None else names.index(id_column)
    eta = find_columns(path, names, probability, "probability")
    labels = find_columns(path, names, label, "label")
    if not label:
        # By default labels are one column of classes with a usual name, or the columns y_NAME.
        taken = {id_place, *eta}
        others = {place: name for place, name in enumerate(names) if place not in taken}
        classes = {place: name for place, name in others.items() if name.lower() in CLASS_NAMES}
        marked = {
            place: name.removeprefix("y_")
            for place, name in others.items()
            if name.startswith("y_") and place not in classes
        }
        labels = classes or marked
        if not labels and probability and len(others) == 1 and needs_labels:
            labels = others  # the only column that is left
        is_unclear = len(classes) > 1 or (classes and marked)
        if is_unclear or (needs_labels and not labels):
            raise untold_columns(path, "label", names, taken)
    if not probability:
        taken = {id_place, *labels}
        eta = {place: name for place, name in enumerate(names) if place not in taken}
        if not eta:
            raise untold_columns(path, "probability", names, taken)
    both = [names[place] for place in sorted({*eta} & {*labels})]
    if both:
        raise ValueError(f"{path}: {both[0]!r} cannot be a probability and a label")
    return Roles(id_place, eta, labels)


def matrix_roles(
    table: Table,
    id_column: str | None,
    chosen: Sequence[str] = (),
    parameter: str = "probability",
) -> Roles:
    r"""Find the roles in a table of only probabilities or only labels: all columns but the ids.

    >>> from pathlib import Path
    >>> from omma.datasets.tables import named_table
    >>> _ = Path("eta.csv").write_text("id,p_red,p_blue\n7,0.5,0.25\n")
    >>> matrix_roles(named_table(Path("eta.csv")), "id", ["p_"])
    Roles(id=0, eta={1: 'red', 2: 'blue'}, labels={})
    """
    path, names = str(table.path), table.names
    titles = names or tuple(map(str, range(table.width)))
    id_place = titles.index(id_column) if names and id_column in names else None
    if chosen:
        columns = find_columns(path, titles, chosen, parameter)
    else:
        if names is not None:
            check_names(path, names, id_column, table.ids_by)
        columns = {place: title for place, title in enumerate(titles) if place != id_place}
    return Roles(id_place, {}, columns) if parameter == "label" else Roles(id_place, columns, {})


def check_names(path: str, names: Names, id_column: str | None, ids_by: str) -> None:
    """Refuse a missing column of ids, names that occur twice, and a first column like ids."""
    if id_column is not None:
        if id_column not in names:
            raise no_column(path, names, id_column, ids_by)
    elif not names[0] and len(names) > 1:  # the index of a pandas frame
        raise ValueError(
            f"{path}, line 1: expected labels only, got the unnamed first column, which seems to "
            f"number rows (write the CSV with index=False, or pass {ids_by}='')"
        )
    elif names[0].lower() in ID_NAMES and len(names) > 1:
        raise ValueError(
            f"{path}, line 1: expected labels only, got the column {names[0]!r}, which seems to "
            f"name rows: pass {ids_by}={names[0]!r}, or leave it out"
        )
    twice = repeated(names)
    if twice is not None:
        raise ValueError(f"{path}, line 1: expected distinct names, got {shown(twice)} twice")
    if id_column is not None and len(names) == 1:
        raise ValueError(f"{path} must have columns of numbers beside {id_column!r}, got none")


def untold_columns(
    path: str, parameter: str, names: Names, taken: Collection[int | None], odd: str | None = None
) -> ValueError:
    """The error for a table whose names do not tell its columns of probabilities or labels."""
    what = "probabilities" if parameter == "probability" else "labels"
    others = [name for place, name in enumerate(names) if place not in taken]
    got = "" if odd is None else f": {odd!r} holds words"
    return ValueError(
        f"{path} does not tell which columns hold {what}{got}; pass {parameter}='NAME' for one "
        f"or several of {some_names(others)}"
    )


def find_columns(path: str, names: Names, chosen: Sequence[str], parameter: str) -> dict[int, str]:
    """Find columns by their names, numbers, or the start of several names.

    Returns the label of each place: the name of the column, without that start.
    """
    places: dict[int, str] = {}
    for text in chosen:
        parts = [text] if text in names else [part for part in text.split(",") if part]
        for part in parts:
            # A name that ends in a sign, such as p_, stands for all names that start with it.
            start = part.removesuffix("*")
            is_start = start != part or not part[-1].isalnum()
            if part in names:
                places[names.index(part)] = part
            elif is_start and any(name.startswith(start) for name in names):
                matches = [place for place, name in enumerate(names) if name.startswith(start)]
                places |= {place: names[place][len(start) :] for place in matches}
            elif part.isdecimal() and int(part) < len(names):
                places[int(part)] = names[int(part)]
            else:
                raise no_column(path, names, part, parameter)
    return places


def no_column(path: str, names: Names, column: str, parameter: str) -> ValueError:
    """The error for a column that a parameter asks for, and that the table does not have."""
    hint = nearest(column, names) or f"; it has {some_names(names)}"
    return ValueError(f"{path} has no column {column!r}, which {parameter} asks for{hint}")


def find_column(path: str, names: Names, column: str) -> int:
    """The place of a single column, chosen by its name or its number."""
    places = [*find_columns(path, names, [column], "column")]
    if len(places) != 1:
        got = some_names(names[place] for place in places) or "none"
        raise ValueError(f"column={column!r} must be one column of {path}, got {got}")
    return places[0]


def some_names(names: Iterable[str]) -> str:
    """The first names of a list on one line, and … if there are more."""
    names = list(names)
    text = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    text = " ".join(text.split())  # a name may have several lines, or be a spoiled line
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def stems(names: Sequence[str]) -> Names:
    """Names without their common start, and then without their common end.

    >>> stems(["p_red", "p_blue"])
    ('red', 'blue')
    """
    start = _shared_start(names)
    tails = [name[start:] for name in names]
    end = _shared_start([tail[::-1] for tail in tails])
    return tuple(tail[: len(tail) - end] for tail in tails)


def without_prefix(names: Names) -> Names:
    """Names without the whole words that all of them start with.

    >>> without_prefix(("p_sport", "p_spa"))
    ('sport', 'spa')
    """
    start = names[0][: _shared_start(names)] if len(names) > 1 else ""
    while start and start[-1].isalnum():
        start = start[:-1]
    return tuple(name[len(start) :] for name in names)


def bare(names: Names, words: Collection[str]) -> Names:
    """Names without a common start and end, if all words are then among them; else unchanged.

    >>> bare(("p_sport", "p_art"), {"art", "sport"})
    ('sport', 'art')
    """
    start, end = _shared_start(names), _shared_start([name[::-1] for name in names])
    # As little as possible is cut off.
    for before, after in product(range(start + 1), range(end + 1)):
        cut = tuple(name[before : len(name) - after] for name in names)
        if set(words) <= set(cut):
            return cut
    return names


def _shared_start(names: Sequence[str]) -> int:
    """The number of characters that all names start with."""
    return sum(1 for _ in takewhile(lambda signs: len({*signs}) == 1, zip(*names, strict=False)))
