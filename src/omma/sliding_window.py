"""The latest rows of a stream, for policies that decide by these only."""

from __future__ import annotations

import numpy as np

from omma.kernels.window import (
    COLUMNS,
    END,
    END_ID,
    END_VALUE,
    FIRST,
    FIRST_ID,
    FIRST_VALUE,
    IN_WINDOW,
    KIND,
    LABELLED,
    LENGTH,
    N_ROWS,
    NUMBERS,
    ROWS_SINCE_RECOUNT,
    STORED,
    WindowArrays,
)
from omma.state_parts import Array

ROOM = 256  # the least number of entries to make room for
# What files have of `numbers`; the others are positions in the lists.
FILED = [N_ROWS, LENGTH, ROWS_SINCE_RECOUNT]
# Labels of all rows one after another, their probabilities, the length of each row, its weight.
LISTS = {"ids": np.int32, "values": np.float64, "rows": np.int32, "weights": np.float64}


class SlidingWindow:
    """What the latest rows added to the counts, so that it can be subtracted (``kernels.window``).

    Attributes
    ----------
    lists : dict of ndarray
        The rows, with room for more at the end.
    numbers : ndarray
        Where rows begin and end in the lists, and how many rows there are.
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.lists = {name: np.array(arrays[name], dtype=kind) for name, kind in LISTS.items()}
        # Arrays from a file have no spare room: rows begin at 0 and end where arrays end.
        self.numbers = np.zeros(NUMBERS, dtype=np.int64)
        self.numbers[FILED] = arrays["numbers"]
        self.numbers[[END, END_ID, END_VALUE]] = [
            len(self.lists[name]) for name in ("rows", "ids", "values")
        ]

    @classmethod
    def start(cls, length: int) -> SlidingWindow:
        """An empty window for at most ``length`` rows."""
        arrays = dict.fromkeys(("ids", "values", "weights"), np.empty(0))
        return cls({**arrays, "rows": np.empty((0, COLUMNS)), "numbers": np.array([0, length, 0])})

    @property
    def length(self) -> int:
        """The largest number of rows."""
        return int(self.numbers[LENGTH])

    def kernel(self, m: int) -> WindowArrays:
        """The rows in the form that kernels read, for m labels."""
        return WindowArrays(**self.lists, numbers=self.numbers, marks=np.zeros(m))

    def make_room(self, rows: int, ids: int, values: int) -> bool:
        """Make room for so much more at the end; return whether arrays were replaced."""
        numbers, lists = self.numbers, self.lists
        if (
            numbers[END] + rows <= len(lists["rows"])
            and numbers[END_ID] + ids <= len(lists["ids"])
            and numbers[END_VALUE] + values <= len(lists["values"])
        ):
            return False
        # This is rare, because the room is doubled each time. Rows then begin at 0, as in a file.
        self.trim()
        more = {"rows": rows, "weights": rows, "ids": ids, "values": values}
        for name, count in more.items():
            array = self.lists[name]
            spare = max(count, len(array), ROOM), *array.shape[1:]
            self.lists[name] = np.concatenate((array, np.empty(spare, dtype=array.dtype)))
        return True

    def trim(self) -> None:
        """Free the room that is not used."""
        self.__dict__.update(SlidingWindow(self.arrays()).__dict__)

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        numbers, lists = self.numbers, self.lists
        part = slice(numbers[FIRST], numbers[END])
        return {
            "ids": lists["ids"][numbers[FIRST_ID] : numbers[END_ID]],
            "values": lists["values"][numbers[FIRST_VALUE] : numbers[END_VALUE]],
            "rows": lists["rows"][part],
            "weights": lists["weights"][part],
            "numbers": numbers[FILED],
        }

    def check(self, arrays: dict[str, Array], m: int) -> None:
        """Refuse arrays that such a window of rows with m labels cannot have.

        Kernels use ids without checks.
        """
        missing = [name for name in self.arrays() if name not in arrays]
        if missing:
            raise ValueError(f"recent_{missing[0]} of a state must be given, got nothing")
        ids, values, rows, weights, numbers = (arrays[name] for name in self.arrays())
        kinds = [(ids, "iu"), (values, "f"), (rows, "iu"), (weights, "f"), (numbers, "iu")]
        # Types and shapes first: comparisons of text or other shapes would raise other errors.
        sound = (
            all(array.dtype.kind in kind for array, kind in kinds)
            and numbers.shape == (3,)
            and ids.ndim == values.ndim == weights.ndim == 1
            and rows.shape == (len(weights), COLUMNS)
            and np.isfinite(values).all()
            and np.isfinite(weights).all()
        )
        if not sound:
            raise ValueError("the rows of a window must be vectors of numbers, and are not")
        entries = rows[:, :KIND].astype(np.int64)
        timed = (rows[:, KIND] & IN_WINDOW) > 0
        # Lists must fill their arrays exactly, because kernels read all of them.
        fits = (
            (entries >= 0).all()
            and ((rows[:, KIND] > 0) & (rows[:, KIND] <= IN_WINDOW + LABELLED)).all()
            and entries.sum() == len(ids)
            and entries[:, STORED].sum() == len(values)
            and ((ids >= 0) & (ids < m)).all()
            and ((values > 0) & (values <= 1)).all()
            and (weights > 0).all()
            and timed.sum() == numbers[0] <= numbers[1]
            and (not len(timed) or bool(timed[0]))
            and 0 <= numbers[2] < numbers[1]
        )
        if not fits:
            raise ValueError("the rows of a window do not fit together")
        if numbers[1] != self.length:
            raise ValueError(
                f"a state of this window must have {self.length} rows, got {numbers[1]}"
            )
