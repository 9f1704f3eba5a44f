"""Set up before omma is imported: silence while compiling, and no deadlines for it."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
