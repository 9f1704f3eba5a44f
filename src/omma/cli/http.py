"""The service over HTTP, as an ASGI application: bounded bodies, a sentence for each refusal.

There are only six paths, and a web framework took longer than deciding a row, so none is used.
"""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from omma.cli.prometheus import CONTENT_TYPE, RequestCounts, exposition
from omma.cli.service import RefusedError, Service
from omma.datasets.json_lines import parsed
from omma.online.waiting import (
    AlreadyWaitingError,
    ForgottenIdError,
    LabelledTwiceError,
    UnknownIdError,
)

# The status for each error of the library: that of the first class that fits.
STATUS: dict[type[Exception], int] = {
    AlreadyWaitingError: 409,
    LabelledTwiceError: 409,
    ForgottenIdError: 410,
    UnknownIdError: 404,
    ValueError: 400,
    TypeError: 400,
    OSError: 507,  # the journal could not be written: nothing was counted
}
REFUSALS: tuple[type[Exception], ...] = (RefusedError, *STATUS)
PATIENCE = 30.0  # seconds that a client has to send a body
IDLE = 10.0  # seconds that it has to send the head of its next request
LINGER = 30.0  # seconds more that it has to read the last answer
SPARE = 8  # connections beyond --max-clients: for /health, and for answers with 503
JSON = b"application/json"
METHODS = {
    "/decide": "POST",
    "/labels": "POST",
    "/rule": "GET",
    "/stats": "GET",
    "/metrics": "GET",
    "/health": "GET",
}

Client = tuple[str, int]  # address and port
Scope = dict[str, Any]
Headers = dict[bytes, bytes]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def check_access(
    hosts: frozenset[str], token: bytes, method: str, path: str, headers: Headers
) -> None:
    """Refuse requests of pages of other sites, and requests without the token."""
    host = host_of(b"//" + headers.get(b"host", b""))
    if hosts and host not in hosts:
        # A page whose host name was pointed at this machine (DNS rebinding) sends that name.
        raise RefusedError(403, f"Host {host!r} is not allowed; see --allowed-host of omma serve")
    origin = headers.get(b"origin")
    if method == "POST" and origin is not None:
        site = host_of(origin)
        if site is None or site not in (host, *hosts):
            raise RefusedError(403, f"Origin {site!r} is not allowed; see --allowed-host")
    if token and path != "/health":
        expected = b"Bearer " + token
        if not hmac.compare_digest(headers.get(b"authorization", b""), expected):
            raise RefusedError(401, "expected Authorization: Bearer and the token of --token-file")


class Connections:
    """Open connections by the address of their client: at most ``most`` + ``SPARE``.

    A connection without a request is closed after ``IDLE`` seconds. If one connection more comes,
    the one that is idle longest is closed. So clients that only hold connections keep nobody out.
    """

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.requests = 0  # at this moment
        self._transports: dict[Client, asyncio.Transport] = {}
        # The timers that will close idle connections, those idle longest first.
        self._idle: dict[Client, asyncio.TimerHandle] = {}

    @contextmanager
    def request(self, client: Client | None) -> Iterator[None]:
        """Count a request while it is answered; its connection is not idle meanwhile."""
        self.requests += 1
        if client in self._idle:
            self._idle.pop(client).cancel()
        try:
            yield
        finally:
            self.requests -= 1
            if client in self._transports:
                self._wait(client)

    def open(self, client: Client, transport: asyncio.Transport) -> None:
        """Note a new connection; if there are too many, close the one that is idle longest."""
        self._transports[client] = transport
        self._wait(client)
        if len(self._transports) > self.most + SPARE:
            oldest = next(iter(self._idle))
            transport = self._transports[oldest]
            self.close(oldest)
            transport.abort()

    def close(self, client: Client | None) -> None:
        """Forget a connection that is closed; None is one that was never open."""
        if client in self._transports:
            del self._transports[client]
        if client in self._idle:
            self._idle.pop(client).cancel()

    def _wait(self, client: Client) -> None:
        self._idle[client] = asyncio.get_running_loop().call_later(IDLE, self._end, client)

    def _end(self, client: Client) -> None:
        transport = self._transports[client]
        transport.close()  # when the client has read what was sent
        self._idle[client] = asyncio.get_running_loop().call_later(LINGER, transport.abort)

    def protocol(self) -> type[asyncio.Protocol]:
        """The HTTP protocol of uvicorn, which here tells this object of its connections."""
        from uvicorn.protocols.http.auto import AutoHTTPProtocol

        connections = self
        base: Any = AutoHTTPProtocol  # httptools or h11, whichever is installed

        class TrackedProtocol(base):  # type: ignore[misc]
            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                name = transport.get_extra_info("peername")  # None if the client has gone already
                self.peer = name and name[:2]  # address and port; IPv6 has more parts
                if self.peer:
                    connections.open(self.peer, transport)

            def connection_lost(self, error: Exception | None) -> None:
                connections.close(self.peer)
                super().connection_lost(error)

        return TrackedProtocol


