"""Pairs labels with rows and columns of probabilities, as class ids or as 0 and 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from omma._validate import nearest, repeated, shown
from omma.datasets.column_roles import Names, bare, some_names, stems
from omma.datasets.csv_text import TRUTH_PAIRS, is_missing, is_number, to_label
from omma.datasets.dataset import dense
from omma.datasets.matrices import Matrix


def with_late_labels(probabilities: Matrix, truth: Matrix) -> tuple[Matrix, Matrix]:
    """Move the labels of rows without probabilities to the earlier rows with the same id."""
    ids = probabilities.ids
    later: Any = np.isnan(probabilities.values).all(axis=1)
    if ids is None or not later.any():
        return probabilities, truth
    scored_rows = np.flatnonzero(~later).tolist()
    places = {ids[row]: row for row in scored_rows}
    values = truth.values.copy()
    for row in np.flatnonzero(later).tolist():
        if ids[row] not in places:
            raise ValueError(
                f"{truth.where(row)}: expected the id of an earlier row, got {ids[row]!r}"
            )
        values[places[ids[row]]] = truth.values[row]
    return probabilities.take(scored_rows), replace(truth, values=values).take(scored_rows)


def join_rows(probabilities: Matrix, truth: Matrix, skip: bool) -> tuple[Matrix, Matrix, list[str]]:
    """Join rows by id, in the order of the probabilities; notes say what was skipped or moved."""
    ids, own = probabilities.ids or (), truth.ids or ()
    if ids == own:
        return probabilities, truth, []
    for matrix in (probabilities, truth):
        twice = repeated(matrix.ids or ())
        if twice is not None:
            raise ValueError(
                f"{matrix.path} must name each row once, got the id {twice!r} twice; if the column "
                "holds labels, pass it as label"
            )
    notes = []
    pairs = ((probabilities, truth, "labels"), (truth, probabilities, "probabilities"))
    for first, second, what in pairs:
        names, known = first.ids or (), {*(second.ids or ())}
        absent = [name for name in names if name not in known]
        if absent and not skip:
            raise ValueError(
                f"{len(absent):,} of {len(names):,} ids of {first.path} have no {what} in "
                f"{second.path}, such as {absent[0]!r}: pass skip_unmatched=True to skip them"
            )
        if absent:
            notes.append(
                f"{len(absent):,} rows of {first.path} are not in {second.path} and were skipped."
            )
    places = {name: row for row, name in enumerate(own)}
    rows = [row for row, name in enumerate(ids) if name in places]
    if not rows:
        raise ValueError(f"{probabilities.path} and {truth.path} have no id in common")
    order = [places[ids[row]] for row in rows]
    if order != sorted(order):
        notes.append(
            f"Rows of {truth.path} were put in the order of {probabilities.path}, by their ids."
        )
    return probabilities.take(rows), truth.take(order), notes


# Labels to class ids or indicators.


def paired_labels(
    probabilities: Matrix,
    truth: Matrix,
    place: int | None,
    positive: str | None,
    by_position: bool,
    notes: list[str],
) -> Any:
    """Labels of all columns of probabilities, or of the one at ``place``, in the order of these."""
    chosen = probabilities if place is None else probabilities.columns([place])
    n, n_labelled = probabilities.values.shape[0], truth.values.shape[0]
    if truth.width == 1:  # one label, or class ids
        values = _class_values(chosen, truth, positive, notes)
        truth = replace(truth, values=np.ravel(dense(values)))
    elif truth.names and chosen.names and len(chosen.names) == 1 and chosen.names[0] in truth.names:
        # The file has several labels, and only one of them has probabilities.
        truth = truth.columns([truth.names.index(chosen.names[0])])
    else:
        _check_width(probabilities, truth)
        if truth.names and probabilities.names and not by_position:
            truth = _paired_columns(probabilities, probabilities.names, truth, truth.names, notes)
        truth = truth if place is None else truth.columns([place])
    if n_labelled != n:
        hint = "they must be of the same rows"
        if abs(n_labelled - n) == 1:
            hint = "perhaps the first line of one of them has names, and that of the other has not"
        elif truth.width == 1 and n_labelled < n:
            hint = "a line with nothing in it is no row: write nan where a label is unknown"
        raise ValueError(
            f"{truth.path} must have as many rows as {probabilities.path}, which has {n:,}, got "
            f"{n_labelled:,}; {hint}"
        )
    return truth.values


def _class_values(chosen: Matrix, truth: Matrix, positive: str | None, notes: list[str]) -> Any:
    """One column of classes or of one label as numbers: class ids, or 0 and 1; NaN if missing."""
    m, kind = chosen.width, truth.values.dtype.kind
    if kind not in "OU" and positive is None and (m == 1 or chosen.names is None):
        return truth.values
    cells = np.ravel(dense(truth.values)).tolist()
    # The class 3.0 is called 3; 15 digits tell all class ids apart.
    words = [f"{cell:.15g}" for cell in cells] if kind == "f" else list(map(str, cells))
    # Missing classes may be written in several ways.
    classes = [word for word in dict.fromkeys(words) if not is_missing(word)]
    if m > 1:
        if positive is not None:
            raise ValueError(f"positive={positive!r} needs one column of probabilities, got {m}")
        numbers = _class_ids(chosen, truth, words, classes, notes)
    elif positive is None and are_truths(classes):
        numbers = {word: to_label(word) for word in classes}
    else:
        positive = positive or _positive_class(truth.path, chosen, classes)
        if positive not in classes:
            hint = nearest(positive, classes) or f"; it has {some_names(classes)}"
            raise ValueError(
                f"{truth.path} must hold {positive!r} in some rows, got it in none{hint}"
            )
        numbers = {word: float(word == positive) for word in classes}
    return np.array([numbers.get(word, np.nan) for word in words])


def _class_ids(
    chosen: Matrix, truth: Matrix, words: list[str], classes: list[str], notes: list[str]
) -> dict[str, float]:
    """The number of each class: the place of its column of probabilities, or the class itself."""
    titles: Names = ()  # what the columns of probabilities are called, where classes are too
    if chosen.names is not None:
        # A class may be called as a missing value, such as NA.
        titles = bare(chosen.names, {*classes} | ({*words} & {*chosen.names}))
    named = {*classes} & {*titles}
    # If no column has the name of a word, words may be yes and no; numbers that are no names of
    # columns are class ids.
    is_named = bool(named) if truth.values.dtype.kind in "OU" else len(named) == len(classes)
    if not is_named and are_truths(classes):
        return {word: to_label(word) for word in classes}
    if not titles:
        if len(classes) != chosen.width:
            raise ValueError(
                f"{truth.path} has {len(classes)} classes, and there are {chosen.width} columns of "
                "probabilities without names: name the columns, or write class ids from 0"
            )
        titles = tuple(sorted(classes))  # as scikit-learn orders the columns of predict_proba
        notes.append(
            f"The columns have no names: classes were taken in sorted order, {some_names(titles)}."
        )
    numbers = {title: float(place) for place, title in enumerate(titles)}
    for row, word in enumerate(words):
        if word not in numbers and not is_missing(word):
            hint = nearest(word, numbers) or f"; these are {some_names(titles)}"
            raise ValueError(
                f"{truth.where(row)}: expected the name of a column of the probabilities, got "
                f"{shown(word)}{hint}"
            )
    return numbers


def are_truths(classes: Collection[str]) -> bool:
    """Whether all classes are numbers, or words of one pair such as yes and no."""
    words = {word.lower() for word in classes if not is_number(word)}
    return any(words <= set(pair) for pair in TRUTH_PAIRS) or not words


def _positive_class(path: str, chosen: Matrix, classes: Iterable[str]) -> str:
    """The class in the name of the only column of probabilities, such as fraud in p_fraud."""
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


def _check_width(probabilities: Matrix, truth: Matrix) -> None:
    """Check that there are as many columns of labels as of probabilities."""
    if truth.width != probabilities.width:
        known = set(probabilities.names or ())
        extra = [name for name in truth.names or () if name not in known]
        hint = f"; if {extra[0]!r} names rows, pass id={extra[0]!r}" if extra else ""
        hint = _swapped(probabilities, truth) or hint
        raise ValueError(
            f"{truth.path} must have {probabilities.width} columns as {probabilities.path}, or one "
            f"with class ids, got {truth.width}{hint}"
        )


def _paired_columns(
    probabilities: Matrix, names: Names, truth: Matrix, own: Names, notes: list[str]
) -> Matrix:
    """Put columns of labels in the order of the probabilities, by their names."""
    # Programs without names write the numbers of columns instead.
    numbers = tuple(str(number) for number in range(len(own)))
    if own == names or numbers in (own, names):
        return truth
    titles, own_titles = names, own
    if set(own) != set(names):
        titles, own_titles = stems(names), stems(own)  # p_sport and y_sport have one stem
    if set(own_titles) != set(titles):
        missing = [name for name in names if name not in set(own)]
        if len(missing) < len(names):
            raise ValueError(
                f"{truth.path} must have the columns of {probabilities.path}, got none named "
                f"{missing[0]!r}"
            )
        raise ValueError(
            f"{probabilities.path} and {truth.path} must name their columns alike, got "
            f"{names[0]!r} and {own[0]!r}: rename them, or pass by_position=True if both have "
            "one order"
        )
    if own_titles == titles:
        return truth
    if truth.path != probabilities.path:
        notes.append(
            f"Columns of {truth.path} were put in the order of {probabilities.path}, by their "
            "names."
        )
    places = {name: place for place, name in enumerate(own_titles)}
    return truth.columns([places[name] for name in titles])


def labels_hint(probabilities: Matrix, truth: Matrix, y: Any) -> str:
    """A hint for the error about labels that are wrong; empty if there is none."""
    stored = np.ravel(y.data if sparse.issparse(y) else y)
    hint = _swapped(probabilities, truth)
    if y.ndim == 1 and probabilities.width > 1:
        is_from_one = (stored == probabilities.width).any()
        return "; if the first class is 1, write numbers from 0" if is_from_one else hint
    # NaN is not equal to itself: an unknown label is not wrong.
    wrong = stored[(stored != 0) & (stored != 1) & (stored == stored)]
    if len(wrong) and not hint:
        hint = f"; if {wrong[0]:g} is the positive class, pass positive='{wrong[0]:g}'"
    return hint


def _swapped(probabilities: Matrix, truth: Matrix) -> str:
    """A hint if probabilities look like labels, and labels like probabilities; else empty."""
    # Labels are whole numbers, and probabilities are fractions.
    first, second = probabilities.stored, truth.stored
    if second.dtype.kind not in "fiub":
        return ""
    is_whole, has_fractions = (first == np.floor(first)).all(), (second != np.floor(second)).any()
    is_inside = len(second) and second.min() >= 0 and second.max() <= 1
    return "; are eta and labels swapped?" if is_whole and has_fractions and is_inside else ""
