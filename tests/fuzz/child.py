"""One process that reads spoiled files of some targets; what it was reading outlives a crash."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 20  # for one file
MEMORY = 2 << 30  # bytes above what is taken when it starts


def run(
    names: list[str],
    folder: Path,
    *,
    seed: int,
    count: int,
    until: float = float("inf"),
    module: str = "tests.fuzz.targets",
) -> Iterator[dict[str, Any]]:
    """Read files in a process of its own, and in another for what is left if that one dies.

    Gives a record for each file that failed, and one for each target that is through.
    """
    left = list(names)
    while left:
        settings = {"names": left, "folder": str(folder), "seed": seed, "count": count}
        settings |= {"until": until, "module": module}
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "stderr.txt").open("w+") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.child", json.dumps(settings)],
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=ROOT,
            )
            with process:
                for line in process.stdout or ():
                    record = json.loads(line)
                    if "cases" in record:
                        left.remove(record["target"])
                    yield record
            said.seek(0)
            last = said.read()[-500:]
        if process.returncode and left:
            name = left.pop(0)
            kept = _keep(folder, name)
            ended = f"the process ended with {process.returncode}: {last}"
            yield {"target": name, "fault": ended, "file": str(kept)}


def _keep(folder: Path, name: str) -> Path | None:
    """Put the file that was being read where it is not written over."""
    found = [one for one in folder.glob(f"{name}.*") if one.is_file()]
    if not found:
        return None
    kept = folder / "failures" / f"{time.time_ns()}-{found[0].name}"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(found[0].read_bytes())
    return kept


def main(names: list[str], folder: str, seed: int, count: int, until: float, module: str) -> None:
    """In the process itself."""
    import os

    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    os.chdir(home)
    targets = import_module(module).TARGETS
    from tests.fuzz.verdict import fault

    _limit()
    warnings.simplefilter("error")  # a warning of a library is not the user's business either
    for name in names:
        one = targets[name]
        seeds, choices = one.seeds(), random.Random(f"{seed} {name}")
        path = home / f"{name}{one.ending}"
        done = 0
        while done < count and time.time() < until:
            data = choices.choice(seeds)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of NumPy, while files are spoiled
                for _ in range(choices.choice((0, 1, 1, 1, 2, 3))):
                    data = one.edit(data, choices.randint)
            path.write_bytes(data)
            done += 1
            wrong = attempt(one.read, path, fault)
            if wrong is not None:
                kept = _keep(home, name)
                print(json.dumps({"target": name, "fault": wrong, "file": str(kept)}), flush=True)
        print(json.dumps({"target": name, "cases": done}), flush=True)


def attempt(read: Any, path: Path, fault: Any) -> str | None:
    """What is wrong with how a file is read, or None."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        read(path)
    except TimeoutError:
        return f"takes longer than {SECONDS} s"
    except Exception as error:
        return fault(error, path)
    finally:
        signal.alarm(0)
    return None


def _late(*_: Any) -> None:
    raise TimeoutError


def _limit() -> None:
    """Little memory, so that a trap is an error and not a machine that stands still."""
    import resource

    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MEMORY, taken + MEMORY))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
