"""ARFF, the format of Weka, with the label conventions of Mulan and MEKA."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from omma._validate import nearest
from omma.datasets.dataset import Dataset
from omma.datasets.formats.arff_header import Header, read_header
from omma.datasets.formats.arff_rows import Table
from omma.datasets.formats.part import Part, assemble
from omma.datasets.text import bare_name, numbered_lines


def read_arff(
    path: str | Path,
    test: str | Path | None = None,
    *,
    labels: int | str | Path | Sequence[str] | None = None,
    task: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Read an ARFF file of dense or sparse rows.

    Which columns are labels is said by ``labels``; else by ``-C n`` in the name of the relation
    (MEKA); else by an XML file beside it that is called as the ARFF file is (Mulan). Without any
    of these the last column, a nominal one, is the class. Nominal features are read as numbers if
    their values are numbers, else as the place of the value in the declaration. A missing value
    (``?``) is an error.

    Parameters
    ----------
    path : str or Path
        Plain or compressed (.gz, .bz2, .xz).
    test : str or Path, optional
        File of the test part.
    labels : int, path of an XML file, or sequence of str, optional
        A number n means the first n columns, −n the last n; a path is the XML file of Mulan; a
        sequence names the columns.
    task : {"binary", "multiclass"}, optional
        For files with one class column; by default binary if it has two values.
    name : str, optional
        By default that of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_arff
    >>> _ = Path("toy.arff").write_text('''@relation 'toy: -C 2'
    ... @attribute 'is red' {0,1}
    ... @attribute big {0,1}
    ... @attribute width numeric
    ... @data
    ... 1,0,2.5
    ... {1 1, 2 4}
    ... ''')
    >>> toy = read_arff("toy.arff")
    >>> toy.X.toarray().tolist(), toy.y.toarray().tolist(), toy.labels
    ([[2.5], [4.0]], [[1, 0], [0, 1]], ('is red', 'big'))
    """
    paths = [Path(one) for one in (path, test) if one is not None]
    headers, tables = zip(*(_read(one) for one in paths), strict=True)
    header = headers[0]
    if len(paths) > 1 and header.attributes != headers[1].attributes:
        raise ValueError(f"{paths[1]}: expected the attributes of {paths[0]}, got others")
    chosen = _label_columns(paths[0], header, labels)
    if chosen is None:
        return _with_class(name, paths[0], header, tables, task)
    rest = np.setdiff1d(np.arange(len(header.attributes)), chosen)
    parts = []
    for file, table in zip(paths, tables, strict=True):
        target = sparse.csr_array(table[:, chosen])
        target.eliminate_zeros()
        if not np.all(target.data == 1):
            odd = float(target.data[target.data != 1][0])
            raise ValueError(f"{file}: expected labels to be 0 or 1, got {odd:g}")
        parts.append(Part(table[:, rest], target.astype(np.int8)))
    titles = [header.attributes[j].name for j in chosen]
    return assemble(paths[0], parts, name=name, labels=titles)


def _with_class(
    name: str | None, path: Path, header: Header, tables: Sequence[Any], task: str | None
) -> Dataset:
    """The last column as the class, ids in the order of its declaration."""
    last = header.attributes[-1]
    if last.values is None:
        raise ValueError(
            f"{path}: expected labels= or -C in the relation, or a last attribute that is nominal, "
            f"got the number {last.name!r}"
        )
    named = {float(np.float32(code)): value for value, code in last.codes().items()}
    parts = []
    for table in tables:
        column = table[:, [-1]]
        dense = column.toarray() if sparse.issparse(column) else column
        parts.append(Part(table[:, :-1], [named[code] for code in dense.ravel().tolist()]))
    return assemble(path, parts, name=name, labels=last.values, task=task)


def _label_columns(path: Path, header: Header, labels: Any) -> list[int] | None:
    """Indices of label columns, or None if there is a class column instead."""
    count, names = len(header.attributes), [one.name for one in header.attributes]
    beside = path.with_name(bare_name(path) + ".xml")
    if labels is None:
        labels = header.meka if header.meka is not None else beside if beside.is_file() else None
    if labels is None:
        return None
    if isinstance(labels, int):
        if not 0 < abs(labels) <= count:
            raise ValueError(f"{path}: expected from 1 to {count} label columns, got {abs(labels)}")
        return list(range(labels)) if labels > 0 else list(range(count + labels, count))
    wanted = _names_in_xml(Path(labels)) if isinstance(labels, str | Path) else list(labels)
    for one in wanted:
        if one not in names:
            raise ValueError(f"{path}: expected a label {one!r}, got none{nearest(one, names)}")
    return sorted(names.index(one) for one in wanted)


def _names_in_xml(path: Path) -> list[str]:
    """Labels of Mulan's XML file, whatever their hierarchy."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}:{error.position[0]}: expected XML, {error}") from error
    found = [one.get("name") for one in root.iter() if one.tag.rpartition("}")[2] == "label"]
    names = [name for name in found if name is not None]
    if not names:
        raise ValueError(f"{path}: expected elements <label name=…>, got none")
    return names


def _read(path: Path) -> tuple[Header, Any]:
    """Header, and all columns as numbers: CSR if rows are sparse, else an array."""
    lines = numbered_lines(path)
    header = read_header(path, lines)
    table = Table(path, header.attributes)
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith("%"):
            table.add(number, text)
    return header, table.matrix()
