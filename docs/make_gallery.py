"""Write the gallery from the examples themselves: title, picture, text and code of each.

    python docs/make_gallery.py

An example is a script `examples/plot_*.py`. The first line of its docstring is its title, the rest
is its text. Its picture is the file of the same name with .png, in `examples` or `examples/images`.
docs/make_pages.py writes these pages before the site is built.
"""

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
    entries, examples = [], {}
    for script in scripts():
        title, text, code = _parts(script)
        page = f"{script.stem}.md"
        picture = f"![{title}]({script.stem}.png)"
        has_picture = _picture(script) is not None
        # The picture links to the page of its example, but not on that page.
        linked = f"\n[{picture}]({page})\n" if has_picture else ""
        first = text.split("\n\n")[0]
        entries.append(f"## [{title}]({page})\n\n{first}\n{linked}")
        shown = f"\n{picture}\n" if has_picture else ""
        source = f'```py title="examples/{script.name}"\n{code}\n```'
        examples[f"gallery/{page}"] = f"# {title}\n\n{text}\n{shown}\n{source}\n"
    return {"gallery/index.md": "\n".join([HEAD, *(entries or [NONE])]), **examples}


def pictures():
    """Files of pictures by their place on the site."""
    paths = {script.stem: _picture(script) for script in scripts()}
    return {f"gallery/{stem}.png": path for stem, path in paths.items() if path is not None}


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


if __name__ == "__main__":
    for path, text in pages().items():
        click.echo(f"----- {path}\n{text}")
