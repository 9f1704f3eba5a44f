"""Writes docs/study.md and its pictures from the records of the study.

    python study/pages/make_study.py                 from study/records
    python study/pages/make_study.py RECORDS         packs records of `omma-study run` first
    python study/pages/make_study.py --times QUICK   packs times of `omma-study run SUITE --quick`

Every number and every verdict on the page comes from the records.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

import study_claims as claims
from omma.comparison.entrants import TITLES
from omma_study import suite
from omma_study.datasets import CATALOGUE
from omma_study.records import PACKED, distinct, pack, path_of, read
from omma_study.sections import policy_of
from study_cells import SUITES, finished, load
from study_online import on_par, online
from study_pictures import draw, shown
from study_times import keep_times, times

STUDY = Path(__file__).resolve().parents[1]
RECORDS, DOCS = STUDY / "records", STUDY.parent / "docs"

PAGE = """# The study: where the paper's claims hold

This page is written by `study/pages/make_study.py` from the records of `omma-study run`; every
number and every verdict comes from them. The records are in the repository (`study/records`), and
a test says that the page is what they give. Values are in %, means over shuffled sequences; the
last column of the first table says over how many. λ is the best of 0, 1e-6, 0.001, 0.1 and 1 for
each cell, chosen with hindsight, as in the paper. All policies run on the same sequences; one that
has fewer, on the first of them.

What words mean, before any number: {thresholds}.

Only `news20` is a set of the paper. The others stand in for its sets, or are sets besides: the
direction of a difference can be compared with the paper, its size cannot.{missing}
On streams made in the shapes of the paper's own sets, [differences between methods](likeness.md)
can be compared with the paper's.

{claims}

## What was run

{data}

*Fixed estimators* are fitted to the training part and estimate the test part: multi-label sets by
one logistic regression a label (LIBLINEAR; for `eurlex4k` a Newton method with the same minimum),
multi-class sets by a multinomial one and, in `multiclass_adam`, by Adam, as the paper states. C is
chosen by cross-validated log-loss on the training part. `eurlex4k` drops weights under 0.01 and
keeps the 100 largest probabilities of each row, as the paper does for its large sets. The column
"fitted to" says how many rows of the training part were used. *Online*, a linear model learns by
Adam along training and test part as one sequence, each row being estimated before it is learned
from; rate, l2 and whether features are standardised are chosen together, by the log-loss of
predicting the first 20,000 rows one by one (the table shows the choice of the first sequence).
`eurlex4k` is not among the sets with an online estimator: of its 19,348 rows with 3,993 labels, a
pass takes 44 seconds of a core, and choosing takes 12 passes or more, so that each sequence takes
ten minutes before a policy decides its first row.

Offline-FW is fitted to the probabilities of the training part, by the estimator that was fitted to
the same rows, as in the paper. Such probabilities are too good; see below where it starts.

## 20 Newsgroups, beside the paper

In brackets the paper's figure and the difference in points. The tf-idf features are our own.

{news20}
{cause}

## Where Frank-Wolfe starts

{starts}

## OMMA is as good as Greedy

{greedy}

{both_greedys}

## OMMA against Online-FW

{precision}

{elsewhere}

![running values](images/study/running.png)

*{first}: how two metrics develop along the sequence.*

## Auto, which has nothing to choose

{auto}

## Estimates as feedback help where many labels are rare

{rare}

![what estimates add, by dataset](images/study/rare.png)

## Estimates as feedback make λ matter less

{sensitivity}

![what each λ is worth](images/study/priors.png)

*{last}: the final value with each λ.*

## Multi-class means are above those of the most probable class

{means}

{absent}

## Two estimators of classes

{adam}

## Estimators that learn along the sequence

{online}

The fixed estimator is judged on the test part alone, the online one on all rows, from the first.

## Time

Median over metrics of the time of one replay with λ = 1e-6, without compilation, one after another
on a machine with nothing else to do. {times}

