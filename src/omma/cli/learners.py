"""What commands that keep a learner share: how it is begun, resumed and kept from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from omma._lock import locked
from omma._validate import shown
from omma.cli.options import Command, check_folder, say, sentence, usage, whole_number, work
from omma.cli.targets import (
    at_most_option,
    budget_option,
    check_at_most,
    check_policies,
    limits_option,
    make_policy,
    prior_option,
    read_metric,
)
from omma.policies.roster import ONLINE, ROSTER, STILL

if TYPE_CHECKING:
    from omma.online import OnlineClassifier

# Those whose memory does not grow with the rows.
POLICIES = tuple(name for name, entry in ROSTER.items() if entry.kind in (ONLINE, STILL))


class Asked(NamedTuple):
    """What the options say of a learner: what decides, which rows wait, and where it is kept."""

    metric: str | None
    k: int | None
    at_most: int | None
    policy: str
    prior: float
    subject_to: tuple[str, ...]
    half_life: float | None
    window: int | None
    pending: int
    max_seconds: float | None
    state: Path | None
    journal: Path | None
    save_every: int
    sync: int


SAMPLE = 4  # labels of a learner to try things out by, where the number is not known
DECIDING = Asked._fields[: Asked._fields.index("pending")]


def deciding_options() -> Callable[[Command], Command]:
    """What decides: metric, budget, policy, and which rows it looks at."""
    return _together(
        click.option(
            "--metric", metavar="NAME", help="What to maximize; not needed to go on from --state."
        ),
        budget_option,
        at_most_option,
        click.option(
            "--policy",
            default="auto",
            show_default=True,
            metavar="NAME",
            help=f"One of {', '.join(POLICIES)}.",
        ),
        prior_option(
            "λ of policies that have one; auto has none to choose.  [default: 1e-6]", False
        ),
        limits_option,
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


def keeping_options(unit: str) -> Callable[[Command], Command]:
    """Which rows wait for labels, and where the learner is kept.

    The command is given all that is ``Asked``, what decides included, as one.
    """
    options = _together(
        whole_number(
            "--pending", 10_000, "Rows that may wait for labels; then the oldest is forgotten."
        ),
        click.option(
            "--max-seconds",
            type=click.FloatRange(min=0.0, min_open=True),
            metavar="S",
            help="Forget rows, too, that have waited for labels for longer than that.",
        ),
        click.option(
            "--state",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE.npz",
            help="Go on from this learner if the file exists, and save it at the end.",
        ),
        click.option(
            "--journal",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Write every decision and label down in this folder, and go on from it if it has "
            "some.",
        ),
        whole_number(
            "--save-every", 0, f"Save --state after so many {unit}, too; 0 does not.", least=0
        ),
        whole_number(
            "--sync",
            100,
            "Have the disk keep the --journal after so many calls: a power cut loses fewer than "
            "these, a crash of the process none. 1 is safest and slowest.",
        ),
    )

    def wrap(command: Command) -> Any:
        @wraps(command)
        def packed(*args: Any, **given: Any) -> Any:
            asked = Asked(*(given.pop(name) for name in Asked._fields))
            return command(*args, asked=asked, **given)

        return options(packed)

    return wrap


def _together(*every: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def wrap(command: Command) -> Command:
        for option in reversed(every):
            command = option(command)
        return command

    return wrap


class Keeper:
    """Begins the learner of a command or goes on with one, and keeps it, as options ask.

    ``found`` and ``begun`` are for use while it is ``working``.
    """

    def __init__(self, ctx: click.Context, asked: Asked) -> None:
        check_policies((asked.policy,), POLICIES)
        given = [name.replace("_", "-") for name in DECIDING if _was_given(ctx, name)]
        self._resumes = _check_kept(asked, given)
        self._asked = asked
        self._policy: Any = None
        self._metric: Any = None
        if asked.metric is not None:
            self._policy, self._metric = _policy_of(asked)
        self._waiting = asked.pending if _was_given(ctx, "pending") else None
        if asked.journal is None and _was_given(ctx, "sync"):
            raise click.UsageError("--sync needs --journal.")
        # With --column it is a number of columns, of which one is taken.
        by_column = ctx.params.get("column") is not None
        self._n_labels: int | None = None if by_column else ctx.params["n_labels"]
        self._is_width_known = by_column or self._n_labels is not None
        self._held = ExitStack()

    @contextmanager
    def working(self, who: str) -> Iterator[None]:
        """What fails takes one line, ``who`` is told to others, and a journal is closed."""
        state = self._asked.state
        # Two that save to one file would each undo what the other has learned.
        alone = nullcontext() if state is None else locked(state, who)
        with work(), alone, self._held:
            yield

    def make(self, m: int, names: tuple[str, ...] | None) -> OnlineClassifier:
        """A new learner, when the first row says how many labels there are."""
        from omma.online import OnlineClassifier

        assert self._policy is not None
        if self._metric.binary and m != 1:
            raise ValueError(
                f"{self._metric.name} takes the probability of one label, and there are {m} "
                "columns: pass --column NAME to take one, or --id NAME if one names rows; the true "
                "label is in a column y"
            )
        return OnlineClassifier(
            self._policy,
            m,
            metric=self._metric,
            names=names,
            max_waiting=self._asked.pending,
            max_seconds=self._asked.max_seconds,
        )

    def sample(self, learner: OnlineClassifier | None, n_labels: int | None) -> OnlineClassifier:
        """An empty learner as the one to serve is, or will be when the first row begins it."""
        from omma.online import OnlineClassifier

        if learner is not None:
            return OnlineClassifier(
                learner.policy, learner.n_labels, metric=learner.metric, names=learner.names
            )
        limited = [limit.label for limit in self._policy.limits if limit.label is not None]
        names = [*dict.fromkeys(label for label in limited if isinstance(label, str))]
        places = [label + 1 for label in limited if isinstance(label, int)]
        m = n_labels or max(SAMPLE, self._policy.budget or 1, len(names), *places)
        if self._metric.binary:
            m = n_labels or 1
        more = [f"label {place}" for place in range(len(names), m)]
        return self.make(m, (*names, *more) if names else None)

    def begun(self, learner: OnlineClassifier) -> None:
        """A new learner is kept in a journal, where there is one."""
        from omma.online import Journal

        journal, sync = self._asked.journal, self._asked.sync
        if journal is not None:
            self._held.enter_context(Journal(journal, learner, sync=sync))
        if not self._is_width_known and not self._metric.binary:
            names = "" if learner.names is None else f" ({shown(learner.names)})"
            say(
                f"The first row has fixed the number of labels at {learner.n_labels}{names}; "
                "--n-labels says it beforehand."
            )

    def found(self) -> OnlineClassifier | None:
        """The learner to go on with; it keeps its bounds, unless others were written."""
        from omma.online import OnlineClassifier

        state, journal = self._asked.state, self._asked.journal
        if state is not None and (self._resumes or state.is_file()):
            learner = OnlineClassifier.load(state)
        elif journal is not None and self._resumes:
            learner = self._resumed(journal)
        else:
            return None
        path, policy, metric = state or journal, self._policy, self._metric
        if policy is not None and learner.policy != policy:
            raise ValueError(f"{path} holds {learner.policy!r}, and {policy!r} was asked for")
        if metric is not None and learner.metric != metric:
            own = "none" if learner.metric is None else learner.metric.name
            raise ValueError(f"{path} is judged by {own}, and {metric.name} was asked for")
        if self._n_labels not in (None, learner.n_labels):
            raise ValueError(
                f"{path} holds a learner of {learner.n_labels} labels, and --n-labels "
                f"{self._n_labels} was asked for"
            )
        if self._waiting is not None or self._asked.max_seconds is not None:
            learner.bound_waiting(self._waiting, self._asked.max_seconds)
        return learner

    def _resumed(self, folder: Path) -> OnlineClassifier:
        """The learner of a journal, and a sentence about what is there."""
        import warnings

        from omma.online import Journal

        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            journal = Journal.resume(folder, sync=self._asked.sync)
            learner = self._held.enter_context(journal).learner
        for one in found:
            say(f"{one.message}.")
        stats = learner.stats()
        say(
            f"Going on from {folder}: {stats['decided']:,} decided by id, {stats['labels']:g} "
            f"learned, {stats['waiting']:,} waiting for labels."
        )
        return learner


def _was_given(ctx: click.Context, name: str) -> bool:
    """Whether an option was written, and is not its default."""
    return ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _policy_of(asked: Asked) -> tuple[Any, Any]:
    """The policy and what it is judged by."""
    from omma.policies import UnsupportedMetricError

    assert asked.metric is not None
    found, budget = read_metric(asked.metric, asked.k)
    check_at_most(found, budget, asked.at_most)
    limits, at_most = asked.subject_to, asked.at_most
    try:
        with usage("--metric"):
            policy = make_policy(asked.policy, found, budget, asked.prior, None, limits, at_most)
    except UnsupportedMetricError as error:
        raise click.BadParameter(sentence(error), param_hint="--policy") from error
    return _looking_at(policy, asked.half_life, asked.window), found


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


def _check_kept(asked: Asked, given: list[str]) -> bool:
    """Refuse options that do not go together; whether there is a learner to go on from."""
    state, journal = asked.state, asked.journal
    if state is not None and journal is not None:
        raise click.UsageError("Pass --state or --journal, not both: a journal has a state.")
    if state is not None:
        if state.suffix.lower() != ".npz":
            raise click.BadParameter(f"'{state}' must end in .npz.", param_hint="--state")
        check_folder(state, "--state")
    elif asked.save_every:
        raise click.UsageError("--save-every needs --state.")
    resumes = state is not None and state.is_file()
    if journal is not None:
        resumes = journal.is_dir() and any(journal.glob("snapshot-*.npz"))
    if "metric" not in given and not resumes:
        raise click.UsageError("Missing option '--metric'.")
    if "metric" not in given and given:
        raise click.UsageError(f"--{given[0]} needs --metric.")
    return resumes
