"""What goes wrong at a chosen point, once: processes of Spark that are killed."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from omma.spark.per_key import PerKey
from omma.spark.runner import Runner
from omma.spark.store import Saved, Store


@dataclass(frozen=True)
class KillAt:
    """For ``mapInArrow``: passes rows on, and kills when it meets a row, if nobody did before."""

    row: int
    flag: str
    pids: tuple[int, ...] = ()  # None are those of this worker, or of its executor
    executor: bool = False

    def __call__(self, batches):
        for batch in batches:
            if self.row in batch.column("id").to_pylist() and not Path(self.flag).exists():
                Path(self.flag).touch()
                for pid in self.pids or (executor() if self.executor else os.getpid(),):
                    os.kill(pid, signal.SIGKILL)
            yield batch


def executor():
    """The JVM that runs this worker: it started the daemon that started us."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])


@dataclass(frozen=True)
class DyingStore(Store):
    """Kills the driver once the state of a batch is written."""

    at: int
    pids: tuple[int, ...]

    def write(self, saved: Saved) -> None:
        super().write(saved)
        if saved.batch == self.at:
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Unversioned(Runner):
    """The control: it adds to whatever state there is, and does not look whose batch it was."""

    def _is_done(self, number):
        return False

    def _before(self, batch, number):
        there = self.store.batches()
        return super()._before(batch, there[-1] + 1) if there else super()._before(batch, 0)


class DyingPerKey(PerKey):
    """Its worker is killed once it has decided a row, before the state of that key is kept."""

    row, flag = 0, ""

    def handleInputRows(self, key, rows, timerValues):
        for decided in super().handleInputRows(key, rows, timerValues):
            yield decided
            if self.row in list(decided["id"]) and not Path(self.flag).exists():
                Path(self.flag).touch()
                os.kill(os.getpid(), signal.SIGKILL)
