"""Write the pages that come from the code itself: commands, metrics by name, gallery.

    python docs/make_pages.py

Run it before mkdocs builds or serves the site. Git ignores these pages: they follow the code.
"""

import shutil
from pathlib import Path

import make_cli
import make_gallery
import make_metrics

DOCS = Path(__file__).parent


def write(folder):
    """Write all generated pages and their pictures below a folder."""
    pages = {
        "reference/cli.md": make_cli.page(),
        "reference/names.md": make_metrics.page(),
        **make_gallery.pages(),
    }
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for path, picture in make_gallery.pictures().items():
        shutil.copyfile(picture, folder / path)


if __name__ == "__main__":
    write(DOCS)
