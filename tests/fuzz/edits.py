"""Ways to spoil a file: blind ones, and ones that know how it is made.

Each edit takes a source of choices, ``pick(low, high)``, which is a random generator by hand and
Hypothesis in tests, so that both know the same tricks.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable

import numpy as np

from omma.online import codec, journal as framing

Pick = Callable[[int, int], int]
NUMBERS = [b"0", b"1", b"-1", b"2", b"7", b"1e999", b"-1e999", b"nan", b"inf", b"1e60", b"1e-400"]
NUMBERS += [b"9" * 19, b"9" * 310, b"9" * 5000, b"2147483647", b"4294967296", b"0.5", b"1_0", b""]
TOKENS = [
    *NUMBERS,
    b"[" * 3000,
    b"{",
    b"}",
    b'"',
    b"'",
    b",",
    b",,",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\t",
]
TOKENS += [
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"%",
    b"?",
    b"#",
    b"\\",
    b"x",
    b"True",
    b";",
]
NUMBER = re.compile(rb"-?\d+\.?\d*(?:e[+-]?\d+)?")
VALUES = [None, True, -1, 0, 10**30, 10**400, 1e308, "x", "", [], {}, [[1]], [None], float("nan")]


def blind(data: bytes, pick: Pick) -> bytes:
    """One edit that knows nothing of the format."""
    raw = bytearray(data)
    size = len(raw)
    at = pick(0, max(0, size - 1))
    upto = min(size, at + pick(1, 40))
    token = TOKENS[pick(0, len(TOKENS) - 1)]
    kind = pick(0, 8)
    if kind <= 1 and size:
        raw[at] ^= 1 << pick(0, 7)
    elif kind == 2:
        del raw[at:]
    elif kind == 3:
        del raw[at:upto]
    elif kind == 4:
        raw[at:at] = raw[at:upto] * pick(1, 50)
    elif kind == 5:
        raw[at:at] = token
    elif kind == 6:
        raw[at:upto] = token
    elif kind == 7:
        to = pick(0, max(0, size - 1))
        raw[to:to] = raw[at:upto]
    elif size:
        raw[at] = pick(0, 255)
    return bytes(raw)


def text(data: bytes, pick: Pick) -> bytes:
    """Another number in place of one, a line twice or not at all, or a blind edit."""
    kind = pick(0, 3)
    found = list(NUMBER.finditer(data))
    if kind == 0 and found:
        one = found[pick(0, len(found) - 1)]
        return data[: one.start()] + NUMBERS[pick(0, len(NUMBERS) - 1)] + data[one.end() :]
    if kind == 1:
        lines = data.splitlines(keepends=True) or [b""]
        at = pick(0, len(lines) - 1)
        lines[at : at + 1] = [lines[at]] * pick(0, 3)
        return b"".join(lines)
    return blind(data, pick)


def json_text(data: bytes, pick: Pick) -> bytes:
    """Another value somewhere in the tree, or an edit of the text."""
    if pick(0, 1):
        return text(data, pick)
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return blind(data, pick)
    value = VALUES[pick(0, len(VALUES) - 1)]
    inner, key = {"": tree}, ""
    while isinstance(inner[key], dict | list) and inner[key] and pick(0, 2):
        inner = inner[key]
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = keys[pick(0, len(keys) - 1)]
    if isinstance(inner, dict) and key and not pick(0, 3):
        del inner[key]
    else:
        inner[key] = value
    return json.dumps(tree).encode()


def archive(data: bytes, pick: Pick) -> bytes:
    """One member changed, left out or called otherwise, in an archive that is sound again."""
    if not pick(0, 2):
        return blind(data, pick)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(one.filename, file.read(one)) for one in file.infolist()]
    except Exception:  # whatever it was, it is no archive any more
        return blind(data, pick)
    if not members:
        return blind(data, pick)
    at = pick(0, len(members) - 1)
    name, content = members[at]
    kind = pick(0, 5)
    if kind == 0:
        members[at] = (members[pick(0, len(members) - 1)][0], content)
    elif kind == 1:
        del members[at]
    elif kind == 2:
        members[at] = (name, blind(content, pick))
    else:
        members[at] = (name, array(content, pick))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", (0, 8)[pick(0, 1)]) as file:
        for name, content in dict(members).items():
            file.writestr(name, content)
    return out.getvalue()


def array(data: bytes, pick: Pick) -> bytes:
    """Other numbers, another type or another shape in an .npy file."""
    if not pick(0, 3):
        return blind(data, pick)
    end = data.find(b"\n")
    if pick(0, 1) and end > 0:
        return data[:10] + text(data[10:end], pick)[: end - 10].ljust(end - 10) + data[end:]
    try:
        values = np.load(io.BytesIO(data), allow_pickle=False).copy()
    except Exception:  # whatever it was, it is no array any more
        return blind(data, pick)
    if values.size and values.dtype.kind in "fiu":
        odd = (0, -1, 1, 2, 10**6, 2**31 - 1, 2**40, 2**62)[pick(0, 7)]
        with np.errstate(all="ignore"):
            values.flat[pick(0, values.size - 1)] = np.array(odd).astype(values.dtype)
    kind = pick(0, 4)
    if kind == 0 and values.dtype.kind in "fiub":
        values = values.astype(("f4", "f8", "i1", "u8", ">i4", "c8", "U3", "?")[pick(0, 7)])
    elif kind == 1:
        values = values.ravel()[: pick(0, values.size)]
    elif kind == 2:
        values = values[None]
    elif kind == 3 and values.dtype.kind == "f" and values.size:
        values.flat[pick(0, values.size - 1)] = (np.nan, np.inf, -np.inf, 1e300)[pick(0, 3)]
    out = io.BytesIO()
    np.save(out, values)
    return out.getvalue()


def tail(data: bytes, pick: Pick) -> bytes:
    """An edit of the end, where Parquet keeps what it says of itself."""
    cut = max(0, len(data) - 600) if pick(0, 2) else 0
    return data[:cut] + blind(data[cut:], pick)


def event(data: bytes, pick: Pick) -> bytes:
    """An edit of the JSON of a journal's event."""
    try:
        text, *records = codec.split(data)
    except ValueError:  # the snapshot, or what another edit has left
        return json_text(data, pick)
    return codec.join([json_text(text, pick), *records])


def log(data: bytes, pick: Pick) -> bytes:
    """Edits within the records of a journal, numbered and with checksums anew, and blind ones."""
    contents, place, head = [], 0, framing.HEAD.size
    while place + head <= len(data):
        end = place + head + framing.HEAD.unpack_from(data, place)[2]
        contents.append(data[place + head : end])
        place = end
    if not contents or pick(0, 3) == 0:
        return blind(data, pick)
    at = pick(0, len(contents) - 1)
    kind = pick(0, 5)
    if kind == 0:
        contents.insert(at, contents[pick(0, len(contents) - 1)])
    elif kind == 1:
        del contents[at]
    elif kind == 2:
        contents[at] = event(contents[at], pick) if at else archive(contents[at], pick)
    else:
        contents[at] = blind(contents[at], pick)
    snapshot, *events = contents or [b""]
    edited = framing.head_of(snapshot, 0) + snapshot
    salt = framing.HEAD.unpack_from(edited)[1]
    records = (framing.head_of(one, i, salt) + one for i, one in enumerate(events, 1))
    return edited + b"".join(records)
