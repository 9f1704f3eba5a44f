"""A learner whose decisions and labels survive the end of its process.

A journal is a folder with a log: a file of numbered records that only grows. The first record is a
snapshot of the learner, the others are all calls since. Whatever kills the writer of a log, whole
records stay. Now and then a new log begins with a new snapshot, and the old one is removed.

A record is a mark, a checksum, the length of its content, its number, and its content. The checksum
covers all that follows it. That of the snapshot seeds those of all others, and the number of the
first snapshot is drawn at random, so records of another log do not fit. Each call is written by one
call of the system, and ``sync`` brings it to the disk.

Only the last record can be unfinished. Any other bytes that are no whole record, and a record with
an unexpected number, are damage: ``DamagedError`` says at which byte.
"""

from __future__ import annotations

import io
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
from omma._lock import InUseError, locked, locked_folder
from omma._validate import check_positive_int, shown
from omma.metrics import Metric
from omma.online import codec
from omma.online.learner import OnlineClassifier

LOG = re.compile(r"log-(\d{1,18})")
TRIES = 10  # logs that may be replaced by newer ones while they are read

MARK = b"\xf7om4"  # with the version of the format; no text has the first byte in UTF-8
EARLIER_MARK = b"\xf7omj"  # of the format that had snapshots in files of their own
HEAD = struct.Struct("<4sIQQ")  # mark, checksum, length, number


# Logs


class DamagedError(ValueError):
    """A file of a journal has other bytes than were written; ``path`` and ``byte`` say where."""

    def __init__(self, path: Path, byte: int, reason: str) -> None:
        message = f"{path} is damaged at byte {byte:,}: {reason}"
        if byte > 0:
            message += (
                f"; omma journal check {path.parent} --salvage NEW writes what is sound before it "
                "to a new folder"
            )
        super().__init__(message)
        self.path, self.byte = path, byte


class Record(NamedTuple):
    """A whole record: its number, what is before its content, and the byte after it."""

    number: int
    head: bytes
    content: bytes
    end: int


def head_of(content: bytes, number: int, salt: int = 0) -> bytes:
    """What is before the content of a record."""
    covered = HEAD.pack(MARK, 0, len(content), number)[8:]
    checksum = zlib.crc32(content, zlib.crc32(covered, salt))
    return HEAD.pack(MARK, checksum, len(content), number)


def begin_log(path: Path, learner: OnlineClassifier, number: int) -> None:
    """Write a log with a snapshot and no calls, whole or not at all."""
    buffer = io.BytesIO()
    codec.write(buffer, learner)
    snapshot = buffer.getvalue()  # which may be large: it is never copied
    with replacing(path) as file:
        file.write(head_of(snapshot, number))
        file.write(snapshot)


class Reader:
    """Reads the whole records of a log; asked again, it continues with new ones.

    ``snapshot`` is the content of the first record, and ``first`` the number of the second. ``end``
    is the byte after the last record that was read, ``number`` the number of the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.salt = 0
        with path.open("rb") as file:
            mark = file.read(len(MARK))
            record = self._record(file, 0)
        if mark == EARLIER_MARK:
            raise ValueError(
                f"{path} is of a journal of an earlier version of omma, which this version cannot "
                "read: go on with that version, or begin a new journal in another folder"
            )
        if record is None:
            reason = "it does not begin with a whole snapshot, without which no call can be applied"
            raise DamagedError(path, 0, reason)
        self.snapshot = record.content
        self.end, self.number = record.end, record.number + 1
        self.first = self.number
        # The checksum of the snapshot seeds all others.
        self.salt = HEAD.unpack(record.head)[1]
        self._last = 0, record.head  # where the last record begins, and what is before its content

    def events(self, stop: int | None = None) -> Iterator[tuple[bytes, int]]:
        """The events that were not read before, and the byte at which each begins.

        It ends before an unfinished record, and at the byte ``stop``. An event counts as read once
        the next one is asked for.
        """
        with self.path.open("rb") as file:
            while self.end != stop and (record := self._next(file)) is not None:
                yield record.content, self.end
                self._last = self.end, record.head
                self.end, self.number = record.end, self.number + 1

    def is_as_read(self) -> bool:
        """Whether the last record that was read is still there: its writer may have removed it."""
        place, head = self._last
        with self.path.open("rb") as file:
            file.seek(place)
            return file.read(HEAD.size) == head

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
        mark, _, length, number = HEAD.unpack(head)
        left = os.fstat(file.fileno()).st_size - place - len(head)
        if mark != MARK or length > left:
            return None
        content = file.read(length)
        # Its writer may have removed it while it was read: then less of it is there.
        if head_of(content, number, self.salt) != head:
            return None
        return Record(number, head, content, place + len(head) + length)


class Log:
    """The end of a log, where records are appended.

    ``kept`` is the size of the file with all records that are kept, and the number of the next
    one: together, so that no interrupt comes between.
    """

    def __init__(self, reader: Reader) -> None:
        self._salt = reader.salt
        self.kept = reader.end, reader.number
        self._file = os.open(reader.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            self.roll_back()
        except BaseException:
            self.close()
            raise

    def append(self, content: bytes) -> tuple[int, int]:
        """Write a record; ``roll_back`` removes it, unless the result is assigned to ``kept``."""
        size, number = self.kept
        record = head_of(content, number, self._salt) + content
        # The system may take less than all of it, as on a disk that is nearly full.
        written = 0
        while written < len(record):
            written += os.write(self._file, record[written:])
        return size + len(record), number + 1

    def roll_back(self) -> None:
        """Remove all bytes after the records that are kept."""
        size, _ = self.kept
        if os.fstat(self._file).st_size != size:
            os.ftruncate(self._file, size)
            os.fsync(self._file)
        os.lseek(self._file, size, os.SEEK_SET)

    def sync(self) -> None:
        """Bring all that was appended to the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


