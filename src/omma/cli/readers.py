"""Which reader goes with a stream: its first good line tells, and bad ones leave nothing behind."""

from dataclasses import dataclass

from omma.cli.csv_lines import CsvLines
from omma.cli.json_lines import JsonLines
from omma.cli.lines import TOO_LONG, Line, Names, Reader, StopStreamError, WrongColumnError

SEPARATORS = {"csv": ",", "tsv": "\t"}
# Among the first rows, so many in succession that stumble over one column: it is of another kind.
ENOUGH = 3
ADVICE = (
    "; pass --id NAME if a column names rows, or --column NAME to take one column of "
    "probabilities; the true label is in a column y, or y_NAME for each label"
)


@dataclass
class Lines:
    """Reads lines of whatever format the first good one has.

    Until ``accept`` was told that a line was good, the next one is looked at afresh.
    """

    form: str | None = None
    n_labels: int | None = None
    id_column: str | None = None
    column: str | None = None
    known: Names | None = None  # names that a learner brings
    withdrawn: bool = False  # whether it turned out that names of columns were none
    _reader: Reader | None = None  # the one that is settled
    _tried: Reader | None = None
    _good: int = 0
    _odd: tuple[int, int] = (-1, 0)  # a column, and how many rows stumbled over it
    _fresh: bool = False  # whether the line read last is looked at afresh, in spite of names

    @property
    def names(self) -> Names | None:
        """Names of the labels, where the stream has them."""
        return None if self._tried is None else self._tried.names

    def read(self, line: bytes | None) -> Line | None:
        """What a line says; None stands for one that is too long."""
        self.withdrawn = False
        if line is None:
            raise ValueError(TOO_LONG)
        self._fresh = self._may_begin(line)
        reader = None if self._fresh else self._reader
        if reader is None:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise StopStreamError("the text is UTF-16: save it as UTF-8")
            line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                return None
        text = line.decode("utf-8", "replace")
        self._tried = reader = self._fitting(text) if reader is None else reader
        found = reader.read(text)
        if found is None and reader.names is not None:
            self._settle()  # a line of names
        return found

    def _may_begin(self, line: bytes) -> bool:
        """Whether what seemed to be names of columns may be none, but what a program said first.

        Until a row was read, a line of JSON tells so, or one of more names.
        """
        if self._good or not isinstance(self._reader, CsvLines):
            return False
        text = line.decode("utf-8", "replace")
        return (self.form is None and text.startswith("{")) or self._reader.gives_way(text)

    def accept(self) -> None:
        """The line read last was good."""
        self._settle()
        self._good += 1
        self._odd = (-1, 0)

    def _settle(self) -> None:
        self._reader, self.withdrawn, self._fresh = self._tried, self._fresh, False

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

    def _fitting(self, text: str) -> Reader:
        form = self.form or ("json" if text.lstrip().startswith(("{", "[")) else "")
        if form == "json":
            if self.column is not None:
                raise StopStreamError(
                    "--column is for CSV: in JSON lines give one probability as eta"
                )
            return JsonLines(self.n_labels, self.known)
        separator = SEPARATORS.get(form) or _separator(text)
        return CsvLines(separator, self.n_labels, self.id_column, self.column)


def _separator(text: str) -> str:
    """What stands between the cells of a line: tabs and semicolons only where no comma is."""
    return "," if "," in text else next((one for one in "\t;" if one in text), ",")
