"""Estimates in files: npz without pickles, named by all that they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omma import npz

NAMES = ("eta", "train")  # of the arrays


@dataclass(frozen=True)
class Stored:
    """Arrays, dense or CSR, what the estimator said, and how long it took."""

    arrays: Mapping[str, Any]
    report: dict[str, Any]
    seconds: float


def path_of(folder: Path, dataset: str, estimator: str, known_by: Mapping[str, Any]) -> Path:
    """Where estimates are kept."""
    text = json.dumps(known_by, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return folder / f"{Path(dataset).name}-{estimator}-{digest}.npz"


def write(path: Path, kept: Stored) -> None:
    """Write all, or nothing."""
    said = json.dumps({"report": kept.report, "seconds": kept.seconds}, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    npz.write(path, {"said": said, **kept.arrays})


def read(path: Path) -> Stored | None:
    """What was kept; nothing where there is no such file, or half of one."""
    if not path.exists():
        return None
    try:
        with npz.opened(path) as archive:
            said = archive.json("said")
            arrays: dict[str, Any] = {}
            for name in NAMES:
                if name in archive:
                    arrays[name] = archive.array(name)
                elif f"{name}_indptr" in archive:
                    arrays[name] = archive.csr(name)
            return Stored(arrays, dict(said["report"]), float(said["seconds"]))
    except (ValueError, KeyError, TypeError):
        return None
