"""A file of numbered records that only grows; whatever kills its writer, whole records stay.

A record is a mark, a checksum, the length of its content, its number, and its content. The
checksum covers all that follows it. That of the first record, the header in JSON, seeds those of
all others, so that records of another log never fit in. A record is handed to the system in one
piece; after ``sync`` it is on the disk.

Only the end of a log can be unfinished. Whatever else is no whole record, or has another number
than the one that is due, is damage: ``DamagedError`` says at which byte.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from omma._atomic import replacing
from omma._json import parse_json

# No text has the first byte of the mark in UTF-8, and no log of the first version begins so: there
# it would be the length of the header, and longer than any record.
MARK = b"\xf7omj"
HEAD = struct.Struct("<4sIIQ")  # mark, checksum, length, number
FIRST_HEAD = struct.Struct("<II")  # of the first version: length, and a checksum of it and content
KINDS = b"DLCNlc{"  # what records of the first version begin with
LONGEST = 1 << 30  # bytes of a record
CHUNK = 1 << 20


class DamagedError(ValueError):
    """A log that is not what was written; ``path`` and ``byte`` say where."""

    def __init__(self, path: Path, byte: int, reason: str) -> None:
        super().__init__(
            f"{path} is damaged at byte {byte:,}: {reason}; omma journal check {path.parent} "
            "--salvage NEW writes what is sound before it to a new folder"
        )
        self.path, self.byte = path, byte


class Record(NamedTuple):
    """A record that is whole, and the byte behind it."""

    number: int
    content: bytes
    end: int


def framed(content: bytes, number: int, salt: int = 0) -> bytes:
    """A record as it is in the file."""
    if len(content) > LONGEST:
        raise ValueError(f"a record must have at most {LONGEST:,} bytes, got {len(content):,}")
    covered = HEAD.pack(MARK, 0, len(content), number)[8:] + content
    return MARK + zlib.crc32(covered, salt).to_bytes(4, "little") + covered


def begin(path: Path, header: dict[str, Any]) -> None:
    """Make a log that has nothing but its header, whole or not at all."""
    with replacing(path) as file:
        file.write(framed(json.dumps(header).encode(), 0))


class Reader:
    """Reads a log as far as it is whole, and goes on from there when asked again.

    ``end`` is the byte behind the last event that was read, ``number`` that of the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.salt = 0
        self.number = 0
        with path.open("rb") as file:
            self.is_first_version = file.read(len(MARK)) != MARK
            record = self._record(file, 0)
            if record is None or record.number != 0:
                raise DamagedError(path, 0, "it has no whole header")
            self.header = self._header(record.content)
            self._last = self._head(file, 0)
        self.end = record.end
        if not self.is_first_version:
            # The checksum of the header seeds all others.
            self.salt = HEAD.unpack(self._last[1])[1]
            first = self.header.get("first")
            if type(first) is not int or first < 0:
                raise DamagedError(path, 0, "its header does not say which record is the first")
            self.number = first

    def _header(self, content: bytes) -> dict[str, Any]:
        try:
            header = parse_json(f"the header of {self.path}", content.decode("utf-8"))
        except ValueError as error:  # no UTF-8, or no JSON
            raise DamagedError(self.path, 0, f"its header cannot be read: {error}") from error
        if not isinstance(header, dict):
            raise DamagedError(self.path, 0, f"its header is {type(header).__name__}")
        return header

    def events(self, stop: int | None = None) -> Iterator[tuple[bytes, int]]:
        """The events that were not read before, and the byte at which each begins.

        It ends before a record that is not finished, and at the byte ``stop``. An event counts as
        read once the next one is asked for.
        """
        with self.path.open("rb") as file:
            while self.end != stop and (record := self._next(file)) is not None:
                yield record.content, self.end
                self._last = self._head(file, self.end)
                self.end, self.number = record.end, self.number + 1

    def is_as_read(self) -> bool:
        """Whether the last record that was read is still there: a refused one is taken back."""
        with self.path.open("rb") as file:
            return self._head(file, self._last[0]) == self._last

    def unfinished(self) -> bytes:
        """What stands behind the last event that was read."""
        with self.path.open("rb") as file:
            file.seek(self.end)
            return file.read()

    def sound_behind(self, place: int) -> Iterator[Record]:
        """Every whole record that begins behind a byte, whatever stands between them."""
        with self.path.open("rb") as file:
            while (place := self._candidate(file, place + 1)) >= 0:
                record = self._record(file, place)
                if record is not None:
                    yield record
                    place = record.end - 1

    def _next(self, file: BinaryIO) -> Record | None:
        """The record at the end of those that were read; None where that is not finished yet."""
        record = self._record(file, self.end)
        if record is None and next(self.sound_behind(self.end), None) is not None:
            # Its writer may have taken a record back, and written another, while it was read.
            record = self._record(file, self.end)
            if record is None:
                raise DamagedError(self.path, self.end, "its bytes are not those that were written")
        if record is not None and record.number != self.number:
            reason = f"expected record {self.number:,}, got record {record.number:,}"
            raise DamagedError(self.path, self.end, reason)
        return record

    def _record(self, file: BinaryIO, place: int) -> Record | None:
        """The record that begins at a byte; None where no whole one does."""
        head_format = FIRST_HEAD if self.is_first_version else HEAD
        file.seek(place)
        head = file.read(head_format.size)
        if len(head) < head_format.size:
            return None
        if self.is_first_version:
            length, checksum = FIRST_HEAD.unpack(head)
            mark, number, covered = MARK, self.number, head[:4]
        else:
            mark, checksum, length, number = HEAD.unpack(head)
            covered = head[8:]
        left = os.fstat(file.fileno()).st_size - place - len(head)
        if mark != MARK or length > min(LONGEST, left):
            return None
        content = file.read(length)
        # It may have been taken back while it was read: then less of it is there.
        if len(content) < length or zlib.crc32(covered + content, self.salt) != checksum:
            return None
        return Record(number, content, place + len(head) + length)

    def _candidate(self, file: BinaryIO, place: int) -> int:
        """Where the next record may begin, from a byte on; -1 where there is none."""
        while True:
            file.seek(place)
            chunk = file.read(CHUNK)
            if self.is_first_version:  # it has no marks: look at how a content begins
                skipped = FIRST_HEAD.size
                at = next((i for i, kind in enumerate(chunk[skipped:]) if kind in KINDS), -1)
            else:
                skipped = len(MARK) - 1
                at = chunk.find(MARK)
            if at >= 0:
                return place + at
            if len(chunk) <= skipped:
                return -1
            place += len(chunk) - skipped

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
        """Write a record; until ``keep`` is called, ``roll_back`` takes it back."""
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
        """Leave nothing behind the records that are kept."""
        if os.fstat(self._file).st_size != self.size:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        os.lseek(self._file, self.size, os.SEEK_SET)

    def sync(self) -> None:
        """Have the disk keep all that was appended."""
        os.fsync(self._file)

    def close(self) -> None:
        """Let the file go."""
        if self._file >= 0:
            descriptor, self._file = self._file, -1
            os.close(descriptor)
