"""A learner whose decisions and labels survive the end of its process.

A journal is a folder with a snapshot of the learner and a log of all calls since. The log is a file
of numbered records that only grows; whatever kills its writer, whole records stay.

A record is a mark, a checksum, the length of its content, its number, and its content. The checksum
covers all that follows it. The first record is the header, in JSON. Its checksum seeds those of all
others, so records of another log do not fit. Each record is written by one call of the system, and
``sync`` brings it to the disk.

Only the last record can be unfinished. Any other bytes that are no whole record, and a record with
an unexpected number, are damage: ``DamagedError`` says at which byte.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from omma._atomic import replacing, sync_folder
from omma._json import parse_json
from omma._lock import InUseError, locked, locked_folder
from omma._validate import check_positive_int, shown
from omma.metrics import Metric
from omma.online import codec
from omma.online.learner import OnlineClassifier

FORMAT = "omma-journal-3"
SNAPSHOT = re.compile(r"snapshot-(\d{1,18})\.npz")
LOG = re.compile(r"log-(\d{1,18})")
TRIES = 10  # snapshots that may be replaced by newer ones while they are read

MARK = b"\xf7omj"  # no text has the first byte in UTF-8
HEAD = struct.Struct("<4sIIQ")  # mark, checksum, length, number
LONGEST = 1 << 30  # bytes of a record


# Logs


class DamagedError(ValueError):
    """A file of a journal has other bytes than were written; ``path`` and ``byte`` say where."""

    def __init__(self, path: Path, byte: int, reason: str) -> None:
        super().__init__(
            f"{path} is damaged at byte {byte:,}: {reason}; omma journal check {path.parent} "
            "--salvage NEW writes what is sound before it to a new folder"
        )
        self.path, self.byte = path, byte


class Record(NamedTuple):
    """A whole record, and the byte after it."""

    number: int
    content: bytes
    end: int


def framed(content: bytes, number: int, salt: int = 0) -> bytes:
    """A record as the file has it."""
    if len(content) > LONGEST:
        raise ValueError(f"a record must have at most {LONGEST:,} bytes, got {len(content):,}")
    covered = HEAD.pack(MARK, 0, len(content), number)[8:] + content
    return MARK + zlib.crc32(covered, salt).to_bytes(4, "little") + covered


def begin_log(path: Path, header: dict[str, Any]) -> None:
    """Write a log with a header and no events, whole or not at all."""
    with replacing(path) as file:
        file.write(framed(json.dumps(header).encode(), 0))


class Reader:
    """Reads the whole records of a log; asked again, it continues with new ones.

    ``end`` is the byte after the last event that was read, ``number`` the number of the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.salt = 0
        with path.open("rb") as file:
            record = self._record(file, 0)
            if record is None or record.number != 0:
                raise DamagedError(path, 0, "it has no whole header")
            self._last = self._head(file, 0)
        try:
            self.header = parse_json(f"the header of {path}", record.content)
            first = check_positive_int("its header", "first", self.header["first"], least=0)
        except codec.SPOILED as error:
            raise DamagedError(path, 0, f"its header cannot be read: {error}") from error
        self.end, self.number = record.end, int(first)
        # The checksum of the header seeds all others.
        self.salt = HEAD.unpack(self._last[1])[1]

    def events(self, stop: int | None = None) -> Iterator[tuple[bytes, int]]:
        """The events that were not read before, and the byte at which each begins.

        It ends before an unfinished record, and at the byte ``stop``. An event counts as read once
        the next one is asked for.
        """
        with self.path.open("rb") as file:
            while self.end != stop and (record := self._next(file)) is not None:
                yield record.content, self.end
                self._last = self._head(file, self.end)
                self.end, self.number = record.end, self.number + 1

    def is_as_read(self) -> bool:
        """Whether the last record that was read is still there: its writer may have removed it."""
        with self.path.open("rb") as file:
            return self._head(file, self._last[0]) == self._last

    def unfinished(self) -> bytes:
        """The bytes after the last event that was read."""
        with self.path.open("rb") as file:
            file.seek(self.end)
            return file.read()

    def sound_behind(self, place: int) -> Iterator[Record]:
        """Every whole record that begins after a byte, whatever is between them."""
        with self.path.open("rb") as file:
            behind = end = place + 1
            file.seek(behind)
            for match in re.finditer(re.escape(MARK), file.read()):
                place = behind + match.start()
                # A mark inside of a whole record is part of its content.
                record = self._record(file, place) if place >= end else None
                if record is not None:
                    yield record
                    end = record.end

    def _next(self, file: BinaryIO) -> Record | None:
        """The record after those that were read; None if it is not finished yet."""
        record = self._record(file, self.end)
        if record is None and next(self.sound_behind(self.end), None) is not None:
            # Its writer may have replaced a record while it was read.
            record = self._record(file, self.end)
            if record is None:
                raise DamagedError(self.path, self.end, "its bytes are not those that were written")
        if record is not None and record.number != self.number:
            reason = f"expected record {self.number:,}, got record {record.number:,}"
            raise DamagedError(self.path, self.end, reason)
        return record

    def _record(self, file: BinaryIO, place: int) -> Record | None:
        """The whole record that begins at a byte, or None."""
        file.seek(place)
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        mark, checksum, length, number = HEAD.unpack(head)
        left = os.fstat(file.fileno()).st_size - place - len(head)
        if mark != MARK or length > min(LONGEST, left):
            return None
        content = file.read(length)
        # Its writer may have removed it while it was read: then less of it is there.
        if len(content) < length or zlib.crc32(head[8:] + content, self.salt) != checksum:
            return None
        return Record(number, content, place + len(head) + length)

    def _head(self, file: BinaryIO, place: int) -> tuple[int, bytes]:
        file.seek(place)
        return place, file.read(HEAD.size)


