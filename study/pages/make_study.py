"""Writes docs/study.md and its pictures from the records of the study.

    python study/pages/make_study.py                  from study/records
    python study/pages/make_study.py RECORDS          packs records of `omma-study run` first
    python study/pages/make_study.py --times QUICK    packs times of `omma-study run SUITE --quick`
    python study/pages/make_study.py --rounding DATA  runs Frank-Wolfe with other last bits

Every number and every verdict on the page comes from the records.
"""

import sys
from itertools import product
from pathlib import Path

import click
import numpy as np
import pandas as pd

import claims
import omma
from common import (
    ADAM,
    CLASSES,
    DOCS,
    LABELS,
    MADE,
    ONLINE,
    ONLINE_PAPER,
    RECORDS,
    finished,
    load,
    packed,
    table,
    titles,
    with_packed,
    write_page,
)
from omma_study import figures
from omma_study.config import make_policy, suite
from omma_study.datasets import CATALOGUE
from omma_study.datasets.paper_like import SHAPES
from omma_study.estimates import EstimateCache
from omma_study.paper import heading
from omma_study.policies import POLICIES, TRAINED
from omma_study.records import pack, read
from omma_study.sections import policy_of, sections
from omma_study.tables import duration

SUITES = (LABELS, CLASSES, ONLINE, ADAM, ONLINE_PAPER)
PICTURES = DOCS / "images" / "study"
DRAWN = "youtube_deepwalk"  # the set of both pictures
TIMES, ROUNDING = RECORDS / "times.csv", RECORDS / "rounding.csv"
TIMED = ("baseline", "ofo", "greedy", "online_fw", "omma", "auto")
ALTERED = 1e-12  # by how much estimates are altered, relative to them
ALTERED_SETS = ((LABELS, "yeast"), (LABELS, "youtube_deepwalk"), (MADE[1], "like_news20"))
FRAGILE = 0.001  # a tenth of a point

PAGE = """# The study: which claims of the paper hold

{claims}

The table counts cells: a cell is a metric on one of our own data sets. {thresholds} Each claim has
[a section](#the-claims-one-by-one). A test rebuilds this page from the records in `study/records`;
`omma-study run paper` makes the records.

## Table 2: multi-label problems

Mean ± standard deviation over five shuffled sequences, in %. As in the paper, λ is the best of five
for each entry, chosen in hindsight. **Bold** is best, *italic* second best. The paper's value is in
brackets below ours. The data of this table are not available, so our values are from [synthetic
streams of the same shape](likeness.md): compare differences between methods, not values.

- × means that a method does not support the metric, – that it was not run.
- † means fewer sequences or fewer λ.
- ‡ marks figures of the paper's Greedy(η̂) that are identical to those of Greedy
  ([why](differences.md#greedy-two-meanings-of-expected)).

{one_sequence}

{table_2}

## Table 3: multi-class problems

News20 is the paper's own data set, with our tf-idf features. Its first block has the estimator that
the paper names. The other two are synthetic streams.

{table_3}

## The paper's two figures, on one data set

![Seven panels, one for each metric, with the running value of nine methods on
{drawn}](images/study/running.png)

*Running value along the sequence, mean and deviation over five sequences.*

![Seven panels, one for each metric, with the final value of six methods against λ on
{drawn}](images/study/priors.png)

*Final value with each λ; a ring marks the best.*

## The claims, one by one

This section uses our own data sets. Except for news20, the paper does not have them, so there is no
figure of the paper to compare with.

{parts}

## Where Frank-Wolfe starts

{starts}

## Our data sets in the paper's layout

Rows are the methods as the paper's code runs them, and `Auto`, which is not in the paper.

### Multi-label, fixed estimator

{own_labels}

### Multi-class, fixed estimator

{own_classes}

### Multi-label, online estimator

{own_online}

## The paper's settings of the online estimator

On sparse data, our online estimator is a lazy Adam: a row updates only the weights of its stored
features, intercepts are not regularized, and the learning rate and l2 are chosen by the log-loss on
a prefix. The paper's code updates all weights at each row, with learning rate 0.005 and weight
decay 1e-5, including intercepts. The table compares both on two data sets that are small enough,
over one sequence (`omma-study run online_paper`): our settings / the paper's.

{settings}

{settings_text}

## Reproducibility of digits on other machines

{rounding}

## What was run

{data}

- **Fixed estimators** are trained on the training part and predict the test part. Multi-label sets
  have one logistic regression per label (LIBLINEAR). Multi-class sets have a multinomial one and,
  in `multiclass_adam`, one trained by Adam, as in the paper. C is chosen by cross-validated
  log-loss. `eurlex4k` drops weights under 0.01 and keeps the 100 largest probabilities of each row,
  as the paper does for its large sets.
- **Online estimators** are linear models trained by Adam, on training and test part as one
  sequence. Each row is predicted before it is learned. The learning rate, l2 and whether features
  are standardised are chosen together, by the progressive log-loss of the first 20,000 rows. The
  table shows the choice of the first sequence. `eurlex4k` has none, because choosing its settings
  takes too long.
- **Offline-FW** is fitted to probabilities of the training part, by the estimator that was trained
  on the same rows, as in the paper.
- All policies run on the same sequences. A policy with fewer sequences has the first of
  them.{missing}

Some records are older than the code and were not run again:

- `Auto` ran with λ = 1e-6, and with an earlier calibrator and other strengths of its counts.
- The multinomial estimator of `multiclass_fixed` stopped at a gradient of 1e-4. It now continues to
  1e-8, which changes single probabilities of `news20` by up to 0.38.
- The plug-in Greedy divided by the number of rows so far
  ([what that changes](differences.md#greedy-with-n)), on all sets but `yeast`, `youtube_deepwalk`
  and the streams like YouTube, Eurlex-LexGlue, Mediamill, Flickr, News20, Ledgar-LexGlue and
  Caltech-256.

## Time

Median over metrics of the time of one replay with λ = 1e-6, without compilation, on an idle machine
(`omma-study run SUITE --quick`). {times}

## Reproduce it

```sh
omma-study run paper --data DATA --out RECORDS
omma-study run online_paper --data DATA --out RECORDS
python study/pages/make_study.py RECORDS
omma-study report study/records --extended --format html --output tables.html
```

Finished runs are skipped, so you can stop and resume a run, and add sequences and policies later.
The last command makes tables of all policies (`--format latex` for a paper).
"""


