"""The state after each batch, in the checkpoint of a query; one query at a time uses a checkpoint.

A state is written when its batch is complete, and marks it as complete: a batch that has a state is
not counted again. Files appear whole: an object store has no partial objects, and on a disk a
complete file is renamed to its name. Checksums detect a file that is torn nevertheless.
"""

from __future__ import annotations

import json
import re
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
_LOCKS: dict[Path, CheckpointLock] = {}  # the last lock of each folder, in this process


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


class CheckpointLock(StreamingQueryListener):  # type: ignore[misc]
    """Locks the folder of states for this process until a query has ended, or says who uses it."""

    def __init__(self, folder: Path) -> None:
        self.query: Any = None  # once it has started
        self._session: Any = None
        self._lock = ExitStack()
        folder.mkdir(parents=True, exist_ok=True)
        self._lock.enter_context(locked(folder / "states", "a stream of omma.spark"))

    def release(self) -> None:
        """Unlock the folder; twice does no harm."""
        self._lock.close()

    def release_after(self, session: Any, query: Any) -> None:
        """Unlock the folder when a query has ended."""
        self._session, self.query = session, query
        session.streams.addListener(self)
        if not query.isActive:  # it ended before the listener was there
            self.release()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Unlock the folder."""
        if str(event.runId) == str(self.query.runId):  # a query that is restarted keeps its id
            self.release()
            self._session.streams.removeListener(self)


def hold(store: Store) -> CheckpointLock | None:
    """Lock a checkpoint for this process; None in an object store.

    There nothing can be locked, and Spark itself detects two queries that write the same batch.
    """
    folder = store.folder
    if folder is None:
        return None
    earlier = _LOCKS.get(folder)
    # The query may have ended before Spark has told its listener.
    if earlier is not None and earlier.query is not None and not earlier.query.isActive:
        earlier.release()
    _LOCKS[folder] = CheckpointLock(folder)
    return _LOCKS[folder]


def is_held(store: Store) -> bool:
    """Whether this process has locked a checkpoint."""
    return store.folder is None or store.folder in _LOCKS
