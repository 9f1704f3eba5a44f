"""A file of records that only grows; whatever kills its writer, all whole records can be read.

Each record is its length and a checksum, eight bytes, and its content. The first one is the header,
in JSON. A record is handed to the system in one piece; after ``sync`` it is on the disk.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from omma._atomic import replacing
from omma._json import parse_json

HEAD = struct.Struct("<II")
LONGEST = 1 << 30  # bytes of a record


def framed(content: bytes) -> bytes:
    """A record as it is in the file; its checksum is of the length, too."""
    if len(content) > LONGEST:
        raise ValueError(f"a record must have at most {LONGEST:,} bytes, got {len(content):,}")
    length = len(content).to_bytes(4, "little")
    return length + zlib.crc32(length + content).to_bytes(4, "little") + content


def begin(path: Path, header: bytes) -> None:
    """Make a log that has nothing but its header, whole or not at all."""
    with replacing(path) as file:
        file.write(framed(header))


class Log:
    """The end of a log, where records are appended."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size  # of whole records; what may stand behind them is cut off
        self._file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        self._broken = False
        if os.fstat(self._file).st_size != size:
            os.ftruncate(self._file, size)
            os.fsync(self._file)
        os.lseek(self._file, size, os.SEEK_SET)

    def append(self, content: bytes) -> None:
        """Add a record; where that fails, there is nothing of it."""
        if self._broken:
            raise OSError(f"{self.path} cannot be written to any more: part of a record is in it")
        record = framed(content)
        try:
            written = 0
            while written < len(record):
                written += os.write(self._file, record[written:])
        except BaseException:
            self._broken = True
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            self._broken = False
            raise
        self.size += len(record)

    def sync(self) -> None:
        """Have the disk keep all that was appended."""
        os.fsync(self._file)

    def close(self) -> None:
        """Keep all of it, and let the file go."""
        if self._file >= 0:
            with suppress(OSError):
                self.sync()
            os.close(self._file)
            self._file = -1


def read(path: Path, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """Every whole record, and where it ends; it stops at the first that is torn or spoiled.

    ``start`` is where a record ended that was read before.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(start)
        end = start
        while True:
            head = file.read(HEAD.size)
            if len(head) < HEAD.size:
                return
            length, checksum = HEAD.unpack(head)
            if length > min(LONGEST, size - end - HEAD.size):
                return
            content = file.read(length)
            if len(content) < length or zlib.crc32(head[:4] + content) != checksum:
                return
            end += HEAD.size + length
            yield content, end


def header_of(path: Path, content: bytes) -> dict[str, Any]:
    """What the first record says."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a log of omma: its header is no text") from error
    found = parse_json(f"the header of {path}", text)
    if not isinstance(found, dict):
        raise ValueError(f"{path} is not a log of omma: its header is {type(found).__name__}")
    return found
