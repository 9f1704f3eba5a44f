"""Frames, series and tensors of other libraries: opened at the door, closed on the way out.

pandas, polars and torch are known by what their objects can do, and never imported. A frame opens
to an array, or to a CSR matrix where pandas stores it sparsely, and to the names of its columns;
predictions made of it close to a frame of the same library, columns and index.

Columns are found by name, whatever their order. Columns that were never named (0, 1, … in pandas,
column_0, column_1, … in polars) are taken by their place, as those of an array are. So are classes:
by name, be it text or a number, where names are known, and else by place. Rows always go by their
place; ``index`` refuses those that pandas would pair otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import repeated, shown
from omma.rows.index import check_same_rows
from omma.rows.sets import indicators_of_sets, is_label_sets

Names = tuple[str, ...]
# In this order: lazy frames have columns, but warn who asks for them.
SIGNS = ("detach", "coords", "collect", "to_frame", "columns", "__dataframe__")
WHOLE = re.compile(r"-?[0-9]{1,18}(\.0)?")  # of a size that int64 holds
OURS = (np.ndarray, list, tuple, int, float, type(None))


@dataclass(frozen=True)
class Look:
    """How predictions are to look: as what was given, of which no number is kept.

    ``columns`` is the name where a series was given, ``index`` that of pandas, ``back`` says where
    each column was.
    """

    kind: Any = None
    columns: Any = None
    index: Any = None
    back: NDArray[np.intp] | None = None
    make: Callable[[Look, Any], Any] | None = None

    def __call__(self, values: Any) -> Any:
        """Predictions as the user wants them."""
        if self.back is not None:
            values = values[..., self.back]
        return values if self.make is None else self.make(self, values)

    def take(self, rows: Any) -> Look:
        """That of some of the rows."""
        return self if self.index is None else replace(self, index=self.index[rows])


PLAIN = Look()


@dataclass(frozen=True)
class Opened:
    """What a user gave, in a form that NumPy reads.

    ``names`` are those of the labels, where they are known, and ``own`` says that they came with
    it; ``moved`` says that its columns were in another order. ``close`` makes predictions look like
    what was given. ``classes`` are what labels tell classes by; None where that is their places.
    """

    values: Any
    names: Names | None = None
    close: Look = PLAIN
    own: bool = False
    moved: bool = False
    classes: NDArray[Any] | None = None


def is_foreign(given: Any) -> bool:
    """Whether it is a frame, a series or a tensor of another library."""
    if isinstance(given, OURS) or sparse.issparse(given) or hasattr(given, "get_indexer"):
        return False  # the last is an index of pandas, which NumPy reads
    return any(hasattr(given, sign) for sign in SIGNS)


def opened(
    owner: str, parameter: str, given: Any, names: Names | None = None, *, row: bool = False
) -> Opened:
    """Open what was given, its columns in the order of ``names``, where both are known.

    ``row`` says that a series is one row, with an index that names labels.
    """
    if names is not None and is_label_sets(given):
        return Opened(indicators_of_sets(owner, parameter, given, names, len(names)), names)
    if not is_foreign(given):
        return Opened(given, names)
    if hasattr(given, "detach"):
        return Opened(_tensor_values(owner, parameter, given), names, Look(make=_as_tensor))
    if hasattr(given, "coords"):
        return Opened(_uncoordinated(owner, parameter, given), names)
    if hasattr(given, "collect") or not hasattr(given, "to_numpy"):
        way = "collect()" if hasattr(given, "collect") else "to_pandas()"
        raise TypeError(
            f"{parameter} of {owner} must be a pandas or polars frame in memory, got "
            f"{type(given).__name__}: pass its {way}"
        )
    if hasattr(given, "columns"):
        return _ordered(owner, parameter, given, list(given.columns), names, _as_frame)
    labels = list(given.index) if row and hasattr(given, "index") else None
    return _ordered(owner, parameter, given, labels, names, _as_series)


def opened_pair(
    owner: str, eta: Any, y: Any, names: Names | None = None, weights: Any = None
) -> tuple[Opened, Any]:
    """Probabilities and labels, the columns of both in one order; names come from either.

    Where they and the weights have an index of pandas, it must be one.
    """
    check_same_rows(owner, {"eta": eta, "y": y, "weights": weights})
    first = opened(owner, "eta", eta, names)
    if y is None:
        return replace(first, classes=class_names(None, first.names)), None
    second = opened(owner, "y", y, first.names)
    both, true = first.names or second.names, second.values
    check_order(owner, first.moved and not by_name(true, both), second)
    classes = class_names(true, both)
    plain = both is first.names and classes is first.classes
    table = first if plain else replace(first, names=both, classes=classes)
    return table, numbered(owner, "y", true, both)


def reordered(owner: str, parameter: str, given: Any, names: Names | None) -> Any:
    """A frame with its columns in the order of the names; anything else as it is."""
    if names is None or not is_foreign(given) or not hasattr(given, "columns"):
        return given
    own = _own_names(owner, parameter, list(given.columns), names)
    if own is None or own == names:
        return given
    there = _places(owner, parameter, own, names)
    return given.iloc[:, there] if hasattr(given, "iloc") else given[:, there.tolist()]


def check_order(owner: str, moved: bool, y: Opened) -> None:
    """Labels without names cannot go with probabilities whose columns had to be reordered."""
    if not moved or y.own or y.values is None:
        return
    if sparse.issparse(y.values) or np.asanyarray(y.values).dtype.kind in "fiub":
        raise ValueError(
            f"y of {owner} must be a frame with names where eta has its columns in another order "
            f"than the labels, {shown(list(y.names or ()))}: name y, or reorder eta"
        )


def values_of(owner: str, parameter: str, given: Any) -> Any:
    """What was given, opened, where names do not matter."""
    return opened(owner, parameter, given).values if is_foreign(given) else given


def by_name(y: Any, names: Names | None) -> bool:
    """Whether classes are told by their names: by text, or by numbers where all names are such."""
    if names is None or y is None or sparse.issparse(y):
        return False
    array = np.asanyarray(y)
    if array.ndim > 1:
        return False
    if array.dtype.kind in "UOT":
        return True
    return array.dtype.kind in "fiub" and len(names) > 1 and _whole(names) is not None


def class_names(y: Any, names: Names | None) -> NDArray[Any] | None:
    """What classes are called in y: names, or numbers where names are such; None for places.

    >>> class_names(["b", "a"], ("a", "b")), class_names([7, 5], ("5", "7"))
    (array(['a', 'b'], dtype='<U1'), array([5, 7]))
    >>> class_names([0, 1], ("a", "b"))
    """
    if names is None:
        return None
    if y is None or sparse.issparse(y) or np.ndim(y) != 1:
        return np.array(names)
    if not by_name(y, names):
        return None
    return np.array(names) if np.asanyarray(y).dtype.kind in "UOT" else _whole(names)


def is_missing(one: Any) -> bool:
    """Whether an object stands for a value that is not known."""
    return one is None or type(one).__name__ == "NAType" or (isinstance(one, float) and one != one)


def numbered(owner: str, parameter: str, y: Any, names: Names | None) -> Any:
    """Places of classes in place of their names, where they are told so; others as they are.

    Of a class that is missing, the place is NaN.
    """
    if names is None or not by_name(y, names):
        return y
    array = np.asanyarray(y)
    if array.dtype.kind in "fiub":
        return _numbers_numbered(owner, parameter, array, names)
    ids = {name: place for place, name in enumerate(names)}
    found: list[float] = []
    for one in array.ravel().tolist():
        if str(one) not in ids and not is_missing(one):
            raise ValueError(
                f"class names in {parameter} of {owner} must be among {shown(list(names))}, got "
                f"{shown(one)}"
            )
        found.append(ids.get(str(one), np.nan))
    places = np.array(found).reshape(array.shape)
    return places if np.isnan(places).any() else places.astype(np.int64)


def _numbers_numbered(owner: str, parameter: str, y: NDArray[Any], names: Names) -> Any:
    """Places of classes whose names are numbers, such as 1, 2, 3."""
    numbers = _whole(names)
    if numbers is None or np.array_equal(numbers, np.arange(len(names))):
        return y
    order = np.argsort(numbers)
    at = np.searchsorted(numbers[order], y)
    found = order[np.minimum(at, len(names) - 1)]
    missing = np.isnan(y)
    wrong = np.ravel(y)[np.ravel((numbers[found] != y) & ~missing)]
    if len(wrong):
        raise ValueError(
            f"class ids in {parameter} of {owner} must be names of labels where these are "
            f"numbers, {shown(list(names))}, got {wrong[0]}"
        )
    return np.where(missing, np.nan, found) if missing.any() else found


def _whole(names: Names) -> NDArray[np.int64] | None:
    """Names as whole numbers, where all of them are; False and True are 0 and 1."""
    flags = {"False": "0", "True": "1"}
    texts = [flags.get(name, name) for name in names]
    if not all(WHOLE.fullmatch(text) for text in texts):
        return None
    numbers = np.array([int(text.removesuffix(".0")) for text in texts], dtype=np.int64)
    return numbers if len(np.unique(numbers)) == len(names) else None


def read_names(owner: str, names: Sequence[Any] | None, m: int) -> Names | None:
    """A name for each of m labels, or None."""
    if names is None:
        return None
    several = isinstance(names, Iterable) and not isinstance(names, str)
    found = tuple(str(name) for name in names) if several else ()
    if len(found) != m or len(set(found)) != m:
        raise ValueError(f"names of {owner} must be {m} different names, got {shown(names)}")
    return found


def _ordered(
    owner: str,
    parameter: str,
    given: Any,
    labels: list[Any] | None,
    names: Names | None,
    make: Callable[[Look, Any], Any],
) -> Opened:
    """Values with their last dimension in the order of the names, and the way back."""
    values = _numbers(owner, parameter, given)
    own = None if labels is None else _own_names(owner, parameter, labels, names)
    columns = given.columns if hasattr(given, "columns") else given.name
    index = given.index if hasattr(given, "iloc") else None  # polars has none
    close = Look(type(given), columns, index, make=make)
    if own is None or names in (None, own):
        return Opened(values, own or names, close, own is not None)
    there = _places(owner, parameter, own, names)
    close = replace(close, back=np.argsort(there))
    return Opened(values[..., there], names, close, own=True, moved=True)


def _own_names(owner: str, parameter: str, labels: list[Any], known: Names | None) -> Names | None:
    """The names of columns as text; None where nobody has named them."""
    found = tuple(str(label) for label in labels)
    places = range(len(labels))
    unnamed = labels == list(places) or labels == [f"column_{place}" for place in places]
    if unnamed and (known is None or set(found) != set(known)):
        return None
    twice = repeated(found)
    if twice is not None:
        raise ValueError(
            f"columns of {parameter} of {owner} must have different names, got {twice!r} twice"
        )
    return found


def _places(owner: str, parameter: str, own: Names, names: Names | None) -> NDArray[np.intp]:
    """Where each of the names is among a frame's own."""
    wanted = names or ()
    place = {name: j for j, name in enumerate(own)}
    missing = [name for name in wanted if name not in place]
    unknown = [name for name in own if name not in wanted]
    if missing or unknown:
        parts = [f"misses {shown(missing)}"] * bool(missing) + [f"has {shown(unknown)}"] * bool(
            unknown
        )
        raise ValueError(
            f"{parameter} of {owner} must have columns named as the labels, {shown(list(wanted))}; "
            f"it {' and '.join(parts)}: rename them, or pass an array to go by their order"
        )
    return np.array([place[name] for name in wanted], dtype=np.intp)


