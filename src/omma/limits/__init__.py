"""Limits: constraints that hold while a metric is maximized.

A limit is a text such as ``"micro_precision >= 0.9"`` or ``"recall[fraud] >= 0.8"``, or made by
``at_least`` or ``at_most``. Rates of one label, or of all labels counted together, are held by
their linear form; so is the mean of recalls over labels, whose denominators no decision changes.
"""

from omma.limits.compiled import limited, price_unit
from omma.limits.limit import Limit
from omma.limits.reading import (
    at_least,
    at_most,
    check_limits,
    check_per_row,
    read_limit,
    read_limits,
)
from omma.limits.status import LimitStatus, limit_statuses

__all__ = [
    "Limit",
    "LimitStatus",
    "at_least",
    "at_most",
    "check_limits",
    "check_per_row",
    "limit_statuses",
    "limited",
    "price_unit",
    "read_limit",
    "read_limits",
]
