"""Options, checks and messages that several commands share.

Modules of commands import the library inside their functions: ``--help`` must not wait for Numba
and SciPy.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

import omma
from omma._validate import nearest

if TYPE_CHECKING:
    from omma.comparison.protocol import BudgetedMetric

Command = TypeVar("Command", bound=Callable[..., Any])

# Messages of the library name parameters; these patterns turn them into options.
OPTIONS = {name: name for name in ("id", "probability", "label", "positive", "column")}
OPTIONS["id_column"] = "id"
VALUE = rf"\b({'|'.join(OPTIONS)})='([^']*)'"
AS_OPTIONS = (
    (r" of (replay|choose|predict) ha(ve|s) ", r" ha\2 "),
    (
        r"omma takes k \(exactly k .*",
        "pass -k (exactly N labels) or --at-most (up to N labels), not both",
    ),
    (r"^plot of Comparison has", "--plot has"),
    (r"at_most of omma must be None for (\w+), ", r"\1 takes no budget, as it is "),
    (r"use at_most=(\d+) in place of", r"pass --at-most \1 in place of"),
    (r" \(this is said once\)", ""),
    (r": use omma\.metrics\.smoothed\(.*\), or omma\.Auto", "; that of Auto is not"),
    (r"pass eta\[:, 1\]", "pass --column 1 for the second"),
    (r"\bpercent=True", "--percent"),
    (r"\bby_position=True", "--by-position"),
    (r"\bskip_unmatched=True", "--skip-unmatched"),
    (r"which (id|probability|label|column) asks", r"which --\1 asks"),
    (r"are eta and labels swapped", "are --eta and --labels swapped"),
    (r"the columns of eta,", "the columns of --eta,"),
    (
        r"pass names=, a frame, or the label's place",
        "use a table whose columns have names, or write the label's place, such as recall[0]",
    ),
)

PRIOR = 1e-6  # λ, as policies have it by default
PICTURES = (".png", ".svg", ".pdf")
# What to say if a policy does not have the field of an option.
LACKS = {
    "at_most": "does not support it: pass --policy auto, omma or omma_eta.",
    "subject_to": "does not support limits: pass --policy auto or omma.",
}


def whole_number(
    name: str, default: int, text: str, least: int = 1, most: int | None = None
) -> Callable[[Command], Command]:
    """An option that takes a whole number."""
    kind = click.IntRange(min=least, max=most)
    return click.option(name, type=kind, metavar="N", default=default, show_default=True, help=text)


class OutputFile(click.Path):
    """The path of a file to write; one that cannot be written is refused before anything runs."""

    def __init__(self, *endings: str) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.endings = endings  # those that fit; none if any does

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Any = super().convert(value, param, ctx)  # a Path, as ``path_type`` says
        if self.endings and path.suffix.lower() not in self.endings:
            listed = " or ".join(", ".join(self.endings).rsplit(", ", 1))
            self.fail(f"'{path}' must end in {listed}.", param, ctx)
        if not path.absolute().parent.is_dir():
            self.fail(f"'{path.parent}' is not a folder.", param, ctx)
        return path


class PolicyName(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5
    """The name of a policy among those of ``names``, a function that ``--help`` does not call."""

    name = "policy"

    def __init__(self, names: Callable[[], tuple[str, ...]]) -> None:
        self.names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        known = self.names()
        if value not in known:
            hint = nearest(value, known) or f"; policies are {', '.join(known)}"
            self.fail(sentence(f"unknown policy {value!r}{hint}"), param, ctx)
        return value


def _read_token(ctx: click.Context, option: click.Parameter, file: BinaryIO | None) -> str:
    """The token in the file that ``--token-file`` names; empty without one."""
    if file is None:
        return ""
    with file:
        token = file.read().strip()
    if not token or len(token.split()) > 1 or not token.isascii():
        raise click.BadParameter(f"'{file.name}' must hold one word of ASCII.", ctx, option)
    return token.decode()


def token_option(text: str) -> Callable[[Command], Command]:
    """The option ``--token-file``, which gives the command the token itself."""
    kind = click.File("rb")
    return click.option(
        "--token-file", "token", type=kind, metavar="FILE", callback=_read_token, help=text
    )


budget_option = click.option(
    "-k",
    "--k",
    "k",
    type=click.IntRange(min=1),
    metavar="N",
    help="Predict exactly N labels in each row; without it, each label has a threshold. "
    "multiclass_ metrics predict one class.",
)
at_most_option = click.option(
    "--at-most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Predict at most N labels in each row; in place of -k.",
)
limits_option = click.option(
    "--subject-to",
    multiple=True,
    metavar="LIMIT",
    help="A constraint, such as 'micro_precision >= 0.9', 'recall[fraud] >= 0.8' or "
    "'labels_per_row <= 2'; may be repeated. '(margin 1.28)' after it aims 1.28 standard errors "
    "beyond the bound.",
)
raw_cells_option = click.option(
    "--raw-cells",
    is_flag=True,
    help="Write names and ids to CSV as they are. By default, an apostrophe is put before those "
    "that a spreadsheet would run as formulas.",
)


# Messages.


def say(text: str) -> None:
    """Print a message for people; standard output is for what programs read."""
    click.echo(text, err=True)


def shows_progress(rows: int) -> bool:
    """Whether a terminal will show a progress bar; a log gets one line instead."""
    from rich.console import Console

    is_terminal = Console(stderr=True).is_terminal
    if not is_terminal:
        say(f"deciding {rows:,} rows; compiling takes some seconds at first")
    return is_terminal


def with_options(text: str) -> str:
    """A warning or an error of the library in the words of the command line.

    >>> with_options("2 of 9 rows of replay have fewer than k=3: use at_most=3 in place of k=3")
    '2 of 9 rows have fewer than k=3: pass --at-most 3 in place of k=3'
    >>> with_options("pass label='is fraud', or percent=True")
    "pass --label 'is fraud', or --percent"
    """
    for pattern, replacement in AS_OPTIONS:
        text = re.sub(pattern, replacement, text)
    return re.sub(VALUE, lambda match: f"--{OPTIONS[match[1]]} {shlex.quote(match[2])}", text)


def sentence(text: object) -> str:
    """A text of the library as a sentence of the command line, with a full stop.

    >>> sentence("no such name"), sentence("did you mean f1?")
    ('no such name.', 'did you mean f1?')
    """
    text = with_options(str(text))
    return text if text.endswith(("?", ".")) else f"{text}."


@contextmanager
def usage(option: str) -> Iterator[None]:
    """Turn errors of the library into errors of usage of an option."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.BadParameter(sentence(error), param_hint=option) from error


