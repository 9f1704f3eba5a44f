"""What a command leaves running: python tests/left_running.py COMMAND ... fails if it is anything.

The command gets a session of its own, which all that it starts belongs to.
"""

import os
import signal
import subprocess
import sys
import time


def members(session):
    """The processes of a session that are alive."""
    said = subprocess.run(["ps", "-e", "-o", "pid=,sess=,stat="], capture_output=True, text=True)
    rows = [line.split() for line in said.stdout.splitlines()]
    return [int(pid) for pid, of, state in rows if int(of) == session and state[0] != "Z"]


def wait_for_end(session, seconds=20):
    """What still runs of a session after a while; it is ended."""
    until = time.monotonic() + seconds
    while members(session) and time.monotonic() < until:
        time.sleep(0.1)
    left = [(pid, name_of(pid)) for pid in members(session)]
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
    return left


def name_of(pid):
    said = subprocess.run(["ps", "-o", "args=", str(pid)], capture_output=True, text=True)
    return said.stdout.strip()[:200]


def run(command, timeout=None, **more):
    """How a command ended, and what it left running, which is ended."""
    child = subprocess.Popen(command, start_new_session=True, **more)
    try:
        code = child.wait(timeout)
    finally:
        left = wait_for_end(child.pid)
        child.wait()
    return code, left


def main(command):
    code, left = run(command)
    return f"left running: {left}" if left else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
