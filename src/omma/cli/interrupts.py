"""Ctrl-C and termination wait until the row at hand is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, TypeVar, cast

One = TypeVar("One")
_END = object()  # no line can be that


class StoppedError(Exception):
    """Somebody asked to stop; ``code`` is what the process ends with, as shells expect it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.code = 128 + number


class Interrupts:
    """While it is entered, signals stop the loop over ``between`` only while it waits.

    So whatever is saved afterwards has each row wholly or not at all.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._number: int | None = None
        self._waits = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        if self._waits:
            raise StoppedError(number)

    def between(self, lines: Iterable[One]) -> Iterator[One]:
        """The lines, unless somebody asked to stop before the next one."""
        waiting = iter(lines)
        while True:
            self._waits = True
            if self._number is not None:
                raise StoppedError(self._number)
            line = next(waiting, _END)
            self._waits = False
            if line is _END:
                return
            yield cast(One, line)
