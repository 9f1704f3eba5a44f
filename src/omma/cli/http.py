"""The service over HTTP: bounded bodies, one sentence for whatever is refused.

An application as ASGI has it, for any server that speaks it. There are six paths and nothing to
look up: a framework between server and service took longer than to decide a row.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from omma.cli.json_lines import parsed
from omma.cli.prometheus import CONTENT_TYPE, Requests, exposition
from omma.cli.service import NothingYetError, Service
from omma.online.pending import (
    AlreadyWaitingError,
    ForgottenIdError,
    LabelledTwiceError,
    UnknownIdError,
)


class Refused(Exception):  # noqa: N818 — an answer, not a failure
    """A request that does not come as far as the service."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


# The first that fits says how an answer ends; all are sentences of the library.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (AlreadyWaitingError, 409),
    (LabelledTwiceError, 409),
    (ForgottenIdError, 410),
    (UnknownIdError, 404),
    (NothingYetError, 404),
    (ValueError, 400),
    (TypeError, 400),
    (OSError, 507),  # the journal or the state could not be written: nothing was counted
)
KINDS = tuple(kind for kind, _ in STATUS)
PATIENCE = 30.0  # seconds for a body to come
JSON = b"application/json"

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Answer(NamedTuple):
    """What is sent back."""

    content: bytes
    status: int = 200
    kind: bytes = JSON


Handler = Callable[[bytes], Answer]


def application(service: Service, most_bytes: int) -> Application:
    """The application: each request is answered before the next one is looked at.

    A decision takes some microseconds, less than to hand it to another thread.
    """
    requests = Requests()
    routes = _routes(service, requests)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(service, receive, send)
            return
        started, path = time.perf_counter(), scope["path"]
        try:
            method = "GET" if scope["method"] == "HEAD" else scope["method"]  # servers cut it off
            handler = _found(routes, method, path)
            body = await _body(scope, receive, most_bytes) if method == "POST" else b""
            answer = handler(body)
        except Refused as error:
            answer = _json({"error": str(error)}, error.status)
        except KINDS as error:
            status = next(code for kind, code in STATUS if isinstance(error, kind))
            answer = _json({"error": str(error)}, status)
        if path in routes:
            requests.note(path, answer.status, time.perf_counter() - started)
        await _send(send, answer)

    return app


def _routes(service: Service, requests: Requests) -> dict[str, tuple[str, Handler]]:
    """What answers each path, and by which method it is asked."""

    def metrics(body: bytes) -> Answer:
        learner = service.learner
        found = None if learner is None else service.stats()
        name = None if learner is None or learner.metric is None else learner.metric.name
        return Answer(exposition(found, name, requests).encode(), kind=CONTENT_TYPE.encode())

    return {
        "/decide": ("POST", lambda body: _json(service.decide(parsed(body)))),
        "/labels": ("POST", lambda body: _json(service.label(parsed(body)))),
        "/rule": ("GET", lambda body: Answer(service.rule().encode())),
        "/stats": ("GET", lambda body: _json(service.stats())),
        "/metrics": ("GET", metrics),
        "/health": ("GET", lambda body: _json({"status": "ok"})),
    }


def _found(routes: dict[str, tuple[str, Handler]], method: str, path: str) -> Handler:
    if path not in routes:
        raise Refused(
            404, "there are GET /health, /metrics, /rule, /stats and POST /decide, /labels"
        )
    wanted, handler = routes[path]
    if method != wanted:
        raise Refused(405, f"{method} is not for {path}")
    return handler


async def _live(service: Service, receive: Receive, send: Send) -> None:
    """Begin when the server does, and save when it ends."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    try:
        service.save()
    except (OSError, ValueError) as error:
        await send({"type": "lifespan.shutdown.failed", "message": f"not saved: {error}"})
    else:
        await send({"type": "lifespan.shutdown.complete"})


async def _body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The body of a request, no longer than allowed.

    Pages of other sites may send what forms send, but no JSON without asking: only that is taken.
    """
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != JSON:
        got = kind.decode("latin-1") or "none"
        raise Refused(415, f"expected Content-Type: application/json, got {got}")
    said = headers.get(b"content-length", b"")
    if said.isdigit() and int(said[:20]) > most:
        raise _too_long(most)
    with _Patience():
        return await _collected(receive, most)


class _Patience:
    """Ends what the task waits for within it, after some time; ``wait_for`` would make a task."""

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._over = False

        def end() -> None:
            self._over = True
            task.cancel()

        self._timer = asyncio.get_running_loop().call_later(PATIENCE, end)

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        self._timer.cancel()
        if self._over and kind is asyncio.CancelledError:
            raise Refused(408, f"expected the body within {PATIENCE:g} seconds") from error


async def _collected(receive: Receive, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "expected a whole body, got a part of it")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_long(most)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _send(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.kind),
        (b"content-length", str(len(answer.content)).encode()),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})


def _too_long(most: int) -> Refused:
    return Refused(413, f"expected a body of at most {most:,} bytes; send fewer rows at once")


_written = json.JSONEncoder(separators=(",", ":")).encode


def _json(content: Any, status: int = 200) -> Answer:
    return Answer(_written(content).encode(), status)
