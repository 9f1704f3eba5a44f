"""Rows and columns of two files brought together: by ids and names, where both have them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

from omma._validate import repeated
from omma.datasets import Matrix

Names = tuple[str, ...]
Files = tuple[str, str]  # of the probabilities, and of the labels


def paired_rows(files: Files, first: Matrix, second: Matrix) -> tuple[Matrix, list[str]]:
    """The second file in the order of the first's rows, which ids tell where both have them."""
    wanted, own = first.ids, second.ids
    if wanted is None or own is None or wanted == own:
        return second, []
    for path, ids in zip(files, (wanted, own), strict=True):
        twice = repeated(ids)
        if twice is not None:
            raise ValueError(f"{path} must name each row once, got the id {twice!r} twice")
    places, known = {name: place for place, name in enumerate(own)}, set(wanted)
    for here, there, absent in (
        (*files[::-1], (name for name in wanted if name not in places)),
        (*files, (name for name in own if name not in known)),
    ):
        for name in absent:
            raise ValueError(f"{here} has no row with the id {name!r}, which {there} has")
    order = [places[name] for name in wanted]
    note = f"Rows of {files[1]} were put in the order of {files[0]}, by their ids."
    return replace(second, values=second.values[order], ids=wanted), [note]


def paired_columns(files: Files, names: Names, labels: Matrix) -> tuple[Matrix, list[str]]:
    """Columns of labels in the order of the probabilities', which their names tell."""
    own = labels.names or ()
    if own == names or _numbered(own) or _numbered(names):
        return labels, []
    wanted: Sequence[str] = names
    if set(own) != set(names):
        wanted, own = stems(names), stems(own)
        if set(own) != set(wanted):
            raise ValueError(_mismatch(files, names, labels.names or ()))
    if tuple(own) == tuple(wanted):
        return labels, []
    place = {name: number for number, name in enumerate(own)}
    places = [place[name] for name in wanted]
    note = f"Columns of {files[1]} were put in the order of {files[0]}, by their names."
    return replace(labels, values=labels.values[:, places], names=names), [note]


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


def _numbered(names: Sequence[str]) -> bool:
    """Whether columns have numbers for names, as programs give them that know no names."""
    return list(names) == [str(number) for number in range(len(names))]


def _mismatch(files: Files, names: Names, own: Names) -> str:
    eta, labels = files
    held = set(own)
    missing = [name for name in names if name not in held]
    if len(missing) < len(names):
        return f"{labels} must have the columns of {eta}, got none named {missing[0]!r}"
    return (
        f"{eta} and {labels} must name their columns alike, got {names[0]!r} and {own[0]!r}: "
        "rename them, or pass --by-position if both have one order"
    )
