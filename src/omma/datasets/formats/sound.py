"""NumPy's files, opened with a sentence for those that are something else, or spoiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from omma.datasets._archives import DAMAGED

# Before Python 3.11 a lone array in place of an archive raises an AttributeError.
SPOILED = (*DAMAGED, AttributeError)


@contextmanager
def archive(path: Path) -> Iterator[Any]:
    """The arrays of an .npz file; errors while they are read name it, too."""
    with _named(path), path.open("rb") as file, np.load(file, allow_pickle=False) as found:
        yield found


def array(path: Path) -> Any:
    """The array of an .npy file."""
    with _named(path), path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except SPOILED as error:
        if str(error).startswith(str(path)):
            raise
        kind = path.suffix.lower()
        raise ValueError(f"{path} is not a sound {kind} file: {error}") from error
