"""``omma evaluate``: which rule to deploy, for probabilities and labels in files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from omma.cli.options import (
    check_folder,
    file_option,
    picture_path,
    raw_cells_option,
    usage,
    whole_number,
    work,
)
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
    from omma.cli.inputs import Inputs
    from omma.metrics import Metric
    from omma.rows.batch import Batch


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
@raw_cells_option
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
def command(**given: Any) -> None:
    """Find the rule to deploy on your own probabilities and labels, and what it is worth.

    Files may be .npz (SciPy or NumPy), .npy, .csv, .tsv, .parquet, or .txt of the Extreme
    Classification Repository; text may be compressed. Of several arrays in one archive,
    file.npz:name is one. Columns with names are paired by them (p_sport goes with sport), others by
    position.

    First, fixed rules, as omma.choose has them: the 0.5 threshold or the top k, tuned thresholds,
    and the rules that Auto and OMMA have learned after one pass. Each row is decided by rules made
    without it, so that values hold for new rows; --rule saves the best. Then, policies online: rows
    are decided one after another, each before its labels are seen.

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
    asked = SimpleNamespace(**given)
    targets = [read_metric(text, asked.k) for text in asked.metrics]
    for target in targets:
        check_at_most(*target, asked.at_most)
    from omma.cli.evaluation import ALL, Job, check_bounded, chosen_policies

    decider = (asked.decide,) if asked.decide else ()
    check_policies((*asked.policies, *decider), ALL)
    if (asked.train_eta is None) != (asked.train_labels is None):
        raise click.UsageError("--train-eta and --train-labels must be given together.")
    for name in ("eta", "labels", "train_eta", "train_labels"):
        _check_file(f"--{name.replace('_', '-')}", given[name])
    _check_outputs(asked.predictions, asked.rule)
    with usage("--policy"):
        names = chosen_policies(asked.policies, asked.labels is not None, asked.at_most)
    with usage("--decide"):
        check_bounded(decider, asked.at_most)
    if asked.labels is None and (asked.repeat > 1 or len(asked.prior) > 1):
        raise click.UsageError("--repeat and several --prior need --labels to compare by.")
    if asked.plot is not None:
        asked.plot = picture_path(asked.plot, asked.plot, "--plot")
        if asked.labels is None:
            raise click.UsageError("--plot needs --labels: without them no performance is known.")
    if asked.subject_to or asked.frontier is not None:
        _run_limited(asked, targets[0])
        return
    first = asked.seed or 0
    seeds = (
        (None,) if asked.seed is None and asked.repeat == 1 else range(first, first + asked.repeat)
    )
    priors = tuple(dict.fromkeys(asked.prior))
    chosen = bool(asked.policies)
    job = Job(targets, names, priors, tuple(seeds), asked.decide, chosen, asked.at_most)
    with work():
        _run(asked, job)


def _check_file(option: str, path: str | None) -> None:
    """Refuse what is no file; the name of an array may follow that of an archive."""
    if path is None:
        return
    from omma.datasets.matrices import file_ending, split_address

    file = split_address(path)[0]
    with usage(option):
        file_ending(file)
    if not file.is_file():
        raise click.BadParameter(f"'{file}' is not a file.", param_hint=option)


def _check_limited(asked: Any) -> None:
    """Refuse what does not go together with limits, or has no effect beside them."""
    costs = asked.frontier is not None
    option = "--frontier" if costs else "--subject-to"
    if asked.subject_to and costs:
        raise click.UsageError("Pass --subject-to or --frontier, not both.")
    if asked.labels is None:
        raise click.UsageError(f"{option} needs --labels.")
    if len(asked.metrics) > 1:
        raise click.UsageError(f"{option} takes one --metric, got {len(asked.metrics)}.")
    others = {
        "--policy": asked.policies,
        "--predictions": asked.predictions is not None,
        "--at-most": costs and asked.at_most is not None,
        "--repeat: rows come in one order, their own or that of --seed": asked.repeat > 1,
        "--prior: Auto, which keeps the limits, has its own": tuple(asked.prior) != (PRIOR,),
        "--train-eta: rules are made of rows of --eta alone": asked.train_eta is not None,
        "--decide: it writes no rule": costs and asked.decide is not None,
        "--rule: it writes none": costs and asked.rule is not None,
        "--seed: rows keep their order": costs and asked.seed is not None,
    }
    for other, there in others.items():
        if there:
            raise click.UsageError(f"{option} does not go with {other}.")
    if asked.decide not in (None, "auto", "tuned"):
        raise click.UsageError(
            f"--decide must be auto or tuned with --subject-to, whose rules keep limits, got "
            f"{asked.decide}."
        )


def _run_limited(asked: Any, target: tuple[Metric, int | None]) -> None:
    """A metric under limits, or what each bound of one costs."""
    from rich.console import Console

    from omma.cli import evaluation, showing
    from omma.cli.inputs import check_task
    from omma.frontiers import frontier
    from omma.limits import at_most as no_more_than
    from omma.plots import plot_frontier, save

    _check_limited(asked)
    policy: Any = make_policy("auto", *target, PRIOR, None, asked.subject_to, asked.at_most)
    if asked.frontier is not None:
        with usage("--frontier"):
            no_more_than(asked.frontier, 1.0)
    console = Console(highlight=False)
    with work():
        inputs = _read(asked, asked.eta, asked.labels).whole([target])
        check_task(inputs.batch, [target], asked.at_most)
        if asked.frontier is not None:
            costs = frontier(inputs.batch, None, target[0], asked.frontier, k=target[1])
            if asked.plot is not None:
                save(plot_frontier(costs).figure, asked.plot)  # type: ignore[arg-type]
            if asked.as_json:
                click.echo(showing.frontier_json(costs))
            else:
                showing.show_frontier(costs, console)
            return
        choice = (asked.subject_to, asked.seed, asked.decide)
        results = evaluation.run_limited(inputs, target, policy, *choice)
        wrote = evaluation.write_limited(results, asked.plot, asked.rule)
        if asked.as_json:
            click.echo(showing.limited_json(results, inputs))
            return
        showing.show_limited(results, inputs, console)
        for sentence in wrote.values():
            click.echo(sentence)


def _read(asked: Any, eta: str, labels: str | None) -> Inputs:
    from omma.cli.reading import read_inputs

    columns = {"id_column": asked.id_column, "column": asked.column}
    return read_inputs(eta, labels, by_position=asked.by_position, **columns)


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


def _run(asked: Any, job: Job) -> None:
    from rich.console import Console

    from omma.cli import evaluation, showing
    from omma.cli.inputs import check_task, in_order

    inputs = _read(asked, asked.eta, asked.labels).whole(job.targets)
    train: Batch | None = None
    if asked.train_eta is not None:
        sample = _read(asked, asked.train_eta, asked.train_labels)
        train = in_order(asked.train_eta, sample.whole(job.targets).batch, inputs.batch.names)
    check_task(inputs.batch, job.targets, job.at_most)
    terminal = Console(stderr=True).is_terminal
    if not terminal:
        rows = f"{inputs.batch.n:,} rows"
        click.echo(f"deciding {rows}; compiling takes some seconds at first", err=True)
    results = evaluation.run(job, inputs, train, progress=terminal)
    wrote = evaluation.write(results, asked.plot, asked.predictions, asked.rule, asked.raw_cells)
    if asked.as_json:
        click.echo(showing.as_json(results, wrote))
        return
    showing.show(results, Console(highlight=False))
    for sentence in wrote.values():
        click.echo(sentence)
