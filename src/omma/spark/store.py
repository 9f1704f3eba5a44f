"""States by the number of their batch, in the checkpoint of a query, which one query at a time has.

A state is written once its batch is whole, and is what says so: a batch whose state is there is not
counted again. Nothing is renamed in an object store, where an object appears whole; on a disk a
file takes its place when it is whole. What is torn nevertheless is told by its checksums.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
_HELD: dict[Path, Holding] = {}
_GUARD = threading.Lock()


class TornError(ValueError):
    """A file of a state is there, and is not whole."""


class Saved(NamedTuple):
    """A state with what it belongs to; without a state where no row had come yet."""

    batch: int
    policy: dict[str, Any]
    m: int | None
    state: State | None
    more: dict[str, Any] = {}  # noqa: RUF012 — what a kind of query keeps beside it


@dataclass(frozen=True)
class Store:
    """The states in the checkpoint of one query."""

    checkpoint: str

    @property
    def _place(self) -> tuple[Any, str]:
        local = re.sub(r"^file:(//)?", "", self.checkpoint)
        if "://" not in local:
            return fs.LocalFileSystem(), str(Path(local).absolute() / FOLDER)
        system, path = fs.FileSystem.from_uri(self.checkpoint)
        return system, f"{path.rstrip('/')}/{FOLDER}"

    @property
    def folder(self) -> Path | None:
        """Where the states are on a disk; None in an object store."""
        system, path = self._place
        return Path(path) if isinstance(system, fs.LocalFileSystem) else None

    def batches(self) -> list[int]:
        """The numbers of the batches whose states are there, in order."""
        system, path = self._place
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        numbers = [NAME.fullmatch(one.base_name) for one in found if one.is_file]
        return sorted(int(one[1]) for one in numbers if one)

    def read(self, batch: int) -> Saved | None:
        """The state after a batch; None where there is none."""
        system, folder = self._place
        path = f"{folder}/{batch}.npz"
        if system.get_file_info(path).type != fs.FileType.File:
            return None
        if isinstance(system, fs.LocalFileSystem):
            return _read(Path(path), batch)
        with tempfile.TemporaryDirectory() as room, system.open_input_stream(path) as stream:
            copy = Path(room) / f"{batch}.npz"
            copy.write_bytes(stream.read())
            return _read(copy, batch)

    def write(self, saved: Saved) -> None:
        """Keep the state after a batch, whole or not at all."""
        content = {
            "format": FORMAT,
            "batch": saved.batch,
            "policy": saved.policy,
            "n_labels": saved.m,
            "rows": saved.state is not None,
            "more": saved.more,
        }
        arrays = {} if saved.state is None else saved.state.arrays()
        room = io.BytesIO()
        npz.write(room, {"content": json.dumps(content), **arrays})
        system, folder = self._place
        system.create_dir(folder, recursive=True)
        path = f"{folder}/{saved.batch}.npz"
        if isinstance(system, fs.LocalFileSystem):
            with replacing(path) as file:
                file.write(room.getvalue())
        else:
            with system.open_output_stream(path) as stream:
                stream.write(room.getvalue())
        self._remove_before(saved.batch - KEPT)

    def remove_folders(self, name: str, but: set[str]) -> None:
        """Remove the folders in one beside the states, but for some."""
        system, path = self._place
        selected = fs.FileSelector(f"{path}/{name}", allow_not_found=True)
        for one in system.get_file_info(selected):
            if one.type == fs.FileType.Directory and one.base_name not in but:
                system.delete_dir(one.path)

    def _remove_before(self, batch: int) -> None:
        if batch <= 0:
            return
        system, folder = self._place
        for one in self.batches():
            if one < batch:
                system.delete_file(f"{folder}/{one}.npz")


def _read(path: Path, batch: int) -> Saved:
    try:
        with npz.opened(path, WHAT) as archive:
            return _saved(archive, batch)
    except (KeyError, TypeError, ValueError) as error:
        raise TornError(f"{path} is no whole {WHAT}: {error}") from error


def _saved(archive: npz.Archive, batch: int) -> Saved:
    content = archive.json("content")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"expected the format {FORMAT}, got {shown(content)}")
    if content.get("batch") != batch:
        raise ValueError(f"expected batch {batch}, got {shown(content.get('batch'))}")
    m, more = content["n_labels"], content["more"]
    check_positive_int("a state", "n_labels", m, optional=True)
    if not content["rows"]:
        return Saved(batch, content["policy"], m, None, more)
    names = [name for name in archive.names if name != "content"]
    state = State.from_arrays({name: archive.array(name) for name in names})
    return Saved(batch, content["policy"], m, state, more)


def check_same(checkpoint: str, saved: Saved, policy: Policy, m: int | None) -> None:
    """Refuse a checkpoint that was made for something else; sums would mean nothing."""
    wanted = json.loads(json.dumps(policy.to_json()))
    for name, one, other in _differences(wanted, saved.policy):
        raise ValueError(
            f"{checkpoint} has counts of another policy: its {name} is {shown(other)}, and "
            f"{shown(one)} was asked for; use another checkpoint"
        )
    if m is not None and saved.m is not None and m != saved.m:
        raise ValueError(
            f"{checkpoint} has counts of {saved.m} labels, and {m} were asked for; use another "
            "checkpoint"
        )


def _differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Options that differ, with the names that users gave them."""
    differ = []
    for name in dict.fromkeys((*wanted, *found)):
        one, other = wanted.get(name), found.get(name)
        if name == "of" and isinstance(one, dict) and isinstance(other, dict):
            differ += _differences(one, other)
        elif one != other:
            differ.append((name, one, other))
    return differ


