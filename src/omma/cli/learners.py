"""What commands that keep a learner share: how it is begun, resumed and kept from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omma.cli.options import (
    Command,
    check_folder,
    metric_option,
    policy_option,
    sentence,
    usage,
    whole_number,
)
from omma.cli.targets import (
    at_most_option,
    budget_option,
    check_at_most,
    limits_option,
    prior_option,
    read_metric,
)
from omma.policies.roster import ONLINE, ROSTER, STILL

if TYPE_CHECKING:
    from omma.online import OnlineClassifier

# Those whose memory does not grow with the rows.
POLICIES = tuple(name for name, entry in ROSTER.items() if entry.kind in (ONLINE, STILL))
# The options that say what decides, as the functions of commands know them.
DECIDING = ("metric", "k", "at_most", "policy", "prior", "subject_to", "half_life", "window")


def deciding_options() -> Callable[[Command], Command]:
    """What decides: metric, budget, policy, and which rows it looks at."""
    every = (
        metric_option(),
        budget_option(),
        at_most_option(),
        policy_option(POLICIES),
        prior_option(
            "λ of policies that have one; auto has none to choose.  [default: 1e-6]", False
        ),
        limits_option(),
        click.option(
            "--half-life",
            type=click.FloatRange(min=1.0),
            metavar="ROWS",
            help="Let counts fade, for a world that changes: after so many rows a row counts half.",
        ),
        click.option(
            "--window",
            type=click.IntRange(min=1),
            metavar="ROWS",
            help="Decide by the last so many rows alone.",
        ),
    )

    def wrap(command: Command) -> Command:
        for option in reversed(every):
            command = option(command)
        return command

    return wrap


def waiting_options() -> Callable[[Command], Command]:
    """How many rows wait for their labels, and for how long."""
    number = whole_number(
        "--pending", 10_000, "Rows that may wait for labels; then the oldest is forgotten."
    )
    age = click.option(
        "--max-seconds",
        type=click.FloatRange(min=0.0, min_open=True),
        metavar="S",
        help="Forget rows, too, that have waited for labels for longer than that.",
    )
    return lambda command: number(age(command))


def bound_waiting(
    ctx: click.Context, learner: OnlineClassifier, pending: int, max_seconds: float | None
) -> None:
    """A learner that goes on keeps its bounds, unless others were written."""
    limit = pending if was_given(ctx, "pending") else None
    if limit is not None or max_seconds is not None:
        learner.bound_waiting(limit, max_seconds)


def deciding_given(ctx: click.Context) -> list[str]:
    """Which of these options were written."""
    return [name.replace("_", "-") for name in DECIDING if was_given(ctx, name)]


def resumed(held: ExitStack, folder: Path) -> OnlineClassifier:
    """The learner of a journal, and a sentence about what is there."""
    import warnings

    from omma.online import Journal

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        learner = held.enter_context(Journal.resume(folder)).learner
    for one in found:
        say(f"{one.message}.")
    stats = learner.stats()
    say(
        f"Going on from {folder}: {stats['decided']:,} decided by id, {stats['labels']:g} learned, "
        f"{stats['waiting']:,} waiting for labels."
    )
    return learner


def was_given(ctx: click.Context, name: str) -> bool:
    """Whether an option was written, and is not its default."""
    from click.core import ParameterSource

    return ctx.get_parameter_source(name) is not ParameterSource.DEFAULT


def policy_of(
    name: str,
    metric: str,
    k: int | None,
    prior: float,
    subject_to: tuple[str, ...] = (),
    half_life: float | None = None,
    window: int | None = None,
    at_most: int | None = None,
) -> tuple[Any, Any]:
    """The policy and what it is judged by."""
    from omma.cli.targets import make_policy
    from omma.policies import UnsupportedMetricError

    found, budget = read_metric(metric, k)
    check_at_most(found, budget, at_most)
    try:
        with usage("--metric"):
            options = {"subject_to": subject_to, "at_most": at_most}
            policy = make_policy(name, found, budget, prior, **options)  # type: ignore[arg-type]
    except UnsupportedMetricError as error:
        raise click.BadParameter(sentence(error), param_hint="--policy") from error
    return _looking_at(policy, half_life, window), found


def _looking_at(policy: Any, half_life: float | None, window: int | None) -> Any:
    """The policy with counts that fade, or with a window, where one was asked for."""
    from omma.policies import Forgetting, Window

    if half_life is not None and window is not None:
        raise click.UsageError("Pass --half-life or --window, not both.")
    if half_life is not None:
        with usage("--half-life"):
            return Forgetting(policy, half_life)
    if window is not None:
        with usage("--window"):
            return Window(policy, window)
    return policy


def check_width(metric: Any, m: int) -> None:
    """A metric of one label takes one column of probabilities."""
    if metric.binary and m != 1:
        raise ValueError(
            f"{metric.name} takes the probability of one label, and there are {m} columns: pass "
            "--column NAME to take one, or --id NAME if one names rows; the true label is in a "
            "column y"
        )


def say(sentence: str) -> None:
    """Tell people something; what programs read is on standard output."""
    click.echo(sentence, err=True)


@contextmanager
def alone(state: Path | None, who: str) -> Iterator[None]:
    """Two that save to one file would each undo what the other has learned."""
    from omma._lock import locked

    if state is None:
        yield
        return
    with locked(state, who):
        yield


def check_kept(state: Path | None, journal: Path | None, save_every: int, given: list[str]) -> bool:
    """Refuse options that do not go together; whether there is a learner to go on from."""
    if state is not None and journal is not None:
        raise click.UsageError("Pass --state or --journal, not both: a journal has a state.")
    if state is not None:
        if state.suffix.lower() != ".npz":
            raise click.BadParameter(f"'{state}' must end in .npz.", param_hint="--state")
        check_folder(state, "--state")
    elif save_every:
        raise click.UsageError("--save-every needs --state.")
    resumes = state is not None and state.is_file()
    if journal is not None:
        resumes = journal.is_dir() and any(journal.glob("snapshot-*.npz"))
    if "metric" not in given and not resumes:
        raise click.UsageError("Missing option '--metric'.")
    if "metric" not in given and given:
        raise click.UsageError(f"--{given[0]} needs --metric.")
    return resumes
