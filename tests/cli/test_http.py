"""The application of ``omma serve``, spoken to as a server speaks to it."""

import asyncio
import json

import pytest
from serving import keeper_of

import omma
from omma.cli import http
from omma.cli.service import Service


def begun(*options):
    return Service(keeper_of("serve", "--metric", "macro_f1", "--policy", "omma", *options))


def asked(app, *request, **options):
    """Status and content of the answer; after the last message nothing more comes."""
    status, text, _ = asyncio.run(asyncio.wait_for(exchange(app, *request, **options), 60))
    return status, text


async def exchange(app, method, path, *messages, kind=b"application/json", length=None, headers=()):
    """Status, content and headers of the answer."""
    headers = [(b"content-type", kind), *headers]
    headers += [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    sent, left = [], list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start, body = sent
    said = dict(start["headers"])
    assert int(said[b"content-length"]) == len(body["body"])
    return start["status"], body["body"].decode(), said


def part(content, more=False):
    return {"type": "http.request", "body": content, "more_body": more}


ROW = json.dumps({"id": 1, "eta": [0.9, 0.2]}).encode()


def test_a_body_may_come_in_parts():
    app = http.application(begun(), 1000)
    parts = [part(ROW[:5], True), part(b"", True), part(ROW[5:])]
    assert asked(app, "POST", "/decide", *parts) == (200, '{"id":1,"decision":[1,0]}')


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(http, "PATIENCE", 0.05)
    service = begun()
    app = http.application(service, 1000)
    for messages in ((), (part(ROW[:5], True),)):
        status, text = asked(app, "POST", "/decide", *messages)
        assert (status, "expected the body within 0.05 seconds" in text) == (408, True)
    assert service.keeper.learner is None
    assert asked(app, "POST", "/decide", part(ROW))[0] == 200


def test_whoever_ends_the_server_ends_what_waits_for_a_body():
    app = http.application(begun(), 1000)

    async def ended():
        scope = {"type": "http", "method": "POST", "path": "/decide"}
        scope["headers"] = [(b"content-type", b"application/json")]
        task = asyncio.create_task(app(scope, asyncio.Event().wait, None))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ended())


def test_half_a_body_is_none():
    app = http.application(begun(), 1000)
    status, text = asked(app, "POST", "/decide", part(ROW, True), {"type": "http.disconnect"})
    assert (status, "got a part of it" in text) == (400, True)


def test_what_is_too_long_is_not_read():
    app = http.application(begun(), 100)
    assert asked(app, "POST", "/decide", length=101)[0] == 413  # nothing of it had to come
    assert asked(app, "POST", "/decide", part(b" " * 60, True), part(b" " * 60, True))[0] == 413
    assert asked(app, "POST", "/decide", part(ROW), length="9" * 5000)[0] == 413
    assert asked(app, "POST", "/decide", part(ROW), length=len(ROW))[0] == 200


def test_rows_of_the_first_list_have_one_width():
    service = begun()
    app = http.application(service, 1000)
    rows = [{"id": 1, "eta": [0.9, 0.2]}, {"id": 2, "eta": [0.9]}]
    status, text = asked(app, "POST", "/decide", part(json.dumps(rows).encode()))
    assert (status, "expected 2 probabilities, got 1" in text) == (400, True)
    assert service.keeper.learner is None


def test_heads_are_asked_for_as_well():
    app = http.application(begun(), 100)
    assert asked(app, "HEAD", "/health")[0] == 200
    assert asked(app, "HEAD", "/decide")[0] == 405
    assert asked(app, "GET", "/decide/")[0] == 404


