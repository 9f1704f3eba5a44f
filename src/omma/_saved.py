"""Files without code: JSON and plain arrays in one archive, written whole or not at all."""

from __future__ import annotations

import json
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._atomic import replacing
from omma.metrics import Metric, metric_from_json

FORMAT = "omma-learner-1"
# What NumPy and the zip library raise for files that are no archive, or a spoiled one.
DAMAGED = (
    ValueError,
    KeyError,
    OSError,
    EOFError,
    TypeError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
)


def write(path: str | Path, content: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write beside the path first, then move into place: a reader never sees half a file."""
    text = json.dumps({"format": FORMAT, **content})
    with replacing(path) as file:
        np.savez(file, content=np.array(text), **arrays)  # type: ignore[arg-type]


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what ``write`` wrote; nothing in the file is run."""
    try:
        # Opened here, because NumPy forgets to close a file that turns out to be spoiled.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        content = json.loads(str(arrays.pop("content")))
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise ValueError(f"{path} is not an omma learner: {error}") from error
    wanted = {"format", "policy", "n_labels"}
    if not isinstance(content, dict) or content.get("format") != FORMAT or wanted - set(content):
        raise ValueError(f"{path} is not an omma learner of the format {FORMAT}")
    return content, arrays


def packed(name: str, values: Any) -> dict[str, NDArray[Any]]:
    """An array, a sparse matrix or nothing, as plain arrays."""
    if values is None:
        return {}
    if sparse.issparse(values):
        csr = values.tocsr()
        return {
            f"{name}_data": csr.data,
            f"{name}_indices": csr.indices,
            f"{name}_indptr": csr.indptr,
            f"{name}_shape": np.array(csr.shape),
        }
    return {name: np.asarray(values)}


def unpacked(name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """What was packed under a name, or None."""
    if name in arrays:
        return arrays[name]
    if f"{name}_data" not in arrays:
        return None
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(arrays[f"{name}_shape"].tolist()))


def metric_of(content: Any) -> Metric | None:
    """A saved metric, or None."""
    return None if content is None else metric_from_json(content)
