"""Throughput and latency of ``omma serve`` beside the bare learner.

One server has 1 or 4 clients. Each client is a process with one connection that stays open: it
asks for a decision by id, sends the labels, and begins again. "Rows a request" is how many rows one
request holds. Other work on the machine slows all of that down, but hardly the server's own work
for a row.
"""

import json
import multiprocessing
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np

import omma
from benchmarks.measure import Table, processor_seconds

RUN = "import sys; from omma.cli import main; sys.exit(main())"


def request(path: str, content: Any) -> bytes:
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def ask(connection: socket.socket, content: bytes) -> None:
    connection.sendall(content)
    answer = connection.recv(65536)
    length = int(re.search(rb"content-length: (\d+)", answer).group(1))  # type: ignore[union-attr]
    end = answer.index(b"\r\n\r\n") + 4 + length
    while len(answer) < end:
        answer += connection.recv(65536)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer.decode())


def client(port: int, number: int, seconds: float, m: int, rows: int, out: Any) -> None:
    """Run one client for some seconds; report its rows, and the time of each decision request."""
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
            questions = [
                {"id": k, "eta": eta[p].tolist()} for k, p in zip(keys, places, strict=True)
            ]
            answers = [{"id": k, "y": y[p].tolist()} for k, p in zip(keys, places, strict=True)]
            first, second = request("/decide", questions), request("/labels", answers)
            begun = time.perf_counter()
            ask(connection, first)
            took.append(time.perf_counter() - begun)
            ask(connection, second)
            t += rows
    out.put((t, took))


@contextmanager
def served(m: int, *more: str) -> Iterator[tuple[int, int]]:
    """A server: its port and its process."""
    command = [sys.executable, "-c", RUN, "serve", "--port", "0", "--metric", "macro_f1", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = None
        while line is None:
            line = re.match(r"Listening on http://127\.0\.0\.1:(\d+)", process.stderr.readline())
        port = int(line[1])
        with socket.create_connection(("127.0.0.1", port)) as first:  # compiles
            for names in (["warm"], ["two", "rows"]):
                ask(first, request("/decide", [{"id": name, "eta": [0.5] * m} for name in names]))
                ask(first, request("/labels", [{"id": name, "y": [0] * m} for name in names]))
        yield port, process.pid
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def measured(
    port: int, process: int, clients: int, seconds: float, m: int, rows: int
) -> tuple[float, Any, float]:
    """Decisions a second of all clients, seconds of requests, and seconds of work for a row."""
    queue: Any = multiprocessing.Queue()
    first = np.random.default_rng().integers(10**9)
    running = [
        multiprocessing.Process(target=client, args=(port, first + i, seconds, m, rows, queue))
        for i in range(clients)
    ]
    before = processor_seconds(process)
    for process_of_client in running:
        process_of_client.start()
    answers = [queue.get() for _ in running]
    for process_of_client in running:
        process_of_client.join()
    count = sum(t for t, _ in answers)
    work = (processor_seconds(process) - before) / count
    return count / seconds, np.concatenate([took for _, took in answers]), work


def sample(m: int) -> tuple[Any, Any]:
    """Probabilities and labels that are used again and again."""
    rng = np.random.default_rng(0)
    eta = rng.random((256, m))
    return eta, (rng.random((256, m)) < eta).astype(np.int8)


def bare(m: int, count: int) -> tuple[float, float]:
    """Rows a second of the learner itself, decided and learned by id, and seconds of work."""
    eta, y = sample(m)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), m)
    for t in range(-100, count):
        if t == 0:
            begun, before = time.perf_counter(), time.thread_time()
        learner.predict(eta[t % 256], id=t)
        learner.update(y[t % 256], id=t)
    return count / (time.perf_counter() - begun), (time.thread_time() - before) / count


def serve(seconds: float = 5.0, labels: int = 46, rows: int = 10_000) -> Iterator[Table]:
    """Each row is decided by id, then labelled by id; ``rows`` are those of the bare learner."""
    table = Table(
        f"omma serve, Auto('macro_f1'), {labels} labels",
        "decisions a second, milliseconds of requests, microseconds of the server's work a row",
    )
    rate, work = bare(labels, rows)
    head = {"clients": "the bare learner", "rows a request": 1, "journal": ""}
    blank = {"half within": None, "99 % within": None}
    table.rows.append({**head, "rows/s": round(rate), **blank, "work µs": 1e6 * work})
    with tempfile.TemporaryDirectory() as folder:
        for journal, more in (("", ()), ("yes", ("--journal", f"{folder}/j"))):
            with served(labels, *more) as server:
                for size, clients in product((1, 100), (1, 4)):
                    rate, took, work = measured(*server, clients, seconds, labels, size)
                    half, most = (1e3 * float(np.quantile(took, share)) for share in (0.5, 0.99))
                    head = {"clients": str(clients), "rows a request": size, "journal": journal}
                    within = {"half within": half, "99 % within": most}
                    row = {**head, "rows/s": round(rate), **within, "work µs": 1e6 * work}
                    table.rows.append(row)
    yield table