def test_what_was_counted_is_answered_where_it_could_not_be_saved(tmp_path, capsys):
    path = tmp_path / "gone" / "learner.npz"
    path.parent.mkdir()
    service = begun("--state", path, "--save-every", 1)
    path.parent.rmdir()
    app = http.application(service, 1000)

    def told(where, content):
        return asyncio.run(exchange(app, "POST", where, part(json.dumps(content).encode())))

    status, text, headers = told("/decide", {"id": 1, "eta": [0.9, 0.2]})
    assert (status, json.loads(text)) == (200, {"id": 1, "decision": [1, 0]})
    assert b"counted, but the state was not saved: " in headers[b"omma-warning"]
    assert told("/decide", {"id": 1, "eta": [0.9, 0.2]})[0] == 409  # so it was counted
    assert b"omma-warning" in told("/decide", {"id": 2, "eta": [0.9, 0.2]})[2]
    assert capsys.readouterr().err.count("The state was not saved: ") == 1
    path.parent.mkdir()
    status, _, headers = told("/labels", {"id": 1, "y": [1, 0]})
    assert (status, b"omma-warning" in headers) == (200, False)
    assert omma.OnlineClassifier.load(path).counts.n == 1


def test_what_is_answered_by_an_error_was_not_counted(tmp_path, monkeypatch):
    def full(journal, *event):
        raise OSError(28, "No space left on device")

    service = begun()
    app = http.application(service, 1000)
    assert asked(app, "POST", "/decide", part(ROW))[0] == 200
    with omma.Journal(tmp_path / "j", service.learner):
        monkeypatch.setattr(omma.Journal, "record", full)
        for path, content in (
            ("/decide", {"id": 2, "eta": [0.9, 0.2]}),
            ("/decide", [{"id": 2, "eta": [0.9, 0.2]}, {"id": 3, "eta": [0.9, 0.2]}]),
            ("/labels", {"id": 1, "y": [1, 0]}),
        ):
            status, text = asked(app, "POST", path, part(json.dumps(content).encode()))
            assert (status, "No space left" in text) == (507, True)
    assert (list(service.learner.waiting), service.learner.counts.n) == ([1], 0)


def test_others_are_answered_while_many_rows_are_read():
    service = begun()
    app = http.application(service, 10_000_000)
    rows = [{"id": place, "eta": [0.9, 0.2]} for place in range(5_000)]
    labels = [{"id": place, "y": [1, 0]} for place in range(5_000)]
    ended = []

    async def ask(name, *request):
        answer = await exchange(app, *request)
        ended.append((name, answer[0]))

    async def both(path, content):
        large = asyncio.create_task(ask("large", "POST", path, part(json.dumps(content).encode())))
        await asyncio.sleep(0)
        row = part(json.dumps({"eta": [0.9, 0.2]}).encode())
        await asyncio.gather(
            large, ask("health", "GET", "/health"), ask("small", "POST", "/decide", row)
        )

    for path, content in (("/decide", rows), ("/labels", labels)):
        ended.clear()
        asyncio.run(asyncio.wait_for(both(path, content), 300))
        assert ended == [("health", 200), ("small", 200), ("large", 200)]
    assert service.learner.counts.n == 5_000


def test_whoever_begins_the_learner_while_many_rows_are_read_fixes_its_labels():
    service = begun()
    app = http.application(service, 10_000_000)
    rows = json.dumps([{"eta": {"a": 0.9, "b": 0.2}}] * 1_000).encode()
    other = json.dumps({"id": 1, "eta": {"b": 0.2, "a": 0.9, "c": 0.1}}).encode()

    async def both():
        requests = (exchange(app, "POST", "/decide", part(body)) for body in (rows, other))
        return [json.loads(text) for _, text, _ in await asyncio.gather(*requests)]

    many, one = asyncio.run(asyncio.wait_for(both(), 300))
    assert one["labels"] == ["a"]
    assert many[0] == {"decision": [0, 1, 0], "labels": ["a"]}