def missing(study):
    """Sets of the suites that were not run to the end, except for sets that cannot be had."""
    # Of the paper's own sets only this one can be had.
    available = [
        name for name, entry in CATALOGUE.items() if entry.paper is None or name == "news20"
    ]
    lacking = [
        f"`{dataset}` ({name})"
        for name in SUITES
        for dataset in suite(name).datasets
        if dataset in available and (name, dataset) not in study.sections
    ]
    return f" Not run: {', '.join(lacking)}." if lacking else ""


def page(study, like):
    """The text of the page; ``like`` has the streams."""
    summary, parts = claims.claims(study)
    streams = {section.stands_for: section for section in like.sections.values()}
    alone = [name for name, section in streams.items() if section.seeds == 1]
    # In the paper's order, which is that of the shapes.
    two = [name for name in SHAPES if streams[name].task == "multilabel"]
    news = [study.sections[ADAM, "news20"], study.sections[CLASSES, "news20"]]
    streams_of_classes = [streams["Ledgar-LexGlue"], streams["Caltech-256"]]
    of_classes = [study.sections[name, section.dataset] for section in study.of(CLASSES)
                  for name in (CLASSES, ADAM) if section.dataset != "news20"]  # fmt: skip
    labels = [f"{section.dataset}, {section.estimator['name']}" for section in of_classes]
    fixed, online = study.of(LABELS), study.of(ONLINE)
    settings, settings_text = paper_settings(study)
    return PAGE.format(
        claims=summary,
        parts=parts,
        thresholds=claims.thresholds(),
        one_sequence=f"{' and '.join(alone)} were run on one sequence, without Online-FW.",
        table_2=claims.blocks([streams[name] for name in two], two),
        table_3=claims.blocks(
            [*news, *streams_of_classes],
            ["News20, softmax by Adam", "News20, multinomial", "Ledgar-LexGlue", "Caltech-256"],
        ),
        drawn=DRAWN,
        starts=claims.starts(study),
        own_labels=claims.blocks(fixed, [section.dataset for section in fixed], ["auto"]),
        own_classes=claims.blocks(of_classes, labels, ["auto"]),
        own_online=claims.blocks(online, [section.dataset for section in online], ["auto"]),
        settings=settings,
        settings_text=settings_text,
        rounding=rounding(),
        data=claims.data_table(study, (LABELS, CLASSES, ADAM, ONLINE, ONLINE_PAPER)),
        missing=missing(study),
        times=times(study),
    )


