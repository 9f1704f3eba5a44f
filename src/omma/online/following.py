"""A journal read while somebody else writes it: nothing is locked, and nothing changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from omma.metrics import Metric
from omma.online import log
from omma.online.events import do_again
from omma.online.learner import OnlineClassifier

SNAPSHOT = re.compile(r"snapshot-(\d{1,18})\.npz")
TRIES = 10  # snapshots that may be replaced by newer ones while they are read


def newest(folder: Path) -> int | None:
    """The number of the newest snapshot in a folder; None where there is none."""
    found = [SNAPSHOT.fullmatch(one.name) for one in folder.iterdir()]
    return max((int(one[1]) for one in found if one), default=None)


class Follower:
    """Follows a journal: each look does again what was written since the last one."""

    def __init__(self, folder: str | Path, *, metric: Metric | None = None) -> None:
        self.folder = Path(folder)
        self.metric = metric
        self.learner: OnlineClassifier | None = None
        self._generation: int | None = None
        self._end = 0  # of the log, as far as it was read

    def look(self, after: Callable[[OnlineClassifier], None] | None = None) -> OnlineClassifier:
        """The learner as it is now; ``after`` is called after each event that is done again."""
        if not self.folder.is_dir() or newest(self.folder) is None:
            raise FileNotFoundError(f"{self.folder} is not a folder with a journal")
        for attempt in range(1, TRIES + 1):
            try:
                return self._follow(after)
            except FileNotFoundError:  # a newer snapshot has come, and the old one gone
                self._generation = None
                if attempt == TRIES:
                    raise
        raise AssertionError("unreachable")

    def _follow(self, after: Callable[[OnlineClassifier], None] | None) -> OnlineClassifier:
        generation = newest(self.folder)
        learner = self.learner
        if learner is None or generation != self._generation:
            path = self.folder / f"snapshot-{generation}.npz"
            learner = OnlineClassifier.load(path, metric=self.metric)
            if self.learner is not None:
                learner._seen = self.learner._seen  # what it told last
            self._generation, self._end = generation, 0
        path = self.folder / f"log-{generation}"
        if path.exists():  # it comes after its snapshot
            for event, end in log.read(path, self._end):
                if self._end:  # the first record is the header
                    try:
                        do_again(learner, event)
                    except (ValueError, TypeError, IndexError, KeyError, AssertionError) as error:
                        raise ValueError(f"{path} is damaged at byte {end:,}: {error}") from error
                    if after is not None:
                        after(learner)
                self._end = end
        self.learner = learner
        return learner
