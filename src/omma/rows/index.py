"""Rows that pandas names by an index: those of one sequence must be named alike, in one order.

pandas would align two frames by their index, and omma takes rows one after another: where the two
disagree, rows would be paired wrongly, and no number would show it. So that is refused.

A default index (0, 1, … as pandas makes it where nobody gives one) names nothing, and goes with
any other of its length: ``pd.DataFrame(model.predict_proba(X_test))`` has one beside a ``y_test``
that has not. Only with the same numbers in another order it is refused, as one of the two was
reordered, and nobody can tell whether the other was too.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any


def index_of(given: Any) -> Any:
    """The pandas index of the rows of a frame or series; None where there is none."""
    index = getattr(given, "index", None)  # of a list it is a method
    return index if hasattr(index, "get_indexer") else None


def check_same_rows(owner: str, given: Mapping[str, Any]) -> None:
    """Refuse frames and series, by the names of their parameters, whose indexes differ."""
    indexes = {name: index_of(one) for name, one in given.items()}
    check_same_indexes(owner, {name: one for name, one in indexes.items() if one is not None})


def check_same_indexes(owner: str, indexes: Mapping[str, Any]) -> None:
    """Refuse indexes, by the names of the parameters that have them, that differ."""
    for (first, one), (second, other) in combinations(indexes.items(), 2):
        if len(one) != len(other) or one.equals(other):
            continue  # what is wrong with lengths is said where shapes are read
        if _same_values(one, other):
            raise ValueError(
                f"{second} of {owner} must have its rows in the order of {first}, got the same "
                f"index in another order: pass {second}.loc[{first}.index], or to_numpy() of both "
                "if they belong together by position"
            )
        if not (_is_default(one) or _is_default(other)):
            raise ValueError(
                f"{second} of {owner} must have the rows of {first}, got another index: select the "
                "same rows of both, or pass to_numpy() of both if they belong together by position"
            )


def _same_values(one: Any, other: Any) -> bool:
    """Whether two indexes of one length name the same rows, each once."""
    if one.nlevels != other.nlevels or not (one.is_unique and other.is_unique):
        return False
    return bool(other.isin(one).all())


def _is_default(index: Any) -> bool:
    """Whether pandas made it, to count the rows."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
