"""Frames, series, tensors and label sets, opened to arrays and CSR matrices.

pandas, polars and torch are recognized by the attributes of their objects, and never imported. A
frame opens to an array, or to a CSR matrix if pandas stores it sparsely, and to the names of its
columns. Predictions are returned as a frame of the same library with the same columns and index.

Columns are matched by name, in any order. Columns without names (0, 1, … in pandas, column_0,
column_1, … in polars) are matched by position, as those of an array. Rows are always matched by
position. pandas would align two frames by their index: frames with different indexes are refused,
as their rows would silently be paired wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest, repeated, shown

Names = tuple[str, ...]
# Attributes of objects of other libraries. Their order matters: lazy frames have columns, too, but
# reading these gives a warning.
FOREIGN = ("detach", "coords", "collect", "to_frame", "columns", "__dataframe__")
OURS = (np.ndarray, sparse.sparray, sparse.spmatrix, list, tuple, int, float, type(None))
SETS = (list, tuple, set, frozenset)


@dataclass(frozen=True)
class OutputType:
    """The type of the probabilities, in which predictions are returned.

    ``kind`` is "array", "tensor", "frame" or "series", and ``make`` the class of a frame or series.
    ``columns`` is the name of a series or the columns of a frame. ``index`` is that of pandas;
    polars has none. ``column_order`` has the position of each of the user's columns among ours.
    """

    kind: str = "array"
    make: Any = None
    columns: Any = None
    index: Any = None
    column_order: NDArray[np.intp] | None = None

    def __call__(self, values: Any) -> Any:
        """Predictions in the type and the column order of the probabilities."""
        if self.column_order is not None:
            values = values[..., self.column_order]
        if self.kind == "array":
            return values
        if self.kind == "tensor":  # on the CPU and int8, for probabilities of any type
            return import_module("torch").from_numpy(np.asarray(values))
        # Without an index it is polars, and with one it is pandas.
        if self.index is None and self.kind == "frame":
            return self.make(values, schema=list(self.columns), orient="row")
        if self.index is None:
            return self.make(self.columns, values)
        if self.kind == "series":
            return self.make(values, index=self.index, name=self.columns)
        if sparse.issparse(values):
            return self.make.sparse.from_spmatrix(values, index=self.index, columns=self.columns)
        return self.make(values, index=self.index, columns=self.columns, copy=False)

    def take(self, rows: Any) -> OutputType:
        """The same for a part of the rows."""
        return self if self.index is None else replace(self, index=self.index[rows])


ARRAY = OutputType()


@dataclass(frozen=True)
class InputTable:
    """An argument as an array or CSR matrix, with the names and the index that it had.

    ``names`` are those of the labels, if they are known; ``is_named`` says that the argument had
    names, ``is_reordered`` that its columns were in another order. ``restore_type`` converts
    predictions to the type of the argument. ``index`` is that of pandas.
    """

    values: Any
    names: Names | None = None
    restore_type: OutputType = ARRAY
    is_named: bool = False
    is_reordered: bool = False
    index: Any = None


def open_table(
    owner: str, parameter: str, values: Any, names: Names | None = None, *, row: bool = False
) -> InputTable:
    """Open an argument, with its columns in the order of ``names`` if both have names.

    ``row`` says that a series is one row, whose index names labels.
    """
    if names is not None and is_label_sets(values):
        indicators = indicators_of_sets(owner, parameter, values, names, len(names))
        return InputTable(indicators, names, index=index_of(values))
    # An index of pandas has this attribute; NumPy reads it.
    is_ours = isinstance(values, OURS) or hasattr(values, "get_indexer")
    if is_ours or not any(hasattr(values, attribute) for attribute in FOREIGN):
        return InputTable(values, names)
    if hasattr(values, "detach"):
        return InputTable(_tensor_values(owner, parameter, values), names, OutputType("tensor"))
    if hasattr(values, "coords"):  # xarray: coordinates name rows and labels, and would be lost
        if len(values.coords):
            raise TypeError(
                f"{parameter} of {owner} must have no coordinates, got a {type(values).__name__} "
                f"with {shown(list(values.coords))}: pass its to_pandas(), to go by names, or its "
                "to_numpy()"
            )
        return InputTable(values.to_numpy(), names)
    if hasattr(values, "collect") or not hasattr(values, "to_numpy"):
        method = "collect()" if hasattr(values, "collect") else "to_pandas()"
        raise TypeError(
            f"{parameter} of {owner} must be a pandas or polars frame in memory, got "
            f"{type(values).__name__}: pass its {method}"
        )
    is_frame, index = hasattr(values, "columns"), index_of(values)
    columns = values.columns if is_frame else values.name
    labels = list(columns) if is_frame else list(index) if row and index is not None else None
    own = None if labels is None else _column_names(owner, parameter, labels, names)
    restore_type = OutputType("frame" if is_frame else "series", type(values), columns, index)
    array = _frame_values(owner, parameter, values)
    rows = None if row and not is_frame else index
    # Columns without names are matched by position, even if labels have names.
    if own is None or names is None or names == own:
        return InputTable(array, own or names, restore_type, own is not None, index=rows)
    places = _column_places(owner, parameter, own, names)
    restore_type = replace(restore_type, column_order=np.argsort(places))
    return InputTable(array[..., places], names, restore_type, True, True, rows)


def _frame_values(owner: str, parameter: str, frame: Any) -> Any:
    """The values of a frame or series; missing ones are NaN."""
    is_frame = hasattr(frame, "columns")
    if not hasattr(frame, "iloc"):  # polars
        return frame.to_numpy(order="c") if is_frame else frame.to_numpy()
    dtypes = list(frame.dtypes) if is_frame else [frame.dtype]
    if is_frame and all(type(dtype).__name__ == "SparseDtype" for dtype in dtypes):
        if any(dtype.fill_value != 0 for dtype in dtypes):
            raise ValueError(
                f"{parameter} of {owner} must be sparse with 0 for what is not stored, got a frame "
                f"with {shown(dtypes[0].fill_value)}"
            )
        return frame.sparse.to_coo().tocsr()
    values = frame.to_numpy()
    # Columns of nullable numbers come as objects, with an NA that NumPy does not know.
    if values.dtype.kind == "O" and all(getattr(dtype, "kind", "O") in "fiub" for dtype in dtypes):
        values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _tensor_values(owner: str, parameter: str, tensor: Any) -> NDArray[Any]:
    """The memory of a tensor as an array, without a copy."""
    is_dense = "strided" in str(tensor.layout)
    for is_wrong, expected, got, method in (
        (tensor.device.type != "cpu", "be on the CPU", f"a tensor on {tensor.device}", "cpu()"),
        (tensor.requires_grad, "not require gradients", "a tensor that does", "detach()"),
        (not is_dense, "be a dense tensor", tensor.layout, "to_dense(), or a SciPy CSR matrix"),
    ):
        if is_wrong:
            raise TypeError(
                f"{parameter} of {owner} must {expected}, got {got}: pass {parameter}.{method}"
            )
    try:
        values: NDArray[Any] = tensor.numpy()
    except TypeError as error:  # such as bfloat16, which NumPy does not have
        raise TypeError(
            f"{parameter} of {owner} must be of a type that NumPy has, got {tensor.dtype}: pass "
            f"{parameter}.float()"
        ) from error
    return values


# Names of columns


def read_names(owner: str, names: Sequence[Any] | None, m: int) -> Names | None:
    """A name for each of m labels, or None."""
    if names is None:
        return None
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    texts = tuple(str(name) for name in names) if is_list else ()
    if len(texts) != m or len(set(texts)) != m:
        raise ValueError(f"names of {owner} must be {m} different names, got {shown(names)}")
    return texts


def _column_names(
    owner: str, parameter: str, labels: list[Any], known: Names | None
) -> Names | None:
    """The names of columns as text; None if they are default names."""
    names = tuple(str(label) for label in labels)
    places = range(len(labels))
    # Default names of pandas and polars; the known names may be just these.
    is_default = labels == list(places) or labels == [f"column_{place}" for place in places]
    if is_default and (known is None or set(names) != set(known)):
        return None
    twice = repeated(names)
    if twice is not None:
        raise ValueError(
            f"columns of {parameter} of {owner} must have different names, got {twice!r} twice"
        )
    return names


def _column_places(owner: str, parameter: str, own: Names, names: Names) -> NDArray[np.intp]:
    """The position of each name among the columns of a frame."""
    missing = [name for name in names if name not in own]
    unknown = [name for name in own if name not in names]
    if missing or unknown:
        faults = [f"misses {shown(missing)}"] if missing else []
        faults += [f"has {shown(unknown)}"] if unknown else []
        raise ValueError(
            f"{parameter} of {owner} must have columns named as the labels, {shown(list(names))}; "
            f"it {' and '.join(faults)}: rename them, or pass an array to go by their order"
        )
    place = {name: j for j, name in enumerate(own)}
    return np.array([place[name] for name in names], dtype=np.intp)


# Indexes of pandas


def index_of(values: Any) -> Any:
    """The pandas index of the rows of a frame or series; None if there is none."""
    index = getattr(values, "index", None)  # of a list it is a method
    return index if hasattr(index, "get_indexer") else None


def check_same_rows(owner: str, rows: Mapping[str, Any]) -> None:
    """Refuse frames and series whose indexes differ; keys are the names of parameters."""
    check_same_indexes(owner, {name: index_of(values) for name, values in rows.items()})


def check_same_indexes(owner: str, indexes: Mapping[str, Any]) -> None:
    """Refuse indexes that differ; keys are the names of parameters.

    A default index (0, 1, …) is compatible with any index of its length, as the one of
    ``pd.DataFrame(model.predict_proba(X_test))`` is with that of ``y_test``. It is refused only
    beside the same numbers in another order: then one of the two was reordered, and it is unknown
    whether the other one was, too.
    """
    present = [(name, index) for name, index in indexes.items() if index is not None]
    for (first, index), (second, second_index) in combinations(present, 2):
        if len(index) != len(second_index) or index.equals(second_index):
            continue  # different lengths are refused when shapes are checked
        pair = (index, second_index)
        is_unique = all(each.is_unique and each.nlevels == index.nlevels for each in pair)
        if is_unique and second_index.isin(index).all():
            raise ValueError(
                f"{second} of {owner} must have its rows in the order of {first}, got the same "
                f"index in another order: pass {second}.loc[{first}.index], or to_numpy() of both "
                "if they belong together by position"
            )
        if not any(
            type(each).__name__ == "RangeIndex" and each.start == 0 and each.step == 1
            for each in pair
        ):
            raise ValueError(
                f"{second} of {owner} must have the rows of {first}, got another index: select the "
                "same rows of both, or pass to_numpy() of both if they belong together by position"
            )


# Label sets


def is_label_sets(y: Any) -> bool:
    """Whether each row is a collection of labels: sets, or lists of which some have text.

    Lists of numbers are rows of an indicator matrix.

    >>> is_label_sets([["sports"], ["music", "news"], []]), is_label_sets([[0, 1], [1, 1]])
    (True, False)
    """
    rows = rows_of(y)
    if rows is None or not all(isinstance(row, SETS) for row in rows):
        return False
    return any(
        isinstance(row, set | frozenset) or any(isinstance(label, str) for label in row)
        for row in rows
    )


def rows_of(y: Any) -> list[Any] | None:
    """The rows of a list, series or vector of objects; None if these cannot be label sets."""
    if isinstance(y, np.ndarray):
        return y.tolist() if y.dtype == object and y.ndim == 1 and len(y) else None
    if isinstance(y, list | tuple):
        return list(y) if len(y) and isinstance(y[0], SETS) else None
    # A series of pandas or polars; SciPy's matrices have no to_list.
    is_series = hasattr(y, "to_list") and len(getattr(y, "shape", ())) == 1 and len(y)
    return list(y) if is_series and isinstance(next(iter(y)), SETS) else None


def indicators_of_sets(
    owner: str, parameter: str, y: Any, names: Sequence[str] | None, m: int
) -> Any:
    """Label sets as CSR indicators of m labels, which sets list by name or by id.

    >>> indicators_of_sets("replay", "y", [["b"], ["a", "b"], []], ("a", "b"), 2).toarray().tolist()
    [[0, 1], [1, 1], [0, 0]]
    """
    places = {name: place for place, name in enumerate(names or ())}
    ids, ends = [], [0]
    for row, labels in enumerate(rows_of(y) or []):
        row_ids = set()
        for label in labels:
            # True and False are no ids, though they are whole numbers in Python.
            is_id = isinstance(label, int | np.integer) and not isinstance(label, bool)
            if label not in places and not (is_id and 0 <= label < m):
                expected = f"among {shown(list(places))}" if places else f"ids from 0 to {m - 1}"
                hint = nearest(str(label), places) if places else ""
                raise ValueError(
                    f"labels in {parameter} of {owner} must be {expected}, got {shown(label)} in "
                    f"row {row}{hint}"
                )
            row_ids.add(places.get(label, label))
        ids += sorted(row_ids)
        ends.append(len(ids))
    parts = (np.ones(len(ids), np.int8), np.array(ids, np.int32), np.array(ends, np.int64))
    return sparse.csr_array(parts, shape=(len(ends) - 1, m))
