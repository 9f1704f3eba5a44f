"""Records: a line of JSON for each run, read by every table and figure.

A record says what was run, its result, how long it took, and with which versions. ``perform``
appends to a file for each suite, ``SUITE.jsonl``. ``pack`` writes files of a suite and dataset,
compressed by xz, with the digits that tables show: these are in the repository.
"""

import json
import lzma
import os
import platform
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import omma

# Readers refuse records of other formats.
FORMAT = 1
PACKED = ".jsonl.xz"
# Numbers may change in the last digits with omma and any of these.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
ROUNDED = 4  # digits of packed running values, which are drawn and not compared
MANY = 200  # labels, of which packed counts are of the first sequence alone
Record = dict[str, Any]
FIELDS: dict[str, Any] = {
    "format": int,
    "suite": str,
    "kind": str,
    "spec": dict,
    "label": str,
    "result": dict | None,
    "estimator": dict | None,
    "seconds": dict,
    "versions": dict,
    "error": dict | None,
}
# Fields of the spec and of the result that tables of the study need.
STUDY_SPEC = (
    "dataset", "task", "protocol", "estimator", "policy", "feedback", "metric", "k", "prior",
    "seed",
)  # fmt: skip
STUDY_RESULT = ("value", "rows", "history", "counts")


@cache
def versions() -> dict[str, str]:
    """Of Python, and of the packages that numbers depend on."""
    installed = {name: metadata.version(name) for name in PACKAGES}
    return {"omma": omma.__version__, **installed, "python": platform.python_version()}


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
    """The record of a run: its result, or the error that it ended with.

    ``spec`` is everything that decides the result: with suite and kind it identifies a run.
    ``label`` is how tables name the policy, ``estimator`` what the estimator reports.

    >>> record = make("mine", {"policy": "omma", "seed": 0}, "OMMA", result={"value": 0.7})
    >>> record["result"]["value"], record["error"]
    (0.7, None)
    """
    return {
        "format": FORMAT,
        "suite": suite,
        "kind": kind,
        "spec": dict(spec),
        "label": label,
        "result": result,
        "estimator": estimator,
        "seconds": dict(seconds or {}),
        "versions": versions(),
        "error": error
        and {
            "type": type(error).__name__,
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
        },
    }


def key_of(record: Mapping[str, Any]) -> str:
    """What identifies a run."""
    return to_json({name: record[name] for name in ("kind", "suite", "spec")}, sort_keys=True)


def to_json(value: Any, **options: Any) -> str:
    """As JSON, arrays as lists; NaN and infinity are errors, which JSON does not have.

    >>> to_json({"counts": np.array([1.0, 2.0])})
    '{"counts": [1, 2]}'
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain, **options)


def _plain(value: Any) -> Any:
    """Arrays and NumPy's numbers; whole numbers without '.0', which adds up in files."""
    if isinstance(value, Mapping):
        return dict(value)
    array = np.asarray(value)
    whole = array.dtype.kind == "f" and bool(np.isfinite(array).all() and (array % 1 == 0).all())
    return (array.astype(np.int64) if whole else array).tolist()


def write(folder: str | Path, record: Record) -> Path:
    """Append a record to the file of its suite.

    >>> record = make("mine", {"policy": "omma"}, "OMMA", kind="auto", result={"value": 0.7})
    >>> path = write("folder-of-write", record)
    >>> read("folder-of-write") == [record]
    True
    """
    path = Path(folder) / f"{safe(record['suite'])}.jsonl"
    # One write of one line: a process that is killed leaves half a line at most.
    path.parent.mkdir(parents=True, exist_ok=True)
    line = to_json(record).encode() + b"\n"
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":  # half a line of a run that was killed
                line = b"\n" + line
        file.write(line)
    return path


def safe(text: str) -> str:
    """The text with underscores for all that some file system refuses in names."""
    return re.sub(r"[^A-Za-z0-9_.@-]+", "_", text).strip(".") or "_"


def refuse(sentence: str) -> None:
    """Raise an error for a line that is no record."""
    raise ValueError(sentence)


