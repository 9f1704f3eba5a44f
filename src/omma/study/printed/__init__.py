"""The study as the paper prints it: its tables, in its layout, with its own figures beside ours."""

from omma.study.printed.html import families, page
from omma.study.printed.latex import document
from omma.study.printed.model import Block, Column, Line, Number, Table, tables

__all__ = ["Block", "Column", "Line", "Number", "Table", "document", "families", "page", "tables"]
