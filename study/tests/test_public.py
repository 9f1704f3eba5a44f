"""The study uses the library as anybody would: only what its reference documents."""

import ast
from pathlib import Path

import pytest

STUDY = Path(__file__).resolve().parents[1]
SCRIPTS = sorted([*(STUDY / "src").rglob("*.py"), *(STUDY / "pages").glob("*.py")])
# Modules with a page in docs/reference; their names are in __all__.
MODULES = (
    "omma", "omma.calibration", "omma.datasets", "omma.metrics", "omma.plots", "omma.policies",
)  # fmt: skip


def imported(tree):
    """(module, name) of all that a script imports of omma."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "omma":
            yield from ((node.module, alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name[:5] == "omma.")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(STUDY).as_posix())
def test_only_public_names_are_imported(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for module, name in imported(tree):
        assert module in MODULES, f"{module} is not documented"
        public = __import__(module, fromlist=["__all__"]).__all__
        assert name is None or name in public, f"{module}.{name} is not public"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            private = node.value.id == "omma" and node.attr.startswith("_")
            assert not private or node.attr == "__version__"
