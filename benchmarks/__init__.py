"""What omma promises about speed, measured: ``python -m benchmarks.speed``.

Numba's disk cache looks at the file of an entry point only, so after a change to a helper in
another file old machine code would be timed. The cache used here is named after all sources of the
kernels; it has to be set before anything imports Numba.
"""

import hashlib
import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_KERNELS = sorted((ROOT / "src" / "omma" / "kernels").glob("*.py"))
SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in _KERNELS)).hexdigest()[:16]

os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"omma-kernels-{SOURCES}")
)