def paper_settings(study):
    """Tuned settings of the online estimator / those of the paper's code."""
    names = ["baseline", "greedy_plug_in", "omma", "omma_eta", "auto"]
    tuned, paper = (
        pd.concat({section.dataset: _best_values(section) for section in study.of(suite_name)})
        for suite_name in (ONLINE, ONLINE_PAPER)
    )
    tuned, paper = tuned.loc[paper.index, names], paper[names]
    texts = tuned.map("{:.2f}".format) + " / " + paper.map("{:.2f}".format)
    rows = [
        [dataset, heading(target), *texts.loc[(dataset, target)].replace("nan / nan", "×")]
        for dataset, target in texts.index
    ]
    change = (paper - tuned).drop(columns="baseline").stack()
    better = [(values["omma_eta"] > values["omma"]).sum() for values in (tuned, paper)]
    text = (
        f"Apart from the first column, the paper's settings change values by {change.mean():+.2f} "
        f"points on average, from {change.min():+.2f} to {change.max():+.2f}. OMMA(η̂) is better "
        "than OMMA in "
        f"{better[0]} of {len(paper)} cells with our settings and in {better[1]} with the paper's."
    )
    return table(["dataset", "metric", *titles(names)], rows), text


def _best_values(section):
    """Values of the first sequence with the best λ, in %: rows are metrics, columns policies."""
    first = section.runs[section.runs["seed"] == 0]
    best = first.groupby(["target", "policy"])["value"].max().unstack("policy")
    return 100 * best.loc[list(section.targets)]


def pictures(section):
    """Running values, and values by λ, of all metrics on one set."""
    learning = ("greedy", "greedy_eta", "omma", "omma_eta", "online_fw", "online_fw_eta")
    return {
        "running": figures.draw(section, policies=("baseline", "ofo", *learning, "offline_fw")),
        "priors": figures.draw(section, True, policies=learning),
    }


# The effect of the last bits of estimates.


def run_rounding(data):
    """Frank-Wolfe on sets of several seconds, with estimates as they are and slightly altered."""
    rng, cells = np.random.default_rng(0), []
    for name, dataset in ALTERED_SETS:
        limited = suite(name).limited(datasets=[dataset])
        cache = EstimateCache(data, Path("omma-records") / "estimates", click.echo)
        (source,) = limited.sources
        estimates = cache.estimates(source, 0)
        eta, (train_eta, train_y) = estimates.eta, estimates.train
        near, near_train = (
            np.minimum(values * (1 + ALTERED * rng.uniform(-1, 1, values.shape)), 1.0)
            for values in (eta, train_eta)
        )
        policies = ("online_fw", "online_fw_eta", "offline_fw", "omma", "omma_eta")
        for (metric, k), policy in product(limited.targets, policies):
            values = []
            for test, train in ((eta, train_eta), (near, near_train)):
                rule = make_policy(policy, omma.metric(metric), k, 1e-6, {})
                rule = rule.fit(train, train_y) if POLICIES[policy].kind == TRAINED else rule
                trace = omma.replay(rule, test, estimates.y, metric=metric, seed=0)
                values.append(trace.value)
            cell = {"suite": name, "dataset": dataset, "metric": metric, "k": k, "policy": policy}
            cells.append({**cell, "value": values[0], "altered": values[1]})
    pd.DataFrame(cells).to_csv(ROUNDING, index=False)


