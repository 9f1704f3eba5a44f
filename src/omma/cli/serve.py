"""``omma serve``: decisions over HTTP."""

import socket
from typing import Any

import click

from omma.cli.learners import Asked, Keeper, deciding_options, keeping_options
from omma.cli.options import say, sentence, whole_number

LOOPBACK = ("127.0.0.1", "::1", "localhost")
GRACE = 10  # seconds that requests have to end when the server stops
WAITING = 128  # connections that wait to be accepted


@click.command("serve")
@deciding_options()
@click.option(
    "--n-labels",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many labels there are, where rows name them by numbers.",
)
@keeping_options("rows")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. There are no passwords: others belong behind a proxy that has some.",
)
@whole_number("--port", 8765, "Where to listen; 0 takes a free one, and says which.", 0, 65_535)
@whole_number("--max-body", 1_000_000, "Bytes of a request.")
@whole_number("--max-clients", 100, "Connections at once; more are told to come back (503).")
@click.pass_context
def command(
    ctx: click.Context,
    asked: Asked,
    n_labels: int | None,
    host: str,
    port: int,
    max_body: int,
    max_clients: int,
) -> None:
    """Decide rows over HTTP as they come, and learn from their labels by id.

    POST /decide {"id": "a", "eta": [0.9, 0.2]} answers {"id": "a", "decision": [1, 0]}; POST
    /labels {"id": "a", "y": [1, 0]} tells later how it was. Lists of such objects are taken as a
    whole or not at all. Rows without an id are decided, and nothing is learned from them. Labels
    may have names, as in "omma stream". GET /rule, /stats, /metrics (for Prometheus) and /health.

    What is refused is answered by a sentence: {"error": "..."} and 400, 404 for an unknown id, 409
    for one that waits or was labelled before, 410 for one that was forgotten, 413 for too long a
    body. Ctrl-C and termination finish what has begun, and save.

    \b
    Example:
        omma serve --metric macro_f1 --journal served/
        curl -H 'Content-Type: application/json' \\
            -d '{"id": "a", "eta": [0.9, 0.2]}' http://127.0.0.1:8765/decide
    """  # noqa: D301
    keeper = Keeper(ctx, asked)
    uvicorn = _uvicorn()

    from omma.cli.http import application
    from omma.cli.service import Service
    from omma.cli.streaming import Kept

    with keeper.working("another omma serve or stream"):
        kept, found = Kept(keeper.begun, asked.state, asked.save_every), keeper.found()
        if found is None and n_labels is not None:
            _check_labels(keeper, n_labels)
        service = Service(keeper.make, found, n_labels, kept)
        with _listening(host, port) as listening:
            _tell(host, listening)
            config = uvicorn.Config(
                application(service, max_body),
                access_log=False,
                log_level="warning",
                lifespan="on",
                ws="none",
                limit_concurrency=max_clients,
                backlog=WAITING,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
            )
            # Until a signal comes; then what has begun is finished, and the learner saved.
            uvicorn.Server(config).run(sockets=[listening])


def _uvicorn() -> Any:
    """What runs the service; it is in an extra."""
    try:
        import uvicorn
    except ImportError as error:
        if error.name not in ("uvicorn", "h11"):
            raise
        raise click.ClickException(
            f"omma serve needs {error.name}: pip install 'omma[serve]'."
        ) from error
    return uvicorn


def _check_labels(keeper: Keeper, n_labels: int) -> None:
    """Refuse a number of labels that the first row would be refused for."""
    try:
        keeper.make(n_labels, None)
    except ValueError as error:
        raise click.BadParameter(sentence(str(error)), param_hint="--n-labels") from error


def _listening(host: str, port: int) -> socket.socket:
    """A socket at this address; nobody else may take it."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
    except (socket.gaierror, OverflowError) as error:
        raise click.BadParameter(f"'{host}:{port}' is no address.", param_hint="--host") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        made.listen()  # who reads that it listens may connect at once
    except OSError as error:
        made.close()
        raise click.ClickException(sentence(f"{host}:{port}: {error.strerror}")) from error
    return made


def _tell(host: str, listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    say(f"Listening on http://{shown}:{port}")
    if host not in LOOPBACK:
        say("Others can reach it, and it asks for no password: put it behind a proxy that does.")
