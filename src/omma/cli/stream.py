"""``omma stream``: rows come in, decisions go out, one at a time."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from omma.cli.learners import LearnerKeeper, learner_options
from omma.cli.options import raw_cells_option


@click.command("stream")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), default="-")
@learner_options("lines")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "tsv", "json"]),
    help="The format of the lines.  [default: as the first line looks]",
)
@click.option(
    "--n-labels",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of labels; rows of other lengths are refused. Needed for CSV without a header "
    "that has labels.  [default: as in the first row]",
)
@click.option("--id", "id_column", metavar="NAME", help="The column of row ids.  [default: id]")
@click.option("--column", metavar="NAME", help="Take one column of probabilities from CSV.")
@click.option(
    "--probability",
    multiple=True,
    metavar="NAME",
    help="A column of probabilities in CSV, or the start of several names, such as p_; may be "
    "repeated.  [default: all columns but ids and labels]",
)
@click.option(
    "--label",
    multiple=True,
    metavar="NAME",
    help="A column of true labels in CSV, selected like --probability.  [default: y_NAME for each "
    "NAME, or one of y, label, class, target]",
)
@click.option("--positive", metavar="CLASS", help="The positive class, if labels are two classes.")
@click.option(
    "--percent", is_flag=True, help="Probabilities in CSV are percent: divide them by 100."
)
@click.option(
    "--seen",
    type=click.Choice(["predicted"]),
    help="Labels are seen only where they were predicted, as clicks are of what was shown. Counts "
    "that need the other labels are estimated. A column audited (CSV) or a key (JSON) has 1 for "
    "rows that were chosen at random and labelled completely.",
)
@click.option("--strict", is_flag=True, help="Stop at a line that cannot be read.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines with the metric so far.")
@raw_cells_option
@click.pass_context
def command(ctx: click.Context, /, file: str, **parameters: Any) -> None:
    """Decide rows one at a time, from a file or standard input, and learn from their labels.

    Each decision is written as soon as its row is read; memory does not grow. A line that cannot be
    read is skipped with a message and changes nothing.

    CSV: a column of probabilities for each label; its true labels are in y_NAME, or the class is in
    a column y; ids are in a column id. JSON lines: {"id": "a", "eta": [0.9, 0.2], "y": [1, 0]}, or
    by name: {"eta": {"sport": 0.9, "art": 0.2}, "y": ["sport"]}; then --json lists the predicted
    labels by name.

    Delayed labels: send the row without y first, and its id with y later (in CSV, leave the
    probabilities empty). Waiting rows are part of --state. A line may also bring its own decision,
    as --json wrote it: {"y": [1, 0], "decision": [1, 1]}. Only one process at a time may use a
    --state or a --journal. With --journal nothing is lost if the process is killed.

    \b
    Examples:
        omma stream rows.csv --metric macro_f1 > decisions.csv
        tail -f rows.jsonl | omma stream --metric macro_recall -k 3 \\
            --state learner.npz --save-every 1000 --json

    \b
    Exit codes: 0 done, 1 the work failed or a line stopped --strict, 2 bad usage,
    3 done, but lines were skipped, 130 and 143 stopped by Ctrl-C or termination.
    The state is saved in all cases but 2.
    """  # noqa: D301
    keeper = LearnerKeeper(ctx)

    from omma.cli.streaming import Stream, run
    from omma.datasets.text import opened_bytes

    source = nullcontext(sys.stdin.buffer) if file == "-" else opened_bytes(Path(file))
    with keeper.opened("another omma stream"), source as lines:
        code = run(Stream(sys.stdout, keeper), lines)
    ctx.exit(code)
