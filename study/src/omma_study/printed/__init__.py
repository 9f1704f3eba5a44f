"""The study as the paper prints it: its tables, in its layout, with its own figures beside ours."""

from omma_study.printed.html import families, page
from omma_study.printed.latex import document
from omma_study.printed.model import Block, Column, Line, Number, Table, tables

__all__ = ["Block", "Column", "Line", "Number", "Table", "document", "families", "page", "tables"]
