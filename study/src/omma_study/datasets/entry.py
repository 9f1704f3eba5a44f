"""What the catalogue says of a dataset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class File:
    """One file of a dataset as its provider gives it.

    Parameters
    ----------
    name : str
        What the file is called in the folder of the dataset.
    url : str, optional
        Where it is, if that is certain.
    sha256 : str, optional
        SHA-256 of what the address gives, if known; ``load`` downloads no file without one unless
        it is told ``unverified=True``.
    member : str, optional
        Its path in the tar archive that the address gives, if it gives one.

    Examples
    --------
    >>> from omma_study.datasets import CATALOGUE
    >>> [file.name for file in CATALOGUE["yeast"].files]
    ['yeast-train.arff', 'yeast-test.arff']
    """

    name: str
    url: str | None = None
    sha256: str | None = None
    member: str | None = None

    def __post_init__(self) -> None:
        # Names end up in paths of this machine: none may lead out of the folder of the dataset.
        if self.name in ("", ".", "..") or set(self.name) & set("/\\:"):
            raise ValueError(f"name of File must be a plain name, got {self.name!r}")
        member = self.member or "inside"
        if member.startswith("/") or ".." in re.split(r"[/\\]", member):
            raise ValueError(f"member of File must be a path inside an archive, got {member!r}")
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ValueError(f"sha256 of File must be 64 hexadecimal digits, got {self.sha256!r}")


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue.

    Parameters
    ----------
    name, title : str
    task : {"binary", "multiclass", "multilabel"}
    n, d, m : int
        Rows, features, labels; d is None where the features are not fixed by a source.
    split : int, optional
        Index of the first test row; None where there is no test part of its own.
    source : str
        Where to get it.
    licence : str
        As the source states it; "not stated" where it says nothing.
    reader : str
        Format of the files ("xc", "arff", …), the function that fetches them ("fetch …"), or
        "folder" where only a folder of X.npz, Y.npz and meta.json will do.
    files : tuple of File
        The training file, and the test file where there is one.
    options : mapping
        What the reader is told beside the files.
    prepare : str, optional
        What is done to the features after reading.
    paper : str, optional
        Name in the results of the OMMA paper, for the sets used there.
    stands_for : tuple of str
        Names in the paper of sets that this one stands in for.
    note : str

    Examples
    --------
    >>> from omma_study.datasets import CATALOGUE
    >>> entry = CATALOGUE["yeast"]
    >>> entry.task, entry.n, entry.m, entry.split
    ('multilabel', 2417, 14, 1500)
    """

    name: str
    title: str
    task: str
    n: int
    d: int | None
    m: int
    split: int | None
    source: str
    licence: str
    reader: str = "folder"
    files: tuple[File, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    prepare: str | None = None
    paper: str | None = None
    stands_for: tuple[str, ...] = ()
    note: str = ""

    @property
    def downloadable(self) -> bool:
        """Whether ``load`` can get it by itself."""
        fetched = self.reader.startswith("fetch ")
        return fetched or (bool(self.files) and all(file.url for file in self.files))
