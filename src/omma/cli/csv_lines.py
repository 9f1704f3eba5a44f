"""Lines of a stream that are CSV: what each column is, and what a line says."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omma._validate import nearest, shown
from omma.cli.lines import Line, Names, StopStreamError, Vector, WrongColumnError
from omma.datasets.csv_text import is_header, is_number, is_truth, meant, split, to_number

CLASS_NAMES = ("y", "label", "class", "target")
LONGEST_NAME = 1_000  # signs: what is longer is no name of a column, but a spoiled line


@dataclass
class CsvLines:
    """Columns of probabilities, of labels (``y_NAME``, or one of class ids), and of ids.

    Of the probabilities one ``column`` may be chosen, by name or number.
    """

    separator: str
    n_labels: int | None
    id_column: str | None
    column: str | None = None
    names: Names | None = None
    _titles: list[str] = field(default_factory=list)  # what messages call the columns
    _classes: Names = ()  # names of classes in the column of labels
    _id: int | None = None
    _eta: list[int] = field(default_factory=list)
    _y: list[int] = field(default_factory=list)
    _has_class_ids: bool = False

    def read(self, text: str) -> Line | None:
        """What a line says; the first may have the names of columns."""
        cells = split(text, self.separator)
        if not any(cells):
            return None
        if not self._titles:
            longest = max(map(len, cells))
            if longest > LONGEST_NAME:
                raise ValueError(
                    f"expected names of columns or numbers, got a cell of {longest:,} signs"
                )
            if is_header(cells):
                self._read_header(cells)
                self._titles = [shown(cell) for cell in cells]
                return None
            self._number_columns(len(cells))
            self._titles = [f"number {place}" for place in range(len(cells))]
        if len(cells) != len(self._titles):
            raise ValueError(f"expected {len(self._titles)} cells, got {len(cells)}")
        row_id = None if self._id is None else cells[self._id] or None
        return Line(row_id, self._probabilities(cells), self._labels(cells))

    def gives_way(self, text: str, form: str | None) -> bool:
        """A line of JSON tells that what came before was no line of names, or one of more names."""
        if form is None and text.startswith("{"):
            return True
        cells = split(text, self.separator)
        return len(cells) > len(self._titles) and all(cells) and not any(map(is_number, cells))

    def _probabilities(self, cells: list[str]) -> Vector | None:
        if not any(cells[place] for place in self._eta):
            return None
        row = self._numbers(self._eta, cells)
        right = (row >= 0) & (row <= 1)  # of NaN neither holds
        if right.all():
            return row
        wrong = int(np.argmin(right))
        place, value = self._eta[wrong], row[wrong]
        sentence = (
            f"expected probabilities from 0 to 1 in the column {self._titles[place]}, got "
            f"{shown(cells[place])[1:-1]}"
        )
        if not np.isfinite(value):  # a mishap of one row
            raise ValueError(sentence)
        percent = "; divide percentages by 100" if 1 < value <= 100 else ""
        # The first two rows of a column that counts them, 0 and 1, were in the range.
        raise WrongColumnError(place, sentence + percent, after=2)

    def _labels(self, cells: list[str]) -> Any:
        """Indicators, or a class id, or None where all cells are empty."""
        chosen = [cells[place] for place in self._y]
        if not any(chosen):
            return None
        word = chosen[0]
        # A class by its name; "true" is one only where a class is called so.
        if self._classes and not is_number(word):
            if word in self._classes:
                place = self._classes.index(word)
                return place if self._has_class_ids else np.array([float((word,) == self.names)])
            if not is_truth(word):
                classes = shown(self._classes)
                raise ValueError(f"expected a class among {classes}, got {shown(word)}")
        if not all(chosen):  # an empty cell is a label that is not known
            cells = [cell or "nan" for cell in cells]
        labels = self._numbers(self._y, cells)
        if not self._has_class_ids:
            return labels
        if np.isnan(labels[0]):
            return None
        if not labels[0].is_integer():
            raise ValueError(f"expected a whole number as class id, got {labels[0]:g}")
        return int(labels[0])

    def _numbers(self, places: list[int], cells: list[str]) -> Vector:
        try:
            return np.array([to_number(cells[place]) for place in places])
        except ValueError as error:
            words = (place for place in places if not is_number(cells[place]))
            place = next(place for place in words if not is_truth(cells[place]))
            start, cell = f"expected a number in the column {self._titles[place]}", cells[place]
            if not cell:  # a mishap of one row
                raise ValueError(f"{start}, got nothing") from error
            raise WrongColumnError(place, f"{start}, got {shown(cell)}{meant(cell)}") from error

    def _read_header(self, cells: list[str]) -> None:
        """Find out by their names what the columns are."""
        name, times = Counter(cells).most_common(1)[0]
        if times > 1:
            raise StopStreamError(
                f"expected names of columns that differ, got {name!r} {times} times"
            )
        id_name = "id" if self.id_column is None else self.id_column
        if id_name in cells:
            self._id = cells.index(id_name)
        elif self.id_column is not None:
            raise StopStreamError(f"expected a column {self.id_column!r}, got {shown(cells)}")
        if not cells[0] and self._id != 0:
            raise StopStreamError(
                "got an unnamed first column, which seems to number rows (write the CSV with "
                "index=False, or pass --id '')"
            )
        marked: dict[str, int] = {}  # columns y_NAME
        classes: list[int] = []
        for place, cell in enumerate(cells):
            if place == self._id:
                continue
            if cell.startswith("y_"):
                marked[cell[2:]] = place
            elif cell.lower() in CLASS_NAMES:
                classes.append(place)
            else:
                self._eta.append(place)
        all_names = tuple(cells[place] for place in self._eta)
        if not self._eta or len(classes) > 1 or (marked and classes):
            raise StopStreamError(f"expected columns of probabilities, got {shown(cells)}")
        if self.n_labels not in (None, len(all_names)):
            raise StopStreamError(
                f"expected {self.n_labels} columns of probabilities (--n-labels), got "
                f"{len(all_names)}: {shown(all_names)}"
            )
        self._choose_column(all_names)
        self.names = tuple(cells[place] for place in self._eta)
        if classes:
            self._y, self._classes = classes, all_names
            self._has_class_ids = len(self.names) > 1
        if marked:
            known = set(marked) if self.column is None else set(marked) & set(self.names)
            odd = sorted(known ^ set(self.names))
            if odd:
                hint = f": pass --id {odd[0]} if it names rows" if odd[0] in self.names else ""
                raise StopStreamError(
                    f"expected a column y_NAME for each NAME, not so for {odd[0]!r}{hint}"
                )
            self._y = [marked[name] for name in self.names]

    def _number_columns(self, width: int) -> None:
        """Columns without names: probabilities, then as many labels or one class id."""
        m = self.n_labels or width
        over = width - m
        if over not in (0, 1, m):
            raise WrongColumnError(
                width,
                f"expected {m} columns of probabilities (--n-labels), then {m} of labels, one of "
                f"class ids or none, got {width}",
            )
        self._eta = list(range(m))
        self._choose_column(())
        if over == m and m > 1:
            self._y = [m + place for place in self._eta]
        else:
            self._y = list(range(m, width))
            self._has_class_ids = over == 1 and len(self._eta) > 1

    def _choose_column(self, names: Names) -> None:
        """Leave only the column of probabilities that was asked for, by name or number."""
        column = self.column
        if column is None:
            return
        if column in names:
            place = names.index(column)
        elif column.isdecimal() and int(column) < len(self._eta):
            place = int(column)
        else:
            hint = nearest(column, names) or f", got {shown(names or len(self._eta))}"
            raise StopStreamError(f"expected a column {column!r} of probabilities{hint}")
        self._eta = [self._eta[place]]
