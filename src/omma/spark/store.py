"""States by the number of their batch, in the checkpoint of a query, which one query at a time has.

A state is written once its batch is whole, and is what says so: a batch whose state is there is not
counted again. Nothing is renamed in an object store, where an object appears whole; on a disk a
file takes its place when it is whole. What is torn nevertheless is told by its checksums.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import fs
from pyspark.sql.streaming import StreamingQueryListener

from omma import npz
from omma._atomic import replacing
from omma._lock import locked
from omma._validate import check_positive_int, shown
from omma.policies import Policy, policy_from_json
from omma.state import State

FORMAT = "omma-spark-1"
WHAT = "state of an omma stream"
FOLDER = "omma"
NAME = re.compile(r"(\d{1,18})\.npz")
KEPT = 100  # batches: as many as Spark itself can go back by default
# Folders that this process has locked, and the query that each was locked for, once it is known.
_LOCKS: dict[Path, tuple[ExitStack, Any]] = {}
_GUARD = threading.Lock()


class TornError(ValueError):
    """A file of a state is there, and is not whole."""


@dataclass(frozen=True)
class Saved:
    """A state with what it belongs to; without a state where no row had come yet.

    Where labels come later, ``waiting`` has the latest event time of each batch that waits.
    """

    batch: int
    policy: dict[str, Any]
    m: int | None
    state: State | None
    waiting: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Store:
    """The states in the checkpoint of one query."""

    checkpoint: str

    @property
    def _place(self) -> tuple[Any, str]:
        local = re.sub(r"^file:(//)?", "", self.checkpoint)  # Spark takes file:/ and file:///
        if "://" not in local:
            return fs.LocalFileSystem(), str(Path(local).absolute() / FOLDER)
        system, path = fs.FileSystem.from_uri(self.checkpoint)
        return system, f"{path.rstrip('/')}/{FOLDER}"

    @property
    def folder(self) -> Path | None:
        """Where the states are on a disk; None in an object store."""
        system, path = self._place
        return Path(path).resolve() if isinstance(system, fs.LocalFileSystem) else None

    def batches(self) -> list[int]:
        """The numbers of the batches whose states are there, in order."""
        system, path = self._place
        files = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        names = [NAME.fullmatch(file.base_name) for file in files if file.is_file]
        return sorted(int(name[1]) for name in names if name)

    def read(self, batch: int) -> Saved | None:
        """The state after a batch; None where there is none."""
        system, folder = self._place
        path = f"{folder}/{batch}.npz"
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        with system.open_input_stream(path) as stream:
            return _read(path, stream.read(), batch)

    def write(self, saved: Saved) -> None:
        """Keep the state after a batch, whole or not at all; then remove what it makes needless."""
        content = {
            "format": FORMAT,
            "batch": saved.batch,
            "policy": saved.policy,
            "n_labels": saved.m,
            "rows": saved.state is not None,
            "more": {"waiting": saved.waiting},
        }
        arrays = {} if saved.state is None else saved.state.arrays()
        packed = npz.to_bytes({"content": json.dumps(content), **arrays})
        system, folder = self._place
        system.create_dir(folder, recursive=True)
        path = f"{folder}/{saved.batch}.npz"
        if isinstance(system, fs.LocalFileSystem):
            with replacing(path) as file:
                file.write(packed)
        else:
            with system.open_output_stream(path) as stream:
                stream.write(packed)
        for batch in self.batches():
            if batch < saved.batch - KEPT:
                system.delete_file(f"{folder}/{batch}.npz")
        # Rows that wait for labels, and ids of labels that were counted, have a folder a batch.
        needed = {f"batch={batch}" for batch in saved.waiting}
        for name in ("waiting", "counted") if needed else ():
            for entry in system.get_file_info(
                fs.FileSelector(f"{folder}/{name}", allow_not_found=True)
            ):
                if entry.type == fs.FileType.Directory and entry.base_name not in needed:
                    system.delete_dir(entry.path)


def _read(path: str, stored: bytes, batch: int) -> Saved:
    try:
        with npz.opened(path, WHAT, stored) as archive:
            content = archive.json("content")
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise ValueError(f"expected the format {FORMAT}, got {shown(content)}")
            if content.get("batch") != batch:
                raise ValueError(f"expected batch {batch}, got {shown(content.get('batch'))}")
            m, waiting = content["n_labels"], content["more"].get("waiting", {})
            check_positive_int("a state", "n_labels", m, optional=True)
            names = [name for name in archive.names if name != "content"]
            arrays = {name: archive.array(name) for name in names}
            state = State.from_arrays(arrays) if content["rows"] else None
            times = {int(number): latest for number, latest in waiting.items()}
            return Saved(batch, content["policy"], m, state, times)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TornError(f"{path} is no whole {WHAT}: {error}") from error


def check_same(place: str, stored: dict[str, Any], policy: Policy) -> None:
    """Refuse a place with counts of another policy, as it was stored; sums would mean nothing."""
    options = json.loads(json.dumps(policy.to_json()))  # as they were stored: tuples are lists
    for name, asked_for, own in _differences(options, stored):
        raise ValueError(
            f"{place} has counts of another policy: its {name} is {shown(own)}, and "
            f"{shown(asked_for)} was asked for; use another checkpoint"
        )


def _differences(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Options that differ, by the names that users gave them: also those of the policy inside."""
    differ = []
    for name in dict.fromkeys((*first, *second)):
        pair = first.get(name), second.get(name)
        if name == "of" and all(isinstance(policy, dict) for policy in pair):
            differ += _differences(*pair)  # type: ignore[arg-type]
        elif pair[0] != pair[1]:
            differ.append((name, *pair))
    return differ


def restored(saved: Saved, policy: Policy | None = None) -> State | None:
    """The state, checked against the one that its policy makes."""
    if saved.state is None or saved.m is None:
        return None
    state: State = (policy or policy_from_json(saved.policy)).init(saved.m)
    state.restore(saved.state.arrays())  # refuses arrays of other shapes or kinds
    return state


def hold(store: Store) -> Path | None:
    """Lock a checkpoint for this process, or say who has it; None in an object store.

    It stays locked until its query or the process ends. In an object store nothing can be locked;
    Spark itself finds that two queries write the same batch.
    """
    folder = store.folder
    if folder is None:
        return None
    with _GUARD:
        _, query = _LOCKS.get(folder, (None, None))
        if query is not None and not query.isActive:  # the listener has not been told yet
            _LOCKS.pop(folder)[0].close()
        folder.mkdir(parents=True, exist_ok=True)
        lock = ExitStack()
        lock.enter_context(locked(folder / "states", "a stream of omma.spark"))
        _LOCKS[folder] = lock, None
    return folder


def is_held(store: Store) -> bool:
    """Whether this process has locked a checkpoint."""
    return store.folder is None or store.folder in _LOCKS


def release(folder: Path) -> None:
    """Let others have a checkpoint."""
    with _GUARD:
        lock, _ = _LOCKS.pop(folder, (None, None))
    if lock is not None:
        lock.close()


class Release(StreamingQueryListener):  # type: ignore[misc]
    """Lets others have a checkpoint once its query has ended."""

    def __init__(self, session: Any, query: Any, folder: Path) -> None:
        self._session, self._query, self._folder = session, str(query.id), folder
        _LOCKS[folder] = _LOCKS[folder][0], query
        session.streams.addListener(self)
        if not query.isActive:  # it ended before anybody listened
            release(folder)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Give the checkpoint back."""
        if str(event.id) == self._query:
            release(self._folder)
            self._session.streams.removeListener(self)
