"""A learner whose decisions and labels survive the end of its process."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from omma._atomic import sync_folder
from omma._lock import locked
from omma._validate import check_positive_int, shown
from omma.metrics import Metric
from omma.online import log
from omma.online.events import do_again
from omma.online.learner import OnlineClassifier

FORMAT = "omma-journal-1"
SNAPSHOT = re.compile(r"snapshot-(\d{1,18})\.npz")
TRIES = 10  # snapshots that may be replaced by newer ones while they are read


def newest(folder: Path) -> int | None:
    """The number of the newest snapshot in a folder; None where there is none."""
    found = [SNAPSHOT.fullmatch(one.name) for one in folder.iterdir()]
    return max((int(one[1]) for one in found if one), default=None)


def _do_again(learner: OnlineClassifier, event: bytes, path: Path, place: int) -> None:
    """Do what an event says, or say where it stands."""
    try:
        do_again(learner, event)
    except (ValueError, TypeError, IndexError, KeyError, AssertionError) as error:
        raise ValueError(f"{path} is damaged at byte {place:,}: {error}") from error


class Journal:
    """Writes down whatever a learner decides by id and learns, before it counts.

    A folder holds the learner as it was at some time, and a log of all that happened since. Every
    call is in the hands of the system before it returns: ``kill -9`` loses nothing, at any point. A
    power cut may lose what was not yet synced to the disk. ``Journal.resume`` gives the same
    learner again, to the last bit. A decision without an id is written down with its labels. What a
    learner has, its journal has, too: ``with omma.Journal(folder, learner) as learner`` is as good.

    Parameters
    ----------
    folder : str or Path
        Made if it is not there. One process at a time may use it.
    learner : OnlineClassifier
        From now on all it does is written down, until the journal is closed.
    sync : int
        Have the disk keep what was written after so many calls; 1 is safest and slowest.
    snapshot_every : int
        Save the learner and begin a new log after so many calls.

    Examples
    --------
    >>> import omma
    >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
    >>> with omma.Journal("served", learner):
    ...     prediction = learner.predict([0.9, 0.2], id="a")
    >>> with omma.Journal.resume("served") as journal:  # after a crash, or whenever
    ...     journal.learner.update([1, 0], id="a")
    ...     journal.learner.counts.n
    1.0
    """

    def __init__(
        self,
        folder: str | Path,
        learner: OnlineClassifier,
        *,
        sync: int = 100,
        snapshot_every: int = 10_000,
    ) -> None:
        if not isinstance(learner, OnlineClassifier):
            raise TypeError(
                f"learner of Journal must be an omma.OnlineClassifier, got {shown(learner)}"
            )
        self._generation: int | None
        self._open(folder, sync, snapshot_every)
        try:
            if self._generation is not None:
                raise ValueError(f"{folder} has a journal: go on from it by Journal.resume")
            self.learner = learner
            self._generation = 0
            with learner._lock:
                learner._attach(self)
                self._begin()
        except BaseException:
            self.close()
            raise

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        *,
        metric: Metric | None = None,
        sync: int = 100,
        snapshot_every: int = 10_000,
    ) -> Journal:
        """Go on from a journal.

        What a killed process has left of an unfinished record is cut off, with a warning.

        Parameters
        ----------
        folder : str or Path
        metric : Metric, optional
            As for ``OnlineClassifier.load``.
        sync, snapshot_every : int
            As for a new one.
        """
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"{folder} is not a folder with a journal")
        self = cls.__new__(cls)
        self._open(folder, sync, snapshot_every)
        try:
            if self._generation is None:
                raise ValueError(f"{folder} has no journal")
            path = self._path("snapshot-{}.npz")
            self.learner = OnlineClassifier.load(path, metric=metric)
            self._replay()
            self.learner._attach(self)
        except BaseException:
            self.close()
            raise
        return self

    @staticmethod
    def read(folder: str | Path, *, metric: Metric | None = None) -> OnlineClassifier:
        """The learner as a journal has it now, whoever writes to it; nothing there is changed.

        >>> import omma
        >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
        >>> with omma.Journal("written", learner):
        ...     prediction = learner.predict([0.9, 0.2], id="a")
        ...     len(omma.Journal.read("written").waiting)
        1
        """
        return Follower(folder, metric=metric).look()

    def _open(self, folder: str | Path, sync: int, snapshot_every: int) -> None:
        self.folder = Path(folder)
        self.sync = check_positive_int("Journal", "sync", sync)
        self.snapshot_every = check_positive_int("Journal", "snapshot_every", snapshot_every)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log: log.Log | None = None
        self._calls = 0  # since the snapshot
        self._held = ExitStack()
        self._held.enter_context(locked(self.folder / "journal", "another journal"))
        self._generation = newest(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / name.format(self._generation)

    def _header(self) -> bytes:
        learner = self.learner
        own = learner.metric
        content = {
            "format": FORMAT,
            "generation": self._generation,
            "n_labels": learner.n_labels,
            "policy": learner.policy.to_json(),
            "metric": None if own is None else own.name,
            "names": None if learner.names is None else list(learner.names),
        }
        return json.dumps(content).encode()

    def _replay(self) -> None:
        """Do again what happened since the snapshot, and cut off what is no whole record."""
        path = self._path("log-{}")
        if not path.exists():  # killed between a snapshot and its log
            log.begin(path, self._header())
        records = log.read(path)
        header, end = next(records, (b"", 0))
        found = log.header_of(path, header) if end else {}
        expected = json.loads(self._header())
        wrong = [name for name in expected if found.get(name) != expected[name]]
        if wrong:
            raise ValueError(
                f"{path} does not go with its snapshot: expected {wrong[0]} "
                f"{shown(expected[wrong[0]])}, got {shown(found.get(wrong[0]))}"
            )
        for event, after in records:
            _do_again(self.learner, event, path, end)
            end = after
            self._calls += 1
        torn = path.stat().st_size - end
        if torn:
            warnings.warn(
                f"{path} ended in an unfinished record: its {torn:,} bytes were cut off",
                stacklevel=3,
            )
        self._log = log.Log(path, end)
        self._remove_older()

    def write(self, event: bytes) -> None:
        """Write one event down; the learner calls it, with its lock, before anything is changed."""
        if self._log is None:
            raise ValueError(f"the journal in {self.folder} is closed")
        if self._calls >= self.snapshot_every:
            self.cut()
        self._log.append(event)
        self._calls += 1
        if self._calls % self.sync == 0:
            self._log.sync()

    def cut(self) -> None:
        """Save the learner as it is now, and begin a new log."""
        with self.learner._lock:
            if self._log is None or self._generation is None:
                raise ValueError(f"the journal in {self.folder} is closed")
            before = self._log
            self._generation += 1
            try:
                self._begin()
            except BaseException:
                # What is written to the old log from now on must not be passed over.
                self._path("snapshot-{}.npz").unlink(missing_ok=True)
                self._generation -= 1
                self._log = before
                raise
            before.close()

    def _begin(self) -> None:
        """A snapshot first, then its log: whoever finds the one without the other has lost none."""
        self.learner.save(self._path("snapshot-{}.npz"))
        path = self._path("log-{}")
        header = self._header()
        log.begin(path, header)
        self._log = log.Log(path, len(log.framed(header)))
        self._calls = 0
        self._remove_older()

    def _remove_older(self) -> None:
        assert self._generation is not None
        for one in self.folder.iterdir():
            number = re.fullmatch(r"(?:snapshot|log)-(\d{1,18})(?:\.npz)?", one.name)
            if number and int(number[1]) < self._generation:
                one.unlink(missing_ok=True)
        sync_folder(self.folder)

    def close(self) -> None:
        """Keep all on the disk, and let others use the folder; the learner goes on without it."""
        learner: Any = getattr(self, "learner", None)
        if learner is not None:
            with learner._lock:
                learner._detach(self)
        if self._log is not None:
            self._log.close()
            self._log = None
        self._held.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        # What is not here yet, while a journal is opened, must not ask the learner for it.
        if name.startswith("_") or "learner" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.learner, name)

    def __repr__(self) -> str:
        return f"<journal in {self.folder}, {self._calls:,} calls since the last snapshot>"


class Follower:
    """Follows a journal while somebody else writes it: nothing is locked, and nothing changed.

    Each look does again what was written since the last one.
    """

    def __init__(self, folder: str | Path, *, metric: Metric | None = None) -> None:
        self.folder = Path(folder)
        self.metric = metric
        self.learner: OnlineClassifier | None = None
        self._generation: int | None = None
        self._end = 0  # of the log, as far as it was read

    def look(self, after: Callable[[OnlineClassifier], None] | None = None) -> OnlineClassifier:
        """The learner as it is now; ``after`` is called after each event that is done again."""
        if not self.folder.is_dir() or newest(self.folder) is None:
            raise FileNotFoundError(f"{self.folder} is not a folder with a journal")
        for attempt in range(1, TRIES + 1):
            try:
                return self._follow(after)
            except FileNotFoundError:  # a newer snapshot has come, and the old one gone
                self._generation = None
                if attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def _follow(self, after: Callable[[OnlineClassifier], None] | None) -> OnlineClassifier:
        generation = newest(self.folder)
        learner = self.learner
        if learner is None or generation != self._generation:
            path = self.folder / f"snapshot-{generation}.npz"
            learner = OnlineClassifier.load(path, metric=self.metric)
            if self.learner is not None:
                learner._seen = self.learner._seen  # what it told last
            self._generation, self._end = generation, 0
        path = self.folder / f"log-{generation}"
        if path.exists():  # it comes after its snapshot
            for event, end in log.read(path, self._end):
                if self._end:  # the first record is the header
                    _do_again(learner, event, path, end)
                    if after is not None:
                        after(learner)
                self._end = end
        self.learner = learner
        return learner
