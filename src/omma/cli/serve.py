"""``omma serve``: decisions over HTTP."""

import signal
import socket
from contextlib import nullcontext
from ipaddress import ip_address
from types import FrameType
from typing import Any

import click

from omma._validate import require
from omma.cli.learners import LearnerKeeper, learner_options
from omma.cli.options import (
    say,
    sentence,
    signals_handled,
    token_option,
    usage,
    whole_number,
    work,
)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
GRACE = 10  # seconds that requests have to end when the server stops
BACKLOG = 128  # connections that wait to be accepted


@click.command("serve")
@learner_options("rows")
@click.option(
    "--n-labels",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of labels; rows of other lengths are refused. Needed where rows name labels by "
    "number.  [default: as in the first row]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. For addresses that other machines can reach, use a proxy with TLS "
    "or --token-file.",
)
@whole_number("--port", 8765, "Port to listen on; 0 picks a free one and prints it.", 0, 65_535)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A host name that clients may use, in addition to those of this machine; may be "
    "repeated. Without it, any name is accepted at addresses other than 127.0.0.1.",
)
@token_option(
    "Require the token in this file (Authorization: Bearer TOKEN) for all paths but /health."
)
@whole_number("--max-body", 1_000_000, "Largest request in bytes.")
@whole_number(
    "--max-values",
    500_000,
    "Largest rows x labels of a request; a row counts as at least 100 labels.",
)
@whole_number("--max-clients", 100, "Concurrent requests; more are answered with 503.")
@click.pass_context
def command(ctx: click.Context, /, **parameters: Any) -> None:
    """Decide rows over HTTP, and learn from their labels by id.

    POST /decide {"id": "a", "eta": [0.9, 0.2]} answers {"id": "a", "decision": [1, 0]}. POST
    /labels {"id": "a", "y": [1, 0]} brings the true labels later. A list of such objects is
    accepted as a whole or not at all. Rows without an id are decided, but not learned from. Labels
    may have names, as in omma stream. GET /rule, /stats, /metrics (for Prometheus) and /health.

    A refused request is answered by {"error": "..."} with a status, and nothing of it is counted:
    400, 401 without the token, 403 for other hosts, 404 for an unknown id, 409 for an id that is
    waiting or already labelled, 410 for a forgotten id, 413 for too large a request, 507 if the
    journal cannot be written. Ctrl-C and SIGTERM finish open requests, save, and close the journal.

    \b
    Example:
        omma serve --metric macro_f1 --journal served/
        curl -H 'Content-Type: application/json' \\
            -d '{"id": "a", "eta": [0.9, 0.2]}' http://127.0.0.1:8765/decide
    """  # noqa: D301
    keeper = LearnerKeeper(ctx)
    options = keeper.options
    with work():
        uvicorn = require("uvicorn", "omma serve needs", "'omma-learn[serve]'")

    from omma.cli.http import IDLE, Connections, application
    from omma.cli.service import Service, warm_up

    with signals_handled(_end, signal.SIGTERM), keeper.opened("another omma serve or stream"):
        with nullcontext() if options.n_labels is None else usage("--n-labels"):
            sample = keeper.sample()
        service = Service(keeper)
        with _bound(options.host, options.port) as listening:
            warm_up(sample)
            listening.listen()  # before the message: clients may connect as soon as they see it
            host, (address, port) = options.host, listening.getsockname()[:2]
            say(f"Listening on http://{f'[{host}]' if ':' in host else host}:{port}")
            # Web pages in a browser on this machine can reach it, too: names of hosts exclude them.
            is_local = ip_address(address).is_loopback
            if not is_local and not options.token:
                say(
                    "This address can be reached from outside, without authentication: pass "
                    "--token-file, or put it behind a proxy that has it."
                )
            names = (*LOOPBACK, host, *options.allowed_hosts)
            hosts = names if is_local or options.allowed_hosts else ()
            connections = Connections(options.max_clients)
            config = uvicorn.Config(
                application(
                    service,
                    options.max_body,
                    hosts=frozenset(name.lower() for name in hosts),
                    token=options.token.encode(),
                    connections=connections,
                ),
                http=connections.protocol(),
                access_log=False,
                log_level="warning",
                lifespan="off",
                ws="none",
                proxy_headers=False,
                backlog=BACKLOG,
                server_header=False,
                timeout_keep_alive=int(IDLE),
                timeout_graceful_shutdown=GRACE,
            )
            try:
                uvicorn.Server(config).run(sockets=[listening])  # until a signal comes
            finally:
                keeper.save()


def _end(number: int, frame: FrameType | None) -> None:
    """End the process by an exception, so that the journal is closed.

    At a signal, uvicorn finishes open requests and then raises the signal again.
    """
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the closing
    raise SystemExit(0)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that is bound to this address, and does not listen yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except (socket.gaierror, OverflowError) as error:
        raise click.BadParameter(f"'{host}:{port}' is no address.", param_hint="--host") from error
    # Without this, the address could not be used for a minute after the server has stopped.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise click.ClickException(sentence(f"{host}:{port}: {error.strerror}")) from error
    return bound
