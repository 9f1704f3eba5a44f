"""Set up before omma is imported: a cache of compiled code that cannot be stale.

Numba's disk cache looks at the file of an entry point only; after a change to a helper in another
file, old machine code would run. So tests keep their cache in a folder named after all sources of
the kernels.
"""

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SOURCES = Path(__file__).parent / "src" / "omma" / "kernels"
digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.py"))))
os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    str(Path(tempfile.gettempdir()) / f"omma-kernels-{digest.hexdigest()[:16]}"),
)

os.environ.setdefault("OMMA_QUIET", "1")  # tests read standard error, and compile at times

settings.register_profile(
    "omma",
    deadline=None,  # the first example may compile
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("omma")


@pytest.fixture(autouse=True, scope="session")
def _run_in_a_folder_of_its_own(tmp_path_factory):
    """Doctests may write files; none should land in the project."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("work"))
    yield
    os.chdir(before)
