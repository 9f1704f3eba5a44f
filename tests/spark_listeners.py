"""Where processes listen, by /proc: nothing of Spark's tests may be seen from outside."""

import os
from pathlib import Path

LISTENS = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def open_to_others(pids):
    """Addresses outside of loopback that one of the processes listens at."""
    own = {inode for pid in pids for inode in sockets_of(pid)}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            parts = line.split()
            address = parts[1].split(":")[0]
            if parts[3] == LISTENS and parts[9] in own and address not in LOOPBACK:
                found.append(parts[1])
    return found


def sockets_of(pid):
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(one)
        except FileNotFoundError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def with_children(pid):
    """A process and all that it started."""
    found, new = [], [pid]
    while new:
        found += new
        new = [child for one in new for child in children_of(one)]
    return found


def children_of(pid):
    """None of a process that ended meanwhile."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(one) for task in tasks for one in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
