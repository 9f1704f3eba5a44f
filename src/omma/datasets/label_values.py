"""Labels of files, paired with rows and columns of probabilities: class ids, or 0 and 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, repeated, shown
from omma.datasets.column_roles import Names, bare, some_names, stems
from omma.datasets.csv_text import TRUTH_PAIRS, is_missing, is_number, to_label
from omma.datasets.matrices import Matrix


class Truth(NamedTuple):
    """Labels as a file has them: numbers, or one column of words."""

    path: str
    values: Any
    names: Names | None = None
    ids: Names | None = None
    lines: Sequence[int] | None = None  # of the words, where the file has lines

    def where(self, row: int) -> str:
        """The file, and the line or row in it."""
        return f"{self.path}, {'row' if self.lines is None else 'line'} " + str(
            row if self.lines is None else self.lines[row]
        )

    def take(self, rows: Any) -> Truth:
        """Some rows, in that order."""
        return self._replace(values=self.values[rows], lines=None)


def with_late_labels(
    path: str, matrix: Matrix, truth: Truth, later: NDArray[np.bool_]
) -> tuple[Matrix, Truth]:
    """Give the labels of rows without probabilities to the earlier rows of the same id."""
    ids = matrix.ids or ()
    places = {ids[row]: row for row in np.flatnonzero(~later).tolist()}
    values = truth.values.copy()
    for row in np.flatnonzero(later).tolist():
        if ids[row] not in places:
            raise ValueError(
                f"{truth.where(row)}: expected the id of an earlier row, got {ids[row]!r}"
            )
        values[places[ids[row]]] = truth.values[row]
    scored_rows = np.flatnonzero(~later)
    rows = tuple(ids[row] for row in scored_rows.tolist())
    matrix = Matrix(matrix.values[scored_rows], matrix.names, rows)
    return matrix, truth._replace(values=values, ids=None).take(scored_rows)


def join_rows(
    eta: str, probabilities: Matrix, truth: Truth, skip: bool
) -> tuple[Matrix, Truth, list[str]]:
    """Rows that both files have, in the order of the probabilities."""
    ids, own = probabilities.ids or (), truth.ids or ()
    if ids == own:
        return probabilities, truth, []
    for path, names in ((eta, ids), (truth.path, own)):
        twice = repeated(names)
        if twice is not None:
            raise ValueError(
                f"{path} must name each row once, got the id {twice!r} twice; if the column holds "
                "labels, pass it as label"
            )
    places, known = {name: place for place, name in enumerate(own)}, set(ids)
    unlabelled = [name for name in ids if name not in places]
    unscored = [name for name in own if name not in known]
    notes = []
    for absent, path, second in ((unlabelled, eta, truth.path), (unscored, truth.path, eta)):
        if absent and not skip:
            what = "labels" if path == eta else "probabilities"
            raise ValueError(
                f"{len(absent):,} of {len(ids if path == eta else own):,} ids of {path} have no "
                f"{what} in {second}, such as {absent[0]!r}: pass skip_unmatched=True to skip them"
            )
        if absent:
            notes.append(f"{len(absent):,} rows of {path} are not in {second} and were skipped.")
    rows = [row for row, name in enumerate(ids) if name in places]
    if not rows:
        raise ValueError(f"{eta} and {truth.path} have no id in common")
    labelled_ids = tuple(ids[row] for row in rows)
    if labelled_ids != tuple(name for name in own if name in known):
        notes.append(f"Rows of {truth.path} were put in the order of {eta}, by their ids.")
    matrix = probabilities
    if unlabelled:
        matrix = Matrix(probabilities.values[rows], probabilities.names, labelled_ids)
    return matrix, truth.take([places[name] for name in labelled_ids]), notes


# Labels to class ids or indicators.


def paired_labels(
    eta: str,
    probabilities: Matrix,
    chosen: Matrix,
    truth: Truth,
    place: int | None,
    positive: str | None,
    by_position: bool,
    notes: list[str],
) -> Any:
    """Labels that go with the chosen probabilities; what was reordered is noted."""
    only = chosen.names[0] if chosen.names and len(chosen.names) == 1 else None
    if truth.names and only is not None and only in truth.names and width_of(truth.values) > 1:
        # A file of all labels, of which one is judged.
        truth = _truth_columns(truth, [truth.names.index(only)])
    elif width_of(truth.values) > 1:  # indicators; a single column is one label, or class ids
        _check_width(eta, probabilities, truth)
        if truth.names and probabilities.names and not by_position:
            truth = _paired_columns(eta, probabilities.names, truth, notes)
        truth = truth if place is None else _truth_columns(truth, [place])
    else:
        values = _class_values(probabilities, chosen, truth, positive, notes)
        truth = truth._replace(values=values)
    return _checked_labels(eta, chosen, truth)


def _class_values(
    probabilities: Matrix, chosen: Matrix, truth: Truth, positive: str | None, notes: list[str]
) -> Any:
    """One column of classes or of one label as numbers: ids, or 0 and 1."""
    values = truth.values
    names, m = probabilities.names, width_of(chosen.values)
    is_words = values.dtype.kind in "OU"
    if not is_words:
        if positive is None and m > 1 and names is not None:
            return _ids_by_number(values, names)
        if positive is None:
            return values
    # Missing classes may be written in several ways; a class may be called as one of them.
    flat = [_text_of(value) for value in np.ravel(_dense(values)).tolist()]
    classes = dict.fromkeys(word for word in flat if not is_missing(word))
    if positive is None and m > 1 and names is not None:
        known = bare(names, {word for word in flat if word in names or not is_missing(word)})
        if classes.keys() & set(known):  # words are names, and not yes and no
            return _ids_by_name(truth, flat, known)
    if positive is None and are_truths(classes):
        return np.array([to_label(word) for word in flat])
    if m == 1:
        positive = positive or _positive_class(truth.path, chosen, classes)
        if positive not in classes:
            hint = nearest(positive, classes) or f"; it has {some_names(classes)}"
            raise ValueError(
                f"{truth.path} must hold {positive!r} in some rows, got it in none{hint}"
            )
        return np.array([np.nan if is_missing(word) else word == positive for word in flat])
    if positive is not None:
        raise ValueError(f"positive={positive!r} needs one column of probabilities, got {m}")
    if names is None and len(classes) == m:
        # As scikit-learn orders the columns of predict_proba.
        known = tuple(sorted(classes))
        notes.append(
            f"The columns have no names: classes were taken in sorted order, {some_names(known)}."
        )
        return _ids_by_name(truth, flat, known)
    if names is None:
        raise ValueError(
            f"{truth.path} has {len(classes)} classes, and there are {m} columns of probabilities "
            "without names: name the columns, or write class ids from 0"
        )
    return _ids_by_name(truth, flat, names)


def _text_of(value: Any) -> str:
    """A class as text; 3.0 is 3."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _dense(values: Any) -> Any:
    return values.toarray() if sparse.issparse(values) else values


