"""The rows of a window, and the state of a policy that decides by them alone."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_not
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels.layout import ERAS, GROWTH, LARGEST_UNIT, UNIT, N
from omma.kernels.window import (
    COLUMNS,
    END,
    END_ID,
    END_VALUE,
    FIRST,
    FIRST_ID,
    FIRST_VALUE,
    HELD,
    KIND,
    LABELLED,
    LENGTH,
    NUMBERS,
    SINCE,
    STORED,
    TIMED,
    Recent,
)
from omma.state import Shapes, State, check_part, under

Array = NDArray[Any]
ROOM = 256  # entries that there is room for from the start


@dataclass(eq=False)
class Window:
    """What the last rows added to the counts, so that it can be taken off (``kernels.window``)."""

    ids: NDArray[np.int32]  # labels of all rows one after another
    values: NDArray[np.float64]  # and their probabilities
    rows: NDArray[np.int32]  # how many of each a row has
    weights: NDArray[np.float64]
    numbers: NDArray[np.int64]  # where what is kept begins and ends, and how many rows are held
    pace: NDArray[np.float64]  # as of a state which forgets: of calibration and prices

    @classmethod
    def start(cls, length: int) -> Window:
        """No rows yet, of so many at most.

        Calibration follows labels step by step, and no step can be taken back. It fades instead,
        so fast that what it looks at is as old on the whole, length / 2 rows, and as much, length
        rows in the sense of a variance: a weight of exp(-2 / length) a row does both.
        """
        numbers = np.zeros(NUMBERS, dtype=np.int64)
        numbers[LENGTH] = length
        return cls(
            np.empty(ROOM, dtype=np.int32),
            np.empty(ROOM),
            np.empty((ROOM, COLUMNS), dtype=np.int32),
            np.empty(ROOM),
            numbers,
            np.array([1.0, np.exp(2.0 / length), 0.0]),
        )

    @property
    def length(self) -> int:
        """How many rows it has at most."""
        return int(self.numbers[LENGTH])

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(one.nbytes for one in (self.ids, self.values, self.rows, self.weights))

    def kernel(self, m: int) -> Recent:
        """The rows as the kernels know them, for m labels."""
        return Recent(self.ids, self.values, self.rows, self.weights, self.numbers, np.zeros(m))

    def make_room(self, rows: int, ids: int, values: int) -> bool:
        """See to it that so much more can be put at the end; whether arrays were exchanged."""
        numbers, before = self.numbers, (self.rows, self.ids, self.values)
        if numbers[END] + rows > len(self.rows):
            self.rows = _moved(self.rows, numbers[FIRST], numbers[END], rows)
            self.weights = _moved(self.weights, numbers[FIRST], numbers[END], rows)
            numbers[END] -= numbers[FIRST]
            numbers[FIRST] = 0
        if numbers[END_ID] + ids > len(self.ids):
            self.ids = _moved(self.ids, numbers[FIRST_ID], numbers[END_ID], ids)
            numbers[END_ID] -= numbers[FIRST_ID]
            numbers[FIRST_ID] = 0
        if numbers[END_VALUE] + values > len(self.values):
            self.values = _moved(self.values, numbers[FIRST_VALUE], numbers[END_VALUE], values)
            numbers[END_VALUE] -= numbers[FIRST_VALUE]
            numbers[FIRST_VALUE] = 0
        return any(map(is_not, before, (self.rows, self.ids, self.values)))

    def trim(self) -> None:
        """Give back the room that is not used."""
        self.restore({name: one.copy() for name, one in self.arrays().items()})

    def arrays(self) -> dict[str, Array]:
        """What is kept as plain arrays, for a file."""
        numbers = self.numbers
        part = slice(numbers[FIRST], numbers[END])
        return {
            "ids": self.ids[numbers[FIRST_ID] : numbers[END_ID]],
            "values": self.values[numbers[FIRST_VALUE] : numbers[END_VALUE]],
            "rows": self.rows[part],
            "weights": self.weights[part],
            "numbers": numbers[[HELD, LENGTH, SINCE]],
            "pace": self.pace,
        }

    def check(self, arrays: dict[str, Array], m: int) -> None:
        """Refuse arrays that are not those of such a window: kernels follow ids without looking."""
        missing = [name for name in self.arrays() if name not in arrays]
        if missing:
            raise ValueError(f"recent_{missing[0]} of a state must be given, got nothing")
        ids, values, rows, weights, numbers, pace = (arrays[name] for name in self.arrays())
        kinds = [(ids, "iu"), (values, "f"), (rows, "iu"), (weights, "f"), (numbers, "iu")]
        sound = all(one.dtype.kind in kind for one, kind in kinds) and numbers.shape == (3,)
        sound = sound and rows.ndim == 2 and rows.shape == (len(weights), COLUMNS)
        sound = sound and ids.ndim == values.ndim == weights.ndim == 1
        if not sound or not (np.isfinite(values).all() and np.isfinite(weights).all()):
            raise ValueError("the rows of a window must be vectors of numbers, and are not")
        counted = rows[:, :KIND].astype(np.int64)
        timed = (rows[:, KIND] & TIMED) > 0
        fits = (
            (counted >= 0).all()
            and ((rows[:, KIND] > 0) & (rows[:, KIND] <= TIMED + LABELLED)).all()
            and counted.sum() == len(ids)
            and counted[:, STORED].sum() == len(values)
            and ((ids >= 0) & (ids < m)).all()
            and ((values > 0) & (values <= 1)).all()
            and (weights > 0).all()
            and timed.sum() == numbers[0] <= numbers[1]
            and (not len(timed) or bool(timed[0]))
            and 0 <= numbers[2] < numbers[1]
        )
        if not fits:
            raise ValueError("the rows of a window do not fit together")
        check_part("recent_pace", pace, self.pace.shape, signed=False)
        if numbers[1] != self.length or pace[GROWTH] != self.pace[GROWTH]:
            raise ValueError(
                f"a state of this window must have {self.length} rows, got {numbers[1]}"
            )
        if not 1.0 <= pace[UNIT] < LARGEST_UNIT or pace[ERAS] != np.floor(pace[ERAS]):
            raise ValueError(f"pace of a window must be at least 1, got {pace.tolist()}")

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` gave, once it was checked."""
        self.ids = np.array(arrays["ids"], dtype=np.int32)
        self.values = np.array(arrays["values"], dtype=np.float64)
        self.rows = np.array(arrays["rows"], dtype=np.int32)
        self.weights = np.array(arrays["weights"], dtype=np.float64)
        self.pace[...] = arrays["pace"]
        numbers = self.numbers
        numbers[...] = 0
        numbers[[HELD, LENGTH, SINCE]] = arrays["numbers"]
        numbers[END], numbers[END_ID] = len(self.rows), len(self.ids)
        numbers[END_VALUE] = len(self.values)