@contextmanager
def work() -> Iterator[None]:
    """Turn errors of the work, such as a file that cannot be read, into one line."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(sentence(where + (error.strerror or str(error)))) from error
    except MemoryError as error:
        raise click.ClickException("This does not fit in memory.") from error
    except (ValueError, TypeError, ImportError) as error:
        raise click.ClickException(sentence(error)) from error


@contextmanager
def signals_handled(handle: Callable[[int, Any], None], *numbers: int) -> Iterator[None]:
    """Handle these signals by a function while the context lasts."""
    handlers = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def can_draw(output: Path | None) -> bool:
    """Whether matplotlib can be imported; an error if not, and ``output`` was asked for."""
    try:
        omma.plots.require_matplotlib()
    except ImportError as error:
        if output is not None:
            raise click.ClickException(str(error)) from error
        say(f"No picture: {error}")
        return False
    return True


# Metrics and policies as the command line names them.


def read_metric(text: str, k: int | None, at_most: int | None) -> BudgetedMetric:
    """A metric with its budget: the number after an @, else ``k``, else the metric's own."""
    from omma.comparison.protocol import BudgetedMetric
    from omma.metrics.target import Target
    from omma.policies.omma import check_at_most

    with usage("--metric"):
        metric, own = omma.metrics.read_target(text)
    budget = k if own is None else own
    if metric.binary and budget is not None:
        raise click.BadParameter(
            f"{metric.name} is a metric of one label and takes no budget: {metric.over_many()}.",
            param_hint="-k",
        )
    if metric.multiclass and budget not in (None, 1):
        raise click.BadParameter(
            f"{metric.name} is for one class a row, so k must be 1, got {budget}.",
            param_hint="-k",
        )
    with usage("--at-most"):
        check_at_most("omma", metric, budget, at_most)
    # Metrics of one class a row have a budget of 1, which their names leave out.
    if metric.multiclass:
        return BudgetedMetric(metric.name, metric, 1)
    return BudgetedMetric(str(Target(metric.name, budget)), metric, budget)


def policy_names() -> tuple[str, ...]:
    """Names of all policies that commands list."""
    from omma.policies.registry import NAMES

    return tuple(name for name in NAMES if name != "top_k_or_half")  # another name of baseline


def make_policy(
    name: str,
    metric: omma.Metric,
    k: int | None,
    prior: float = PRIOR,
    train: Any = None,
    subject_to: tuple[str, ...] = (),
    at_most: int | None = None,
) -> omma.Policy:
    """A policy by its name in the registry, with ``at_most`` and limits if there are any."""
    from omma.policies.registry import REGISTRY

    policy: Any = REGISTRY[name].policy(metric, k, prior, train)
    fields = {"at_most": at_most, "subject_to": list(subject_to) or None}
    for field, value in fields.items():
        if value is not None:
            option = f"--{field.replace('_', '-')}"
            if not hasattr(policy, field):
                raise click.BadParameter(f"{name} {LACKS[field]}", param_hint=option)
            with usage(option):
                policy = replace(policy, **{field: value})
    return policy  # type: ignore[no-any-return]
