"""Learners that commands run: their options, how they begin or resume, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

import omma
from omma._lock import locked
from omma._validate import shown
from omma.cli.options import (
    PRIOR,
    Command,
    OutputFile,
    PolicyName,
    at_most_option,
    budget_option,
    limits_option,
    make_policy,
    read_metric,
    say,
    usage,
    whole_number,
    work,
)

Names = tuple[str, ...]
SAMPLE = 4  # labels of the learner to compile with, if the number is not known yet
WINDOW = 1_000  # labelled rows of recent values
# Options of the policy, which a resumed learner already has.
DECIDING = ("metric", "k", "at_most", "policy", "prior", "subject_to", "half_life", "window")


def streaming_policies() -> tuple[str, ...]:
    """Names of policies whose memory does not grow with the rows."""
    from omma.policies.registry import ONLINE, REGISTRY, STILL

    return tuple(name for name, entry in REGISTRY.items() if entry.kind in (ONLINE, STILL))


def learner_options(unit: str) -> Callable[[Command], Command]:
    """The options of a learner: what decides, which rows wait, and where it is kept."""
    declared: list[Callable[[Any], Any]] = [
        click.option(
            "--metric", metavar="NAME", help="The metric to maximize; not needed to resume --state."
        ),
        budget_option,
        at_most_option,
        click.option(
            "--policy",
            type=PolicyName(streaming_policies),
            default="auto",
            show_default=True,
            metavar="NAME",
            help="The policy that decides; omma list policies shows which can stream.",
        ),
        click.option(
            "--prior",
            type=click.FloatRange(min=0.0),
            metavar="λ",
            default=PRIOR,
            help="Prior λ of policies that have one; auto does not.  [default: 1e-6]",
        ),
        limits_option,
        click.option(
            "--half-life",
            type=click.FloatRange(min=1.0),
            metavar="ROWS",
            help="Decay counts, for data that drifts: after N rows a row counts half.",
        ),
        click.option(
            "--window",
            type=click.IntRange(min=1),
            metavar="ROWS",
            help="Decide by the last N rows only (sliding window).",
        ),
        whole_number(
            "--pending", 10_000, "Rows that may wait for labels; beyond it the oldest is forgotten."
        ),
        click.option(
            "--max-seconds",
            type=click.FloatRange(min=0.0, min_open=True),
            metavar="S",
            help="Forget rows that have waited longer than this for their labels.",
        ),
        click.option(
            "--state",
            type=OutputFile(".npz"),
            metavar="FILE.npz",
            help="Resume the learner in this file if it exists, and save it at the end.",
        ),
        click.option(
            "--journal",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Write every decision and label to this folder, and resume from it if it holds a "
            "journal.",
        ),
        whole_number(
            "--save-every", 0, f"Also save --state after every N {unit}; 0: only at the end.", 0
        ),
        whole_number(
            "--sync",
            100,
            "Flush the --journal to disk after every N calls. A power cut loses fewer than N, a "
            "crash of the process none. 1 is safest and slowest.",
        ),
    ]

    def wrap(command: Command) -> Command:
        for option in reversed(declared):
            command = option(command)
        return command

    return wrap


class LearnerKeeper:
    """The learner of a command: resumed, or begun by the first good row; and where it is saved.

    Its options are checked when this is made. ``opened`` resumes the learner and locks its files.
    """

    def __init__(self, ctx: click.Context) -> None:
        from omma.online.journal import logs

        def was_written(name: str) -> bool:
            return ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT

        self.options = options = SimpleNamespace(**ctx.params)
        state, journal = options.state, options.journal
        if state is not None and journal is not None:
            raise click.UsageError("Pass --state or --journal, not both: a journal has a state.")
        if state is None and options.save_every:
            raise click.UsageError("--save-every needs --state.")
        if journal is None and was_written("sync"):
            raise click.UsageError("--sync needs --journal.")
        has_state = state is not None and state.is_file()
        self.resumes = has_state or (journal is not None and bool(logs(journal)))
        # A resumed learner brings its policy: without --metric there is none to apply options to.
        deciding = [name.replace("_", "-") for name in DECIDING if was_written(name)]
        if options.metric is None and not self.resumes:
            raise click.UsageError("Missing option '--metric'.")
        if options.metric is None and deciding:
            raise click.UsageError(f"--{deciding[0]} needs --metric.")
        self.policy, self.metric = _policy_of(options)
        self.max_waiting = options.pending if was_written("pending") else None
        # With --column, --n-labels is the number of columns, of which one is taken.
        by_column = ctx.params.get("column") is not None
        self.n_labels: int | None = None if by_column else options.n_labels
        self.is_width_known = by_column or self.n_labels is not None
        self.learner: omma.OnlineClassifier | None = None
        self._unsaved = 0  # rows or lines since the learner was saved
        self._journals = ExitStack()  # has the journal of the learner, once there is one

    @contextmanager
    def opened(self, user: str) -> Iterator[None]:
        """Resume the learner, and close its journal in the end; errors take one line.

        No other process may use the same file: it would overwrite what this one has learned. It is
        told that ``user`` uses the file.
        """
        state = self.options.state
        # A journal locks its folder itself.
        lock = nullcontext() if state is None else locked(state, user)
        with work(), lock, self._journals:
            self._resume()
            yield

    def make(self, m: int, names: Names | None) -> omma.OnlineClassifier:
        """A new learner of m labels."""
        if self.metric.binary and m != 1:
            raise ValueError(
                f"{self.metric.name} takes the probability of one label, and there are {m} "
                "columns: pass --column NAME to take one, or --id NAME if one names rows; the true "
                "label is in a column y"
            )
        return omma.OnlineClassifier(
            self.policy,
            m,
            metric=self.metric,
            names=names,
            max_waiting=self.options.pending,
            max_seconds=self.options.max_seconds,
        )

    def sample(self) -> omma.OnlineClassifier:
        """An empty learner like the resumed one, or else like the one that a row will begin."""
        learner = self.learner
        if learner is not None:
            return omma.OnlineClassifier(
                learner.policy, learner.n_labels, metric=learner.metric, names=learner.names
            )
        # Labels that limits name, or call by their place, must exist.
        limited = [limit.label for limit in self.policy.limits if limit.label is not None]
        names = [*dict.fromkeys(label for label in limited if isinstance(label, str))]
        places = [label + 1 for label in limited if isinstance(label, int)]
        least = 1 if self.metric.binary else SAMPLE
        m = self.n_labels or max(least, self.policy.budget or 1, len(names), *places)
        names += [f"label {place}" for place in range(len(names), m)] if names else []
        return self.make(m, tuple(names) or None)

    def begin(self, learner: omma.OnlineClassifier) -> None:
        """Keep a learner whose first row was good, unless there is one already."""
        if self.learner is not None:
            return
        options = self.options
        if options.journal is not None:
            self._journals.enter_context(omma.Journal(options.journal, learner, sync=options.sync))
        if not self.is_width_known and not self.metric.binary:
            names = "" if learner.names is None else f" ({shown(learner.names)})"
            say(
                f"The first row has fixed the number of labels at {learner.n_labels}{names}; "
                "--n-labels says it beforehand."
            )
        self.learner = learner

    def count(self, rows: int) -> None:
        """Count rows or lines, and save the learner after every ``--save-every`` of them."""
        self._unsaved += rows
        if self.options.save_every and self._unsaved >= self.options.save_every:
            self.save()

    def save(self) -> None:
        """Save the learner, with the rows that wait for labels, if there is a ``--state``."""
        if self.options.state is not None and self.learner is not None:
            self.learner.save(self.options.state)
        self._unsaved = 0

    def _resume(self) -> None:
        """Read the learner of --state or --journal, if there is one; options must agree with it."""
        state, journal = self.options.state, self.options.journal
        policy, metric = self.policy, self.metric
        # Another process may have saved the state while this one waited for the lock.
        if state is not None and (self.resumes or state.is_file()):
            learner = omma.OnlineClassifier.load(state)
        elif journal is not None and self.resumes:
            resumed = omma.Journal.resume(journal, sync=self.options.sync)
            learner = self._journals.enter_context(resumed).learner
            say(f"Going on from {journal}: {content_of(learner)}.")
        else:
            return
        path = state or journal
        if policy is not None and learner.policy != policy:
            raise ValueError(f"{path} holds {learner.policy!r}, and {policy!r} was asked for")
        if metric is not None and learner.metric != metric:
            own = "none" if learner.metric is None else learner.metric.name
            raise ValueError(f"{path} is judged by {own}, and {metric.name} was asked for")
        if self.n_labels not in (None, learner.n_labels):
            raise ValueError(
                f"{path} holds a learner of {learner.n_labels} labels, and --n-labels "
                f"{self.n_labels} was asked for"
            )
        if self.max_waiting is not None or self.options.max_seconds is not None:
            learner.bound_waiting(self.max_waiting, self.options.max_seconds)
        self.learner = learner


def content_of(learner: omma.OnlineClassifier) -> str:
    """What a learner has counted, in a few words."""
    stats = learner.stats()
    return (
        f"{stats['decided']:,} decided by id, {stats['labels']:g} learned, {stats['waiting']:,} "
        "waiting for labels"
    )


def _policy_of(options: Any) -> tuple[Any, Any]:
    """The policy, within a decay or a window if options say so, and its metric.

    Both are None without --metric: the resumed learner brings its own.
    """
    if options.metric is None:
        return None, None
    _, metric, k = read_metric(options.metric, options.k, options.at_most)
    with usage("--metric"):
        policy: Any = make_policy(
            options.policy,
            metric,
            k,
            options.prior,
            subject_to=options.subject_to,
            at_most=options.at_most,
        )
    if options.half_life is not None and options.window is not None:
        raise click.UsageError("Pass --half-life or --window, not both.")
    for option, around, rows in (
        ("--half-life", omma.Forgetting, options.half_life),
        ("--window", omma.Window, options.window),
    ):
        if rows is not None:
            with usage(option):
                policy = around(policy, rows)
    return policy, metric


class RecentStats:
    """The stats of a learner, with recent values of the last complete window of labelled rows.

    So all readers get the same values, however often they ask.
    """

    def __init__(self) -> None:
        self._window: dict[str, Any] = {}
        self._at = 0.0

    def note(self, learner: omma.OnlineClassifier) -> None:
        """Begin a new window if one is complete; call this after labels were learned."""
        labelled = learner.state.truth.rows
        if labelled - self._at >= WINDOW:
            stats = learner.stats()
            self._window = {name: stats[name] for name in ("recent_value", "moved")}
            self._at = labelled

    def of(self, learner: omma.OnlineClassifier) -> dict[str, Any]:
        """As ``learner.stats``; until the first window is complete, recent is since the start."""
        self.note(learner)
        return {**learner.stats(peek=True), **self._window}