@dataclass(eq=False)
class WindowState(State):
    """Counts of the last rows, and these rows."""

    recent: Window | None = None

    @classmethod
    def over(cls, state: State, length: int) -> WindowState:
        """A state with nothing counted, that will hold so many rows."""
        made = cls(state.cells, state.totals, state.labels, state.known, state.calibration)
        made.judged, made.recent = State.zeros(state.m), Window.start(length)
        return made

    @property
    def window(self) -> Window:
        """The rows."""
        assert self.recent is not None
        return self.recent

    @property
    def clock(self) -> Array:
        """The pace of calibration, which cannot be taken back and so fades."""
        return self.window.pace

    def arrays(self) -> dict[str, Array]:
        own = {f"recent_{name}": one for name, one in self.window.arrays().items()}
        return {**super().arrays(), **own}

    def shapes(self) -> Shapes:
        rows = {f"recent_{name}": None for name in self.window.arrays()}
        return {**super().shapes(), **rows}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> State:
        plain = State.from_arrays(arrays)
        found = under("recent_", arrays)
        made = cls.over(plain, int(found["numbers"][1]))
        made.judged, made.prices, made.missed = plain.judged, plain.prices, plain.missed
        made.window.restore(found)
        return made

    def check(self, arrays: dict[str, Array]) -> None:
        super().check(arrays)
        self.window.check(under("recent_", arrays), self.m)
        if arrays["totals"][N] > 0 and not len(arrays["recent_rows"]):
            raise ValueError("the counts of a window are of rows that are not in it")

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.window.restore(under("recent_", arrays))

    def __mul__(self, factor: float) -> State:
        raise TypeError("the state of an omma.Window cannot be multiplied: its rows are whole")

    __rmul__ = __mul__


def _moved(array: Array, first: int, end: int, more: int) -> Array:
    """The same from its first entry on, with room for more; seldom, as much as there is."""
    used = int(end - first)
    made = np.empty((used + max(more, used, ROOM), *array.shape[1:]), dtype=array.dtype)
    made[:used] = array[first:end]
    return made
