"""scikit-learn, where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def require_sklearn(owner: str) -> None:
    """Say how to get scikit-learn where it is missing."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'{owner} needs scikit-learn, which is not installed: pip install "omma[sklearn]"'
        ) from error


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Leave the processors to the labels, so that the result does not depend on their number."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """The same for all that scikit-learn compiles."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
