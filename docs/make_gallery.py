"""Write the gallery from the examples themselves: title, picture, text and code of each.

    python docs/make_gallery.py

An example is a script `examples/plot_*.py`. The first line of its docstring is its title, the rest
is its text. Its picture is the file of the same name with .png, in `examples` or `examples/images`.
docs/make_pages.py writes these pages before the site is built.
"""

from __future__ import annotations

import ast
from pathlib import Path

import click

EXAMPLES = Path(__file__).parents[1] / "examples"

HEAD = """# Examples

Scripts that run as they are, in `examples/` of the repository: `python examples/plot_….py`.
"""
NONE = """
There are none yet. Until then, [the recipes](../recipes/index.md) have code to start from.
"""


def scripts():
    """The examples, in the order of their names."""
    return sorted(EXAMPLES.glob("plot_*.py"))


def pages():
    """Pages in Markdown by their place on the site: the list, and one for each example."""
    made = {f"gallery/{script.stem}.md": _page(script) for script in scripts()}
    entries = [_entry(script) for script in scripts()]
    return {"gallery/index.md": "\n".join([HEAD, *(entries or [NONE])]), **made}


def pictures():
    """Files of pictures by their place on the site."""
    found = {script.stem: _picture(script) for script in scripts()}
    return {f"gallery/{stem}.png": path for stem, path in found.items() if path is not None}


def _picture(script):
    name = f"{script.stem}.png"
    places = (script.with_name(name), EXAMPLES / "images" / name)
    return next((path for path in places if path.exists()), None)


def _parts(script):
    """Title, text and code of a script."""
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    words = ast.get_docstring(tree)
    if not words:
        raise ValueError(f"{script} must begin with a docstring: its title, then its text")
    title, _, text = words.partition("\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip("\n")
    return title.rstrip("."), text.strip().lstrip("=").strip(), code


def _shown(script, link=""):
    if _picture(script) is None:
        return ""
    title = _parts(script)[0]
    picture = f"![{title}]({script.stem}.png)"
    return f"\n[{picture}]({link})\n" if link else f"\n{picture}\n"


def _entry(script):
    title, text, _ = _parts(script)
    first = text.split("\n\n")[0]
    page = f"{script.stem}.md"
    return f"## [{title}]({page})\n\n{first}\n{_shown(script, page)}"


def _page(script):
    title, text, code = _parts(script)
    return (
        f"# {title}\n\n{text}\n{_shown(script)}\n"
        f'```py title="examples/{script.name}"\n{code}\n```\n'
    )


if __name__ == "__main__":
    for path, text in pages().items():
        click.echo(f"----- {path}\n{text}")
