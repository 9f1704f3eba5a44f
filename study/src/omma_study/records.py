"""Records: one JSON file for each run, written once, read by every table and figure.

A record says what was run, what came out, how long it took, and with which versions. Many of them
go into one small file: a line of JSON for each, compressed by xz. There, running values and seconds
are kept to the digits that tables and figures show; where there are many labels, the counts of each
are kept of the first sequence alone. The rest is as it was.
"""

import hashlib
import json
import lzma
import math
import platform
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from omma._atomic import replacing
from omma._json import parse_json
from omma._validate import check_choice, nearest, shown

FORMAT = 1
PACKED = ".jsonl.xz"  # of files with many records
LARGEST = 2**30  # bytes of such a file once it is unpacked
KINDS = ("study", "theory", "auto")
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")

Record = dict[str, Any]
FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "suite": str,
    "kind": str,
    "spec": dict,
    "label": str,
    "result": (dict, type(None)),
    "estimator": (dict, type(None)),
    "seconds": dict,
    "versions": dict,
    "error": (dict, type(None)),
}
DIGITS = 16  # of the hash: two of a million runs share it once in some 10**7 studies
NAMED = ("dataset", "policy", "metric", "k", "prior", "seed")  # parts of a spec worth reading
LONGEST = 100
ROUNDED = 4  # digits of running values, which are drawn and not compared
MANY = 200  # labels, of which counts are kept of the first sequence alone


def make(
    suite: str,
    spec: Mapping[str, Any],
    label: str,
    *,
    kind: str = "study",
    result: Mapping[str, Any] | None = None,
    seconds: Mapping[str, float] | None = None,
    estimator: Mapping[str, Any] | None = None,
    error: BaseException | None = None,
) -> Record:
    """The record of one run: either a result, or the error that it ended with.

    ``spec`` is everything that decides the outcome: with suite and kind, it is what a run is known
    by. ``label`` is how tables name what ran, ``estimator`` what the estimator says of itself.

    >>> record = make("mine", {"policy": "omma", "seed": 0}, "OMMA", result={"value": 0.7})
    >>> record["result"]["value"], record["error"]
    (0.7, None)
    """
    check_choice("make", "kind", kind, KINDS)
    if (result is None) == (error is None):
        raise ValueError("make takes either a result or an error, and one of them")
    return {
        "format": FORMAT,
        "suite": suite,
        "kind": kind,
        "spec": dict(spec),
        "label": label,
        "result": None if result is None else dict(result),
        "estimator": None if estimator is None else dict(estimator),
        "seconds": dict(seconds or {}),
        "versions": dict(versions()),
        "error": None if error is None else _told(error),
    }


@cache
def versions() -> dict[str, str]:
    """Of omma, of Python, and of the packages that numbers depend on.

    >>> "numpy" in versions()
    True
    """
    from omma import __version__

    found = {"omma": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # optional, and not there
            continue
    return found


def checked(record: Any) -> Record:
    """Say in one sentence what a record lacks; else give it back."""
    if not isinstance(record, dict):
        raise ValueError(f"a record must be a JSON object, got {shown(record)}")
    for name, kind in FIELDS.items():
        if name not in record:
            hint = nearest(name, [key for key in record if key not in FIELDS])
            raise ValueError(f"a record must have the field {name!r}{hint or ', which is missing'}")
        if not isinstance(record[name], kind):
            raise ValueError(f"the field {name!r} cannot be {shown(record[name])}")
    if record["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT}, got {record['format']}")
    check_choice("a record", "kind", record["kind"], KINDS)
    if (record["result"] is None) == (record["error"] is None):
        raise ValueError("a record must have either a result or an error")
    return record


def _told(error: BaseException) -> dict[str, str]:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(lines),
    }


def path_of(folder: str | Path, suite: str, kind: str, spec: Mapping[str, Any]) -> Path:
    """Where the record of a run goes: something to read, and a hash of all that it is known by.

    >>> path_of("out", "mine", "study", {"policy": "omma", "k": 3, "seed": 0}).as_posix()
    'out/mine/omma-k3-seed0-6675362beca3fb59.json'
    """
    known_by = _text({"kind": kind, "suite": suite, "spec": dict(spec)}, sort_keys=True)
    digest = hashlib.sha256(known_by.encode()).hexdigest()[:DIGITS]
    words = [_word(name, spec[name]) for name in NAMED if spec.get(name) is not None]
    readable = "-".join(words)[:LONGEST] or "run"
    return Path(folder) / safe(suite) / f"{readable}-{digest}.json"


def write(folder: str | Path, record: Record) -> Path:
    """Write a record into a folder; a reader finds all of it, or nothing.

    Numbers must be finite: JSON has no others.

    >>> record = make("mine", {"policy": "omma"}, "OMMA", result={"value": 0.7})
    >>> path = write("folder-of-write", record)
    >>> read("folder-of-write") == [record]
    True
    """
    path = path_of(folder, record["suite"], record["kind"], record["spec"])
    text = _text(checked(record), separators=(",", ":")) + "\n"
    write_whole(path, text.encode())
    return path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, and the folder that it goes to, so that nobody ever finds half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(data)


