"""omma watch, the page of a journal, and journals read while they are written."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from click.testing import CliRunner
from naive_baselines import stream

import omma
from omma.cli import main
from omma.online.journal import Follower

ETA, Y = stream(2, 60, 3)
POLICY = omma.OMMA("macro_f1")


def everything(one):
    parts = {**one.state.arrays(), **one.waiting.arrays()}
    return {name: np.asarray(part).tobytes() for name, part in parts.items()}


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path):
    """A journal of sixty rows, some of which wait."""
    learner = omma.OnlineClassifier(POLICY, 3, names=["a<b", "[red]", "c"])
    with omma.Journal(tmp_path / "served", learner, snapshot_every=30):
        for t, row in enumerate(ETA):
            learner.predict(row, id=t)
            if t >= 5:
                learner.update(Y[t - 5], id=t - 5)
    return tmp_path / "served"


def test_a_journal_is_followed_while_it_is_written(tmp_path):
    learner = omma.OnlineClassifier(POLICY, 3)
    with omma.Journal(tmp_path / "j", learner, snapshot_every=13):
        follower = Follower(tmp_path / "j")
        for t, row in enumerate(ETA):
            learner.predict(row, id=t)
            if t % 4:
                learner.update(Y[t], id=t)
            if t % 7 == 0:
                before = sorted(one.name for one in (tmp_path / "j").iterdir())
                assert everything(follower.look()) == everything(learner)
                assert everything(omma.Journal.read(tmp_path / "j")) == everything(learner)
                assert sorted(one.name for one in (tmp_path / "j").iterdir()) == before
    with pytest.raises(FileNotFoundError, match="is not a folder with a journal"):
        omma.Journal.read(tmp_path)


def test_a_torn_tail_is_left_to_its_writer(folder):
    log = max(folder.glob("log-*"))
    whole = log.read_bytes()
    log.write_bytes(whole[:-3])
    read = omma.Journal.read(folder)
    assert len(log.read_bytes()) == len(whole) - 3
    assert read.waiting.decided + read.counts.n == 60 + 55 - 1


def test_watch_shows_a_journal_and_a_state(folder, tmp_path):
    found = run("watch", folder, "--once")
    assert found.exit_code == 0
    for text in ("macro_f1", "rows with labels", "55", "waiting for labels", "[red]", "recent"):
        assert text in found.output, text
    omma.Journal.read(folder).save(tmp_path / "one.npz")
    assert "macro_f1" in run("watch", tmp_path / "one.npz", "--once").output


@contextmanager
def answering(answer, status=200):
    """A service whose answers are these bytes, whatever they are; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers)
            self.send_response(status if self.path == "/stats" else 404)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments):
            pass

    asked = []
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def sound_stats():
    policy = omma.OMMA("macro_f1", subject_to="labels_per_row <= 1")
    stats = omma.OnlineClassifier(policy, 3).stats()
    stats["limits"][0]["value"], stats["limits"][0]["holds"] = 1.25, False
    return stats


