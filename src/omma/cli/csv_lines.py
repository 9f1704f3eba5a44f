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
    _heads: list[str] = field(default_factory=list)  # what messages call the columns
    _words: Names = ()  # what classes may be called
    _id: int | None = None
    _eta: list[int] = field(default_factory=list)
    _y: list[int] = field(default_factory=list)
    _classes: bool = False

    def read(self, text: str) -> Line | None:
        """What a line says; the first may have the names of columns."""
        cells = split(text, self.separator)
        if not any(cells):
            return None
        if not self._heads:
            if self._is_header(cells):
                self._name(cells)
                self._heads = [shown(cell) for cell in cells]
                return None
            self._number(len(cells))
            self._heads = [f"number {place}" for place in range(len(cells))]
        if len(cells) != len(self._heads):
            raise ValueError(f"expected {len(self._heads)} cells, got {len(cells)}")
        return Line(
            None if self._id is None else cells[self._id] or None,
            self._probabilities(cells),
            self._labels(cells),
        )

    def gives_way(self, text: str) -> bool:
        """Whether a line names more columns, so that what came before was no line of names."""
        cells = split(text, self.separator)
        return len(cells) > len(self._heads) and all(cells) and not any(map(is_number, cells))

    def _is_header(self, cells: list[str]) -> bool:
        longest = max(map(len, cells))
        if longest > LONGEST_NAME:
            raise ValueError(
                f"expected names of columns or numbers, got a cell of {longest:,} signs"
            )
        return is_header(cells)

    def _probabilities(self, cells: list[str]) -> Vector | None:
        chosen = [cells[place] for place in self._eta]
        if not any(chosen):
            return None
        row = self._numbers(self._eta, cells)
        if not (row.min() >= 0 and row.max() <= 1):  # so that NaN is wrong, too
            for place in self._eta:
                self._check_probability(place, cells[place])
        return row

    def _check_probability(self, place: int, cell: str) -> None:
        value = to_number(cell)
        if 0 <= value <= 1:
            return
        sentence = (
            f"expected probabilities from 0 to 1 in the column {self._heads[place]}, got "
            f"{shown(cell)[1:-1]}"
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
        if len(chosen) == 1 and self._is_word(chosen[0]):
            return self._class(chosen[0])
        if not all(chosen):  # what is not there is not known
            cells = [cell or "nan" for cell in cells]
        labels = self._numbers(self._y, cells)
        if not self._classes:
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
            start, cell = f"expected a number in the column {self._heads[place]}", cells[place]
            if not cell:  # a mishap of one row
                raise ValueError(f"{start}, got nothing") from error
            raise WrongColumnError(place, f"{start}, got {shown(cell)}{meant(cell)}") from error

    def _is_word(self, cell: str) -> bool:
        """Whether a class is meant by its name."""
        if not self._words or is_number(cell):
            return False
        return cell in self._words or not is_truth(cell)

    def _class(self, word: str) -> Any:
        if word not in self._words:
            raise ValueError(f"expected a class among {shown(self._words)}, got {shown(word)}")
        if self._classes:
            return self._words.index(word)
        return np.array([float(word == (self.names or ())[0])])

    def _name(self, cells: list[str]) -> None:
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
        others = [place for place in range(len(cells)) if place != self._id]
        marked = {cells[place][2:]: place for place in others if cells[place].startswith("y_")}
        plain = [place for place in others if not cells[place].startswith("y_")]
        classes = [place for place in plain if cells[place].lower() in CLASS_NAMES]
        self._eta = [place for place in plain if cells[place].lower() not in CLASS_NAMES]
        every = tuple(cells[place] for place in self._eta)
        if not self._eta or len(classes) > 1 or (marked and classes):
            raise StopStreamError(f"expected columns of probabilities, got {shown(cells)}")
        if self.n_labels not in (None, len(every)):
            raise StopStreamError(
                f"expected {self.n_labels} columns of probabilities (--n-labels), got "
                f"{len(every)}: {shown(every)}"
            )
        self._eta = self._chosen(every)
        self.names = tuple(cells[place] for place in self._eta)
        if marked:
            self._match(marked, self.names)
        elif classes:
            self._y, self._words = classes[:1], every
            self._classes = len(self.names) > 1

    def _match(self, marked: dict[str, int], names: Names) -> None:
        """Columns of labels in the order of the probabilities'."""
        known = set(marked) if self.column is None else set(marked) & set(names)
        if known != set(names):
            odd = sorted(known ^ set(names))[0]
            hint = f": pass --id {odd} if it names rows" if odd in names else ""
            raise StopStreamError(
                f"expected a column y_NAME for each NAME, not so for {odd!r}{hint}"
            )
        self._y = [marked[name] for name in names]

    def _chosen(self, names: Names) -> list[int]:
        """The columns of probabilities that are wanted: all, or one."""
        if self.column is None:
            return self._eta
        if self.column in names:
            return [self._eta[names.index(self.column)]]
        if self.column.isdecimal() and int(self.column) < len(self._eta):
            return [self._eta[int(self.column)]]
        hint = nearest(self.column, names) or f", got {shown(names or len(self._eta))}"
        raise StopStreamError(f"expected a column {self.column!r} of probabilities{hint}")

    def _number(self, width: int) -> None:
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
        self._eta = self._chosen(())
        if over == m and m > 1:
            self._y = [m + place for place in self._eta]
        else:
            self._y = list(range(m, width))
            self._classes = over == 1 and len(self._eta) > 1