@pytest.mark.parametrize("m", [2, 2_000])
def test_rows_times_labels_are_bounded_before_they_are_made(m):
    service = begun("--n-labels", m)
    app = http.application(service, 10_000_000)
    first = json.dumps([{"id": 1, "eta": {}}, {"id": 2, "eta": {"1": 0.5}}]).encode()
    assert asked(app, "POST", "/decide", part(first))[0] == 200
    many = b",".join([b'{"eta":{}}'] * 90_818)
    y = b",".join([b'{"id":1,"y":0}'] * 60_000)
    for path, rows in (("/decide", many), ("/labels", y)):
        status, text = asked(app, "POST", path, part(b"[" + rows + b"]"))
        assert status == 413
        assert "at most 500,000 (--max-values)" in text
        assert f"rows of {m:,} labels" in text
    few = json.dumps([{"eta": {}}] * (500_000 // max(m, 100))).encode()
    assert asked(app, "POST", "/decide", part(few))[0] == 200


def test_a_row_of_many_labels_is_always_taken():
    app = http.application(begun("--n-labels", 600_000), 1_000)
    assert asked(app, "POST", "/decide", part(b'{"eta": {"7": 0.9}}'))[0] == 200


def test_other_widths_than_the_known_one_are_refused():
    service = begun("--n-labels", 3)
    app = http.application(service, 1_000)
    status, text = asked(app, "POST", "/decide", part(ROW))
    assert (status, "expected 3 probabilities, got 2" in text) == (400, True)
    assert service.keeper.learner is None
    right = b'{"id": 1, "eta": [0.9, 0.2, 0.1]}'
    assert asked(app, "POST", "/decide", part(right))[0] == 200


def test_names_in_a_refused_row_do_not_stay():
    app = http.application(begun(), 1_000)
    assert asked(app, "POST", "/decide", part(ROW))[0] == 200
    assert asked(app, "POST", "/decide", part(b'{"eta": {"x": 0.5}}'))[0] == 400
    assert asked(app, "POST", "/decide", part(b'{"eta": {"1": 0.5}}'))[0] == 200


LOCAL = frozenset({"127.0.0.1", "localhost", "decide.example.org"})


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        (b"127.0.0.1:8765", None, 200),
        (b"LocalHost", b"http://localhost:3000", 200),
        (b"decide.example.org", b"https://decide.example.org", 200),
        (b"evil.example", None, 403),
        (b"evil.example:8765", b"http://evil.example:8765", 403),
        (b"127.0.0.1.evil.example", None, 403),
        (b"", None, 403),
        (b"127.0.0.1", b"http://evil.example", 403),
        (b"127.0.0.1", b"null", 403),
        (b"[::1", None, 400),
    ],
)
def test_pages_of_other_sites_are_refused(host, origin, status):
    app = http.application(begun(), 1_000, hosts=LOCAL)
    headers = [(b"host", host), *([(b"origin", origin)] if origin else [])]
    assert asked(app, "POST", "/decide", part(ROW), headers=headers)[0] == status
    if origin is None:
        assert asked(app, "GET", "/health", headers=headers)[0] == status


def test_where_names_are_not_known_a_page_must_be_of_the_same_host():
    app = http.application(begun(), 1_000)
    for origin, status in ((b"http://one.example", 200), (b"http://two.example", 403)):
        headers = [(b"host", b"one.example:8765"), (b"origin", origin)]
        assert asked(app, "POST", "/decide", part(b'{"eta": [1, 0]}'), headers=headers)[0] == status


def test_whoever_has_no_token_is_refused():
    app = http.application(begun(), 1_000, token=b"secret")
    for said in ((), ((b"authorization", b"Bearer wrong"),), ((b"authorization", b"secret"),)):
        for request in (("POST", "/decide", part(ROW)), ("GET", "/metrics"), ("GET", "/nothing")):
            status, _, headers = asyncio.run(exchange(app, *request, headers=said))
            assert (status, headers[b"www-authenticate"]) == (401, b"Bearer")
    assert asked(app, "GET", "/health")[0] == 200
    known = [(b"authorization", b"Bearer secret")]
    assert asked(app, "POST", "/decide", part(ROW), headers=known)[0] == 200


def test_a_fault_of_our_own_is_no_answer():
    service = begun()
    service.decide = lambda content: 1 / 0
    with pytest.raises(ZeroDivisionError):
        asked(http.application(service, 1000), "POST", "/decide", part(ROW))
