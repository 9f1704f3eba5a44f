"""The report as one page that works without a network: tables, and curves to look into."""

from omma.benchmark.html.page import page

__all__ = ["page"]