def are_truths(classes: Collection[str]) -> bool:
    """Whether all are numbers, or words of one pair such as yes and no."""
    words = {word.lower() for word in classes if not is_number(word)}
    return any(words <= set(pair) for pair in TRUTH_PAIRS) or not words


def _positive_class(path: str, chosen: Matrix, classes: Iterable[str]) -> str:
    """The class that the name of the only column of probabilities tells: fraud of p_fraud."""
    name = chosen.names[0] if chosen.names else ""
    matches = [word for word in classes if name.startswith(word) or name.endswith(word)]
    if len(matches) == 1 or name in matches:
        return name if name in matches else matches[0]
    column = f", whose column is called {name!r}" if name else ""
    example = next(iter(classes), "")
    hint = nearest(name, list(classes)) if name else ""
    raise ValueError(
        f"{path} has the classes {some_names(classes)}, and there is one probability{column}: pass "
        f"positive={example!r} or another of them{hint}"
    )


def _ids_by_name(truth: Truth, words: list[str], names: Names) -> NDArray[np.float64]:
    """The place of each class among the names of the columns; NaN where it is missing."""
    places = {name: float(place) for place, name in enumerate(names)}
    for row, word in enumerate(words):
        if word not in places and not is_missing(word):
            hint = nearest(word, places) or f"; these are {some_names(names)}"
            raise ValueError(
                f"{truth.where(row)}: expected the name of a column of the probabilities, got "
                f"{shown(word)}{hint}"
            )
    return np.array([places.get(word, np.nan) for word in words])


def _ids_by_number(values: Any, names: Names) -> Any:
    """Class ids; where columns are called by numbers, classes are these numbers."""
    numbers = np.ravel(_dense(values)).astype(np.float64)
    distinct = np.unique(numbers[~np.isnan(numbers)])
    words = {_text_of(value) for value in distinct.tolist()}
    known = bare(names, words)
    if not words <= set(known):
        return values
    places = {float(name): float(place) for place, name in enumerate(known) if name in words}
    order = np.array([places[value] for value in distinct.tolist()])
    ids = np.full(len(numbers), np.nan)
    is_known = ~np.isnan(numbers)
    ids[is_known] = order[np.searchsorted(distinct, numbers[is_known])]
    return ids


def _check_width(eta: str, probabilities: Matrix, truth: Truth) -> None:
    """As many columns of labels as of probabilities; one more may name rows."""
    m, width = width_of(probabilities.values), width_of(truth.values)
    if width != m:
        known = set(probabilities.names or ())
        extra = [name for name in truth.names or () if name not in known]
        hint = f"; if {extra[0]!r} names rows, pass id={extra[0]!r}" if extra else ""
        hint = _swapped(probabilities, truth) or hint
        raise ValueError(
            f"{truth.path} must have {m} columns as {eta}, or one with class ids, got {width}{hint}"
        )