def read(
    places: str | Path | Iterable[str | Path], *, bad: Callable[[str], None] = refuse
) -> list[Record]:
    """Records of folders with their subfolders, and of files, in the order of their paths.

    A run that is there twice counts once: its first result. ``bad`` is called with a sentence for
    each line that is no record, such as the last one of a run that was killed; by default it raises
    an error.

    >>> from pathlib import Path
    >>> Path("folder-of-read").mkdir()
    >>> _ = Path("folder-of-read/half.jsonl").write_text('{"format": 1')
    >>> sentences = []
    >>> read("folder-of-read", bad=sentences.append), len(sentences)
    ([], 1)
    """
    records: dict[str, Record] = {}
    for record in scan(places, bad=bad):
        key = key_of(record)
        # A failed run may have been tried again later.
        if key not in records or records[key]["result"] is None:
            records[key] = record
    return list(records.values())


def scan(
    places: str | Path | Iterable[str | Path], *, bad: Callable[[str], None] = refuse
) -> Iterator[Record]:
    """All records one by one: together, those of a whole study do not fit into memory."""
    places = [places] if isinstance(places, str | Path) else places
    # A file may lie in a folder that is named, too; it is read once.
    for path in sorted({path for place in places for path in _files(Path(place))}):
        opened = lzma.open if path.suffix == ".xz" else open
        number = 0
        try:
            with opened(path, "rt", encoding="utf-8") as file:
                for number, line in enumerate(file, start=1):
                    try:
                        record = _checked(json.loads(line))
                    except ValueError as error:
                        bad(f"{path}, line {number} is no record: {error}")
                        continue
                    yield record
        # A compressed file that is cut off has no further lines.
        except (lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
            bad(f"{path}, line {number + 1} is no record: {error}")


def _files(place: Path) -> list[Path]:
    if not place.exists():
        raise FileNotFoundError(f"there is no folder or file {place} to read records from")
    if place.is_file():
        return [place]
    return [path for form in ("*.jsonl", f"*{PACKED}") for path in place.rglob(form)
            if not path.name.startswith(".")]  # fmt: skip


def _checked(record: Any) -> Record:
    """The record itself; an error says what is missing."""
    if not isinstance(record, dict):
        raise ValueError(f"a record must be a JSON object, got {record!r}")
    for name, kind in FIELDS.items():
        if not isinstance(record.get(name), kind):
            raise ValueError(f"the field {name!r} cannot be {record.get(name, 'missing')!r}")
    if record["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT}, got {record['format']}")
    if (record["result"] is None) == (record["error"] is None):
        raise ValueError("a record must have either a result or an error")
    # Tables of the study rely on these fields.
    if record["kind"] == "study":
        for part, names in (("spec", STUDY_SPEC), ("result", STUDY_RESULT)):
            missing = [name for name in names if name not in (record[part] or names)]
            if missing:
                raise ValueError(f"its {part} must have {missing[0]!r}, which is missing")
    return record


def pack(records: Iterable[Record], folder: str | Path) -> list[Path]:
    """Write finished records into a folder, a compressed file for each suite and dataset.

    Files of the same suite and dataset are replaced.

    >>> record = make("mine", {"policy": "omma"}, "OMMA", kind="auto", result={"value": 0.7})
    >>> [path.name for path in pack([record], "folder-of-pack")]
    ['mine.jsonl.xz']
    >>> read("folder-of-pack") == [record]
    True
    """
    # All lines of a file at once, as xz compresses similar records far better together.
    texts: dict[Path, str] = {}
    for record in records:
        if record["result"] is not None:
            words = [record["suite"]]
            words += [record["spec"]["dataset"]] if record["kind"] == "study" else []
            path = Path(folder) / f"{safe('-'.join(words))}{PACKED}"
            texts[path] = texts.get(path, "") + to_json(_slim(record), sort_keys=True) + "\n"
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(text.encode()))
    return list(texts)


def _slim(record: Record) -> Record:
    """The record with the digits and the counts that tables and figures show."""
    # Digits beyond these are noise, and do not compress.
    seconds = {name: float(f"{value:.3g}") for name, value in record["seconds"].items()}
    result = dict(record["result"])
    if history := result.get("history"):
        values = [round(value, ROUNDED) for value in history["values"]]
        result["history"] = {**history, "values": values}
    if result.get("counts") and len(result["counts"]["tp"]) > MANY and record["spec"].get("seed"):
        result |= {"counts": None, "labels": len(result["counts"]["tp"]), "names": None}
    return {**record, "seconds": seconds, "result": result}
