"""Write the list of every metric that has a name, from the catalogue itself.

    python docs/make_metrics.py

docs/make_pages.py writes the page before the site is built.
"""

import click

import omma

HEAD = """# Every metric by name

All that `omma.metric(name)` knows, from its catalogue. [Choosing a metric](../metrics.md) says which to take.

`tp`, `fp`, `fn` and `tn` are the four cells of a label; `predicted = tp + fp` and `positive = tp + fn`.
A metric is *concave* and *smooth* as a function of (tp, predicted) at fixed label frequencies; where it
is both, the paper's bound of ln(n) / n holds. A *ratio* has a numerator and a denominator that are linear.
"""  # noqa: E501
TABLE = """
## {title}

{text}

| name | formula | concave | smooth | ratio |
| --- | --- | --- | --- | --- |
{rows}
"""
MANY = ("macro_", "micro_", "weighted_")


def page():
    """The page, in Markdown."""
    plain = [name for name in omma.metrics.NAMES if not name.startswith(MANY)]
    groups = {
        "One label": [name for name in plain if omma.metric(name).binary],
        "One class a row": [name for name in plain if not omma.metric(name).binary],
        "Many labels": [name for name in omma.metrics.NAMES if name.startswith(MANY)],
    }
    texts = {
        "One label": "For yes or no: `eta` and `y` of shape (n,).",
        "One class a row": "They predict one class a row; `y` may be class ids.",
        "Many labels": "Means over labels (`macro_`), counts averaged over labels (`micro_`), or "
        "means weighed by how often each label occurs (`weighted_`).",
    }
    tables = [_table(title, texts[title], names) for title, names in groups.items()]
    return "".join([HEAD, *tables])


def _table(title, text, names):
    return TABLE.format(title=title, text=text, rows="\n".join(map(_row, names)))


def _row(name):
    metric = omma.metric(name)
    marks = ("concave", "smooth", "linear_fractional")
    cells = [f"`{name}`", metric.formula, *("yes" * getattr(metric, mark) for mark in marks)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    click.echo(page())