def read(
    places: str | Path | Iterable[str | Path],
    *,
    bad: Callable[[str], None] | None = None,
    check: Callable[[Record], None] | None = None,
) -> list[Record]:
    """All records of folders, their subfolders, and files, in the order of their paths.

    Files of many records, as ``omma_study.records.pack`` writes them, are read, too. ``check`` is
    called with each record; a ``ValueError`` says why it is none. ``bad`` is called with one
    sentence for each file that is none, which is then left out; without it such a file is an error.

    >>> from pathlib import Path
    >>> Path("folder-of-read").mkdir()
    >>> _ = Path("folder-of-read/half.json").write_text('{"format": 1')
    >>> sentences = []
    >>> read("folder-of-read", bad=sentences.append), len(sentences)
    ([], 1)
    """
    given = [places] if isinstance(places, str | Path) else list(places)
    found: list[Record] = []
    for path in sorted({path for place in given for path in _files(Path(place))}):
        try:
            found += read_file(path, check)
        except ValueError as error:
            if bad is None:
                raise
            bad(str(error))
    return found


def read_file(path: Path, check: Callable[[Record], None] | None = None) -> list[Record]:
    """The one record of a file, or all of a file that ``pack`` wrote."""
    packed = path.name.endswith(PACKED)
    try:
        lines = _unpacked(path).splitlines() if packed else [path.read_text(encoding="utf-8")]
        found = [checked(parse_json(str(path), line)) for line in lines]
        if check is not None:
            for record in found:
                check(record)
    except (ValueError, lzma.LZMAError, EOFError) as error:  # of UTF-8, of JSON, of what it holds
        what = "holds no records" if packed else "is no record"
        raise ValueError(f"{path} {what}: {error}") from error
    return found


def _unpacked(path: Path) -> str:
    with lzma.open(path) as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it must unpack to at most {LARGEST:,} bytes, and has more")
    return data.decode("utf-8")


def distinct(records: Iterable[Record]) -> list[Record]:
    """The records with one for each run: the first that is finished, else the first.

    >>> record = make("mine", {"policy": "omma"}, "OMMA", result={"value": 0.7})
    >>> len(distinct([record, dict(record)]))
    1
    """
    found: dict[Path, Record] = {}
    for record in records:
        run = path_of("", record["suite"], record["kind"], record["spec"])
        if run not in found or (found[run]["result"] is None and record["result"] is not None):
            found[run] = record
    return list(found.values())


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        every = [path for form in ("*.json", f"*{PACKED}") for path in place.rglob(form)]
        return [path for path in every if not path.name.startswith(".")]
    if not place.exists():
        raise FileNotFoundError(f"there is no folder or file {place} to read records from")
    return [place]


def _word(name: str, value: Any) -> str:
    plain = f"{value:g}" if isinstance(value, float) else str(value)
    return safe(plain if name in ("dataset", "policy", "metric") else f"{name}{plain}")


def safe(text: str) -> str:
    """Fit for a file name everywhere."""
    return re.sub(r"[^A-Za-z0-9_.@-]+", "_", text).strip(".") or "_"


def _text(value: Any, **options: Any) -> str:
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, **options)


def _plain(value: Any) -> Any:
    """As JSON knows it: arrays as lists, whole numbers of arrays without '.0', which adds up."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        whole = value.dtype.kind == "f" and bool(np.all(value == np.trunc(value)))
        small = whole and bool(np.all(np.abs(value) < 2**53))
        return _plain((value.astype(np.int64) if small else value).tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a record cannot hold the number {value}: JSON has finite ones only")
    return value


def pack(records: Iterable[Record], folder: str | Path) -> list[Path]:
    """Write finished records into a folder, a file for each suite and dataset.

    Failures are left out. What was there of the same suite and dataset is replaced.

    >>> from omma_study.records import make, read
    >>> record = make("mine", {"dataset": "toy", "policy": "omma"}, "OMMA", result={"value": 0.7})
    >>> [path.name for path in pack([record], "folder-of-pack")]
    ['mine-toy.jsonl.xz']
    >>> read("folder-of-pack") == [record]
    True
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record["result"] is not None:
            named = record["kind"] == "study" and "dataset" in record["spec"]
            words = [record["suite"], *([record["spec"]["dataset"]] if named else [])]
            groups.setdefault(safe("-".join(words)), []).append(record)
    return [_write(Path(folder) / f"{name}{PACKED}", some) for name, some in groups.items()]


def _write(path: Path, records: list[Record]) -> Path:
    lines = [json.dumps(_slim(one), ensure_ascii=False, sort_keys=True) for one in records]
    data = lzma.compress("".join(f"{line}\n" for line in lines).encode())
    write_whole(path, data)
    return path


def _slim(record: Record) -> Record:
    seconds = {name: float(f"{value:.3g}") for name, value in record["seconds"].items()}
    short = dict(record["result"])
    if (history := short.get("history")) is not None:
        values = [round(value, ROUNDED) for value in history["values"]]
        short["history"] = {**history, "values": values}
    if (counts := short.get("counts")) is not None:
        labels = len(counts["tp"])
        if labels > MANY and record["spec"].get("seed"):
            short |= {"counts": None, "labels": labels, "names": None}
    return {**record, "seconds": seconds, "result": short}