def test_watch_shows_a_service_and_its_limits(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    with answering(json.dumps(sound_stats()).encode()) as (address, asked):
        found = run("watch", address, "--once", "--token-file", tmp_path / "token")
        assert found.exit_code == 0
        assert "labels_per_row" in found.output
        assert "missed" in found.output
        assert asked[0]["Authorization"] == "Bearer secret"
        wrong = run("watch", f"{address}/elsewhere", "--once")
        assert (wrong.exit_code, "answered 404" in wrong.output) == (1, True)


RAW = "\x1b]0;taken\x07\x1b[2J[red]\u202e"


def test_names_of_a_hostile_service_do_nothing_to_the_terminal():
    stats = sound_stats()
    stats["metric"] = stats["limits"][0]["name"] = RAW
    stats["moved"] = [{"label": RAW, "before": 0.5, "now": 0.25}]
    with answering(json.dumps(stats).encode()) as (address, _):
        found = run("watch", address, "--once")
    assert found.exit_code == 0
    assert found.output.count("taken") == 3
    assert not set(found.output) & set("\x1b\x07\u202e")


def spoiled(**changed):
    return json.dumps({**sound_stats(), **changed}).encode()


LIMIT = {"name": "a", "bound": 1.0, "value": None, "price": 0.0, "holds": True}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (RAW.encode(), 500),
        (RAW.encode(), 200),
        (b"[" * 100_000, 200),
        (b"9" * 10_000, 200),
        (b"\xff\xfe", 200),
        (b'{"refused": {}}', 200),
        (spoiled(value=float("nan")), 200),
        (spoiled(labels=10**400), 200),
        (spoiled(labels="many"), 200),
        (spoiled(waiting=None), 200),
        (spoiled(refused={"a": []}), 200),
        (spoiled(metric=["macro_f1"]), 200),
        (spoiled(metric="m" * 100_000), 200),
        (spoiled(limits=[{**LIMIT, "price": RAW}]), 200),
        (spoiled(limits=[{"name": "a"}]), 200),
        (spoiled(limits=[LIMIT] * 10_000), 200),
        (spoiled(moved={"label": 1}), 200),
        (spoiled(moved=[{"label": None, "before": 0.5, "now": 0.5}]), 200),
    ],
)
def test_whatever_a_hostile_service_answers_takes_one_line(answer, status):
    with answering(answer, status) as (address, _):
        found = run("watch", address, "--once")
    assert found.exit_code == 1
    assert found.output.startswith(f"Error: {address}/stats ")
    assert found.output.count("\n") == 1
    assert len(found.output) < 400
    assert found.output[:-1].isprintable()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x1b[2J nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 500 \x1b[2J\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1:1/\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    ],
)
def test_whatever_comes_in_place_of_http_takes_one_line(sent):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            while True:
                try:
                    with listening.accept()[0] as connection:
                        connection.recv(10_000)
                        connection.sendall(sent)
                except OSError:  # it has ended
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            found = run("watch", address, "--once")
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert found.exit_code == 1
    assert found.output.startswith(f"Error: {address}/stats ")
    assert found.output[:-1].isprintable()


def test_watch_of_nothing_takes_one_line(tmp_path):
    found = run("watch", tmp_path / "none", "--once")
    assert found.exit_code == 1
    assert "is no journal, no saved learner and no address" in found.output


def test_a_journal_makes_a_page(folder, tmp_path):
    found = run("report", folder, "--format", "html", "--output", tmp_path / "page.html")
    assert found.exit_code == 0
    text = (tmp_path / "page.html").read_text()
    assert "a&lt;b" in text
    assert "a<b" not in text
    assert "<polyline" in text
    assert "http" not in text.replace("http-equiv", "")  # nothing is loaded from elsewhere
    assert run("report", folder).output.startswith("<!doctype html>")
    assert "omma-study report" in run("report", tmp_path).output


def test_stats_tell_of_windows_limits_and_calibration():
    learner = omma.OnlineClassifier(omma.Window(POLICY, 10), 3)
    made = np.array([learner.predict(row).tolist() for row in ETA[:1]])
    learner.update(Y[0])
    for t in range(1, 40):
        made = np.vstack([made, learner.predict(ETA[t])])
        learner.update(Y[t])
    first = learner.stats(peek=True)
    metric = omma.metric("macro_f1")
    assert first["window_value"] == pytest.approx(metric.score(Y[30:40], made[30:40]))
    assert first["value"] == first["recent_value"] == metric.score(Y[:40], made)
    assert learner.stats() == first  # a peek has changed nothing
    assert learner.stats()["recent_value"] is None
    assert first["limits"] == []
    assert first["calibration_error"] is None
    json.dumps(first)
    soft = omma.OnlineClassifier(omma.OMMA("macro_f1", feedback="estimates"), 3)
    for row, true in zip(ETA, Y, strict=True):
        soft.predict(row)
        soft.update(true)
    wanted = np.abs(ETA.mean(axis=0) - Y.mean(axis=0)).mean()
    assert soft.stats()["calibration_error"] == pytest.approx(wanted)
    assert soft.stats()["window_value"] is None
