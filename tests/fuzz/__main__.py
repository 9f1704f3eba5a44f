"""By hand: ``python -m tests.fuzz --minutes 60``, with other files each time."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.child import run
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Go round all targets until the time is over; 1 if something slipped through."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.mkdtemp(prefix="omma-fuzz-")))
    asked = parser.parse_args()
    until, seed, cases, failed = time.time() + 60 * asked.minutes, asked.seed, 0, 0
    while time.time() < until:
        for record in run(
            asked.target or list(TARGETS), asked.folder, seed=seed, count=500, until=until
        ):
            cases += record.get("cases", 0)
            if "fault" in record:
                failed += 1
                print(f"{record['target']}, {record['file']}: {record['fault']}", flush=True)
        print(f"seed {seed}: {cases:,} files so far, {failed} failed", flush=True)
        seed += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
