"""Where tests find real data: $OMMA_DATA, or ../shared/data beside the project."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def find():
    """The folder of data, or None."""
    named = os.environ.get("OMMA_DATA")
    folder = Path(named) if named else BESIDE
    return folder if folder.is_dir() else None


def require(*names):
    """The folder of data; skips the test where it, or one of these sets, is absent."""
    folder = find()
    if folder is None:
        pytest.skip(f"no data: set OMMA_DATA, or put them into {BESIDE}")
    for name in names:
        if not (folder / name / "meta.json").is_file():
            pytest.skip(f"no data: {folder} has no {name}")
    return folder