def host_of(address: bytes) -> str | None:
    """The host of an address, in lower case and without its port.

    >>> host_of(b"//[::1]:8765"), host_of(b"https://Example.org"), host_of(b"null")
    ('::1', 'example.org', None)
    """
    return urlsplit(address.decode("latin-1")).hostname


def application(
    service: Service,
    most_bytes: int,
    *,
    hosts: frozenset[str] = frozenset(),
    token: bytes = b"",
    connections: Connections | None = None,
) -> Application:
    """The ASGI application. Empty ``hosts`` allow any name of this host; an empty token, anybody.

    Decisions are made in the thread of the event loop, one after another: a decision takes some
    microseconds, less than handing it to another thread.
    """
    requests = RequestCounts()
    connections = connections or Connections()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started, path, client = time.perf_counter(), scope["path"], scope.get("client")
        # The server leaves out the body of an answer to HEAD.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        status, kind = 200, JSON
        notes: list[tuple[bytes, bytes]] = []  # further headers of the answer
        try:
            with connections.request(client):
                headers: Headers = dict(scope["headers"])
                check_access(hosts, token, method, path, headers)
                if path not in METHODS:
                    paths = "GET /health, /metrics, /rule, /stats and POST /decide, /labels"
                    raise RefusedError(404, f"there are {paths}")
                if method != METHODS[path]:
                    raise RefusedError(405, f"{method} is not for {path}")
                if connections.requests > connections.most and path != "/health":
                    raise RefusedError(
                        503, "too many requests at once (--max-clients): come back later"
                    )
                body = await _body(headers, receive, most_bytes) if method == "POST" else b""
                content, kind = await _answer(service, requests, path, body)
                if body and service.unsaved is not None:
                    # Headers are ASCII.
                    notes.append((b"omma-warning", ascii(service.unsaved)[1:-1].encode()))
        except REFUSALS as error:
            content = _json({"error": str(error)})
            if isinstance(error, RefusedError):
                status = error.status
            else:
                status = next(code for of, code in STATUS.items() if isinstance(error, of))
            if status == 401:
                notes.append((b"www-authenticate", b"Bearer"))
        if path in METHODS:
            requests.note(path, status, time.perf_counter() - started)
        length = str(len(content)).encode()
        head = [(b"content-type", kind), (b"content-length", length), *notes]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": content})

    return app


async def _answer(
    service: Service, requests: RequestCounts, path: str, body: bytes
) -> tuple[bytes, bytes]:
    """The content of the answer, and its type."""
    if path == "/metrics":
        stats = None if service.keeper.learner is None else service.stats()
        return exposition(stats, requests).encode(), CONTENT_TYPE
    if path == "/rule":
        return service.learner.rule.to_json().encode(), JSON
    content: Any = {"status": "ok"}  # of /health
    if path == "/stats":
        content = service.stats()
    elif METHODS[path] == "POST":
        handle = service.decide if path == "/decide" else service.label
        content = await handle(parsed(body))
    return _json(content), JSON


async def _body(headers: Headers, receive: Receive, most: int) -> bytes:
    """The body of a request, of at most ``most`` bytes.

    Only JSON is accepted: a browser lets pages of other sites send forms, but no JSON.
    """
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != JSON:
        got = kind.decode("latin-1") or "none"
        raise RefusedError(415, f"expected Content-Type: application/json, got {got}")
    too_long = RefusedError(
        413, f"expected a body of at most {most:,} bytes; send fewer rows at once"
    )
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length[:20]) > most:
        raise too_long
    body, is_whole = bytearray(), False
    try:
        async with asyncio.timeout(PATIENCE):
            while not is_whole:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "expected a whole body, got a part of it")
                body += message.get("body", b"")
                if len(body) > most:
                    raise too_long
                is_whole = not message.get("more_body", False)
    except TimeoutError as error:
        raise RefusedError(408, f"expected the body within {PATIENCE:g} seconds") from error
    return bytes(body)


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
