"""Archives of plain arrays (.npz), read as if an enemy had written them. Nothing in them is run.

A reader asks for members by name and says what each may be. Sizes are compared with what was
asked for before anything is unpacked, structure before compiled code sees it, and all that is
wrong is a ``ValueError`` of one sentence that names the file and the member.

Sparse matrices are kept as SciPy keeps them (``format``, ``shape``, ``data``, …); one that has a
name has it before these, as in ``eta_data``.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._atomic import replacing
from omma._json import parse_json
from omma._validate import shown

SMALL = 1 << 28  # bytes that a file may always unpack to
TIMES = 100  # and above that, so many times its own size
HIGHEST = 2**31 - 1  # columns of a sparse matrix stay below it
HEADER = 1 << 16  # bytes before the numbers of an array
DESCR = r"'descr'\s*:\s*'([<>|=]?[A-Za-z?]\d{0,9})'"
FORTRAN = r"'fortran_order'\s*:\s*(True|False)"
SHAPE = r"'shape'\s*:\s*\(([\d,\sL]{0,200})\)"
TEXT = 1 << 24  # letters of a text
CHUNK = 1 << 20
PARTS = ("data", "indices", "indptr")
# What NumPy, SciPy and the zip library raise for files that are something else, or spoiled.
DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def largest(path: str | Path, times: int = TIMES) -> int:
    """How many bytes a file may unpack to if nobody knows better: more than that is a trap."""
    return max(SMALL, times * Path(path).stat().st_size)


def write(target: str | Path | BinaryIO, content: Mapping[str, Any], *, pack: bool = False) -> None:
    """Write texts, arrays and sparse matrices by their names, whole or not at all.

    The only matrix of a file may be called "": SciPy then reads it, too.

    >>> write("two.npz", {"said": '{"k": 3}', "eta": sparse.csr_array(np.eye(2))})
    >>> with opened("two.npz") as archive:
    ...     archive.json("said"), archive.csr("eta").toarray().tolist()
    ({'k': 3}, [[1.0, 0.0], [0.0, 1.0]])
    """
    if isinstance(target, str | Path):
        with replacing(target) as file:
            write(file, content, pack=pack)
        return
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in content.items():
        arrays |= _packed(name, value)
    save: Any = np.savez_compressed if pack else np.savez
    odd = [name for name, array in arrays.items() if array.dtype.hasobject]
    if odd:  # older NumPy takes allow_pickle for the name of an array
        raise TypeError(f"arrays of {odd} hold objects, which no file of ours does")
    save(target, **arrays)


def _packed(name: str, value: Any) -> dict[str, NDArray[Any]]:
    if not sparse.issparse(value):
        return {name: np.asarray(value)}
    csr, before = sparse.csr_array(value), f"{name}_" if name else ""
    more = {} if name else {"format": np.array(b"csr"), "_is_array": np.array(True)}
    found = {"shape": np.array(csr.shape), **{part: getattr(csr, part) for part in PARTS}}
    return {**more, **{before + part: array for part, array in found.items()}}


@contextmanager
def opened(path: str | Path, what: str = ".npz file") -> Iterator[Archive]:
    """The archive in a file; ``what`` is what errors call a sound one."""
    with Path(path).open("rb") as file:
        with _told(f"{path} is not a sound {what}"):
            archive = zipfile.ZipFile(file)
        with archive:
            yield Archive(path, what, archive)


@contextmanager
def _told(sentence: str) -> Iterator[None]:
    """What libraries raise within, as one sentence."""
    try:
        yield
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{sentence}: {reason}") from error


@dataclass(frozen=True)
class _Header:
    """What an .npy file says of itself before its numbers."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    size: int  # of the header itself

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _header(file: Any) -> _Header:
    """Read it with patterns: NumPy's own way evaluates it as Python, with Python's errors."""
    start = file.read(8)
    wide = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(file.read(wide), "little")
    if start[:6] != b"\x93NUMPY" or start[6:7] not in b"\x01\x02\x03" or length > HEADER:
        raise ValueError(f"no array, it starts with {shown(start)}")
    text = file.read(length).decode("latin-1")
    descr, fortran, sides = (re.search(pattern, text) for pattern in (DESCR, FORTRAN, SHAPE))
    if descr is None or fortran is None or sides is None:
        raise ValueError(f"no array of plain values, it is {shown(text.strip())}")
    dtype = np.dtype(descr[1])
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"no plain values, but the type {dtype}")
    shape = tuple(int(side.strip(" L")) for side in sides[1].split(",") if side.strip())
    return _Header(shape, fortran[1] == "True", dtype, 8 + wide + length)