class Log:
    """The end of a log, where records are appended."""

    def __init__(self, reader: Reader) -> None:
        self.path = reader.path
        self._salt = reader.salt
        # Size and number of the next record: together, so that no interrupt comes between.
        self._kept = reader.end, reader.number
        self._after = self._kept
        self._file = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            self.roll_back()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes of the records that are kept."""
        return self._kept[0]

    @property
    def number(self) -> int:
        """The number of the next record."""
        return self._kept[1]

    def append(self, content: bytes) -> None:
        """Write a record; until ``keep`` is called, ``roll_back`` removes it."""
        size, number = self._kept
        record = framed(content, number, self._salt)
        self._after = size + len(record), number + 1
        # The system may take less than all of it, as on a disk that is nearly full.
        written = 0
        while written < len(record):
            written += os.write(self._file, record[written:])

    def keep(self) -> None:
        """Keep what was appended."""
        self._kept = self._after

    def roll_back(self) -> None:
        """Remove all bytes after the records that are kept."""
        if os.fstat(self._file).st_size != self.size:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        os.lseek(self._file, self.size, os.SEEK_SET)

    def sync(self) -> None:
        """Bring all that was appended to the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            descriptor, self._file = self._file, -1
            os.close(descriptor)


# Folders


def snapshot_path(folder: Path, generation: int) -> Path:
    """The path of a snapshot."""
    return folder / f"snapshot-{generation}.npz"


def log_path(folder: Path, generation: int) -> Path:
    """The path of the log that continues from a snapshot."""
    return folder / f"log-{generation}"


