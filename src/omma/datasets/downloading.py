"""Files of the catalogue from where their providers keep them, by pooch."""

from __future__ import annotations

import logging
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from omma.datasets.entry import Entry, File

TIMEOUT = 60  # seconds without an answer


def require(package: str, extra: str) -> Any:
    """The package, or one sentence on how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = "scikit-learn" if package.startswith("sklearn") else package
        raise ImportError(
            f"downloads of this set need {name}, which is not installed: "
            f'pip install "omma[{extra}]"'
        ) from error


def download_files(entry: Entry, home: Path, instead: str) -> None:
    """Get every file of the entry that is missing; ``instead`` says what to do if that fails."""
    for file in entry.files:
        if (home / file.name).is_file():
            continue
        try:
            _download(file, home)
        except OSError as error:
            raise unreachable(entry, str(file.url), error, instead) from error


def unreachable(entry: Entry, tried: str, error: Exception, instead: str) -> OSError:
    """One sentence: what was tried, what came, what to do instead."""
    reason = " ".join(str(error).split()) or type(error).__name__
    short = reason if len(reason) <= 120 else reason[:119] + "…"
    return OSError(f"{entry.name} could not be had from {tried} ({short}): {instead}")


def _download(file: File, home: Path) -> None:
    pooch = require("pooch", "study")
    url = str(file.url)
    kept = url.rpartition("/")[2] if file.member else file.name
    with _quiet(pooch), _bar(kept) as bar:
        archive = pooch.retrieve(
            url,
            known_hash=None if file.sha256 is None else f"sha256:{file.sha256}",
            fname=kept,
            path=home,
            downloader=pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT),
        )
    if file.member:
        _unpack(Path(archive), file.member, home / file.name)


def _unpack(archive: Path, member: str, target: Path) -> None:
    with tarfile.open(archive) as packed:
        inside = packed.extractfile(member)
        if inside is None:
            raise ValueError(f"{archive}: expected a file {member}, got a folder")
        target.write_bytes(inside.read())


@contextmanager
def _quiet(pooch: Any) -> Iterator[None]:
    """Pooch tells the log of every download; here the bar does."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _bar(name: str) -> Iterator[Any]:
    """A bar on stderr that pooch moves; False where there is no terminal."""
    if not sys.stderr.isatty():
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress)


class _Bar:
    """The four things that pooch wants of a bar."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=None)

    def __bool__(self) -> bool:
        return True

    @property
    def total(self) -> Any:
        return self.progress.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self.progress.update(self.task, total=size)

    def update(self, size: int) -> None:
        self.progress.advance(self.task, size)

    def reset(self) -> None:
        self.progress.reset(self.task, total=self.total)

    def close(self) -> None:
        self.progress.refresh()
