"""The server that ``omma serve`` runs in."""

from __future__ import annotations

import socket

import uvicorn

from omma.cli.http import application
from omma.cli.service import Service

GRACE = 10  # seconds that requests have to end when the server stops
WAITING = 128  # connections that wait to be accepted


def run(service: Service, listening: socket.socket, most_bytes: int, clients: int) -> None:
    """Serve until a signal comes; then what has begun is finished, and the learner saved."""
    config = uvicorn.Config(
        application(service, most_bytes),
        access_log=False,
        log_level="warning",
        lifespan="on",
        ws="none",
        limit_concurrency=clients,
        backlog=WAITING,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    uvicorn.Server(config).run(sockets=[listening])
