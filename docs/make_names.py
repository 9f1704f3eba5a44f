"""Writes src/omma/metrics/names.py, from which editors complete names of metrics.

    python docs/make_names.py

The catalogue decides; a test says when this has to be run again.
"""

from pathlib import Path

import omma

PAGE = Path(__file__).parents[1] / "src" / "omma" / "metrics" / "names.py"
HEAD = '''"""Names of metrics as a type, for editors to complete; ``docs/make_names.py`` writes it.

Where a name is taken, so is any text: ``"macro_f1@3"`` has a budget.
"""

from typing import Literal

MetricName = Literal[
'''


def text():
    """The file as it should be."""
    return HEAD + "".join(f'    "{name}",\n' for name in omma.metrics.NAMES) + "]\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
