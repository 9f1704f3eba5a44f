"""omma serve: a real process on loopback, spoken to over HTTP."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from naive_baselines import stream
from serving import RUN, Client, keeper_of, served

import omma
from omma.cli import http, main
from omma.cli.service import Service

pytest.importorskip("uvicorn", reason="omma serve needs the extra 'serve'")


@pytest.fixture(scope="module")
def server():
    with served("--metric", "macro_f1", "--policy", "omma", "--max-body", 20_000) as client:
        yield client


@pytest.mark.parametrize(
    ("looking", "policy"),
    [
        (("--window", 9), omma.Window(omma.OMMA("macro_f1"), 9)),
        (("--half-life", 6), omma.Forgetting(omma.OMMA("macro_f1"), 6)),
    ],
)
def test_it_decides_as_a_learner_does_and_goes_on_after_a_restart(tmp_path, looking, policy):
    eta, y = stream(3, 60, 4, zeros=0.0)
    learner = omma.OnlineClassifier(policy, 4)
    journal = ("--journal", tmp_path / "served")
    expected = []
    for t in range(60):
        expected.append(learner.predict(eta[t], id=t).tolist())
        if t >= 5:
            learner.update(y[t - 5], id=t - 5)
    made = []
    for part, asked in (
        (range(40), ("--metric", "macro_f1", "--policy", "omma", *looking)),
        (range(40, 60), ()),
    ):
        with served(*asked, *journal) as client:
            for t in part:
                status, answer = client.post("/decide", {"id": t, "eta": eta[t].tolist()})
                assert (status, answer["id"]) == (200, t)
                made.append(answer["decision"])
                if t >= 5:
                    told = {"id": t - 5, "y": y[t - 5].tolist()}
                    assert client.post("/labels", told) == (200, {"learned": 1})
    assert made == expected
    with omma.Journal.resume(tmp_path / "served") as found:
        assert found.learner.state == learner.state
        assert list(found.learner.waiting) == list(learner.waiting)


def test_the_state_is_saved_when_it_is_told_to_end(tmp_path):
    path = tmp_path / "learner.npz"
    with served("--metric", "macro_f1", "--state", path) as client:
        rows = [{"id": name, "eta": {"sport": 0.9, "art": 0.2}} for name in "ab"]
        status, answers = client.post("/decide", rows)
        assert status == 200
        assert [one["labels"] for one in answers] == [["sport"], ["sport"]]
        told = [{"id": "b", "y": ["sport"]}, {"id": "a", "y": []}]
        assert client.post("/labels", told) == (200, {"learned": 2})
        assert not path.exists()
    learner = omma.OnlineClassifier.load(path)
    assert learner.names == ("sport", "art")
    assert learner.counts.n == 2


def test_a_state_is_saved_in_between_by_one_alone(tmp_path):
    path = tmp_path / "learner.npz"
    asked = ("--metric", "macro_f1", "--state", path, "--save-every", 3)
    with served(*asked) as client:
        for t in range(4):
            assert not path.exists() or t == 3
            client.post("/decide", {"id": t, "eta": [0.7, 0.2]})
        assert list(omma.OnlineClassifier.load(path).waiting) == [0, 1, 2]
        command = [sys.executable, "-c", RUN, "serve", "--port", "0", "--state", str(path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert second.returncode == 1
        assert "another omma serve or stream" in second.stderr
    assert list(omma.OnlineClassifier.load(path).waiting) == [0, 1, 2, 3]


def test_termination_closes_the_journal(tmp_path):
    with served("--metric", "macro_f1", "--journal", tmp_path / "j") as client:
        client.post("/decide", {"id": 1, "eta": [0.7, 0.2]})
        assert list((tmp_path / "j").glob("*.lock"))
        client.process.terminate()
        assert client.process.wait(600) == 0
        assert "fixed the number of labels at 2" in client.process.stderr.read()
    assert not list((tmp_path / "j").glob("*.lock"))


def test_a_state_that_cannot_be_saved_at_the_end_is_told(tmp_path):
    (tmp_path / "gone").mkdir()
    with served("--metric", "macro_f1", "--state", tmp_path / "gone" / "learner.npz") as client:
        client.post("/decide", {"id": 1, "eta": [0.7, 0.2]})
        shutil.rmtree(tmp_path / "gone")
        client.process.terminate()
        assert client.process.wait(600) == 1
        assert "Error: " in client.process.stderr.read()


def test_another_number_of_labels_than_that_of_the_journal_is_refused(tmp_path):
    asked = ("--metric", "macro_f1", "--n-labels", 3, "--journal", tmp_path / "j")
    with served(*asked) as client:
        assert client.post("/decide", {"id": 1, "eta": [0.7, 0.2]})[0] == 400
        assert client.post("/decide", {"id": 1, "eta": {"2": 0.7}})[0] == 200
    command = [sys.executable, "-c", RUN, "serve", "--port", "0", "--n-labels", "2"]
    command += ["--journal", str(tmp_path / "j")]
    second = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert second.returncode == 1
    assert "holds a learner of 3 labels, and --n-labels 2 was asked for" in second.stderr


def connected(held, client, text):
    connection = socket.create_connection(("127.0.0.1", client.port), timeout=60)
    connection.sendall(text.encode())
    return held.enter_context(connection)


def test_whoever_sends_nothing_keeps_nobody_out():
    with served("--metric", "macro_f1", "--max-clients", 4) as client, ExitStack() as held:
        for _ in range(5):
            for start in ("", "POST /decide HTTP/1.1\r\nHost: 127"):
                for _ in range(6):
                    connected(held, client, start)
            new = Client(client.port)
            held.callback(new.connection.close)
            assert new.post("/decide", {"eta": [0.7, 0.2]})[0] == 200
            assert new.get("/health")[0] == 200


def test_places_are_left_for_health_while_bodies_do_not_come():
    with served("--metric", "macro_f1", "--max-clients", 3) as client, ExitStack() as held:
        head = "POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        for _ in range(3):
            slow = connected(
                held, client, f"{head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
            )
            assert b" 100 " in slow.recv(100)  # the request has begun
        status, answer = client.post("/decide", {"eta": [0.7, 0.2]})
        assert (status, "--max-clients" in answer["error"]) == (503, True)
        assert client.get("/health")[0] == 200
        slow.sendall(b" " * 9)
        assert b" 400 " in slow.recv(1_000)
        assert client.post("/decide", {"eta": [0.7, 0.2]})[0] == 200


@pytest.mark.parametrize("sent", ["", "GET /health HTTP/1.1\r\nHo", "whole"])
def test_connections_without_a_request_end(monkeypatch, sent):
    monkeypatch.setattr(http, "IDLE", 0.2)
    uvicorn = pytest.importorskip("uvicorn")
    service = Service(keeper_of("serve", "--metric", "macro_f1"))
    held = http.Connections(5)
    config = uvicorn.Config(
        http.application(service, 1_000, connections=held),
        http=held.protocol(),
        port=0,
        lifespan="off",
        proxy_headers=False,
    )

    async def ended():
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if sent == "whole":
            writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea")
        writer.write(sent.encode() * (sent != "whole"))
        answer = await reader.read()  # until it is closed
        writer.close()
        server.should_exit = True
        await task
        return answer

    answer = asyncio.run(asyncio.wait_for(ended(), 300))
    assert (b"200 OK" in answer) == (sent == "whole")


def test_whoever_does_not_read_the_last_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(http, "IDLE", 0.01)
    monkeypatch.setattr(http, "LINGER", 0.01)

    class Stuck:
        done = ()

        def close(self):
            self.done += ("close",)

        def abort(self):
            self.done += ("abort",)
            held.close(self.name)

    held, transports = http.Connections(1), [Stuck() for _ in range(12)]

    async def opened():
        for number, transport in enumerate(transports):
            transport.name = ("127.0.0.1", number)
            held.open(transport.name, transport)
        with held.request(("127.0.0.1", 11)):
            await asyncio.sleep(0.3)
            assert transports[11].done == ()
        await asyncio.sleep(0.3)

    asyncio.run(opened())
    # More than the nine that have a place, so that the first ones had to go at once.
    assert [one.done for one in transports] == [("abort",)] * 3 + [("close", "abort")] * 9


def test_a_token_is_asked_for_and_other_hosts_are_refused(tmp_path):
    path = tmp_path / "token"
    path.write_text("secret\n")
    asked = ("--metric", "macro_f1", "--token-file", path, "--allowed-host", "Decide.example.org")
    with served(*asked) as client:
        row = {"id": "a", "eta": [0.9, 0.2]}
        assert client.post("/decide", row)[0] == 401
        assert client.get("/health")[0] == 200
        token = {"Authorization": "Bearer secret"}
        for host, status in (("evil.example", 403), ("decide.example.org", 200)):
            headers = {**token, "Host": host}
            assert client.ask("POST", "/decide", row, headers=headers)[0] == status
    for content in ("", "two words", "é"):
        path.write_text(content)
        found = CliRunner().invoke(main, ["serve", "--metric", "f1", "--token-file", str(path)])
        assert (found.exit_code, "must hold one word of ASCII" in found.output) == (2, True)


def test_large_bodies_of_small_rows_take_no_memory():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("there is no /proc to look at")
    with served("--metric", "macro_f1", "--n-labels", 2_000) as client:
        highest = Path(f"/proc/{client.process.pid}/status")
        before = int(re.search(r"VmHWM:\s+(\d+)", highest.read_text())[1])
        assert client.ask("POST", "/decide", raw="[" + '{"eta":{}},' * 90_000 + "{}]")[0] == 413
        after = int(re.search(r"VmHWM:\s+(\d+)", highest.read_text())[1])
        assert after - before < 300_000  # kilobytes
        assert client.get("/health")[0] == 200


@pytest.mark.parametrize(
    "asked", [("macro_f1", "auto", ()), ("macro_f1", "omma", ("-k", 2)), ("f1", "omma", ())]
)
def test_everything_is_compiled_before_the_port_opens(tmp_path, monkeypatch, asked):
    """Machine code goes to files, of which none is added when clients ask."""
    metric, policy, more = asked
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def compiled():
        return sorted(path.name for path in tmp_path.rglob("*.nbc"))

    m = 1 if metric == "f1" else 3
    row, whole, part = [0.5] * m, [1] + [0] * (m - 1), [1] + [None] * (m - 1)
    with served("--metric", metric, "--policy", policy, *more) as client:
        before = compiled()
        assert before
        for number, y in enumerate((whole, part, whole)):
            single, *several = (f"{number} {place}" for place in range(4))
            client.post("/decide", {"eta": row})
            client.post("/decide", {"id": single, "eta": row})
            client.post("/decide", [{"id": key, "eta": row} for key in several])
            for path in ("/stats", "/metrics", "/rule"):
                assert client.get(path)[0] == 200
            assert client.post("/labels", {"id": single, "y": y})[0] == 200
            assert client.post("/labels", [{"id": key, "y": y} for key in several])[0] == 200
            assert compiled() == before


def test_kill_nine_loses_nothing(tmp_path):
    asked = ("--metric", "macro_f1", "--journal", tmp_path / "j")
    with served(*asked) as client:
        for t in range(20):
            client.post("/decide", {"id": t, "eta": [0.7, 0.2]})
        os.kill(client.process.pid, signal.SIGKILL)
        client.process.wait()
    with omma.Journal.resume(tmp_path / "j") as journal:
        assert list(journal.learner.waiting) == list(range(20))


def test_a_second_one_is_refused_the_journal(tmp_path):
    asked = ("--metric", "macro_f1", "--journal", tmp_path / "j")
    with served(*asked) as client:
        client.post("/decide", {"id": 1, "eta": [0.7, 0.2]})
        command = [sys.executable, "-c", RUN, "serve", "--port", "0", *map(str, asked)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert second.returncode == 1
        assert "another" in second.stderr


@pytest.mark.parametrize(
    ("path", "content", "status", "sentence"),
    [
        ("/decide", {"id": "x", "eta": [0.5]}, 400, "expected 3 probabilities, got 1"),
        ("/decide", {"id": "x", "eta": [0.5, 2.0, 0.1]}, 400, "probabilit"),
        ("/decide", {"id": "x", "eta": [0.5, float("nan"), 0.1]}, 400, "NaN|nan|probabilit"),
        ("/decide", {"id": "waits", "eta": [0.5, 0.5, 0.5]}, 409, "still waits for its labels"),
        ("/decide", {"id": "x", "y": [1, 0, 0]}, 400, "expected rows with eta"),
        ("/decide", {"id": "x", "eat": [1, 0, 0]}, 400, "expected the keys id, eta"),
        ("/decide", [], 400, "at least one row"),
        ("/decide", 7, 400, "expected a JSON object, got 7"),
        ("/decide", [{"id": 1, "eta": [0.1] * 3}, {"eta": [0.1] * 3}], 400, "for all rows or for"),
        ("/decide", [{"id": 1, "eta": [0.1] * 3}] * 2, 400, "must differ"),
        ("/labels", {"id": "who", "y": [1, 0, 0]}, 404, "'who' is not known"),
        ("/labels", {"id": "done", "y": [1, 0, 0]}, 409, "is already labelled"),
        ("/labels", {"id": "waits", "y": [1, 0]}, 400, "expected 3 labels, got 2"),
        ("/labels", {"id": "waits", "y": [1, 0, 3]}, 400, "expected 0 and 1"),
        ("/labels", {"y": [1, 0, 0]}, 400, "expected labels with id and y"),
    ],
)
def test_what_is_wrong_is_refused_by_a_sentence(server, path, content, status, sentence):
    server.post("/decide", {"id": "waits", "eta": [0.5, 0.5, 0.5]})
    server.post("/decide", {"id": "done", "eta": [0.5, 0.5, 0.5]})
    server.post("/labels", {"id": "done", "y": [1, 0, 0]})
    before = server.get("/stats")[1]
    found, answer = server.post(path, content)
    assert found == status
    assert re.search(sentence, answer["error"]), answer
    after = server.get("/stats")[1]
    for name in ("rows", "labels", "decided", "waiting"):
        assert before[name] == after[name], name


def test_bodies_have_bounds_and_a_kind(server):
    assert server.ask("POST", "/decide", raw="{", kind="application/json")[0] == 400
    status, answer = server.ask("POST", "/decide", raw="{}", kind="text/plain")
    assert (status, "application/json" in answer["error"]) == (415, True)
    status, answer = server.ask("POST", "/decide", raw=" " * 20_001)
    assert (status, "at most 20,000 bytes" in answer["error"]) == (413, True)
    deep = server.ask("POST", "/decide", raw="[" * 19_000)
    assert (deep[0], "JSON" in deep[1]["error"]) == (400, True)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as endless:
        head = "POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        endless.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(30):
            endless.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        assert b"413" in endless.recv(1000)
    assert server.get("/health") == (200, {"status": "ok"})


def test_paths_and_methods_that_are_not_there(server):
    assert server.get("/decide")[0] == 405
    status, answer = server.get("/nothing")
    assert (status, "POST /decide" in answer["error"]) == (404, True)


def test_rule_stats_and_metrics(server):
    for t in range(20):
        server.post("/decide", {"id": f"r{t}", "eta": [0.9, 0.4, 0.2]})
        server.post("/labels", {"id": f"r{t}", "y": [1, t % 2, 0]})
    rule = omma.Rule.from_json(json.dumps(server.get("/rule")[1]))
    made = server.post("/decide", {"eta": [0.9, 0.4, 0.01]})[1]["decision"]
    np.testing.assert_array_equal(rule.predict(np.array([0.9, 0.4, 0.01])), made)
    stats = server.get("/stats")[1]
    assert stats["labels"] >= 20
    assert 0 < stats["value"] <= 1
    status, text = server.get("/metrics")
    assert status == 200
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    samples = re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", text, re.M)
    assert len(samples) == len([line for line in text.splitlines() if not line.startswith("#")])
    for name, _, value in samples:
        assert re.sub(r"_(bucket|sum|count)$", "", name) in kinds or name in kinds
        float(value)
    found = {name + labels: float(value) for name, labels, value in samples}
    assert found["omma_labels_total"] == stats["labels"]
    assert found['omma_value{metric="macro_f1"}'] == pytest.approx(stats["value"])
    assert found['omma_requests_total{path="/labels",status="200"}'] >= 20
    assert found['omma_request_seconds_bucket{le="+Inf"}'] == found["omma_request_seconds_count"]


def test_a_refused_first_row_leaves_no_names_behind():
    with served("--metric", "macro_f1") as client:
        assert client.get("/stats")[0] == 404
        assert client.post("/decide", {"id": 1, "eta": {"wrong": 2.0, "names": 0.1}})[0] == 400
        status, answer = client.post("/decide", {"id": 1, "eta": {"sport": 0.8, "art": 0.1}})
        assert (status, answer["labels"]) == (200, ["sport"])
        assert 'status="400"' in client.get("/metrics")[1]


def test_bad_usage_takes_one_line():
    for arguments, sentence in (
        ([], "Missing option '--metric'"),
        (["--metric", "macro_f1", "--save-every", "5"], "--save-every needs --state"),
        (["--metric", "macro_f1", "--host", "no such host"], "is no address"),
        (["--metric", "macro_f1", "--port", "99999"], "is not in the range 0<=x<=65535"),
        (["--metric", "macro_f1", "-k", "3", "--n-labels", "2"], "--n-labels"),
    ):
        found = CliRunner().invoke(main, ["serve", *arguments])
        assert found.exit_code == 2
        assert sentence in found.output


def test_the_recipe_knows_the_options():
    """Every option on the page is one of the command, and every path one of the service."""
    page = Path(__file__).parents[2].joinpath("docs/recipes/serving.md").read_text()
    known = {name for one in main.get_command(None, "serve").params for name in one.opts}
    commands = re.findall(r"omma serve (.*)", page)
    assert len(commands) >= 2
    for command in commands:
        assert set(re.findall(r"--[a-z-]+", command)) <= known
    for option in re.findall(r"`(--[a-z-]+)`", page):
        assert option in known, option
    paths = {"/decide", "/labels", "/rule", "/stats", "/metrics", "/health"}
    assert set(re.findall(r"`(?:GET|POST) (/\w+)`", page)) == paths