def rounding():
    """Cells whose value changes when estimates are altered in their last digits."""
    cells = pd.read_csv(ROUNDING)
    cells["moved"] = (cells["altered"] - cells["value"]).abs()
    by_policy = cells.groupby("policy", sort=False)["moved"].agg(["size", "max"])
    by_policy["above"] = cells[cells["moved"] > FRAGILE].groupby("policy").size()
    rows = [
        [POLICIES[policy].title, f"{line['above']:.0f} of {line['size']:.0f}",
         f"{100 * line['max']:.2f}"]
        for policy, line in by_policy.fillna(0).iterrows()
    ]  # fmt: skip
    worst = cells[cells["moved"] > FRAGILE].sort_values("moved", ascending=False)[:6]
    named = "; ".join(
        f"{POLICIES[cell.policy].title}, {cell.dataset}, "
        f"{heading(cell.metric if pd.isna(cell.k) else f'{cell.metric}@{cell.k:.0f}')} "
        f"({100 * cell.moved:.2f})"
        for cell in worst.itertuples()
    )
    return (
        "Processors add numbers in different orders, so estimates differ in their last bits. "
        "Frank-Wolfe may then end at another mixture. To measure this, estimates of three sets "
        f"were changed by at most {ALTERED:g} of their value, and each policy was run on one "
        "sequence with both (`python study/pages/make_study.py --rounding DATA`). The table has "
        f"the number of cells that change by more than {100 * FRAGILE:g} points, and the largest "
        "change in points:\n\n"
        f"{table(['method', 'changed cells', 'largest'], rows)}\n\n"
        + (f"The cells that changed most: {named}. " if named else "")
        + "So the last digits of Frank-Wolfe are not reproducible; in most cells, the deviation "
        "over sequences is larger. A test runs one small set again and compares every printed "
        "digit of the other methods (`study/tests/test_digits.py`)."
    )


# Times. Records of the study come from machines that had other work to do, so times are measured
# apart, by `omma-study run SUITE --quick` on an idle machine, and kept in a file of their own.


def pack_times(folder):
    """Keep the median seconds over metrics, a line for each set."""
    medians = {
        (section.suite, section.dataset): section.cells["seconds"].groupby("policy").median()
        for section in sections(finished(read(folder)))
    }
    seconds = pd.concat(medians, names=["suite", "dataset"]).unstack()
    seconds.reindex(columns=list(TIMED)).to_csv(TIMES, float_format="%.3g")


def times(study):
    """Seconds of a replay, and two ratios."""
    clock = pd.read_csv(TIMES, index_col=["suite", "dataset"])
    timed = [section for name in claims.FIXED for section in study.of(name)]
    # Sets in the order of the page; those that were not timed get dashes.
    places = [(section.suite, section.dataset) for section in timed]
    clock = clock.reindex(places, columns=list(TIMED))
    ratios = clock[["online_fw", "auto"]].div(clock["omma"], axis=0)
    ratio_texts = ratios.map("{:,.1f}".format, na_action="ignore").add_suffix(" / OMMA")
    texts = clock.map(duration, na_action="ignore").join(ratio_texts)
    rows = [
        [section.dataset + (" (classes)" if section.suite == CLASSES else ""),
         f"{section.n:,} × {section.m:,}", *line]
        for section, line in zip(timed, texts.fillna("–").to_numpy(), strict=True)
    ]  # fmt: skip
    slower, auto = ratios.median()
    head = ["dataset", "rows × labels", *titles(TIMED), "Online-FW / OMMA", "Auto / OMMA"]
    return (
        f"Online-FW takes {slower:,.0f} times as long as OMMA (median over data sets), and Auto, "
        f"which also calibrates, {auto:.1f} times.\n\n{table(head, rows)}"
    )


def merged(folder):
    """Records of policies that were run to the end.

    Runs of the same sets that the repository has stay, unless they were run anew; those with
    another estimator go.
    """
    fresh = [record for record in read(folder) if record["suite"] in SUITES]
    records = sorted(with_packed(fresh, *SUITES), key=lambda record: record["spec"]["seed"])
    return [{**record, "label": POLICIES[policy_of(record)].title} for record in finished(records)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--times"]:
        pack_times(sys.argv[2])
    elif sys.argv[1:2] == ["--rounding"]:
        run_rounding(sys.argv[2])
    else:
        for place in sys.argv[1:]:
            pack(merged(place), RECORDS)
    study = load(packed(*SUITES))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures(study.sections[LABELS, DRAWN]).items():
        figure.savefig(PICTURES / f"{name}.png", dpi=100, facecolor="white")
    write_page("study.md", page(study, load(packed(*MADE))))
