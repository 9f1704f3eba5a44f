"""Examples in docstrings become code blocks, also where no heading says "Examples".

For mkdocstrings; otherwise Markdown takes lines that begin with >>> for quotations.
"""

from __future__ import annotations

import textwrap

import griffe


class Fences(griffe.Extension):
    """Puts every example of every docstring between fences."""

    def on_object(self, *, obj, **_):
        """Rewrite the docstring of an object when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text):
    """A docstring with fences around its examples: from a line with >>> to the next empty one."""
    done, example = [], []
    for line in [*text.splitlines(), ""]:
        if example and not line.strip():
            done += _block(example)
            example = []
        if example or line.lstrip().startswith(">>>"):
            example.append(line)
        else:
            done.append(line)
    return "\n".join(done).rstrip()


def _block(lines):
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    code = textwrap.dedent("\n".join(lines)).splitlines()
    before = [""]  # a block that follows text needs an empty line
    return before + [indent + line for line in ("```pycon", *code, "```")]
