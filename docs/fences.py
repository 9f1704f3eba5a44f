"""Docstrings as mkdocstrings should read them.

Examples become code blocks, also where no heading says "Examples"; otherwise Markdown takes lines
that begin with >>> for quotations. Types are words, and "int or array-like" is no subtraction:
written with a hyphen that is no minus, it is not printed as "array - like".
"""

import re
import textwrap

import griffe


class Fences(griffe.Extension):
    """Puts every example of every docstring between fences."""

    def on_object(self, *, obj, **_):
        """Rewrite the docstring of an object when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(worded(obj.docstring.value))


def worded(text):
    """A docstring whose types ("name : type") have hyphens that Python cannot take for minus."""
    typed = re.compile(r"^ *[*\w][*\w, ]* : .*$", re.MULTILINE)
    return typed.sub(lambda line: re.sub(r"(?<=[a-z])-(?=[a-z])", "\u2011", line[0]), text)


def fenced(text):
    """A docstring with fences around its examples: from a line with >>> to the next empty one."""
    example = re.compile(r"^( *)>>>.*(?:\n.*\S.*)*", re.MULTILINE)
    return example.sub(_block, text).rstrip()


def _block(example):
    code = textwrap.dedent(example[0])
    # A block that follows text needs an empty line.
    return "\n" + textwrap.indent(f"```pycon\n{code}\n```", example[1])
