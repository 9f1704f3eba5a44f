"""Set up before omma is imported: silence while compiling, and no deadlines for it."""

import gc
import os
import signal

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


@pytest.fixture(autouse=True)
def _doctests_run_in_a_folder_of_their_own(request):
    """What an example writes lands neither in the project nor in the way of another example."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))


@pytest.fixture
def ctrl_c():
    """A Ctrl-C is heard: shells switch it off for what they start in the background.

    There is no garbage collection: one that meets hypothesis' callback of it would be lost.
    """
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, handler)
