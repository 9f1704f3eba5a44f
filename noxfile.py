"""The lanes of CONTRIBUTING.md, each in an environment of its own: nox -l lists them."""

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.default_venv_backend = "uv|virtualenv"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
CONSTRAINTS = ("-c", ".ci/constraints.txt")


@nox.session
def lint(session):
    """Style, types and layers."""
    session.install(*CONSTRAINTS, "-e", ".[lint,test]", "-e", "study")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(python=PYTHONS)
def tests(session):
    """Tests, and every example in docstrings, docs and README."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "2", "-q", *session.posargs)


@nox.session
def study(session):
    """Tests of omma-study."""
    session.install("-e", ".[test]", "-e", "study")
    places = ("study/tests", "study/src", "study/README.md", "docs/theory.md")
    session.run("python", "-m", "pytest", "-n", "2", "-q", "-c", "study/pyproject.toml", *places)


@nox.session
def docs(session):
    """The site, with every link checked, in the folder site."""
    session.install("-e", ".[docs]")
    session.run("python", "docs/make_pages.py")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def spark(session):
    """Streams on Spark; needs Java 17."""
    session.install("-e", ".[spark,dask]", "pytest", "hypothesis")
    session.run("python", "-m", "pytest", "-q", "tests/spark", "tests/docs/test_dask.py")


@nox.session
def fuzz(session):
    """Damaged files for ten minutes."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.fuzz", "--minutes", *(session.posargs or ["10"]))


@nox.session
def benchmarks(session):
    """Speed, as ratios measured in one run."""
    session.install("-e", ".[benchmark]")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def build(session):
    """The source distribution and the wheel, checked as PyPI does."""
    session.install("build", "twine")
    session.run("python", "-m", "build", "--outdir", "dist", ".")
    session.run("python", "-m", "build", "--outdir", "dist", "study")
    session.run("twine", "check", "--strict", "dist/*")