def _numbers(owner: str, parameter: str, given: Any) -> Any:
    """The values of a frame or series; missing ones are NaN."""
    if not hasattr(given, "iloc"):  # polars
        return given.to_numpy(order="c") if hasattr(given, "columns") else given.to_numpy()
    dtypes = list(given.dtypes) if hasattr(given, "columns") else [given.dtype]
    if hasattr(given, "columns") and all(type(one).__name__ == "SparseDtype" for one in dtypes):
        if any(one.fill_value != 0 for one in dtypes):
            raise ValueError(
                f"{parameter} of {owner} must be sparse with 0 for what is not stored, got a frame "
                f"with {shown(dtypes[0].fill_value)}"
            )
        return given.sparse.to_coo().tocsr()
    values = given.to_numpy()
    if values.dtype.kind == "O" and all(getattr(one, "kind", "O") in "fiub" for one in dtypes):
        values = given.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _as_frame(look: Look, values: Any) -> Any:
    """Predictions as a frame with the columns, and in pandas the index, of the one given."""
    if look.index is None:
        return look.kind(values, schema=list(look.columns), orient="row")
    named = {"index": look.index, "columns": look.columns}
    if sparse.issparse(values):
        return look.kind.sparse.from_spmatrix(values, **named)
    return look.kind(values, **named, copy=False)


