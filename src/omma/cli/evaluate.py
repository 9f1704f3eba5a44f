"""``omma evaluate``: which rule to deploy, for probabilities and labels in files."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import click

import omma
from omma.cli.options import (
    PICTURES,
    PRIOR,
    OutputFile,
    PolicyName,
    at_most_option,
    budget_option,
    can_draw,
    limits_option,
    make_policy,
    policy_names,
    raw_cells_option,
    read_metric,
    usage,
    whole_number,
    work,
)

USUAL = ("baseline", "tuned", "auto", "ofo", "greedy", "omma", "omma_eta")
BLIND = ("baseline", "omma_eta")  # the usual policies without labels
BOUNDED = ("baseline", "auto", "omma", "omma_eta")  # those that support --at-most


@click.command("evaluate")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--eta", metavar="FILE", help="Probabilities, if labels are in another file.")
@click.option(
    "--labels",
    metavar="FILE",
    help="True labels: a column of 0 and 1 (or yes and no) for each label, or one column of class "
    "ids or names.",
)
@click.option(
    "--probability",
    multiple=True,
    metavar="NAME",
    help="A column of probabilities, by name or number, or the start of several names, such as "
    "p_; may be repeated.  [default: all columns but ids and labels]",
)
@click.option(
    "--label",
    multiple=True,
    metavar="NAME",
    help="A column of true labels, selected like --probability.  [default in FILE: y_NAME for each "
    "NAME, or one of y, label, class, target]",
)
@click.option("--positive", metavar="CLASS", help="The positive class, if labels are two classes.")
@click.option("--percent", is_flag=True, help="Probabilities are percent: divide them by 100.")
@click.option(
    "--metric",
    "metrics",
    required=True,
    multiple=True,
    metavar="NAME",
    help="The metric to maximize, such as macro_f1, or macro_f1@3 with a budget; may be repeated. "
    "omma list metrics shows all.",
)
@budget_option
@at_most_option
@click.option(
    "--policy",
    "policies",
    type=PolicyName(policy_names),
    multiple=True,
    metavar="NAME",
    help="Only compare these policies online, without a recommendation; may be repeated. omma "
    "list policies shows all.",
)
@click.option(
    "--prior",
    type=click.FloatRange(min=0.0),
    metavar="λ",
    multiple=True,
    default=(PRIOR,),
    help="Prior λ of policies that learn; may be repeated, then the best is shown.  [default: "
    "1e-6]",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Shuffle the rows.")
@whole_number("--repeat", 1, "Repeat with N shuffles; show mean and standard deviation.")
@click.option(
    "--id",
    "id_column",
    metavar="NAME",
    help="The column of row ids. Two files that have it are joined by it.  [default: id, if there "
    "is such a column]",
)
@click.option(
    "--skip-unmatched", is_flag=True, help="Skip rows whose id is in only one of the two files."
)
@click.option("--column", metavar="NAME", help="Take one column of --eta, by name or number.")
@click.option(
    "--by-position",
    is_flag=True,
    help="Pair columns of --eta and --labels by position, whatever their names.",
)
@click.option("--train-eta", metavar="FILE", help="Separate probabilities to tune thresholds on.")
@click.option("--train-labels", metavar="FILE", help="The labels of --train-eta.")
@click.option(
    "--plot",
    type=OutputFile(*PICTURES),
    metavar="FILE.png",
    help="Plot the rules with their intervals, and policies online.",
)
@click.option(
    "--predictions",
    type=OutputFile(),
    metavar="FILE",
    help="Save the decisions: .csv, .npz, .npy, .parquet, .txt.",
)
@raw_cells_option
@click.option(
    "--rule",
    type=OutputFile(".json"),
    metavar="FILE.json",
    help="Save the recommended rule (by the first metric), or the rule of --decide.",
)
@click.option(
    "--decide",
    type=PolicyName(policy_names),
    metavar="NAME",
    help="The policy whose decisions and rule are saved, by the first metric.  [default: the only "
    "--policy; else decisions of auto, or of omma_eta without labels, and the recommended rule]",
)
@limits_option
@click.option(
    "--frontier",
    metavar="LIMIT",
    help="Show the best score for each bound of a limit, such as micro_precision.",
)
@click.option(
    "--seen",
    type=click.Choice(["predicted", "random"]),
    help="Why some labels are unknown. predicted: labels were seen only where something was "
    "predicted; metrics that need the others, such as f1, are refused. random: labels are missing "
    "at random.  [default: checked by the probabilities]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(**parameters: Any) -> None:
    """Recommend a rule for your own probabilities and labels, and estimate its score.

    FILE is a table with both: .csv, .tsv, .parquet, or .jsonl with the lines of omma stream. Or
    pass two files, --eta and --labels, which may also be .npz (SciPy or NumPy), .npy, or .txt of
    the Extreme Classification Repository. Text may be compressed. file.npz:name selects one array
    of an archive. Named columns are paired by name (p_sport goes with sport), others by position.

    First, it compares fixed rules, as omma.choose does: the 0.5 threshold or the top k, tuned
    thresholds, and the final rules of Auto and OMMA after one pass. Each row is decided by rules
    that were learned on other rows, so scores are estimates for new rows. --rule saves the best.

    Then, it compares policies online: each row is decided before its labels are seen. Thresholds
    are tuned on --train-eta and --train-labels. Without these, they are tuned on the rows on which
    they are scored, and are shown for comparison only.

    Without labels, only policies that learn from probabilities run.

    \b
    Examples:
        omma evaluate scored.csv --probability p_fraud --label is_fraud --id tx --metric f1
        omma evaluate --eta eta.npz --labels y.npz --metric macro_f1 -k 3
        omma evaluate --eta eta.csv --labels y.csv --metric macro_f1 --metric micro_f1 \\
            --plot running.png --predictions decisions.csv --rule rule.json
        omma evaluate --eta eta.npy --metric macro_f1 --predictions decisions.npz

    \b
    Exit codes: 0 done, 1 a file or the work failed, 2 bad usage.
    """  # noqa: D301
    # Two dozen options are handed on as one object.
    options = SimpleNamespace(**parameters)
    _find_files(options)
    targets = [read_metric(text, options.k, options.at_most) for text in options.metrics]
    policies = _policies(options)
    _check_files(options)
    if options.labels is None and (options.repeat > 1 or len(options.prior) > 1):
        raise click.UsageError("--repeat and several --prior need --labels to compare by.")
    first, limits, at_most = targets[0], options.subject_to, options.at_most
    limited: Any = None  # the policy under limits; making it checks them, before files are read
    if limits or options.frontier is not None:
        _check_limited(options)
        limited = make_policy("auto", first.metric, first.k, subject_to=limits, at_most=at_most)
    from omma.cli.evaluation import check_task, fully_labelled, run, run_frontier, run_limited
    from omma.datasets.scored import read_scored
    from omma.unseen import check_logged_labels

    read = partial(
        read_scored,
        id=options.id_column,
        probability=options.probability,
        label=options.label,
        positive=options.positive,
        column=options.column,
        percent=options.percent,
        by_position=options.by_position,
        skip_unmatched=options.skip_unmatched,
    )
    with work():
        inputs, train = fully_labelled(read(options.eta, options.labels), targets), None
        if options.train_eta is not None:
            # Training rows are read in the same way, with their columns put in the same order.
            sample = read(options.train_eta, options.train_labels, order=inputs.batch.names)
            train = fully_labelled(sample, targets).batch
        check_task(inputs.batch, targets, at_most)
        measures = [target.metric for target in targets]
        measures += () if limited is None else limited.limits
        check_logged_labels("evaluate", inputs.logged or inputs.batch, measures, options.seen)
        if options.frontier is not None:
            run_frontier(options, first, inputs)
        elif limited is not None:
            run_limited(options, first, limited, inputs)
        else:
            run(options, targets, policies, inputs, train)


def _find_files(options: Any) -> None:
    """Set ``eta`` and ``labels`` of the options: FILE has both, unless --labels names a file."""
    if options.file is None and options.eta is None:
        raise click.UsageError("Missing argument 'FILE', or options '--eta' and '--labels'.")
    if options.file is not None and options.eta is not None:
        raise click.UsageError("Pass FILE or --eta, not both.")
    if options.eta is None:
        options.eta = options.file
        options.labels = options.labels or options.file
    elif options.labels is None and options.label:
        options.labels = options.eta


def _policies(options: Any) -> tuple[str, ...]:
    """The policies to compare: those of --policy, else the usual ones."""
    has_labels, deciders = options.labels is not None, [options.decide] if options.decide else []
    for option, names in (("--policy", options.policies), ("--decide", deciders)):
        unbounded = [name for name in names if name not in BOUNDED]
        if options.at_most is not None and unbounded:
            text = f"{unbounded[0]} does not go with --at-most; these do: {', '.join(BOUNDED)}."
            raise click.BadParameter(text, param_hint=option)
    for name in options.policies:
        if not has_labels and not name.endswith("_eta") and name != "baseline":
            raise click.BadParameter(
                f"{name} needs --labels; without them baseline runs, and names that end in _eta.",
                param_hint="--policy",
            )
    if options.policies:
        return tuple(dict.fromkeys(options.policies))
    usual = USUAL if has_labels else BLIND
    return usual if options.at_most is None else tuple(name for name in usual if name in BOUNDED)


def _check_files(options: Any) -> None:
    """Check, before anything long runs, the files to read, and what files to write need."""
    from omma.datasets.matrices import file_ending, split_address
    from omma.datasets.scored import scored_ending

    if (options.train_eta is None) != (options.train_labels is None):
        raise click.UsageError("--train-eta and --train-labels must be given together.")
    for name in ("eta", "labels", "train_eta", "train_labels"):
        path, option = getattr(options, name), f"--{name.replace('_', '-')}"
        if path is not None:
            with usage(option):
                scored_ending(path)  # refuses a format that it does not know
            file = split_address(path)[0]  # the name of an array may follow that of an archive
            if not file.is_file():
                raise click.BadParameter(f"'{file}' is not a file.", param_hint=option)
    if options.predictions is not None:
        with usage("--predictions"):
            file_ending(options.predictions)  # which says the format
    if options.plot is not None:
        can_draw(options.plot)
        if options.labels is None:
            raise click.UsageError("--plot needs --labels: without them no performance is known.")


def _check_limited(options: Any) -> None:
    """Refuse options that contradict --subject-to or --frontier, or have no effect with them."""
    has_frontier = options.frontier is not None
    option = "--frontier" if has_frontier else "--subject-to"
    if options.subject_to and has_frontier:
        raise click.UsageError("Pass --subject-to or --frontier, not both.")
    if options.labels is None:
        raise click.UsageError(f"{option} needs --labels.")
    if len(options.metrics) > 1:
        raise click.UsageError(f"{option} takes one --metric, got {len(options.metrics)}.")
    # Options without effect, and the reason: ignoring them silently would mislead.
    excluded = {
        "--policy": options.policies,
        "--predictions": options.predictions is not None,
        "--at-most": has_frontier and options.at_most is not None,
        "--repeat: rows come in one order, their own or that of --seed": options.repeat > 1,
        "--prior: Auto, which keeps the limits, has its own": options.prior != (PRIOR,),
        "--train-eta: rules are made of rows of --eta alone": options.train_eta is not None,
        "--decide: it writes no rule": has_frontier and options.decide is not None,
        "--rule: it writes none": has_frontier and options.rule is not None,
        "--seed: rows keep their order": has_frontier and options.seed is not None,
    }
    for text, is_written in excluded.items():
        if is_written:
            raise click.UsageError(f"{option} does not go with {text}.")
    if options.decide not in (None, "auto", "tuned"):
        raise click.UsageError(
            f"--decide must be auto or tuned with --subject-to, whose rules keep limits, got "
            f"{options.decide}."
        )
    if has_frontier:
        with usage("--frontier"):
            omma.at_most(options.frontier, 1.0)  # checks the name, with any bound
