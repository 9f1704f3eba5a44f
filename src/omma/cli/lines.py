"""Lines of a stream: taken from a file within bounds, and read in whatever format they have.

A line that cannot be read raises ``ValueError`` with a sentence; the next one can still be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from omma.cli.csv_lines import CsvLines
    from omma.cli.json_lines import JsonLines

Vector = NDArray[np.float64]
Names = tuple[str, ...]

LONGEST = 1 << 24  # bytes of a line: 800,000 probabilities of 20 digits
TOO_LONG = (
    f"longer than {LONGEST >> 20} MiB; with so many labels give those that matter as JSON pairs, "
    '{"eta": {"17": 0.9}}'
)
SEPARATORS = {"csv": ",", "tsv": "\t"}
# Among the first rows, so many in succession that stumble over one column: it is of another kind.
ENOUGH = 3
ADVICE = (
    "; pass --id NAME if a column names rows, or --column NAME to take one column of "
    "probabilities; the true label is in a column y, or y_NAME for each label"
)


class Line(NamedTuple):
    """What a line says; None where it says nothing about it."""

    id: Any = None
    eta: Vector | None = None
    y: Any = None  # indicators, or a class id
    decision: Vector | None = None  # of an earlier process, in place of the one remembered


class StopStreamError(ValueError):
    """What makes all further lines useless."""


class WrongColumnError(ValueError):
    """A cell that no column of probabilities or labels has; ``place`` is the column's.

    Up to ``after`` good rows the column may still turn out to be of another kind.
    """

    def __init__(self, place: int, sentence: str, after: int = 0) -> None:
        super().__init__(sentence)
        self.place = place
        self.after = after


def bounded_lines(file: BinaryIO, longest: int = LONGEST) -> Iterator[bytes | None]:
    r"""The lines of a file, None for one that is longer; never more than ``longest`` in memory.

    >>> import io
    >>> list(bounded_lines(io.BytesIO(b"ab\nabcdef\nc"), longest=3))
    [b'ab\n', None, b'c']
    """
    while line := file.readline(longest + 1):
        if len(line) <= longest or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(1 << 16)
        yield None


@dataclass
class LineReader:
    """Reads lines of whatever format the first good one has.

    Until ``accept`` was told that a line was good, the next one is looked at afresh.
    """

    form: str | None = None
    n_labels: int | None = None
    id_column: str | None = None
    column: str | None = None
    learner_names: Names | None = None  # of the labels, where a learner brings them
    begins_anew: bool = False  # whether it turned out that names of columns were none
    _format: CsvLines | JsonLines | None = None  # the one that is settled
    _tried: CsvLines | JsonLines | None = None
    _good: int = 0
    _odd: tuple[int, int] = (-1, 0)  # a column, and how many rows stumbled over it
    _is_fresh: bool = False  # whether the line read last is looked at afresh, in spite of names

    @property
    def names(self) -> Names | None:
        """Names of the labels, where the stream has them."""
        return None if self._tried is None else self._tried.names

    def read(self, line: bytes | None) -> Line | None:
        """What a line says; None stands for one that is too long."""
        self.begins_anew = False
        if line is None:
            raise ValueError(TOO_LONG)
        text = line.decode("utf-8", "replace")
        # Until a row was read, names of columns may be none, but what a program said first.
        header = None if self._good else self._format
        self._is_fresh = header is not None and header.gives_way(text, self.form)
        tried = None if self._is_fresh else self._format
        if tried is None:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise StopStreamError("the text is UTF-16: save it as UTF-8")
            text = text.removeprefix("\ufeff")
            if not text.strip():
                return None
            tried = self._format_of(text)
        self._tried = tried
        content = tried.read(text)
        if content is None and tried.names is not None:
            self._settle()  # a line of names
        return content

    def accept(self) -> None:
        """The line read last was good."""
        self._settle()
        self._good += 1
        self._odd = (-1, 0)

    def _settle(self) -> None:
        self._format, self.begins_anew, self._is_fresh = self._tried, self._is_fresh, False

    def refuse(self, error: Exception) -> str:
        """What to say of the line read last; raises where the next ones would be no better."""
        if not isinstance(error, WrongColumnError) or self._good > error.after:
            return str(error)
        place, times = self._odd
        self._odd = (error.place, times + 1 if place == error.place else 1)
        sentence = str(error) + ADVICE
        if self._odd[1] == ENOUGH:
            raise StopStreamError(sentence) from error
        return sentence

    def _format_of(self, text: str) -> CsvLines | JsonLines:
        """A reader of the format that was asked for, or that the line looks like."""
        from omma.cli.csv_lines import CsvLines
        from omma.cli.json_lines import JsonLines

        form = self.form or ("json" if text.lstrip().startswith(("{", "[")) else "")
        if form == "json":
            if self.column is not None:
                raise StopStreamError(
                    "--column is for CSV: in JSON lines give one probability as eta"
                )
            return JsonLines(self.n_labels, self.learner_names)
        # Tabs and semicolons stand between cells only where no comma is.
        sign = next((sign for sign in ",\t;" if sign in text), ",")
        separator = SEPARATORS.get(form, sign)
        return CsvLines(separator, self.n_labels, self.id_column, self.column)