def numbered(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    """The snapshots or the logs in a folder by their number; none if there is no folder."""
    paths = list(folder.iterdir()) if folder.is_dir() else []
    matches = [(pattern.fullmatch(path.name), path) for path in paths]
    return {int(match[1]): path for match, path in matches if match}


def newest(folder: Path) -> int | None:
    """The number of the newest snapshot in a folder, or None."""
    return max(numbered(folder, SNAPSHOT), default=None)


def _check_later(folder: Path, generation: int) -> None:
    """Refuse logs whose snapshot is missing.

    A log is written before its snapshot: the next one may be there alone while it has no event.
    """
    for number, path in numbered(folder, LOG).items():
        if number <= generation:
            continue
        if number > generation + 1 or any(Reader(path).events()):
            snapshot = snapshot_path(folder, number).name
            raise DamagedError(path, 0, f"there is no {snapshot}, from which it goes on")


class Journal:
    """Write every decision by id and every label of a learner to disk, before it is counted.

    The folder has a snapshot of the learner, and a log of all calls since. A call is written to the
    operating system before it returns, so ``kill -9`` loses nothing. A power cut may lose calls
    that were not yet synced to disk. ``Journal.resume`` restores the same learner, to the last bit.
    A decision without an id is written together with its labels. The journal has all methods of the
    learner: ``with omma.Journal(folder, learner) as learner`` works, too.

    A call that cannot be written, for example on a full disk, is refused. Neither the journal nor
    the learner changes, and the call may be repeated. After a failed sync, or an interrupt while a
    call was counted, the call is undone, and the journal refuses further calls until it is closed
    and resumed. A forked process cannot write to the journal of its parent.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist. Only one process at a time may use it.
    learner : OnlineClassifier
        Its calls are written to the journal until the journal is closed.
    sync : int
        Sync to disk after every ``sync`` calls; 1 is safest and slowest.
    snapshot_every : int
        Save the learner and start a new log after every ``snapshot_every`` calls.

    Examples
    --------
    >>> import omma
    >>> learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
    >>> with omma.Journal("served", learner):
    ...     prediction = learner.predict([0.9, 0.2], id="a")
    >>> with omma.Journal.resume("served") as journal:  # for example after a crash
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
        with self._opened(folder, sync, snapshot_every):
            if newest(self.folder) is not None:
                raise ValueError(f"{folder} has a journal: go on from it by Journal.resume")
            _check_later(self.folder, -1)
            if learner._journal is not None:
                raise ValueError(
                    f"a learner can have one journal, and this one has {learner._journal!r}"
                )
            self.learner = learner
            with learner._lock:
                learner._journal = self
                self._begin()

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        *,
        metric: Metric | None = None,
        sync: int = 100,
        snapshot_every: int = 10_000,
    ) -> Journal:
        """Continue a journal.

        An unfinished record of a killed process is moved to a separate file, with a warning. A
        journal that is damaged otherwise is refused: ``omma journal check`` says where, and
        salvages what is sound before it.

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
        with self._opened(folder, sync, snapshot_every):
            self._go_on(Follower(folder, metric=metric))
            self.learner._journal = self
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

    @contextmanager
    def _opened(self, folder: str | Path, sync: int, snapshot_every: int) -> Iterator[None]:
        """Lock the folder for this process; unlock it again if the body fails."""
        self.folder = Path(folder)
        self.sync = check_positive_int("Journal", "sync", sync)
        self.snapshot_every = check_positive_int("Journal", "snapshot_every", snapshot_every)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = os.getpid()
        self._log: Log | None = None
        self._generation = -1  # of the snapshot; there is none yet
        self._calls = 0  # since the snapshot
        self._in_doubt = False  # whether disk and learner may differ: then nothing more is written
        with ExitStack() as locks:
            locks.enter_context(locked(self.folder / "journal", "another journal"))
            locks.enter_context(locked_folder(self.folder))  # should that file be deleted
            self._locks = locks.pop_all()
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _go_on(self, follower: Follower) -> None:
        """Continue after the last whole event."""
        self.learner = follower.look()
        reader, self._generation = follower.reader, follower.generation
        assert reader is not None  # there is one unless a journal is salvaged
        unfinished = reader.unfinished()
        if unfinished:
            aside = self.folder / f"unfinished-{self._generation}-{reader.end}"
            with aside.open("ab") as file:
                file.write(unfinished)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.folder)
        self._calls = follower.calls
        self._log = Log(reader)
        self._remove_older()
        if unfinished:
            warnings.warn(
                f"{self.folder} ended in an unfinished record: its {len(unfinished):,} bytes were "
                f"moved to {aside.name}",
                stacklevel=3,
            )

    def _check_writable(self) -> Log:
        """The log, if it may be written to."""
        if self._log is None:
            raise ValueError(f"the journal in {self.folder} is closed")
        if os.getpid() != self._process:
            raise InUseError(
                f"the journal in {self.folder} belongs to process {self._process}, of which this "
                "one is a fork: only that process can write to it"
            )
        if self._in_doubt:
            raise OSError(
                f"the journal in {self.folder} takes no more calls, as one was interrupted or its "
                "disk failed: close it and call Journal.resume, which has all that was acknowledged"
            )
        return self._log

    @contextmanager
    def record(self, event: bytes) -> Iterator[None]:
        """Write an event, then let the learner count it; the learner calls this with its lock.

        If either fails or is interrupted, the event is removed from the file. The journal accepts
        further calls only if the write itself has failed: then the learner has counted nothing. A
        failed fsync may succeed the next time although the data never reached the disk. A learner
        that was interrupted may have counted half an event, which the journal does not have.
        """
        if self._calls >= self.snapshot_every:
            self.cut()
        file = self._check_writable()
        # In doubt until the learner has counted it, whatever happens in between.
        self._in_doubt, is_written = True, False
        try:
            file.append(event)
            is_written = True
            if (self._calls + 1) % self.sync == 0:
                file.sync()
            yield
            file.keep()
        except BaseException:
            file.roll_back()
            self._in_doubt = is_written
            raise
        self._calls += 1
        self._in_doubt = False

    @contextmanager
    def change(self) -> Iterator[None]:
        """Let the learner change in a way that is no event, and save all of it.

        If that fails, the journal has the learner as it was before, and accepts no more calls.
        """
        self._check_writable()
        self._in_doubt = True
        yield
        self._begin()

    def cut(self) -> None:
        """Save the learner as it is now, and begin a new log."""
        with self.learner._lock:
            self._check_writable()
            snapshot = snapshot_path(self.folder, self._generation + 1)
            self._in_doubt = True
            try:
                self._begin()
            except BaseException:
                # Without its snapshot the new log does not count, and the old one is continued.
                if not snapshot.exists():
                    self._in_doubt = False
                raise

    def _begin(self) -> None:
        """Write a new log, and then its snapshot: both are valid once the snapshot is there.

        From then on only the next snapshot deletes them. Files that are not needed any more are
        removed last, and again the next time if that fails.
        """
        generation, old_log = self._generation + 1, self._log
        snapshot, path = snapshot_path(self.folder, generation), log_path(self.folder, generation)
        header = {
            "format": FORMAT,
            "generation": generation,
            "first": 0 if old_log is None else old_log.number,  # the number of the first record
            "pair": secrets.token_hex(8),  # of this log and its snapshot, and of no others
        }
        begin_log(path, header)
        new_log = Log(Reader(path))
        try:
            codec.write(snapshot, self.learner, header)
        finally:
            if snapshot.exists():  # also where an interrupt came right after it was moved there
                sync_folder(self.folder)
                self._generation, self._calls = generation, 0
                self._log, self._in_doubt = new_log, False
            else:
                new_log.close()
        if old_log is not None:
            old_log.close()
        self._remove_older()

    def _remove_older(self) -> None:
        """Remove older files; those that cannot be removed now are after the next snapshot."""
        older = [
            path
            for pattern in (SNAPSHOT, LOG)
            for number, path in numbered(self.folder, pattern).items()
            if number < self._generation
        ]
        for path in older:
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """Sync to disk and unlock the folder; the learner continues without the journal.

        In a forked process, this changes nothing for the process that has the journal.
        """
        learner: Any = self.__dict__.get("learner")
        if learner is not None:
            with learner._lock:
                if learner._journal is self:
                    learner._journal = None
        # From here on nothing is written, even if what follows fails.
        file, self._log = self._log, None
        try:
            if file is not None and os.getpid() == self._process:
                # In doubt, an error of the disk was raised before.
                with suppress(OSError) if self._in_doubt else nullcontext():
                    file.roll_back()
                    file.sync()
        finally:
            if file is not None:
                file.close()
            self._locks.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        # While a journal is opened, it has no learner yet to ask for an attribute.
        if name.startswith("_") or "learner" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.learner, name)

    def __repr__(self) -> str:
        return f"<journal in {self.folder}, {self._calls:,} calls since the last snapshot>"