class Archive:
    """Members of an open file, each read only when it is asked for, and checked then."""

    def __init__(self, path: str | Path, what: str, archive: zipfile.ZipFile) -> None:
        self.path, self.what = path, what
        self._archive = archive
        self._most = largest(path)  # of all members together
        self._members: dict[str, zipfile.ZipInfo] = {}
        for one in archive.infolist():
            name = one.filename.removesuffix(".npy")
            if name in self._members:
                raise ValueError(f"{path} is not a sound {what}: it has {shown(name)} twice")
            self._members[name] = one

    @property
    def names(self) -> tuple[str, ...]:
        """Of all members."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def refuse(self, name: str, expected: str, got: Any) -> ValueError:
        """The error for a member that is not what it must be."""
        said = got if isinstance(got, str) else shown(got)
        return ValueError(
            f"{self.path} is not a sound {self.what}: expected {expected} in {name!r}, got {said}"
        )

    def array(
        self,
        name: str,
        *,
        kinds: str = "fiub",
        shape: tuple[int | None, ...] | None = None,
        most: int | None = None,
        finite: bool = False,
        low: float | None = None,
        high: float | None = None,
    ) -> NDArray[Any]:
        """One array of one of NumPy's ``kinds`` of types; a side of ``shape`` that is None is any.

        It may take ``most`` bytes; by default all that is read of a file may take 100 times as much
        as the file, or what is little anyway. ``finite`` refuses NaN and infinity, ``low`` and
        ``high`` what is beyond them.
        """
        with self._opened(name) as (member, info):
            sentence = f"{self.path} is not a sound {self.what}: in {name!r}"
            with _told(sentence):
                header = _header(member)
            self._check_header(name, header, kinds, shape, self._most if most is None else most)
            if info.file_size - header.size != header.nbytes:
                raise self.refuse(name, f"{header.nbytes} bytes", f"{info.file_size - header.size}")
            with _told(sentence):
                values = _filled(member, header)
        self._most -= header.nbytes if most is None else 0
        if values.dtype.kind == "U":
            self._check_letters(name, values)
        self._check_range(name, values, finite, low, high)
        return values

    def text(self, name: str, most: int = TEXT) -> str:
        """A text of at most so many letters."""
        return str(self.array(name, kinds="U", shape=(), most=4 * most)[()])

    def json(self, name: str) -> Any:
        """What a text of JSON holds."""
        return parse_json(f"{name!r} of {self.path}", self.text(name))

    def csr(
        self,
        name: str = "",
        *,
        kinds: str = "fiub",
        shape: tuple[int | None, int | None] = (None, None),
        **bounds: Any,
    ) -> sparse.csr_array:
        """A matrix in CSR, rows in order and without duplicates; bounds are those of ``array``."""
        before = f"{name}_" if name else ""
        sides = self._sides(before + "shape", shape)
        parts = {"data": kinds, "indices": "iu", "indptr": "iu"}
        data, indices, indptr = (
            self.array(before + part, kinds=kind, shape=(None,)) for part, kind in parts.items()
        )
        self._check_compressed(before, len(data), indices, indptr, *sides)
        stored = int(indptr[-1])
        matrix = sparse.csr_array((data[:stored], indices[:stored], indptr), shape=sides)
        matrix.sum_duplicates()
        self._check_range(before + "data", matrix.data, **bounds)
        return matrix

    def matrix(self) -> sparse.csr_array:
        """The matrix of a file that SciPy wrote, whichever of its formats it has."""
        said: Any = self.array("format", kinds="SU", shape=(), most=64)[()]
        kind = said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)
        if kind == "csr":
            return self.csr()
        if kind not in ("csc", "coo", "bsr", "dia"):
            raise self.refuse("format", "csr, csc, coo, bsr or dia", kind)
        rows, columns = sides = self._sides("shape", (None, None))
        if 8 * rows > self._most:  # in CSR a row costs something, even an empty one
            raise self.refuse("shape", f"at most {self._most // 8:,} rows", f"{rows:,}")
        data = self.array("data", shape=(None,) * {"bsr": 3, "dia": 2}.get(kind, 1))
        if kind == "dia":
            offsets = self.array("offsets", kinds="iu", shape=(data.shape[0],))
            content: Any = (data, offsets)
        elif kind == "coo":
            places = [
                self.array(axis, kinds="iu", shape=data.shape, low=0, high=side - 1)
                for axis, side in zip(("row", "col"), sides, strict=True)
            ]
            content = (data, tuple(places))
        else:
            block = data.shape[1:] or (1, 1)
            if 0 in block or rows % block[0] or columns % block[1]:
                raise self.refuse("data", f"blocks that fit into {sides}", block)
            long, across = rows // block[0], columns // block[1]
            indices, indptr = (self.array(part, kinds="iu", shape=(None,)) for part in PARTS[1:])
            outer = (across, long) if kind == "csc" else (long, across)
            self._check_compressed("", len(data), indices, indptr, *outer)
            content = (data, indices, indptr)
        with _told(f"{self.path} is not a sound {self.what}"):
            make = getattr(sparse, f"{kind}_array")
            return sparse.csr_array(make(content, shape=sides))

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[Any, zipfile.ZipInfo]]:
        info = self._members.get(name)
        if info is None:
            has = ", ".join(map(repr, self.names[:9])) or "nothing"
            raise ValueError(
                f"{self.path} is not a sound {self.what}: it has no {name!r}, only {has}"
            )
        if not info.filename.endswith(".npy"):
            raise ValueError(f"{self.path} must hold arrays, got something else in {name!r}")
        # NumPy writes no others, and others would unpack all at once.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.refuse(name, "a member that is stored or deflated", "another packing")
        with _told(f"{self.path} is not a sound {self.what}"):
            member = self._archive.open(info)
        with member:
            yield member, info

    def _check_header(
        self,
        name: str,
        header: _Header,
        kinds: str,
        shape: tuple[int | None, ...] | None,
        most: int,
    ) -> None:
        if header.dtype.kind not in kinds:
            wanted = "text" if kinds in ("U", "SU") else "numbers"
            raise self.refuse(name, wanted, f"the type {header.dtype}")
        if shape is not None and (
            len(shape) != len(header.shape)
            or any(want not in (None, side) for want, side in zip(shape, header.shape, strict=True))
        ):
            wanted = " × ".join("any" if side is None else str(side) for side in shape) or "one"
            raise self.refuse(name, f"{wanted} values", f"the shape {header.shape}")
        if header.nbytes > most:
            raise self.refuse(
                name,
                f"at most {most:,} bytes",
                f"{header.nbytes:,}, more than a file of this size should unpack to (write it "
                "without compression, or as a sparse matrix)",
            )

    def _check_range(
        self,
        name: str,
        values: Any,
        finite: bool = False,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        checks = []
        if finite and values.dtype.kind == "f":
            checks.append((np.isfinite(values), "finite numbers"))
        if low is not None:
            checks.append((values >= low, f"numbers of at least {low}"))
        if high is not None:
            checks.append((values <= high, f"numbers of at most {high}"))
        for right, expected in checks:
            if not np.all(right):
                raise self.refuse(name, expected, f"{values[~right].ravel()[0]}")

    def _check_letters(self, name: str, values: NDArray[Any]) -> None:
        """Python takes numbers that are no letters for an error in itself."""
        letters = np.ascontiguousarray(values).reshape(-1).view(np.uint32)
        odd = (letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))
        if odd.any():
            raise self.refuse(name, "letters", f"the number {letters[odd][0]:#x}")

    def _sides(self, name: str, wanted: tuple[int | None, int | None]) -> tuple[int, int]:
        found = self.array(name, kinds="iu", shape=(2,), low=0, high=HIGHEST).tolist()
        for side, want, what in zip(found, wanted, ("rows", "columns"), strict=True):
            if want is not None and side != want:
                raise self.refuse(name, f"{want} {what}", side)
        return int(found[0]), int(found[1])

    def _check_compressed(
        self,
        before: str,
        stored: int,
        indices: NDArray[Any],
        indptr: NDArray[Any],
        long: int,
        across: int,
    ) -> None:
        """Compiled code goes where these point, so they must point inside."""
        name = f"{before}indptr"
        if len(indptr) != long + 1:
            raise self.refuse(name, f"{long + 1} numbers", len(indptr))
        # Unsigned numbers that go down would have large differences, not negative ones.
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise self.refuse(name, "numbers that start at 0 and never go down", "others")
        if len(indices) != stored or indptr[-1] > stored:
            raise self.refuse(
                f"{before}indices", f"{indptr[-1]} numbers, as many as in data", len(indices)
            )
        used = indices[: int(indptr[-1])]
        if len(used) and (used.min() < 0 or used.max() >= across):
            odd = used[(used < 0) | (used >= across)][0]
            raise self.refuse(f"{before}indices", f"numbers from 0 to {across - 1}", f"{odd}")


def _filled(member: Any, header: _Header) -> NDArray[Any]:
    """Numbers in native order, read some at a time: what a file promises costs nothing yet."""
    flat = np.empty(math.prod(header.shape), dtype=header.dtype)
    room = flat.view(np.uint8) if header.nbytes else np.empty(0, np.uint8)
    place = 0
    while chunk := member.read(CHUNK):  # to the end, where the sum of the bytes is checked
        room[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
        place += len(chunk)
    if place != header.nbytes:
        raise ValueError(f"{place} bytes instead of {header.nbytes}")
    flat = flat.astype(flat.dtype.newbyteorder("="), copy=False)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def mapped(path: str | Path) -> NDArray[Any]:
    """The array of an .npy file; its numbers stay on the disk until they are used."""
    with Path(path).open("rb") as file:
        with _told(f"{path} is not a sound .npy file"):
            header = _header(file)
        size = file.seek(0, 2)
    if size - header.size < header.nbytes:
        raise ValueError(
            f"{path} is not a sound .npy file: expected {header.nbytes:,} bytes of them, "
            f"got {size - header.size:,}"
        )
    if not header.nbytes:  # nothing cannot be mapped
        return np.empty(header.shape, header.dtype)
    order: Any = "F" if header.fortran else "C"
    return np.memmap(path, header.dtype, "r", header.size, header.shape, order)
