"""What mkdocs builds besides the pages that are written: gallery, commands, names of metrics.

The pages come from the code itself while the site is built, and so cannot be out of date.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import make_cli
import make_gallery
import make_metrics
import repository

# Pages of parts that may not be there: they show up with their file, or their module.
PARTS = {
    "certificate.md": None,
    "study.md": None,
    "theory.md": None,
    "reference/calibration.md": "omma.calibration",
    "reference/estimators.md": "omma_study",
    "reference/sklearn.md": "omma.sklearn",
    "reference/theory.md": "omma_study",
}


def on_config(config):
    """Leave out of the navigation what is not there; find out where the source is shown."""
    config.repo_url = config.repo_url or repository.found(Path(config.config_file_path).parent)
    missing = {page for page, module in PARTS.items() if not _there(config, page, module)}
    config.nav = _without(config.nav, missing)
    config.omma_missing = missing
    return config


def on_files(files, config):
    """Drop pages of missing modules; add those that are made of the code."""
    for page in config.omma_missing:
        found = files.get_file_from_path(page)
        if found is not None:
            files.remove(found)
    pages = {
        "reference/cli.md": make_cli.page(),
        "reference/names.md": make_metrics.page(),
        **make_gallery.pages(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for path, source in make_gallery.pictures().items():
        files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown, page, config, files):
    """The home page has a link to the source, where that is known."""
    if page.file.src_uri != "index.md" or not config.repo_url:
        return markdown
    return f"{markdown.rstrip()}\n\n[Source]({config.repo_url})\n"


def on_post_page(output, page, config):
    """Nothing is loaded from other servers; the theme would ask that of the source for stars."""
    return output.replace(' data-md-component="source"', "")


def _there(config, page, module):
    if module is not None:
        return find_spec(module) is not None
    return (Path(config.docs_dir) / page).exists()


def _without(nav, missing):
    """The navigation without some pages, and without sections that they leave empty."""
    kept = []
    for entry in nav:
        if isinstance(entry, str):
            if entry not in missing:
                kept.append(entry)
            continue
        ((title, what),) = entry.items()
        what = _without(what, missing) if isinstance(what, list) else what
        if what and what not in missing if isinstance(what, str) else what:
            kept.append({title: what})
    return kept
