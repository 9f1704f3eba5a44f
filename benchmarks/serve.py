"""What ``omma serve`` serves, beside the bare learner: ``python -m benchmarks serve``.

One server, and 1 and 4 clients, each a process with one connection that is kept open: it asks for a
decision by id and then tells its labels, again and again. Rows a request is how many go at once.
What others do on the machine slows all of that down, but hardly the time that the server itself
works for a row, which is told beside it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import omma

RUN = "import sys; from omma.cli import main; sys.exit(main())"


def request(path: str, content: Any) -> bytes:
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def ask(connection: socket.socket, wanted: bytes) -> None:
    connection.sendall(wanted)
    answer = connection.recv(65536)
    length = int(re.search(rb"content-length: (\d+)", answer).group(1))  # type: ignore[union-attr]
    end = answer.index(b"\r\n\r\n") + 4 + length
    while len(answer) < end:
        answer += connection.recv(65536)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer.decode())


def client(port: int, number: int, seconds: float, m: int, rows: int, out: Any) -> None:
    """One client for some seconds; tells how long each request for decisions took."""
    rng = np.random.default_rng(number)
    eta = rng.random((256, m)).round(4)
    y = (rng.random((256, m)) < eta).astype(int)
    took, t = [], 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends:
            places = [(t + i) % 256 for i in range(rows)]
            keys = [f"{number} {t + i}" for i in range(rows)]
            asked = [{"id": k, "eta": eta[p].tolist()} for k, p in zip(keys, places, strict=True)]
            told = [{"id": k, "y": y[p].tolist()} for k, p in zip(keys, places, strict=True)]
            first, second = request("/decide", asked), request("/labels", told)
            begun = time.perf_counter()
            ask(connection, first)
            took.append(time.perf_counter() - begun)
            ask(connection, second)
            t += rows
    out.put((t, took))


def worked(process: int) -> float:
    """Seconds that a process has worked so far."""
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(m: int, *more: str) -> Iterator[tuple[int, int]]:
    """A server: its port and its process."""
    command = [sys.executable, "-c", RUN, "serve", "--port", "0", "--metric", "macro_f1", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = None
        while found is None:
            found = re.match(r"Listening on http://127\.0\.0\.1:(\d+)", process.stderr.readline())
        port = int(found[1])
        with socket.create_connection(("127.0.0.1", port)) as first:  # compiles
            for names in (["warm"], ["two", "rows"]):
                ask(first, request("/decide", [{"id": one, "eta": [0.5] * m} for one in names]))
                ask(first, request("/labels", [{"id": one, "y": [0] * m} for one in names]))
        yield port, process.pid
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def measured(
    port: int, process: int, clients: int, seconds: float, m: int, rows: int
) -> tuple[float, Any, float]:
    """Decisions a second of all clients, what requests took, and seconds of work for a row."""
    queue: Any = multiprocessing.Queue()
    first = np.random.default_rng().integers(10**9)
    running = [
        multiprocessing.Process(target=client, args=(port, first + i, seconds, m, rows, queue))
        for i in range(clients)
    ]
    before = worked(process)
    for one in running:
        one.start()
    found = [queue.get() for _ in running]
    for one in running:
        one.join()
    count = sum(t for t, _ in found)
    work = (worked(process) - before) / count
    return count / seconds, np.concatenate([took for _, took in found]), work


def bare(m: int, count: int) -> tuple[float, float]:
    """Rows a second of the learner itself, decided and learned by id, and seconds of work."""
    rng = np.random.default_rng(0)
    eta = rng.random((256, m))
    y = (rng.random((256, m)) < eta).astype(np.int8)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), m)
    for t in range(-100, count):
        if t == 0:
            begun, before = time.perf_counter(), time.thread_time()
        learner.predict(eta[t % 256], id=t)
        learner.update(y[t % 256], id=t)
    return count / (time.perf_counter() - begun), (time.thread_time() - before) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--labels", type=int, default=46)
    parser.add_argument("--rows", type=int, default=10_000, help="of the bare learner")
    options = parser.parse_args()
    m = options.labels
    print(f"m = {m}, Auto('macro_f1'); each row is decided by id, then labelled by id")
    rate, work = bare(m, options.rows)
    print(f"the bare learner: {rate:,.0f} rows/s, {1e6 * work:.0f} µs of work a row")
    with tempfile.TemporaryDirectory() as folder:
        for title, more in (("", ()), (", with a journal", ("--journal", f"{folder}/j"))):
            with served(m, *more) as server:
                for rows in (1, 100):
                    for clients in (1, 4):
                        rate, took, work = measured(*server, clients, options.seconds, m, rows)
                        half, most = (1e3 * np.quantile(took, one) for one in (0.5, 0.99))
                        told = f"{rate:,.0f} decisions/s, half of requests within {half:.1f} ms"
                        who = f"{clients} client{'s' * (clients > 1)}, {rows} a request{title}"
                        told += f", 99 % within {most:.1f} ms, {1e6 * work:.0f} µs of work a row"
                        print(f"{who}: {told}", flush=True)
