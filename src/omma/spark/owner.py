"""One query at a time writes to a checkpoint."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from omma._lock import locked
from omma.spark.store import Store

_HELD: dict[Path, Holding] = {}
_GUARD = threading.Lock()


class Holding:
    """A checkpoint that this process writes to, until its query ends or the process does."""

    def __init__(self, folder: Path, what: str) -> None:
        self._lock = ExitStack()
        self.query: Any = None
        folder.mkdir(parents=True, exist_ok=True)
        self._lock.enter_context(locked(folder / "states", what))

    @property
    def over(self) -> bool:
        """Whether its query has ended."""
        return self.query is not None and not self.query.isActive

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()


def hold(store: Store) -> Path | None:
    """Take a checkpoint for this process, or say who has it; None in an object store.

    There nothing can be locked; Spark itself finds that two queries write the same batch.
    """
    folder = store.folder
    if folder is None:
        return None
    folder = folder.resolve()
    with _GUARD:
        held = _HELD.get(folder)
        if held is not None and held.over:
            _HELD.pop(folder).close()
        _HELD[folder] = Holding(folder, "a stream of omma.spark")
    return folder


def belongs_to(folder: Path | None, query: Any) -> None:
    """Say which query a checkpoint was taken for."""
    if folder is not None:
        _HELD[folder].query = query


def release(folder: Path | None) -> None:
    """Let others have a checkpoint."""
    with _GUARD:
        held = None if folder is None else _HELD.pop(folder, None)
    if held is not None:
        held.close()


def is_held(store: Store) -> bool:
    """Whether this process has taken a checkpoint."""
    folder = store.folder
    return folder is None or folder.resolve() in _HELD


class Release(StreamingQueryListener):  # type: ignore[misc]
    """Lets others have a checkpoint once its query has ended."""

    def __init__(self, session: Any, query: str, taken: Path) -> None:
        self._session, self._query, self._taken = session, query, taken

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Give the checkpoint back."""
        if str(event.id) == self._query:
            release(self._taken)
            self._session.streams.removeListener(self)
