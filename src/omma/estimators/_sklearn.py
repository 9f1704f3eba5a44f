"""scikit-learn, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omma._validate import require


def require_sklearn(owner: str) -> None:
    """Say how to get scikit-learn where it is missing."""
    require("sklearn", f"{owner} needs", '"omma[sklearn]"', "scikit-learn")


@contextmanager
def one_thread(of: str | None = "blas") -> Iterator[None]:
    """Leave the processors to the labels, so that the result does not depend on their number.

    None is all that scikit-learn compiles.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api=of):
        yield
