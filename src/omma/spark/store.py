"""The state after each batch, in the checkpoint of a query; one query at a time uses a checkpoint.

A state is written when its batch is complete, and marks it as complete: a batch that has a state is
not counted again. Files appear whole: an object store has no partial objects, and on a disk a
complete file is renamed to its name. Checksums detect a file that is torn nevertheless.
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
from omma._validate import shown
from omma.policies import Policy, policy_from_json
from omma.state import State

FORMAT = "omma-spark-2"
WHAT = "state of an omma stream"
FOLDER = "omma"
NAME = re.compile(r"(\d{1,18})\.npz")
KEPT = 100  # batches, as many as Spark itself can go back by default
# The folders that this process has locked, and the query of each, once it has started.
_LOCKS: dict[Path, tuple[ExitStack, Any]] = {}
_GUARD = threading.Lock()


class TornError(ValueError):
    """A file of a state that is not whole."""


@dataclass(frozen=True)
class Saved:
    """The state after a batch, None before the first row, and the options of its policy.

    If labels come later, ``waiting`` has the latest event time of each batch that waits for some.
    """

    batch: int
    policy: dict[str, Any]
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
        """The folder of the states on a disk; None in an object store."""
        system, path = self._place
        return Path(path).resolve() if isinstance(system, fs.LocalFileSystem) else None

    def batches(self) -> list[int]:
        """The numbers of the batches that have states, in order."""
        system, path = self._place
        files = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        names = [NAME.fullmatch(file.base_name) for file in files if file.is_file]
        return sorted(int(name[1]) for name in names if name)

    def read(self, batch: int) -> Saved | None:
        """What was saved after a batch; None if nothing was."""
        system, folder = self._place
        path = f"{folder}/{batch}.npz"
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        with system.open_input_stream(path) as stream:
            return _read(path, stream.read(), batch)

    def write(self, saved: Saved) -> None:
        """Save the state after a batch, whole or not at all; delete what is no longer needed."""
        content = {
            "format": FORMAT,
            "batch": saved.batch,
            "policy": saved.policy,
            "waiting": saved.waiting,
        }
        arrays = {} if saved.state is None else saved.state.arrays()
        packed = npz.to_bytes({"content": json.dumps(content), **arrays})
        system, folder = self._place
        system.create_dir(folder, recursive=True)
        path = f"{folder}/{saved.batch}.npz"
        if isinstance(system, fs.LocalFileSystem):  # where half a file could be left
            with replacing(path) as file:
                file.write(packed)
        else:
            with system.open_output_stream(path) as stream:
                stream.write(packed)
        # Spark may go back a few batches, and decides them on earlier states.
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
            arrays = {name: archive.array(name) for name in archive.members if name != "content"}
            # Before the first row there is no state.
            state = State.from_arrays(arrays) if arrays else None
            waiting = {int(number): latest for number, latest in content["waiting"].items()}
            return Saved(batch, content["policy"], state, waiting)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TornError(f"{path} is no whole {WHAT}: {error}") from error


def options_of(policy: Policy) -> dict[str, Any]:
    """The options of a policy as they are stored: as JSON has them, with lists for tuples."""
    options: dict[str, Any] = json.loads(json.dumps(policy.to_json()))
    return options


def check_same(place: str, stored: dict[str, Any], options: dict[str, Any]) -> None:
    """Refuse a place with counts of a policy with other options; sums would mean nothing."""
    for name in dict.fromkeys((*options, *stored)):
        own, asked_for = stored.get(name), options.get(name)
        if name == "of" and isinstance(own, dict) and isinstance(asked_for, dict):
            check_same(place, own, asked_for)  # options of the policy inside of a wrapper
        elif own != asked_for:
            raise ValueError(
                f"{place} has counts of another policy: its {name} is {shown(own)}, and "
                f"{shown(asked_for)} was asked for; use another checkpoint"
            )


def restored(saved: Saved, policy: Policy | None = None) -> State | None:
    """The state, checked against a new state of its policy."""
    if saved.state is None:
        return None
    state: State = (policy or policy_from_json(saved.policy)).init(saved.state.m)
    state.restore(saved.state.arrays())  # refuses arrays of other shapes or kinds
    return state


def hold(store: Store) -> Path | None:
    """Lock a checkpoint for this process, or say who uses it; None in an object store.

    It stays locked until its query or the process ends. In an object store nothing can be locked;
    there, Spark itself detects two queries that write the same batch.
    """
    folder = store.folder
    if folder is None:
        return None
    with _GUARD:
        _, query = _LOCKS.get(folder, (None, None))
        if query is not None and not query.isActive:  # and its listener has not been called yet
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
    """Unlock a checkpoint."""
    with _GUARD:
        lock, _ = _LOCKS.pop(folder, (None, None))
    if lock is not None:
        lock.close()


class Release(StreamingQueryListener):  # type: ignore[misc]
    """Unlocks a checkpoint when its query has ended."""

    def __init__(self, session: Any, query: Any, folder: Path) -> None:
        self._session, self._query, self._folder = session, str(query.id), folder
        _LOCKS[folder] = _LOCKS[folder][0], query
        session.streams.addListener(self)
        if not query.isActive:  # it ended before the listener was there
            release(folder)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Unlock the checkpoint."""
        if str(event.id) == self._query:
            release(self._folder)
            self._session.streams.removeListener(self)