def _as_series(look: Look, values: Any) -> Any:
    if look.index is None:
        return look.kind(look.columns, values)
    return look.kind(values, index=look.index, name=look.columns)


def _uncoordinated(owner: str, parameter: str, given: Any) -> NDArray[Any]:
    """The values of an array of xarray; its coordinates name rows and labels, and would be lost."""
    if len(given.coords):
        raise TypeError(
            f"{parameter} of {owner} must have no coordinates, got a {type(given).__name__} with "
            f"{shown(list(given.coords))}: pass its to_pandas(), to go by names, or its to_numpy()"
        )
    values: NDArray[Any] = given.to_numpy()
    return values


def _tensor_values(owner: str, parameter: str, tensor: Any) -> NDArray[Any]:
    """The memory of a tensor, as it is."""
    strided = "strided" in str(tensor.layout)
    for wrong, wanted, got, way in (
        (tensor.device.type != "cpu", "be on the CPU", f"a tensor on {tensor.device}", "cpu()"),
        (tensor.requires_grad, "not require gradients", "a tensor that does", "detach()"),
        (not strided, "be a dense tensor", tensor.layout, "to_dense(), or a SciPy CSR matrix"),
    ):
        if wrong:
            raise TypeError(
                f"{parameter} of {owner} must {wanted}, got {got}: pass {parameter}.{way}"
            )
    try:
        values: NDArray[Any] = tensor.numpy()
    except TypeError as error:  # a type that NumPy does not have
        raise TypeError(
            f"{parameter} of {owner} must be of a type that NumPy has, got {tensor.dtype}: pass "
            f"{parameter}.float()"
        ) from error
    return values


def _as_tensor(look: Look, values: Any) -> Any:
    del look  # predictions are on the CPU and int8, whatever it was
    return import_module("torch").from_numpy(np.asarray(values))
