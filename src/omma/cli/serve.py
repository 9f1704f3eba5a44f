"""``omma serve``: decisions over HTTP."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omma.cli.learners import (
    POLICIES,
    alone,
    bound_waiting,
    check_kept,
    check_width,
    deciding_given,
    deciding_options,
    policy_of,
    resumed,
    say,
    waiting_options,
)
from omma.cli.options import (
    journal_option,
    sentence,
    state_option,
    whole_number,
    work,
)
from omma.cli.targets import check_policies

if TYPE_CHECKING:
    import socket

    from omma.online import OnlineClassifier

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@deciding_options()
@click.option(
    "--n-labels",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many labels there are, where rows name them by numbers.",
)
@waiting_options()
@state_option()
@journal_option()
@whole_number("--save-every", 0, "Save --state after so many rows, too; 0 does not.", least=0)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. There are no passwords: others belong behind a proxy that has some.",
)
@whole_number("--port", 8765, "Where to listen; 0 takes a free one, and says which.", least=0)
@whole_number("--max-body", 1_000_000, "Bytes of a request.")
@whole_number("--max-clients", 100, "Connections at once; more are told to come back (503).")
@click.pass_context
def command(
    ctx: click.Context,
    metric: str | None,
    k: int | None,
    at_most: int | None,
    policy: str,
    prior: float,
    subject_to: tuple[str, ...],
    half_life: float | None,
    window: int | None,
    n_labels: int | None,
    pending: int,
    max_seconds: float | None,
    state: Path | None,
    journal: Path | None,
    save_every: int,
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
    check_policies((policy,), POLICIES)
    given = deciding_given(ctx)
    resumes = check_kept(state, journal, save_every, given)
    wanted = None
    if metric is not None:
        wanted = policy_of(policy, metric, k, prior, subject_to, half_life, window, at_most)
    run = _server()

    from omma.cli.service import Kept, Service
    from omma.cli.streaming import check_asked_for, restored
    from omma.online import Journal, OnlineClassifier

    def make(m: int, names: tuple[str, ...] | None) -> OnlineClassifier:
        assert wanted is not None
        decider, judged_by = wanted
        check_width(judged_by, m)
        return OnlineClassifier(
            decider, m, metric=judged_by, names=names, max_waiting=pending, max_seconds=max_seconds
        )

    with work(), alone(state, "another omma serve or stream"), ExitStack() as held:

        def begun(learner: OnlineClassifier) -> None:
            if journal is not None:
                held.enter_context(Journal(journal, learner))

        learner, asked = None, wanted or (None, None)
        if state is not None and resumes:
            learner = restored(state, *asked)
        elif journal is not None and resumes:
            learner = resumed(held, journal)
            check_asked_for(journal, learner, *asked)
        if learner is not None:
            bound_waiting(ctx, learner, pending, max_seconds)
        service = Service(make, learner, n_labels, Kept(begun, state, save_every))
        listening = held.enter_context(_listening(host, port))
        _tell(host, listening)
        run(service, listening, max_body, max_clients)


def _server() -> Any:
    """What runs the service; it is in an extra."""
    try:
        from omma.cli.server import run
    except ImportError as error:
        if error.name not in ("uvicorn", "h11"):
            raise
        raise click.ClickException(
            f"omma serve needs {error.name}: pip install 'omma[serve]'."
        ) from error
    return run


def _listening(host: str, port: int) -> socket.socket:
    """A socket at this address; nobody else may take it."""
    import socket

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
