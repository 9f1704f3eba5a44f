"""Lines of a stream: taken from a file within bounds, and what each may say.

A line that cannot be read raises ``ValueError`` with a sentence; the next one can still be read.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Names = tuple[str, ...]

LONGEST = 1 << 24  # bytes of a line: 800,000 probabilities of 20 digits
TOO_LONG = (
    f"longer than {LONGEST >> 20} MiB; with so many labels give those that matter as JSON pairs, "
    '{"eta": {"17": 0.9}}'
)


class Line(NamedTuple):
    """What a line says; None where it says nothing about it."""

    id: Any = None
    eta: Vector | None = None
    y: Any = None  # indicators, or a class id
    decision: Vector | None = None  # one made earlier, in place of the one remembered


class StopStreamError(ValueError):
    """What makes all further lines useless."""


class WrongColumnError(ValueError):
    """A cell as no column of probabilities or labels has it; ``place`` is the column's.

    Up to ``after`` good rows the column may still turn out to be of another kind.
    """

    def __init__(self, place: int, sentence: str, after: int = 0) -> None:
        super().__init__(sentence)
        self.place = place
        self.after = after


class Reader(Protocol):
    """Reads lines of one format; ``names`` of labels are known when the first was read."""

    names: Names | None

    def read(self, text: str) -> Line | None:
        """What a line says, or None for one that says nothing, such as the names of columns."""


def bounded(file: BinaryIO, longest: int = LONGEST) -> Iterator[bytes | None]:
    r"""The lines of a file, None for one that is longer; never more than ``longest`` in memory.

    >>> import io
    >>> list(bounded(io.BytesIO(b"ab\nabcdef\nc"), longest=3))
    [b'ab\n', None, b'c']
    """
    while line := file.readline(longest + 1):
        if len(line) <= longest or line.endswith(b"\n"):
            yield line
            continue
        del line  # before more is read
        while rest := file.readline(1 << 16):
            if rest.endswith(b"\n"):
                break
        yield None
