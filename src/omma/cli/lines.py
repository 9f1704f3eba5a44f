"""Lines of a stream: taken from a file within bounds, and read in whatever format they have.

A line that cannot be read raises ``ValueError`` with a sentence; the next one can still be read.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from omma._validate import shown
from omma.cli.learners import LearnerKeeper
from omma.cli.options import with_options
from omma.datasets.column_roles import find_column, find_roles, stems, without_prefix
from omma.datasets.csv_text import (
    TRUTHS,
    is_header,
    is_missing,
    is_number,
    meant,
    separator_of,
    split,
    to_label,
    to_number,
)
from omma.datasets.json_lines import JsonLines, Line, Names, Vector

Take = Callable[[Line, Names | None], None]

LONGEST = 1 << 24  # bytes of a line: 800,000 probabilities of 20 digits
TOO_LONG = (
    f"longer than {LONGEST >> 20} MiB; with so many labels give those that matter as JSON pairs, "
    '{"eta": {"17": 0.9}}'
)
STREAM = "the stream"  # what errors about columns call it
SEPARATORS = {"csv": ",", "tsv": "\t"}
AUDITED = "audited"  # with --seen, a column of 0 and 1: whether all labels of the row were seen
# So many of the first rows fail at the same column before it is held to be of another kind.
ENOUGH = 3
ADVICE = (
    "; pass --id NAME if a column names rows, --probability NAME for the columns of probabilities, "
    "and --label NAME unless labels are in a column y, or y_NAME for each label"
)
LONGEST_NAME = 1_000  # signs: what is longer is no name of a column, but a spoiled line


class StopStreamError(ValueError):
    """An error after which no further line can be read."""


class WrongColumnError(ValueError):
    """A cell that shows that the column at ``place`` holds neither probabilities nor labels.

    After more than ``after`` good rows it is the cell that is wrong, and not the column.
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


