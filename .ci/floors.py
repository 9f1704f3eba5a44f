"""Print the lowest versions that pyproject.toml allows, as pip takes them.

    python .ci/floors.py dependencies plots sklearn frames test

Of each extra, only packages of PACKAGES are printed, at their lower bound.
"""

import re
import sys
import tomllib
from pathlib import Path

# Packages that the lane of the lowest versions needs; other extras have bounds of their own.
PACKAGES = {
    "numpy", "scipy", "numba", "click", "rich", "matplotlib", "scikit-learn",
    "pytest", "hypothesis", "pandas", "polars", "pyarrow",
}  # fmt: skip


def floors(extras):
    """The lowest version of each package wanted."""
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    given = {"dependencies": project["dependencies"], **project["optional-dependencies"]}
    found = {}
    for extra in extras:
        for line in given[extra]:
            name, _, rest = line.partition(">=")
            if name in PACKAGES:
                version, _, marker = rest.partition(";")
                version = version.partition(",")[0]  # without an upper bound
                found[name] = f"{name}=={version.strip()}" + (f" ;{marker}" if marker else "")
                if not re.fullmatch(r"[0-9.]+", version.strip()):
                    raise SystemExit(f"{name} must have one lower limit, got {line}")
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(floors(sys.argv[1:]).values()) + "\n")
