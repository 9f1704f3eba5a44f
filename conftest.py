"""Set up before omma is imported: silence while compiling, and no deadlines for it."""

import gc
import os
import signal
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMMA_QUIET", "1")  # tests read standard error, and compile at times
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # its recipe logs to a folder

settings.register_profile(
    "omma",
    deadline=None,  # the first example may compile
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("omma")

# Pages and docstrings about packages that may not be there, and could not say so themselves.
PAGES = {
    "torch": ["src/omma/export/torch.py"],
    "pyspark": ["src/omma/spark/*", "tests/spark_*.py"],
    "omma_study": ["docs/theory.md"],
}
RECIPES = {
    "dask.md": "distributed",
    "ray.md": "ray",
    "mlflow.md": "mlflow",
    "fastapi.md": "fastapi",
}
collect_ignore_glob = [f"src/omma/{name}.py" for name in ("estimators", "study", "theory")]  # moved
collect_ignore_glob += [
    page for package, pages in PAGES.items() if find_spec(package) is None for page in pages
]


@pytest.fixture(autouse=True)
def _doctests_run_in_a_folder_of_their_own(request):
    """What an example writes lands neither in the project nor in the way of another example."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    for page, package in RECIPES.items():
        if request.node.path.name == page:
            pytest.importorskip(package, reason=f"{package} is not installed")
    request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
    if request.node.path.parts[-3:-1] == ("omma", "spark") or request.node.path.name == "spark.md":
        session = request.getfixturevalue("spark")
        request.getfixturevalue("doctest_namespace")["spark"] = session


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


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A Spark on two cores of this machine, for tests and examples."""
    from spark_session import begin, missing

    if missing():
        pytest.skip(missing())
    session = begin(folder=tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