# Folders


def log_path(folder: Path, generation: int) -> Path:
    """The path of a log."""
    return folder / f"log-{generation}"


def logs(folder: Path) -> dict[int, Path]:
    """The logs in a folder by their number; none if there is no folder."""
    paths = list(folder.iterdir()) if folder.is_dir() else []
    matches = [(LOG.fullmatch(path.name), path) for path in paths]
    return {int(match[1]): path for match, path in matches if match}


class Journal:
    """Write every decision by id and every label of a learner to disk, before it is counted.

    The folder has a file with a snapshot of the learner and all calls since. A call is written to
    the operating system before it returns, so ``kill -9`` loses nothing. A power cut may lose calls
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
        Start a new file with a snapshot after every ``snapshot_every`` calls.

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
            if logs(self.folder):
                raise ValueError(f"{folder} has a journal: go on from it by Journal.resume")
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
            follower = Follower(folder, metric=metric)
            self.learner = follower.look()
            reader, self._generation = follower.reader, follower.generation
            unfinished = reader.unfinished()
            if unfinished:
                aside = self.folder / f"unfinished-{self._generation}-{reader.end}"
                with aside.open("ab") as file:
                    file.write(unfinished)
                    file.flush()
                    os.fsync(file.fileno())
            # A killed process may have left a log whose name no sync has brought to the disk.
            sync_folder(self.folder)
            self._calls = reader.number - reader.first
            self._log = Log(reader)
            self._remove_older()
            if unfinished:
                warnings.warn(
                    f"{self.folder} ended in an unfinished record: its {len(unfinished):,} bytes "
                    f"were moved to {aside.name}",
                    stacklevel=2,
                )
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
        self._generation = -1  # the number of the log; there is none yet
        self._calls = 0  # since the snapshot
        self._in_doubt = False  # whether disk and learner may differ: then nothing more is written
        self._locks = ExitStack()
        try:
            self._locks.enter_context(locked(self.folder / "journal", "another journal"))
            self._locks.enter_context(locked_folder(self.folder))  # should that file be deleted
            yield
        except BaseException:
            self.close()
            raise

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
            after = file.append(event)
            is_written = True
            if (self._calls + 1) % self.sync == 0:
                file.sync()
            yield
            file.kept = after
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
        """Begin a new log with a snapshot of the learner as it is now."""
        with self.learner._lock:
            self._check_writable()
            self._begin()

    def _begin(self) -> None:
        """Write a new log, which is valid once it is there: then older ones are removed.

        If it cannot be written, the old log is continued. Files that cannot be removed now are
        removed the next time.
        """
        generation, old_log = self._generation + 1, self._log
        path = log_path(self.folder, generation)
        number = secrets.randbits(48) if old_log is None else old_log.kept[1]
        was_in_doubt, self._in_doubt = self._in_doubt, True
        try:
            begin_log(path, self.learner, number)
        finally:
            if path.exists():  # also where an interrupt came right after it was moved there
                sync_folder(self.folder)
                self._log = Log(Reader(path))
                self._generation, self._calls = generation, 0
                was_in_doubt = False
            self._in_doubt = was_in_doubt
        if old_log is not None:
            old_log.close()
        self._remove_older()

    def _remove_older(self) -> None:
        """Remove older logs; those that cannot be removed now are after the next snapshot."""
        for number, path in logs(self.folder).items():
            if number < self._generation:
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

    Each look applies the calls that were written since the last one. With ``stop``, the byte at
    which a log is damaged, it reads only what is before it.
    """

    def __init__(
        self, folder: str | Path, *, metric: Metric | None = None, stop: int | None = None
    ) -> None:
        self.folder = Path(folder)
        self.metric = metric
        self.stop = stop
        # There are a learner and the reader of a log from the first look on.
        self.learner: Any = None
        self.reader: Any = None
        self.generation = -1  # the number of the log

    def look(self, after: Callable[[OnlineClassifier], None] | None = None) -> OnlineClassifier:
        """The learner as it is now; ``after`` is called after each call that was written."""
        for attempt in range(1, TRIES + 1):
            generation = max(logs(self.folder), default=None)
            if generation is None:
                raise FileNotFoundError(f"{self.folder} is not a folder with a journal")
            try:
                return self._follow(generation, after)
            except BaseException as error:
                self.reader = None  # the learner may have applied half a call: begin again
                # A newer log may have replaced the one that was read.
                replaced = isinstance(error, FileNotFoundError | DamagedError)
                newest = max(logs(self.folder), default=None)
                if not replaced or newest == generation or attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def _follow(
        self, generation: int, after: Callable[[OnlineClassifier], None] | None
    ) -> OnlineClassifier:
        # A new log, or a record that its writer removed: begin again.
        if self.reader is None or generation != self.generation or not self.reader.is_as_read():
            self._load(generation)
        learner: OnlineClassifier = self.learner
        for event, byte in self.reader.events(self.stop):
            try:
                learner._redo(event)
            except codec.SPOILED as error:
                raise DamagedError(self.reader.path, byte, str(error)) from error
            if after is not None:
                after(learner)
        return learner

    def _load(self, generation: int) -> None:
        """Open a log, and take the learner of its snapshot."""
        reader = Reader(log_path(self.folder, generation))
        learner = codec.read(OnlineClassifier, reader.path, self.metric, reader.snapshot)
        reader.snapshot = b""  # which may be large, and is not needed any more
        if self.learner is not None:
            learner._seen = self.learner._seen  # for the stats that are since the last look
        self.learner, self.reader, self.generation = learner, reader, generation
