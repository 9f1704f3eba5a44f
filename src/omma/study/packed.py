"""Many records in one small file: a line of JSON for each, compressed by xz.

Running values and seconds are kept to the digits that tables and figures show. Where there are many
labels, the counts of each are kept of the first sequence alone. The rest is as it was.
``omma.study.records.read`` reads such files where it finds them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from omma.study.records import PACKED, Record, safe, write_whole

DIGITS = 4  # of running values, which are drawn and not compared
MANY = 200  # labels


def pack(records: Iterable[Record], folder: str | Path) -> list[Path]:
    """Write finished records into a folder, a file for each suite and dataset.

    Failures are left out. What was there of the same suite and dataset is replaced.

    >>> from omma.study.records import make, read
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
    write_whole(path, lambda file: file.write(data))
    return path


def _slim(record: Record) -> Record:
    seconds = {name: float(f"{value:.3g}") for name, value in record["seconds"].items()}
    return {**record, "seconds": seconds, "result": _short(record["result"], record["spec"])}


def _short(result: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    short = dict(result)
    if (history := result.get("history")) is not None:
        values = [round(value, DIGITS) for value in history["values"]]
        short["history"] = {**history, "values": values}
    if (counts := result.get("counts")) is not None:
        labels = len(counts["tp"])
        if labels > MANY and spec.get("seed"):
            short |= {"counts": None, "labels": labels, "names": None}
    return short
