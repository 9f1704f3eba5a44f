"""Writes docs/study.md and its pictures from the records of the study.

    python study/pages/make_study.py                 from study/records
    python study/pages/make_study.py RECORDS         packs records of `omma-study run` first
    python study/pages/make_study.py --times QUICK   packs times of `omma-study run SUITE --quick`

Every number and every verdict on the page comes from the records.
"""

import sys

import click
from matplotlib.figure import Figure

import claims
from common import ADAM, CLASSES, DOCS, LABELS, ONLINE, RECORDS, finished, load, packed
from omma.plots import LEARNING
from omma_study import figures
from omma_study.config import suite
from omma_study.datasets import CATALOGUE
from omma_study.policies import POLICIES
from omma_study.records import PACKED, key_of, pack, read
from omma_study.tables import policy_of

SUITES = (LABELS, CLASSES, ONLINE, ADAM)
PICTURES = DOCS / "images" / "study"
BLUE, ORANGE, INK = *LEARNING[:2], "#333333"

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
omma-study report study/records --extended --format html --output tables.html
```

Finished runs are skipped, so that a run can be stopped and go on, and sequences and policies can be
added later. Estimators of dense features multiply matrices, and processors round that in different
ways: on two machines, values of `covtype` by Adam were up to 0.02 points apart, and on macro
precision@3, where few predictions decide, up to one point. The last line makes tables of the
same records, with the paper's figures beside ours (`--format latex` for a paper, `--format png` for
figures).
"""


def missing(study):
    """Which sets of the suites were not run to the end; those that nobody can have here apart."""
    # Of the paper's own sets only this one can be had.
    available = [
        name for name, entry in CATALOGUE.items() if entry.paper is None or name == "news20"
    ]
    parts = []
    for name in SUITES:
        sets = [dataset for dataset in suite(name).datasets if dataset in available]
        lacking = [f"`{dataset}`" for dataset in sets if (name, dataset) not in study.sections]
        if lacking:
            parts.append(f"{', '.join(lacking)} ({name})")
    return f" Not on this page: {'; '.join(parts)}." if parts else ""


def page(study):
    """The text of the page."""
    first, last = shown(study)
    parts = ("cause", "starts", "both_greedys", "auto", "absent", "adam", "news20", "greedy",
             "precision", "elsewhere", "rare", "sensitivity", "online", "times")  # fmt: skip
    texts = {name: getattr(claims, name)(study) for name in parts}
    texts["means"] = claims.means_above_top(study)
    by_claim = {
        "OMMA is as good as Greedy": texts["greedy"],
        "OMMA is better than Online-FW on macro precision@3": texts["precision"],
        "OMMA(η̂) depends less on λ": texts["sensitivity"],
        "multi-class means are above those of the most probable class": texts["means"],
        "with an online estimator OMMA is on par or better": claims.on_par(study),
        "besides, Auto is as good as the better of both OMMAs": texts["auto"],
    }
    return PAGE.format(
        **texts,
        claims=claims.claims(by_claim),
        missing=missing(study),
        thresholds=claims.thresholds(),
        data=claims.data_table(study),
        first=first.title,
        last=last.title,
    )


def shown(study):
    """The sections whose running values and priors are drawn."""
    sections = study.of(LABELS)
    first = study.sections.get((LABELS, "youtube_deepwalk"), sections[0])
    return first, sections[-1]


def draw(study):
    """Three pictures: running values, values by λ, and where estimates help."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    first, last = shown(study)
    policies = ("greedy", "greedy_eta", "omma", "omma_eta", "online_fw", "online_fw_eta")
    pictures = {
        "running": figures.draw(first, targets=("macro_f1@3", "macro_precision@3")),
        "priors": figures.draw(last, True, ("macro_f1", "macro_f1@3"), policies),
        "rare": draw_rare(study),
    }
    for name, figure in pictures.items():
        figure.savefig(PICTURES / f"{name}.png", dpi=100, facecolor="white")


def draw_rare(study):
    """What estimates add, by the share of rare labels."""
    sections = study.of(LABELS)
    names = [f"{section.dataset}, {100 * claims.rare_share(section):.0f} %" for section in sections]
    gaps = {}
    for target in ("macro_f1", "macro_f1@3"):
        rows = study.rows(LABELS, targets=[target])
        gaps[claims.heading(target)] = list(100 * claims.gaps(rows, "omma_eta", "omma"))
    return dots(names, gaps)


def dots(names, gaps):
    """A line for each dataset, so that no name runs into the next; a dot for each metric."""
    figure = Figure(figsize=(7.4, 1.1 + 0.34 * len(names)), layout="constrained")
    ax = figure.add_subplot()
    for (metric, values), color, aside in zip(
        gaps.items(), (BLUE, ORANGE), (-0.12, 0.12), strict=True
    ):
        places = [place + aside for place in range(len(names))]
        ax.plot(values, places, "o", color=color, markersize=7, label=metric)
    ax.axvline(0, color="#999999", linewidth=0.8)
    ax.set_yticks(range(len(names)), names)
    # The first dataset on top.
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.spines[:].set_visible(False)
    ax.grid(color="#e4e4e4", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.set_xlabel("OMMA(η̂) − OMMA, points", size=9.5, color=INK)
    ax.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    title = f"share of labels that occur under {claims.RARE} times"
    figure.suptitle(title, size=9.5, color=INK, x=0.01, ha="left")
    return figure


def merged(folder):
    """Records of policies that were run to the end.

    Runs of the same sets that the repository has stay, unless they were run anew; those with
    another estimator go.
    """
    fresh = [record for record in read(folder) if record["suite"] in SUITES]
    sources = set(map(_source, fresh))
    names = {f"{suite}-{dataset}{PACKED}" for suite, dataset, _ in sources}
    files = [path for path in packed(*SUITES) if path.name in names]
    # A new run of the same key replaces the old one.
    old = {key_of(record): record for record in read(files) if _source(record) in sources}
    records = {**old, **{key_of(record): record for record in fresh}}
    order = sorted(records.values(), key=lambda record: record["spec"]["seed"])
    return [{**record, "label": POLICIES[policy_of(record)].title} for record in finished(order)]


def _source(record):
    spec = record["spec"]
    return record["suite"], spec["dataset"], repr(sorted(spec["estimator"].items()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--times"]:
        claims.pack_times(sys.argv[2])
    else:
        for place in sys.argv[1:]:
            pack(merged(place), RECORDS)
    study = load(packed(*SUITES))
    draw(study)
    (DOCS / "study.md").write_text(page(study), encoding="utf-8")
    click.echo(f"Wrote {DOCS / 'study.md'} and its pictures")