class CsvLines:
    """Reads CSV: columns of probabilities, of labels (``y_NAME``, or one of classes), and of ids.

    Names of columns, or the options of ``omma stream``, tell which is which.
    """

    def __init__(self, separator: str | None, n_labels: int | None, options: Any) -> None:
        self.separator = separator
        self.n_labels = n_labels
        self.options = options
        self.names: Names | None = None
        self._titles: list[str] = []  # of the columns, for messages
        # Places of columns: of the id, of probabilities, of labels or classes, of AUDITED.
        self._id: int | None = None
        self._eta: list[int] = []
        self._y: list[int] = []
        self._audited: int | None = None
        self._classes: dict[str, Any] = {}  # what each class in a column of classes says of y

    def read(self, text: str) -> Line | None:
        """Read a line; the first may have the names of columns."""
        cells = split(text, self.separator)
        if not any(cells):
            return None
        if not self._titles and self.options.seen is not None and AUDITED in cells:
            self._audited = cells.index(AUDITED)
        audited = ""
        if self._audited is not None and self._audited < len(cells):
            audited = cells.pop(self._audited)  # the other columns are read as without it
        if not self._titles:
            longest = max(map(len, cells))
            if longest > LONGEST_NAME:
                raise ValueError(
                    f"expected names of columns or numbers, got a cell of {longest:,} signs"
                )
            has_names = is_header(cells)
            try:
                if has_names:
                    self._read_header(tuple(cells))
                else:
                    self._number_columns(len(cells))
            except WrongColumnError:  # the next line may be a row
                raise
            except ValueError as error:
                raise StopStreamError(str(error)) from error
            if has_names:
                return None
        if len(cells) != len(self._titles):
            raise ValueError(f"expected {len(self._titles)} cells, got {len(cells)}")
        row_id = None if self._id is None else cells[self._id] or None
        eta, labels = self._probabilities(cells), self._labels(cells)
        if audited not in ("", "0", "1"):
            raise ValueError(f"expected 0 or 1 as {AUDITED}, got {shown(audited)}")
        return Line(row_id, eta, labels, audited=audited == "1")

    def gives_way(self, text: str) -> bool:
        """Whether this line, which is JSON or a longer header, shows that this header is none."""
        if self.options.form is None and text.startswith("{"):
            return True
        cells = split(text, self.separator)
        return len(cells) > len(self._titles) and all(cells) and not any(map(is_number, cells))

    def _probabilities(self, cells: list[str]) -> Vector | None:
        if not any(cells[place] for place in self._eta):
            return None
        if self.options.percent:
            cells = [cell.rstrip("% ") for cell in cells]
        row = self._numbers(self._eta, cells, to_number)
        row = row / 100.0 if self.options.percent else row
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
        percent = "; if these are percent, pass --percent" if 1 < value <= 100 else ""
        # The first two rows of a column that counts them, 0 and 1, were in the range.
        raise WrongColumnError(place, sentence + percent, after=2)

    def _labels(self, cells: list[str]) -> Any:
        """Indicators, or a class id, or None where all cells are empty."""
        chosen = [cells[place] for place in self._y]
        word, positive = chosen[0] if chosen else "", self.options.positive
        if positive is not None and chosen and len(self._eta) == 1:
            return None if is_missing(word) else np.array([float(word == positive)])
        # Before words such as "yes" and "NA", which may be names of classes.
        if word in self._classes:
            return self._classes[word]
        if all(map(is_missing, chosen)):
            return None
        if self._classes and not is_number(word) and word.lower() not in TRUTHS:
            classes = shown(tuple(self._classes))
            fix = "; pass --positive CLASS" if len(self._eta) == 1 else ""
            raise ValueError(f"expected a class among {classes}, got {shown(word)}{fix}")
        labels = self._numbers(self._y, cells, to_label)
        if len(self._y) == len(self._eta):
            return labels
        if not labels[0].is_integer():
            raise ValueError(f"expected a whole number as class id, got {labels[0]:g}")
        return int(labels[0])

    def _numbers(self, places: list[int], cells: list[str], convert: Any) -> Vector:
        values = []
        for place in places:
            try:
                values.append(convert(cells[place], self.separator))
            except ValueError as error:
                start, cell = f"expected a number in the column {self._titles[place]}", cells[place]
                if not cell:  # a mishap of one row
                    raise ValueError(f"{start}, got nothing") from error
                text = f"{start}, got {shown(cell)}{meant(cell)}"
                raise WrongColumnError(place, text) from error
        return np.array(values)

    def _read_header(self, names: Names) -> None:
        """Find out by their names what the columns are."""
        options = self.options
        if not names[0] and options.id_column != "":
            raise ValueError(
                "got an unnamed first column, which seems to number rows (write the CSV with "
                "index=False, or pass --id '')"
            )
        roles = find_roles(
            STREAM,
            names,
            options.id_column,
            options.probability,
            options.label,
            needs_labels=False,
        )
        self._id, self._y = roles.id, [*roles.labels]
        labels, columns = tuple(roles.eta.values()), [*roles.eta]
        if self.n_labels not in (None, len(labels)):
            raise ValueError(
                f"expected {self.n_labels} columns of probabilities (--n-labels), got "
                f"{len(labels)}: {shown(labels)}"
            )
        places = self._chosen_places(labels)
        self._eta = [columns[place] for place in places]
        self.names = tuple(labels[place] for place in places)
        # A column y_NAME has the labels of NAME; any other single column has classes.
        label_names = tuple(roles.labels.values())
        is_marked = not options.label and label_names != tuple(names[place] for place in self._y)
        if len(label_names) == 1 and not is_marked and label_names != labels:
            # One column of classes, which have the names of the columns of probabilities, with or
            # without their common prefix. For a single label, they say whether it is true.
            is_one_label = len(places) == 1
            for classes in (without_prefix(labels), labels):
                for place, name in enumerate(classes):
                    self._classes[name] = np.array([place == places[0]]) if is_one_label else place
        elif label_names:
            self._y = self._paired_labels(labels, label_names, places)
        self._titles = [shown(name) for name in names]

    def _paired_labels(self, names: Names, labels: Names, places: list[int]) -> list[int]:
        """The column of labels of each column of probabilities that is taken."""
        if len(labels) == len(names) and set(labels) != set(names):
            names, labels = stems(names), stems(labels)  # p_sport goes with y_sport
        by_name = dict(zip(labels, self._y, strict=True))
        taken = [names[place] for place in places]
        extra = set(labels) - set(names) if self.options.column is None else set()
        odd = sorted({*taken} - {*labels} | extra)
        if odd:
            hint = f": pass --id {odd[0]} if it names rows" if odd[0] in names else ""
            raise ValueError(f"expected a column y_NAME for each NAME, not so for {odd[0]!r}{hint}")
        return [by_name[name] for name in taken]

    def _number_columns(self, width: int) -> None:
        """Columns without names: probabilities, then as many labels or one class id."""
        m = self.n_labels or width
        over = width - m  # columns of labels
        if over not in (0, 1, m):
            raise WrongColumnError(
                width,
                f"expected {m} columns of probabilities (--n-labels), then {m} of labels, one of "
                f"class ids or none, got {width}",
            )
        self._eta = places = self._chosen_places(tuple(map(str, range(m))))
        self._y = [m + place for place in places] if over == m else [*range(m, width)]
        self._titles = [f"number {place}" for place in range(width)]

    def _chosen_places(self, names: Names) -> list[int]:
        """The places of the columns of probabilities to take, among all of them."""
        column = self.options.column
        return [*range(len(names))] if column is None else [find_column(STREAM, names, column)]


