"""Connections of a service: those without a request are closed, so that others find a place."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

IDLE = 10.0  # seconds until a client must have sent the head of its next request
LINGER = 30.0  # seconds more to read the last answer
SPARE = 8  # connections beside those of all requests at once: for /health, and to be told 503

Client = tuple[str, int]


class Connections:
    """Open connections by the address of their client.

    Of ``most`` requests at once and ``SPARE`` connections more, all without a request have ``IDLE``
    seconds. One connection more, and the one that waits longest is closed: whoever only holds
    connections keeps nobody out.
    """

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self._requests = 0
        self._transports: dict[Client, asyncio.Transport] = {}
        # What ends those that have no request, the longest without one first.
        self._idle: dict[Client, asyncio.TimerHandle] = {}

    @property
    def full(self) -> bool:
        """Whether there are more requests than allowed, the present one included."""
        return self._requests > self.most

    @contextmanager
    def request(self, client: Client | None) -> Iterator[None]:
        """While it is entered, the client has a request; then it has to read the answer in time."""
        self._requests += 1
        if client in self._idle:
            self._idle.pop(client).cancel()
        try:
            yield
        finally:
            self._requests -= 1
            if client in self._transports:
                self._wait(client)

    def open(self, client: Client, transport: asyncio.Transport) -> None:
        """A connection has come; where there is no place, the one that is idle longest goes."""
        self._transports[client] = transport
        self._wait(client)
        if len(self._transports) > self.most + SPARE:
            oldest = next(iter(self._idle))
            transport = self._transports[oldest]
            self.close(oldest)
            transport.abort()

    def close(self, client: Client) -> None:
        """A connection has gone."""
        self._transports.pop(client, None)
        if client in self._idle:
            self._idle.pop(client).cancel()

    def _wait(self, client: Client) -> None:
        self._idle[client] = asyncio.get_running_loop().call_later(IDLE, self._end, client)

    def _end(self, client: Client) -> None:
        transport = self._transports[client]
        transport.close()  # once what was sent is read
        loop = asyncio.get_running_loop()
        self._idle[client] = loop.call_later(LINGER, transport.abort)

    def protocol(self) -> type[asyncio.Protocol]:
        """What uvicorn speaks HTTP by, with connections told to this object."""
        from uvicorn.protocols.http.auto import AutoHTTPProtocol

        connections = self
        base: Any = AutoHTTPProtocol  # httptools or h11, whichever is installed

        class Counted(base):  # type: ignore[misc]
            peer: Client | None = None

            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                name = transport.get_extra_info("peername")
                if name:  # none where the client has gone already
                    self.peer = (str(name[0]), int(name[1]))
                    connections.open(self.peer, transport)

            def connection_lost(self, error: Exception | None) -> None:
                if self.peer is not None:
                    connections.close(self.peer)
                super().connection_lost(error)

        return Counted