def _paired_columns(eta: str, names: Names, truth: Truth, notes: list[str]) -> Truth:
    """Columns of labels in the order of the probabilities', which their names tell."""
    own = truth.names or ()
    # Programs that know no names give columns their numbers.
    numbers = tuple(str(number) for number in range(len(own)))
    if own == names or numbers in (own, names):
        return truth
    wanted_names: Names = names
    if set(own) != set(names):
        # p_sport and y_sport have one stem.
        wanted_names, own = stems(names), stems(own)
        if set(own) != set(wanted_names):
            missing = [name for name in names if name not in set(truth.names or ())]
            if len(missing) < len(names):
                raise ValueError(
                    f"{truth.path} must have the columns of {eta}, got none named {missing[0]!r}"
                )
            raise ValueError(
                f"{eta} and {truth.path} must name their columns alike, got {names[0]!r} and "
                f"{(truth.names or ())[0]!r}: rename them, or pass by_position=True if both have "
                "one order"
            )
    if own == wanted_names:
        return truth
    place = {name: number for number, name in enumerate(own)}
    if truth.path != eta:
        notes.append(f"Columns of {truth.path} were put in the order of {eta}, by their names.")
    return _truth_columns(truth, [place[name] for name in wanted_names])


def _checked_labels(eta: str, probabilities: Matrix, truth: Truth) -> Any:
    """Class ids or indicators, of as many rows as the probabilities."""
    n, m, y = probabilities.values.shape[0], width_of(probabilities.values), truth.values
    labels = truth.path
    if y.shape[0] != n:
        hint = "they must be of the same rows"
        if abs(y.shape[0] - n) == 1:
            hint = "perhaps the first line of one of them has names, and that of the other has not"
        elif width_of(y) == 1 and y.shape[0] < n:
            hint = "a line with nothing in it is no row: write nan where a label is unknown"
        raise ValueError(
            f"{labels} must have as many rows as {eta}, which has {n:,}, got {y.shape[0]:,}; {hint}"
        )
    hint = _swapped(probabilities, truth)
    # NaN is not equal to itself: a label that is not known is not wrong.
    if width_of(y) == 1 and m > 1:
        ids = np.ravel(_dense(y))
        wrong = np.flatnonzero(~((ids >= 0) & (ids < m) & (ids == np.floor(ids))) & (ids == ids))
        if len(wrong):
            hint = "; if the first class is 1, write numbers from 0" if (ids == m).any() else hint
            raise ValueError(
                f"{labels} must hold class ids from 0 to {m - 1}, got {ids[wrong[0]]:g} in row "
                f"{wrong[0]}{hint}"
            )
        return ids
    stored = stored_values(y)
    wrong = stored[(stored != 0) & (stored != 1) & (stored == stored)]
    if len(wrong):
        hint = hint or f"; if {wrong[0]:g} is the positive class, pass positive='{wrong[0]:g}'"
        raise ValueError(f"{labels} must hold only 0 and 1, got {wrong[0]:g}{hint}")
    return y.tocsr() if sparse.issparse(y) else np.asarray(y)


def _swapped(probabilities: Matrix, truth: Truth) -> str:
    """Whether labels were given as probabilities, as the end of a sentence."""
    # Labels are whole numbers and probabilities fractions: here each file looks like the other.
    first, second = stored_values(probabilities.values), stored_values(truth.values)
    if second.dtype.kind not in "fiub":
        return ""
    is_whole, has_fractions = (first == np.floor(first)).all(), (second != np.floor(second)).any()
    is_inside = len(second) and second.min() >= 0 and second.max() <= 1
    return "; are eta and labels swapped?" if is_whole and has_fractions and is_inside else ""


# Matrices.


def width_of(values: Any) -> int:
    """How many columns there are; a vector is one."""
    return 1 if values.ndim == 1 else int(values.shape[1])


def stored_values(values: Any) -> Any:
    """All numbers of a matrix; of a sparse one, those that are stored."""
    return np.ravel(values.data if sparse.issparse(values) else values)


def place_of(path: str, matrix: Matrix, column: str) -> int:
    """Where a column is that is asked for by its name or its number."""
    names, m = matrix.names or (), width_of(matrix.values)
    if column in names:
        return names.index(column)
    if column.isdecimal() and int(column) < m:
        return int(column)
    hint = nearest(column, names) or f"; it has {m}"
    raise ValueError(f"{path} has no column {column!r}{hint}")


def _picked(values: Any, places: list[int]) -> Any:
    """Some columns in another order; a single one is dense."""
    if values.ndim == 1:
        return values
    columns = values[:, places]
    return np.ascontiguousarray(_dense(columns)) if len(places) == 1 else columns


def columns_of(matrix: Matrix, places: list[int]) -> Matrix:
    """Some columns of a matrix, in that order."""
    names = None if matrix.names is None else tuple(matrix.names[place] for place in places)
    return Matrix(_picked(matrix.values, places), names, matrix.ids)


def _truth_columns(truth: Truth, places: list[int]) -> Truth:
    names = None if truth.names is None else tuple(truth.names[place] for place in places)
    return truth._replace(values=_picked(truth.values, places), names=names)
