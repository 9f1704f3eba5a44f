"""The application of ``omma serve``, spoken to as a server speaks to it."""

import asyncio
import json

import pytest

import omma
from omma.cli import http
from omma.cli.service import Service
from omma.cli.streaming import Kept


def begun(**kept):
    def make(m, names):
        return omma.OnlineClassifier(omma.OMMA("macro_f1"), m, names=names)

    return Service(make, kept=Kept(**kept))


def asked(app, method, path, *messages, kind=b"application/json", length=None):
    """Status and content of the answer; after the last message nothing more comes."""
    headers = [(b"content-type", kind)]
    headers += [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    sent, left = [], list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(asyncio.wait_for(app(scope, receive, send), 60))
    start, body = sent
    said = dict(start["headers"])
    assert int(said[b"content-length"]) == len(body["body"])
    return start["status"], body["body"].decode()


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
    assert service.learner is None
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


def test_heads_are_asked_for_as_well():
    app = http.application(begun(), 100)
    assert asked(app, "HEAD", "/health")[0] == 200
    assert asked(app, "HEAD", "/decide")[0] == 405
    assert asked(app, "GET", "/decide/")[0] == 404


def lived(app):
    """What the application answers when the server begins and ends."""
    sent, told = [], [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive():
        return told.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "lifespan"}, receive, send))
    return sent


def test_it_says_where_it_could_not_save(tmp_path):
    service = begun(path=tmp_path / "gone" / "learner.npz")
    app = http.application(service, 1000)
    asked(app, "POST", "/decide", part(ROW))
    begin, end = lived(app)
    assert begin["type"] == "lifespan.startup.complete"
    assert end["type"] == "lifespan.shutdown.failed"
    assert end["message"].startswith("not saved: ")
    (tmp_path / "gone").mkdir()
    assert lived(app)[1]["type"] == "lifespan.shutdown.complete"
    assert list(omma.OnlineClassifier.load(tmp_path / "gone" / "learner.npz").waiting) == [1]


def test_a_fault_of_our_own_is_no_answer():
    service = begun()
    service.decide = lambda content: 1 / 0
    with pytest.raises(ZeroDivisionError):
        asked(http.application(service, 1000), "POST", "/decide", part(ROW))
