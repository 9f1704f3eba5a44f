"""Lines of a stream that are CSV: what each column is, and what a line says."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma._validate import nearest, shown
from omma.cli.lines import Line, StopStreamError
from omma.datasets._cells import is_header, is_number, is_truth, split, to_number

CLASS_NAMES = ("y", "label", "class", "target")


class WrongColumnError(ValueError):
    """A cell as no column of probabilities or labels has it."""


class WrongNumberError(WrongColumnError):
    """A number that is no probability: the first two of a column that counts rows may be."""


class CsvLines:
    """Columns of probabilities, of labels (``y_NAME``, or one of class ids), and of ids.

    Of the probabilities one ``column`` may be chosen, by name or number.
    """

    def __init__(
        self,
        separator: str,
        n_labels: int | None,
        id_column: str | None,
        column: str | None = None,
    ) -> None:
        self.separator = separator
        self.n_labels = n_labels
        self.id_column = id_column
        self.column = column
        self.names: tuple[str, ...] | None = None
        self._heads: list[str] = []  # what messages call the columns
        self._words: tuple[str, ...] = ()  # what classes may be called
        self._good = 0  # how many lines could be read
        self._id: int | None = None
        self._eta: list[int] = []
        self._y: list[int] = []
        self._classes = False

    def read(self, text: str) -> Line | None:
        """What a line says; the first may have the names of columns."""
        cells = split(text, self.separator)
        if not any(cells):
            return None
        if not self._heads:
            self._heads = [f"number {place}" for place in range(len(cells))]
            if is_header("the stream", cells):
                self._heads = [repr(cell) for cell in cells]
                self._name(cells)
                return None
            self._number(len(cells))
        if len(cells) != len(self._heads):
            raise ValueError(f"expected {len(self._heads)} cells, got {len(cells)}")
        try:
            line = Line(
                None if self._id is None else cells[self._id] or None,
                self._probabilities(cells),
                self._labels(cells),
            )
        except WrongColumnError as error:
            if self._good > (2 if isinstance(error, WrongNumberError) else 0):
                raise
            # All lines would be wrong in the same way.
            raise StopStreamError(str(error) + self._advice()) from error
        self._good += 1
        return line

    def _advice(self) -> str:
        return (
            "; pass --id NAME if a column names rows, or --column NAME to take one column of "
            "probabilities; the true label is in a column y, or y_NAME for each label"
        )

    def _probabilities(self, cells: list[str]) -> Any:
        chosen = [cells[place] for place in self._eta]
        if not any(chosen):
            return None
        for place in self._eta:
            self._check_number(place, cells[place])
            if not 0 <= float(cells[place]) <= 1:
                raise WrongNumberError(
                    f"expected probabilities from 0 to 1 in the column {self._heads[place]}, got "
                    f"{cells[place]}"
                )
        return np.array([float(cell) for cell in chosen])

    def _labels(self, cells: list[str]) -> Any:
        """Indicators, or a class id, or None where all cells are empty."""
        chosen = [cells[place] for place in self._y]
        if not any(chosen):
            return None
        if len(chosen) == 1 and self._is_word(chosen[0]):
            return self._class(chosen[0])
        for place in self._y:
            if not is_truth(cells[place]):
                self._check_number(place, cells[place])
        found = np.array([to_number(cell) for cell in chosen])
        if not self._classes:
            return found
        if found[0] % 1 != 0:
            raise ValueError(f"expected a whole number as class id, got {found[0]:g}")
        return int(found[0])

    def _check_number(self, place: int, cell: str) -> None:
        if not is_number(cell):
            error = WrongColumnError if cell else ValueError
            what = repr(cell) if cell else "nothing"
            raise error(f"expected a number in the column {self._heads[place]}, got {what}")

    def _is_word(self, cell: str) -> bool:
        """Whether a class is meant by its name."""
        if not self._words or is_number(cell):
            return False
        return cell in self._words or not is_truth(cell)

    def _class(self, word: str) -> Any:
        if word not in self._words:
            raise ValueError(f"expected a class among {shown(self._words)}, got {word!r}")
        if self._classes:
            return self._words.index(word)
        return np.array([float(word == (self.names or ())[0])])

    def _name(self, cells: list[str]) -> None:
        """Find out by their names what the columns are."""
        if len(set(cells)) < len(cells):
            raise StopStreamError(f"expected distinct names of columns, got {shown(cells)}")
        wanted = "id" if self.id_column is None else self.id_column
        if wanted in cells:
            self._id = cells.index(wanted)
        elif self.id_column is not None:
            raise StopStreamError(f"expected a column {self.id_column!r}, got {shown(cells)}")
        if not cells[0] and self._id != 0:
            raise StopStreamError(
                "got an unnamed first column, which seems to number rows (write the CSV with "
                "index=False, or pass --id '')"
            )
        others = [place for place in range(len(cells)) if place != self._id]
        marked = {cells[place][2:]: place for place in others if cells[place].startswith("y_")}
        labels = set(marked.values())
        plain = [place for place in others if place not in labels]
        classes = [place for place in plain if cells[place].lower() in CLASS_NAMES]
        self._eta = [place for place in plain if place not in classes]
        every = tuple(cells[place] for place in self._eta)
        if not self._eta or len(classes) > 1 or (marked and classes):
            raise StopStreamError(f"expected columns of probabilities, got {shown(cells)}")
        self._eta = self._chosen(every)
        self.names = tuple(cells[place] for place in self._eta)
        if marked:
            self._match(marked, self.names)
        elif classes:
            self._y, self._words = classes[:1], every
            self._classes = len(self.names) > 1

    def _match(self, marked: dict[str, int], names: tuple[str, ...]) -> None:
        """Columns of labels in the order of the probabilities'."""
        known = set(marked) if self.column is None else set(marked) & set(names)
        if known != set(names):
            odd = sorted(known ^ set(names))[0]
            hint = f": pass --id {odd} if it names rows" if odd in names else ""
            raise StopStreamError(
                f"expected a column y_NAME for each NAME, not so for {odd!r}{hint}"
            )
        self._y = [marked[name] for name in names]

    def _chosen(self, names: tuple[str, ...]) -> list[int]:
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
            raise StopStreamError(
                f"expected {m} columns of probabilities (--n-labels), then {m} of labels, one of "
                f"class ids or none, got {width}"
            )
        self._eta = list(range(m))
        self._eta = self._chosen(())
        if over == m and m > 1:
            self._y = [m + place for place in self._eta]
        else:
            self._y = list(range(m, width))
            self._classes = over == 1 and len(self._eta) > 1