class Follower:
    """Reads a journal, also while another process writes it; it locks and changes nothing.

    Each look applies the events that were written since the last one. With ``before``, the error of
    a damaged journal, it reads only what is before the damage.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        metric: Metric | None = None,
        before: DamagedError | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.metric = metric
        self.before = before
        self.learner: OnlineClassifier | None = None
        self.generation = -1
        self.reader: Reader | None = None
        self.calls = 0  # since the snapshot

    def look(self, after: Callable[[OnlineClassifier], None] | None = None) -> OnlineClassifier:
        """The learner as it is now; ``after`` is called after each event."""
        for attempt in range(1, TRIES + 1):
            generation = newest(self.folder)
            if generation is None:
                _check_later(self.folder, -1)
                raise FileNotFoundError(f"{self.folder} is not a folder with a journal")
            try:
                return self._follow(generation, after)
            except BaseException as error:
                self.learner = None  # it may have applied half an event
                # A newer snapshot may have replaced the one that was read.
                replaced = isinstance(error, FileNotFoundError | DamagedError)
                if not replaced or newest(self.folder) == generation or attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def _follow(
        self, generation: int, after: Callable[[OnlineClassifier], None] | None
    ) -> OnlineClassifier:
        learner, reader = self.learner, self.reader
        # A new snapshot, or a record that its writer removed: begin again.
        is_ahead = generation != self.generation or reader is None or not reader.is_as_read()
        if learner is None or is_ahead:
            learner, reader = self._load(generation)
            if self.learner is not None:
                learner._seen = self.learner._seen  # for the stats that are since the last look
            self.learner, self.reader, self.generation = learner, reader, generation
            self.calls = 0
        if self.before is None:
            _check_later(self.folder, generation)
        if reader is None:
            return learner
        for event, byte in reader.events(self._stop(reader.path)):
            try:
                learner._redo(event)
            except codec.SPOILED as error:
                raise DamagedError(reader.path, byte, str(error)) from error
            self.calls += 1
            if after is not None:
                after(learner)
        return learner

    def _stop(self, path: Path) -> int | None:
        """The byte at which a log is damaged, if ``before`` says so."""
        return self.before.byte if self.before is not None and self.before.path == path else None

    def _load(self, generation: int) -> tuple[OnlineClassifier, Reader | None]:
        """The learner of a snapshot, and its log; None if the log is damaged from the start."""
        snapshot, path = snapshot_path(self.folder, generation), log_path(self.folder, generation)
        learner, header = codec.read(OnlineClassifier, snapshot, self.metric)
        if not isinstance(header, dict):
            raise DamagedError(snapshot, 0, "it is a learner of no journal")
        if header.get("generation") != generation:
            raise DamagedError(snapshot, 0, f"it is number {shown(header.get('generation'))}")
        if self._stop(path) == 0:
            return learner, None
        if not path.exists():
            raise DamagedError(path, 0, f"it is missing, and {snapshot.name} is there")
        reader = Reader(path)
        for name, expected in {**header, "format": FORMAT}.items():
            if reader.header.get(name) != expected:
                raise DamagedError(
                    path,
                    0,
                    f"it does not go with its snapshot: expected {name} {shown(expected)}, got "
                    f"{shown(reader.header.get(name))}",
                )
        return learner, reader
