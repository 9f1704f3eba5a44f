"""``omma evaluate``: which rule to deploy, for probabilities and labels in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from omma.cli.options import check_folder, file_option, picture_path, usage, whole_number, work
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

PRIOR = 1e-6  # the default of --prior

if TYPE_CHECKING:
    from omma.cli.evaluation import Job
    from omma.rows.batch import Batch


class Files(NamedTuple):
    """What is read, and which columns of it."""

    eta: str
    labels: str | None
    train_eta: str | None
    train_labels: str | None
    columns: dict[str, Any]


class Written(NamedTuple):
    """What comes out: on the terminal, and in files."""

    as_json: bool
    picture: Path | None
    predictions: Path | None
    rule: Path | None


@click.command("evaluate")
@click.option("--eta", required=True, metavar="FILE", help="Probability of each label in each row.")
@click.option(
    "--labels",
    metavar="FILE",
    help="True labels: a column of 0 and 1 for each label, or one of class ids or names.",
)
@click.option(
    "--metric",
    "metrics",
    required=True,
    multiple=True,
    metavar="NAME",
    help="What to maximize, such as macro_f1, or macro_f1@3 with a budget; may be repeated. "
    "omma list metrics has all.",
)
@budget_option
@at_most_option
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Compare these online, and recommend nothing; may be repeated. omma list policies has "
    "all.",
)
@prior_option("λ of policies that learn; of several the best is shown.  [default: 1e-6]", True)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Shuffle the rows.")
@whole_number("--repeat", 1, "Shuffle so many times, and show mean and deviation.")
@click.option(
    "--id",
    "id_column",
    metavar="NAME",
    help="The column that names rows in CSV and Parquet files; where both have it, they are "
    "joined by it.",
)
@click.option("--column", metavar="NAME", help="Take one column of --eta, by name or number.")
@click.option(
    "--by-position",
    is_flag=True,
    help="Pair columns of --eta and --labels as they stand, whatever they are called.",
)
@click.option("--train-eta", metavar="FILE", help="Rows to tune thresholds on beforehand,")
@click.option("--train-labels", metavar="FILE", help="and their labels.")
@file_option(
    "--plot", "FILE.png", "Draw the rules with their intervals, and how policies develop online."
)
@file_option("--predictions", "FILE", "Write the decisions: .csv, .npz, .npy, .parquet, .txt.")
@file_option(
    "--rule",
    "FILE.json",
    "Write the rule to deploy: the best by the first metric, or that of --decide.",
)
@click.option(
    "--decide",
    metavar="NAME",
    help="Whose decisions and rule are written, by the first metric.  [default: the only "
    "--policy; else decisions of auto online, or of omma_eta without labels, and the best rule]",
)
@limits_option
@click.option(
    "--frontier",
    metavar="LIMIT",
    help="Show what each bound of this limit costs, such as micro_precision; --plot draws it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    eta: str,
    labels: str | None,
    metrics: tuple[str, ...],
    k: int | None,
    at_most: int | None,
    policies: tuple[str, ...],
    prior: tuple[float, ...],
    seed: int | None,
    repeat: int,
    id_column: str | None,
    column: str | None,
    by_position: bool,
    train_eta: str | None,
    train_labels: str | None,
    plot: Path | None,
    predictions: Path | None,
    rule: Path | None,
    decide: str | None,
    subject_to: tuple[str, ...],
    frontier: str | None,
    as_json: bool,
) -> None:
    """Find the rule to deploy on your own probabilities and labels, and what it is worth.

    Files may be .npz (SciPy or NumPy), .npy, .csv, .tsv, .parquet, or .txt of the Extreme
    Classification Repository; text may be compressed. Of several arrays in one archive,
    file.npz:name is one. Columns with names are paired by them (p_sport goes with sport), others by
    position.

    First come rules that stand still, as omma.choose has them: the 0.5 threshold or the top k,
    tuned thresholds, and what Auto and OMMA have learned after one pass. Each row is decided by
    rules made without it, so that values hold for new rows; --rule saves the best. Then come
    policies online: rows are decided one after another, each before its labels are seen.

    Without --labels only policies that learn from probabilities run. Online, thresholds are tuned
    on --train-eta and --train-labels, else on the very rows that are judged: then they are shown
    for comparison only, chosen with hindsight.

    \b
    Examples:
        omma evaluate --eta eta.npz --labels y.npz --metric macro_f1 -k 3
        omma evaluate --eta eta.csv --labels y.csv --metric macro_f1 --metric micro_f1 \\
            --plot running.png --predictions decisions.csv --rule rule.json
        omma evaluate --eta eta.npy --metric macro_f1 --predictions decisions.npz

    \b
    Exit codes: 0 done, 1 a file or the work failed, 2 bad usage.
    """  # noqa: D301
    targets = [read_metric(text, k) for text in metrics]
    for target in targets:
        check_at_most(*target, at_most)
    from omma.cli.evaluation import ALL, Job, check_bounded, chosen_policies
    from omma.limits import at_most as no_more_than

    check_policies((*policies, *([decide] if decide else ())), ALL)
    if (train_eta is None) != (train_labels is None):
        raise click.UsageError("--train-eta and --train-labels must be given together.")
    _check_file("--eta", eta)
    _check_file("--labels", labels)
    _check_file("--train-eta", train_eta)
    _check_file("--train-labels", train_labels)
    _check_outputs(predictions, rule)
    with usage("--policy"):
        names = chosen_policies(policies, labels is not None, at_most)
    with usage("--decide"):
        check_bounded((decide,) if decide else (), at_most)
    if labels is None and (repeat > 1 or len(prior) > 1):
        raise click.UsageError("--repeat and several --prior need --labels to compare by.")
    picture = None if plot is None else picture_path(plot, plot, "--plot")
    if picture is not None and labels is None:
        raise click.UsageError("--plot needs --labels: without them no performance is known.")
    columns = {"id_column": id_column, "column": column, "by_position": by_position}
    files = Files(eta, labels, train_eta, train_labels, columns)
    written = Written(as_json, picture, predictions, rule)
    if subject_to or frontier is not None:
        _check_limited(policies, metrics, labels, predictions, subject_to, frontier)
        if frontier is not None and at_most is not None:
            raise click.UsageError("--frontier does not go with --at-most.")
        _check_unused(subject_to, decide, repeat, prior, train_eta)
        if frontier is not None and (rule is not None or seed is not None):
            other = (
                "--rule: it writes none" if rule is not None else "--seed: rows keep their order"
            )
            raise click.UsageError(f"--frontier does not go with {other}.")
        wanted = make_policy("auto", *targets[0], 1e-6, None, subject_to, at_most)
        if frontier is not None:
            with usage("--frontier"):
                no_more_than(frontier, 1.0)
        with work():
            _run_limited(files, written, wanted, frontier, seed, decide)
        return
    seeds = (None,) if seed is None and repeat == 1 else range(seed or 0, (seed or 0) + repeat)
    priors = tuple(dict.fromkeys(prior))
    job = Job(targets, names, priors, tuple(seeds), decide, bool(policies), at_most)
    with work():
        _run(job, files, written)


def _check_file(option: str, path: str | None) -> None:
    """Refuse what is no file; the name of an array may follow that of an archive."""
    if path is None:
        return
    from omma.datasets.matrices import file_ending, split_address

    found = split_address(path)[0]
    with usage(option):
        file_ending(found)
    if not found.is_file():
        raise click.BadParameter(f"'{found}' is not a file.", param_hint=option)


def _check_limited(
    policies: tuple[str, ...],
    metrics: tuple[str, ...],
    labels: str | None,
    predictions: Path | None,
    subject_to: tuple[str, ...],
    frontier: str | None,
) -> None:
    """Refuse what does not go together with limits."""
    option = "--subject-to" if subject_to else "--frontier"
    if subject_to and frontier is not None:
        raise click.UsageError("Pass --subject-to or --frontier, not both.")
    if labels is None:
        raise click.UsageError(f"{option} needs --labels.")
    if len(metrics) > 1:
        raise click.UsageError(f"{option} takes one --metric, got {len(metrics)}.")
    if policies or predictions is not None:
        other = "--policy" if policies else "--predictions"
        raise click.UsageError(f"{option} does not go with {other}.")


def _check_unused(
    subject_to: tuple[str, ...],
    decide: str | None,
    repeat: int,
    prior: tuple[float, ...],
    train_eta: str | None,
) -> None:
    """Refuse what has no effect beside limits, and say why."""
    option = "--subject-to" if subject_to else "--frontier"
    given = {
        "--repeat": (repeat > 1, "rows come in one order, their own or that of --seed"),
        "--prior": (tuple(prior) != (PRIOR,), "Auto, which keeps the limits, has its own"),
        "--train-eta": (train_eta is not None, "rules are made of rows of --eta alone"),
        "--decide": (decide is not None and not subject_to, "it writes no rule"),
    }
    for other, (there, why) in given.items():
        if there:
            raise click.UsageError(f"{option} does not go with {other}: {why}.")
    if decide not in (None, "auto", "tuned"):
        raise click.UsageError(
            f"--decide must be auto or tuned with --subject-to, whose rules keep limits, got "
            f"{decide}."
        )


def _run_limited(
    files: Files,
    written: Written,
    policy: Any,
    frontier: str | None,
    seed: int | None,
    decide: str | None,
) -> None:
    """A metric under limits, or what each bound of one costs."""
    from rich.console import Console

    from omma.cli import limited
    from omma.cli.inputs import check_task
    from omma.cli.reading import read_inputs

    target = (policy.objective, policy.budget)
    inputs = read_inputs(files.eta, files.labels, **files.columns).whole([target])
    check_task(inputs, [target], policy.at_most)
    console = Console(highlight=False)
    if frontier is not None:
        found = limited.costs(inputs, policy.objective, policy.budget, frontier)
        if written.picture is not None:
            from omma.plots import plot_frontier, save

            save(plot_frontier(found).figure, written.picture)  # type: ignore[arg-type]
        if written.as_json:
            click.echo(limited.costs_json(found))
        else:
            limited.show_costs(found, console)
        return
    held = limited.limited(inputs, policy, seed, decide)
    wrote = list(limited.write(held, written.picture, written.rule))
    if written.as_json:
        click.echo(limited.as_json(held))
        return
    limited.show(held, console)
    for sentence in wrote:
        click.echo(sentence)


def _check_outputs(predictions: Path | None, rule: Path | None) -> None:
    from omma.datasets.matrices import file_ending

    if predictions is not None:
        with usage("--predictions"):
            file_ending(predictions)
        check_folder(predictions, "--predictions")
    if rule is not None:
        if rule.suffix.lower() != ".json":
            raise click.BadParameter(f"'{rule}' must end in .json.", param_hint="--rule")
        check_folder(rule, "--rule")


def _run(job: Job, files: Files, written: Written) -> None:
    from rich.console import Console

    from omma.cli import evaluation, showing
    from omma.cli.inputs import check_task, in_order
    from omma.cli.reading import read_inputs

    inputs = read_inputs(files.eta, files.labels, **files.columns).whole(job.targets)
    train: Batch | None = None
    if files.train_eta is not None:
        sample = read_inputs(files.train_eta, files.train_labels, **files.columns)
        train = in_order(files.train_eta, sample.whole(job.targets).batch, inputs.names)
    check_task(inputs, job.targets, job.at_most)
    terminal = Console(stderr=True).is_terminal
    if not terminal:
        click.echo(f"deciding {inputs.n:,} rows; compiling takes some seconds at first", err=True)
    found = evaluation.run(job, inputs, train, progress=terminal)
    wrote = evaluation.write(found, written.picture, written.predictions, written.rule)
    if written.as_json:
        click.echo(showing.as_json(found, wrote))
        return
    showing.show(found, Console(highlight=False))
    for sentence in wrote.values():
        click.echo(sentence)
