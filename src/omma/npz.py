"""Archives of plain arrays (.npz), read as if an attacker had written them: no code in them runs.

A reader asks for members by name, with the type and shape that it expects. Sizes are checked before
anything is unpacked, and structure before compiled code uses it. Every fault is a ``ValueError`` of
one sentence that names the file and the member.

A sparse matrix is stored as SciPy stores it, alone in its file: ``format``, ``shape``, ``data``, ….
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._atomic import replacing
from omma._json import parse_json
from omma._validate import shown

SMALL = 1 << 28  # bytes to which every file may unpack
TIMES = 100  # larger files may unpack to so many times their size
HIGHEST = 2**31 - 1  # the highest number of rows and columns of a sparse matrix
# The first bytes of arrays, and the functions that read shape and type. Version 3 differs from 2 in
# the encoding of names of fields, which plain types do not have.
HEADERS: dict[bytes, Any] = {
    b"\x93NUMPY\x01\x00": np.lib.format.read_array_header_1_0,
    b"\x93NUMPY\x02\x00": np.lib.format.read_array_header_2_0,
    b"\x93NUMPY\x03\x00": np.lib.format.read_array_header_2_0,
}
TEXT = 1 << 24  # characters of a text
# Formats of sparse matrices, and the number of dimensions of their data.
FORMATS = {"csr": 1, "csc": 1, "coo": 1, "bsr": 3, "dia": 2}


def largest(path: str | Path, times: int = TIMES) -> int:
    """The number of bytes to which a file may unpack by default; more is taken for an attack."""
    return max(SMALL, times * Path(path).stat().st_size)


def write(target: str | Path | BinaryIO, content: Mapping[str, Any], *, pack: bool = False) -> None:
    """Write texts and arrays by their names, completely or not at all.

    >>> write("two.npz", {"said": '{"k": 3}', **sparse_parts(sparse.eye_array(2))})
    >>> with opened("two.npz") as archive:
    ...     archive.json("said"), archive.matrix().toarray().tolist()
    ({'k': 3}, [[1.0, 0.0], [0.0, 1.0]])
    """
    if isinstance(target, str | Path):
        with replacing(target) as file:
            write(file, content, pack=pack)
        return
    arrays = {name: np.asarray(value) for name, value in content.items()}
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:  # for older NumPy, allow_pickle=False would be one more array
        raise TypeError(f"arrays of {objects} hold objects, which no file of ours does")
    save: Any = np.savez_compressed if pack else np.savez
    save(target, **arrays)


def sparse_parts(matrix: Any) -> dict[str, Any]:
    """The arrays of a sparse matrix, by the names under which SciPy reads them."""
    csr = sparse.csr_array(matrix)
    parts = {name: getattr(csr, name) for name in ("shape", "data", "indices", "indptr")}
    return {"format": b"csr", "_is_array": True, **parts}


def to_bytes(content: Mapping[str, Any]) -> bytes:
    """The content of the file that ``write`` writes."""
    file = io.BytesIO()
    write(file, content)
    return file.getvalue()


@contextmanager
def opened(
    path: str | Path, kind: str = ".npz file", content: bytes | None = None
) -> Iterator[Archive]:
    """Open the archive in a file; errors say that the file "is not a sound ``kind``".

    ``content`` is the content of the file, if it has been read already.
    """
    with Path(path).open("rb") if content is None else io.BytesIO(content) as file:
        with told(str(path), f"is not a sound {kind}"):
            size, archive = file.seek(0, io.SEEK_END), zipfile.ZipFile(file)
        with archive:
            yield Archive(path, kind, archive, size)


@contextmanager
def told(
    subject: str, verdict: str, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Turn all errors that libraries and Python raise for a damaged file into one sentence."""
    try:
        yield
    except kinds as error:  # by default all: NumPy, SciPy and the zip library raise a dozen
        if isinstance(error, ValueError) and subject in str(error):  # it names the file already
            raise
        reason = " ".join(str(error).split())[:400] or type(error).__name__
        reason = f"it has no {reason}" if isinstance(error, KeyError) else reason
        raise ValueError(f"{subject} {verdict}: {reason}") from error


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and type of an array, and its number of bytes, from the header of an .npy file."""
    start = file.read(8)
    if start not in HEADERS:
        raise ValueError(f"no array, it starts with {shown(start)}")
    shape, _, dtype = HEADERS[start](file)
    # Objects would be unpickled; values of no bytes need memory, whatever the size of the file.
    if dtype.hasobject or dtype.names is not None or not dtype.itemsize:
        raise ValueError(f"no plain values, but the type {dtype}")
    return shape, dtype, math.prod(shape) * dtype.itemsize


class Archive:
    """Members of an open file; each is read, and checked, when it is asked for."""

    def __init__(self, path: str | Path, kind: str, archive: zipfile.ZipFile, size: int) -> None:
        self.path = path
        self._verdict = f"is not a sound {kind}"
        self._archive = archive
        self._budget = max(SMALL, TIMES * size)  # bytes of all members together
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self.members:
                raise ValueError(f"{path} {self._verdict}: it has {shown(name)} twice")
            self.members[name] = info

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def refuse(self, name: str, expected: str, got: Any) -> ValueError:
        """The error for a member that is not as expected."""
        text = got if isinstance(got, str) else shown(got)
        return ValueError(
            f"{self.path} {self._verdict}: expected {expected} in {name!r}, got {text}"
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
        """Read an array of one of NumPy's ``kinds`` of types; None in ``shape`` is any length.

        It may have ``most`` bytes; by default all arrays of a file together may have 100 times the
        size of the file, or 256 MB. ``finite`` refuses NaN and infinity; ``low`` and ``high`` are
        bounds of the values.
        """
        info = self.members.get(name)
        if info is None:
            members = ", ".join(map(repr, [*self.members][:9])) or "nothing"
            raise ValueError(f"{self.path} {self._verdict}: it has no {name!r}, only {members}")
        if not info.filename.endswith(".npy"):
            raise ValueError(f"{self.path} must hold arrays, got something else in {name!r}")
        # NumPy writes no others, which would also unpack the whole member at once.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.refuse(name, "a member that is stored or deflated", "another packing")
        with (
            told(str(self.path), f"{self._verdict}: in {name!r}"),
            self._archive.open(info) as member,
        ):
            sides, dtype, size = _header(member)
            stored = info.file_size - member.tell()
            # The header is checked before a number is unpacked.
            if dtype.kind not in kinds:
                expected = "text" if kinds in ("U", "SU") else "numbers"
                raise self.refuse(name, expected, f"the type {dtype}")
            if shape is not None and (
                len(shape) != len(sides)
                or any(side not in (None, own) for side, own in zip(shape, sides, strict=True))
            ):
                text = " × ".join("any" if side is None else str(side) for side in shape) or "one"
                raise self.refuse(name, f"{text} values", f"the shape {sides}")
            limit = self._budget if most is None else most
            if size > limit:
                raise self.refuse(
                    name,
                    f"at most {limit:,} bytes",
                    f"{size:,}, more than a file of this size should unpack to (write it "
                    "without compression, or as a sparse matrix)",
                )
            if stored != size:
                raise self.refuse(name, f"{size} bytes", f"{stored}")
            member.seek(0)
            values = np.lib.format.read_array(member, allow_pickle=False)
        values = values.astype(dtype.newbyteorder("="), copy=False)
        if most is None:
            self._budget -= size
        if values.dtype.kind == "U":
            # Python itself would fail at numbers that are no characters.
            letters = np.ascontiguousarray(values).reshape(-1).view(np.uint32)
            outside = letters[(letters > 0x10FFFF) | ((letters >= 0xD800) & (letters <= 0xDFFF))]
            if len(outside):
                raise self.refuse(name, "letters", f"the number {outside[0]:#x}")
        checks = []
        if finite:
            checks.append((np.isfinite(values), "finite numbers"))
        if low is not None:
            checks.append((values >= low, f"numbers of at least {low}"))
        if high is not None:
            checks.append((values <= high, f"numbers of at most {high}"))
        for is_right, expected in checks:
            if not np.all(is_right):
                raise self.refuse(name, expected, f"{values[~is_right].ravel()[0]}")
        return values

    def json(self, name: str) -> Any:
        """Read a text of JSON, which has four bytes a character, and parse it."""
        text = self.array(name, kinds="U", shape=(), most=4 * TEXT)[()]
        return parse_json(f"{name!r} of {self.path}", str(text))

    def matrix(self) -> sparse.csr_array:
        """Read a matrix that SciPy wrote in any of its formats; entries of one place add up."""
        text: Any = self.array("format", kinds="SU", shape=(), most=64)[()]
        kind = text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)
        if kind not in FORMATS:
            raise self.refuse("format", "csr, csc, coo, bsr or dia", kind)
        side = self.array("shape", kinds="iu", shape=(2,), low=0, high=HIGHEST)
        rows, columns = sides = tuple(side.tolist())
        # In CSR an empty row needs memory, too; a file in CSR has its numbers.
        if kind != "csr" and 8 * rows > self._budget:
            raise self.refuse("shape", f"at most {self._budget // 8:,} rows", f"{rows:,}")
        data = self.array("data", shape=(None,) * FORMATS[kind])
        content: Any
        if kind == "dia":
            content = (data, self.array("offsets", kinds="iu", shape=(data.shape[0],)))
        elif kind == "coo":
            row = self.array("row", kinds="iu", shape=data.shape, low=0, high=rows - 1)
            column = self.array("col", kinds="iu", shape=data.shape, low=0, high=columns - 1)
            content = (data, (row, column))
        else:
            block = data.shape[1:] or (1, 1)
            if 0 in block or rows % block[0] or columns % block[1]:
                raise self.refuse("data", f"blocks that fit into {sides}", block)
            blocks = (rows // block[0], columns // block[1])
            outer = blocks[::-1] if kind == "csc" else blocks  # CSC is compressed by columns
            indices, indptr = self._pointers(len(data), *outer)
            content = (data[: len(indices)], indices, indptr)
        with told(str(self.path), self._verdict):
            matrix = sparse.csr_array(getattr(sparse, f"{kind}_array")(content, shape=sides))
        matrix.sum_duplicates()
        return matrix

    def _pointers(
        self, stored: int, n_outer: int, n_inner: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The used indices, and the indptr, of a compressed matrix.

        Indices that point outside are refused: compiled code does not check them.
        """
        indices, indptr = (
            self.array(name, kinds="iu", shape=(None,)) for name in ("indices", "indptr")
        )
        if len(indptr) != n_outer + 1:
            raise self.refuse("indptr", f"{n_outer + 1} numbers", len(indptr))
        # Compared, not subtracted: differences of unsigned numbers are never negative.
        if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise self.refuse("indptr", "numbers that start at 0 and never go down", "others")
        if len(indices) != stored or indptr[-1] > stored:
            raise self.refuse("indices", f"{indptr[-1]} numbers, as many as in data", len(indices))
        used = indices[: int(indptr[-1])]
        outside = used[(used < 0) | (used >= n_inner)]
        if len(outside):
            raise self.refuse("indices", f"numbers from 0 to {n_inner - 1}", f"{outside[0]}")
        return used, indptr


def mapped(path: str | Path) -> NDArray[Any]:
    """Map the array of an .npy file; its numbers stay on the disk until they are used."""
    with Path(path).open("rb") as file, told(str(path), "is not a sound .npy file"):
        _, _, size = _header(file)
        start = file.tell()
        stored = file.seek(0, 2) - start
        if stored < size:
            raise ValueError(f"expected {size:,} bytes of them, got {stored:,}")
        return np.lib.format.open_memmap(path, mode="r")