## To redo it

```sh
omma-study run paper --data DATA --out RECORDS
python study/pages/make_study.py RECORDS
omma-study report study/records --paper --extended --format html --output tables.html
```

Finished runs are skipped, so that a run can be stopped and go on, and sequences and policies can be
added later. Estimators of dense features multiply matrices, and processors round that in different
ways: on two machines, values of `covtype` by Adam were up to 0.02 points apart, and on macro
precision@3, where few predictions decide, up to one point. The last line draws the same records in
the layout of the paper's own tables, with its figures beside ours (`--format latex` for a paper,
`--format png` for its figures).
"""


def packed():
    """The files of the study's records; the folder has those of other pages, too."""
    every = (RECORDS.glob(f"{suite}-*.jsonl.xz") for suite in SUITES)
    return sorted(path for some in every for path in some)


def missing(study):
    """Which sets of the suites were not run to the end; those that nobody can have here apart."""
    here = [name for name, entry in CATALOGUE.items() if entry.paper is None or name == "news20"]
    told = []
    for name in SUITES:
        lacking = [
            one
            for one in suite(name).datasets
            if one in here and one not in study.by_suite.get(name, {})
        ]
        if lacking:
            told.append(f"{', '.join(f'`{one}`' for one in lacking)} ({name})")
    return f" Not on this page: {'; '.join(told)}." if told else ""


def page(study):
    """The text of the page."""
    first, last = shown(study)
    said = {
        "OMMA is as good as Greedy": claims.greedy(study),
        "OMMA is better than Online-FW on macro precision@3": claims.precision(study),
        "OMMA(η̂) depends less on λ": claims.sensitivity(study),
        "multi-class means are above those of the most probable class": claims.means_above_top(
            study
        ),
        "with an online estimator OMMA is on par or better": on_par(study),
        "besides, Auto is as good as the better of both OMMAs": claims.auto(study),
    }
    return PAGE.format(
        claims=claims.claims(said),
        missing=missing(study),
        thresholds=claims.thresholds(),
        cause=claims.cause(study),
        starts=claims.starts(study),
        both_greedys=claims.both_greedys(study),
        auto=claims.auto(study),
        absent=claims.absent(study),
        adam=claims.adam(study),
        data=claims.data_table(study),
        news20=claims.news20(study),
        greedy=claims.greedy(study),
        precision=claims.precision(study),
        elsewhere=claims.elsewhere(study),
        rare=claims.rare(study),
        sensitivity=claims.sensitivity(study),
        means=claims.means_above_top(study),
        online=online(study),
        times=times(study),
        first=first.title,
        last=last.title,
    )


def write(study):
    """The page and its pictures."""
    draw(study)
    (DOCS / "study.md").write_text(page(study), encoding="utf-8")
    click.echo(f"Wrote {DOCS / 'study.md'} and its pictures")


def kept(place):
    """Records of what was run to the end, policies by the names of today.

    Runs of the same sets that the repository has stay, unless they were run anew; those with
    another estimator go.
    """
    fresh = [one for one in read(place) if one["suite"] in SUITES]
    sources = set(map(_source, fresh))
    names = {f"{suite}-{dataset}{PACKED}" for suite, dataset, _ in sources}
    files = [path for path in packed() if path.name in names]
    old = [one for one in read(files) if _source(one) in sources]
    every = sorted(distinct([*fresh, *old]), key=_run)  # the first sequence first
    return [{**one, "label": TITLES[policy_of(one)]} for one in finished(every)]


def _source(record):
    spec = record["spec"]
    return record["suite"], spec["dataset"], repr(sorted(spec["estimator"].items()))


def _run(record):
    return path_of("", record["suite"], record["kind"], record["spec"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--times"]:
        keep_times(sys.argv[2])
    else:
        for place in sys.argv[1:]:
            pack(kept(place), RECORDS)
    write(load(packed()))