def restored(saved: Saved, policy: Policy | None = None) -> State | None:
    """The state, checked against what its policy would make."""
    if saved.state is None or saved.m is None:
        return None
    made: State = (policy or policy_from_json(saved.policy)).init(saved.m)
    made.restore(saved.state.arrays())
    return made


class Holding:
    """A checkpoint that this process writes to, until its query ends or the process does."""

    def __init__(self, folder: Path, what: str) -> None:
        self._lock = ExitStack()
        self.query: Any = None
        folder.mkdir(parents=True, exist_ok=True)
        self._lock.enter_context(locked(folder / "states", what))

    @property
    def over(self) -> bool:
        """Whether its query has ended."""
        return self.query is not None and not self.query.isActive

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()


def hold(store: Store) -> Path | None:
    """Take a checkpoint for this process, or say who has it; None in an object store.

    There nothing can be locked; Spark itself finds that two queries write the same batch.
    """
    folder = store.folder
    if folder is None:
        return None
    folder = folder.resolve()
    with _GUARD:
        held = _HELD.get(folder)
        if held is not None and held.over:
            _HELD.pop(folder).close()
        _HELD[folder] = Holding(folder, "a stream of omma.spark")
    return folder


def belongs_to(folder: Path | None, query: Any) -> None:
    """Say which query a checkpoint was taken for."""
    if folder is not None:
        _HELD[folder].query = query


def release(folder: Path | None) -> None:
    """Let others have a checkpoint."""
    with _GUARD:
        held = None if folder is None else _HELD.pop(folder, None)
    if held is not None:
        held.close()


def is_held(store: Store) -> bool:
    """Whether this process has taken a checkpoint."""
    folder = store.folder
    return folder is None or folder.resolve() in _HELD


class Release(StreamingQueryListener):  # type: ignore[misc]
    """Lets others have a checkpoint once its query has ended."""

    def __init__(self, session: Any, query: str, taken: Path) -> None:
        self._session, self._query, self._taken = session, query, taken

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Give the checkpoint back."""
        if str(event.id) == self._query:
            release(self._taken)
            self._session.streams.removeListener(self)
