"""The report as one page that works without a network: tables, and curves to look into."""

from omma.study.page.page import page

__all__ = ["page"]