class LineReader:
    """Reads lines in the format of the first good one.

    Until a row is taken, or names of columns are read, each line may be of another format.
    """

    def __init__(self, keeper: LearnerKeeper) -> None:
        self.keeper = keeper
        self.options = keeper.options
        self._format: CsvLines | JsonLines | None = None  # the settled one
        self._tried: CsvLines | JsonLines | None = None  # the one that the last line was read in
        self._good = 0  # rows so far
        self._odd: list[int] = []  # the column at which each last row failed

    def complaints(self, lines: Iterable[bytes | None], take: Take) -> Iterator[str]:
        """Hand on each row, with names of labels if there are any, to ``take``.

        Yields a sentence for each line that could not be read or taken; raises ``ValueError`` if no
        further line can be read.
        """
        for number, text in enumerate(lines, start=1):
            settled = self._format
            try:
                line = self._read(text)
                if line is not None and self._tried is not None:
                    take(line, self._tried.names)
                    self._format, self._odd = self._tried, []
                    self._good += 1
                    if isinstance(self._format, JsonLines) and self.keeper.learner is not None:
                        self._format.width = self.keeper.learner.n_labels
            except (ValueError, TypeError) as error:
                yield self._refuse(number, error)
            if settled not in (None, self._format):
                yield (
                    f"line {number} begins anew: what seemed to be names of columns before it is "
                    "none"
                )
            self.keeper.count(1)

    def _read(self, line: bytes | None) -> Line | None:
        """Read a line; None stands for one that is too long."""
        if line is None:
            raise ValueError(TOO_LONG)
        text = line.decode("utf-8", "replace")
        tried = self._format
        # Until a row was read, what seemed a header may be the first words of a program.
        if isinstance(tried, CsvLines) and not self._good and tried.gives_way(text):
            tried = None
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
            self._format = tried  # a line of names
        return content

    def _refuse(self, number: int, error: Exception) -> str:
        """A sentence about the bad line read last; raises if all others will be bad, too."""
        complaint = with_options(f"line {number}: {error}")
        is_hopeless = isinstance(error, StopStreamError)
        if isinstance(error, WrongColumnError) and self._good <= error.after:
            self._odd = [place for place in self._odd if place == error.place] + [error.place]
            complaint += ADVICE
            is_hopeless = len(self._odd) == ENOUGH
        if is_hopeless:
            raise ValueError(complaint) from error
        return complaint

    def _format_of(self, text: str) -> CsvLines | JsonLines:
        """A reader of the format of ``--format``, or else of what the line looks like."""
        n_labels, names, learner = self.options.n_labels, None, self.keeper.learner
        if learner is not None:  # a resumed one, which knows its labels
            names = learner.names
            # With --column, --n-labels is the number of columns.
            n_labels = n_labels if self.options.column is not None else learner.n_labels
        form = self.options.form or ("json" if text.lstrip().startswith(("{", "[")) else "")
        if form == "json":
            if self.options.column is not None:
                raise StopStreamError(
                    "--column is for CSV: in JSON lines give one probability as eta"
                )
            return JsonLines(n_labels, names)
        separator = SEPARATORS.get(form) or separator_of([text], ",")
        return CsvLines(separator, n_labels, self.options)
