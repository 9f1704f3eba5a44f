"""The service over HTTP: bounded bodies, one sentence for whatever is refused.

An application as ASGI has it, for any server that speaks it. There are six paths and nothing to
look up: a framework between server and service took longer than to decide a row.
"""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from omma.cli.connections import Connections
from omma.cli.json_lines import parsed
from omma.cli.prometheus import CONTENT_TYPE, Requests, exposition
from omma.cli.service import NothingYetError, Service, TooManyValuesError
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
    (TooManyValuesError, 413),
    (ValueError, 400),
    (TypeError, 400),
    (OSError, 507),  # the journal could not be written: nothing was counted
)
KINDS = tuple(kind for kind, _ in STATUS)
PATIENCE = 30.0  # seconds for a body to come
JSON = b"application/json"
METHODS = {
    "/decide": "POST",
    "/labels": "POST",
    "/rule": "GET",
    "/stats": "GET",
    "/metrics": "GET",
    "/health": "GET",
}

Scope = dict[str, Any]
Headers = dict[bytes, bytes]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Answer(NamedTuple):
    """What is sent back."""

    content: bytes
    status: int = 200
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Access(NamedTuple):
    """Who may ask: by which names of this host, and with which token; empty is anybody."""

    hosts: frozenset[str] = frozenset()
    token: bytes = b""

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Refuse pages of other sites, and whoever has no token."""
        host = host_of(b"//" + headers.get(b"host", b""))
        if self.hosts and host not in self.hosts:
            # A page whose own name was made to mean this machine (DNS rebinding) sends that name.
            raise Refused(403, f"Host {host!r} is not allowed; see --allowed-host of omma serve")
        origin = headers.get(b"origin")
        if method == "POST" and origin is not None:
            site = host_of(origin)
            if site is None or site not in (host, *self.hosts):
                raise Refused(403, f"Origin {site!r} is not allowed; see --allowed-host")
        if self.token and path != "/health":
            expected = b"Bearer " + self.token
            if not hmac.compare_digest(headers.get(b"authorization", b""), expected):
                raise Refused(401, "expected Authorization: Bearer and the token of --token-file")


ANYBODY = Access()


def host_of(address: bytes) -> str | None:
    """The host of an address, in lower case and without its port.

    >>> host_of(b"//[::1]:8765"), host_of(b"https://Example.org"), host_of(b"null")
    ('::1', 'example.org', None)
    """
    return urlsplit(address.decode("latin-1")).hostname


def application(
    service: Service,
    most_bytes: int,
    access: Access = ANYBODY,
    connections: Connections | None = None,
) -> Application:
    """The application: decisions are made one after another, in the thread of the event loop.

    A decision takes some microseconds, less than to hand it to another thread.
    """
    requests = Requests()
    connections = connections or Connections()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started, path, client = time.perf_counter(), scope["path"], scope.get("client")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]  # servers cut it off
        try:
            with connections.request(client):
                headers: Headers = dict(scope["headers"])
                access.check(method, path, headers)
                _check_path(method, path)
                if connections.full and path != "/health":
                    raise Refused(503, "too many requests at once (--max-clients): come back later")
                body = await _body(headers, receive, most_bytes) if method == "POST" else b""
                answer = await _answer(service, requests, path, body)
        except Refused as error:
            answer = _json({"error": str(error)}, error.status)
            if error.status == 401:
                answer = answer._replace(headers=((b"www-authenticate", b"Bearer"),))
        except KINDS as error:
            status = next(code for kind, code in STATUS if isinstance(error, kind))
            answer = _json({"error": str(error)}, status)
        if path in METHODS:
            requests.note(path, answer.status, time.perf_counter() - started)
        await _send(send, answer)

    return app


async def _answer(service: Service, requests: Requests, path: str, body: bytes) -> Answer:
    if METHODS[path] == "POST":
        handle = service.decide if path == "/decide" else service.label
        answer = _json(await handle(parsed(body)))
        if service.unsaved is None:
            return answer
        told = ascii(service.unsaved)[1:-1].encode()  # as headers have it
        return answer._replace(headers=((b"omma-warning", told),))
    if path == "/rule":
        return Answer(service.rule().encode())
    if path == "/stats":
        return _json(service.stats())
    if path == "/metrics":
        learner = service.learner
        stats = None if learner is None else service.stats()
        name = None if learner is None or learner.metric is None else learner.metric.name
        return Answer(exposition(stats, name, requests).encode(), kind=CONTENT_TYPE.encode())
    return _json({"status": "ok"})


def _check_path(method: str, path: str) -> None:
    if path not in METHODS:
        raise Refused(
            404, "there are GET /health, /metrics, /rule, /stats and POST /decide, /labels"
        )
    if method != METHODS[path]:
        raise Refused(405, f"{method} is not for {path}")


async def _body(headers: Headers, receive: Receive, most: int) -> bytes:
    """The body of a request, no longer than allowed.

    Pages of other sites may send what forms send, but no JSON without asking: only that is taken.
    """
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
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})


def _too_long(most: int) -> Refused:
    return Refused(413, f"expected a body of at most {most:,} bytes; send fewer rows at once")


_written = json.JSONEncoder(separators=(",", ":")).encode


def _json(content: Any, status: int = 200) -> Answer:
    return Answer(_written(content).encode(), status)
