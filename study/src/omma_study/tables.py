"""Tables of sections as texts: means with the best λ, and the paper's values beside them."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from omma_study.paper import heading, is_label_fed
from omma_study.policies import POLICIES, supports
from omma_study.sections import CELL, Section

UNSUPPORTED, MISSING, PARTIAL, LABEL_FED = "×", "–", "†", "‡"


def points(difference: float) -> str:
    """A difference in percentage points.

    >>> points(0.0123), points(-0.5)
    ('+1.23', '−50.00')
    """
    return f"{100 * difference:+.2f}".replace("-", "−")


class Table(NamedTuple):
    """Texts under heads; the first ``words`` columns are words, the others numbers."""

    title: str
    frame: pd.DataFrame
    words: int = 1
    note: str = ""


BOLD_ITALIC = {
    "markdown": ("**{}**", "*{}*"),
    "latex": (r"\textbf{{{}}}", r"\textit{{{}}}"),
    "html": ("<b>{}</b>", "<i>{}</i>"),
    "terminal": ("{} *", "{}  "),  # a star marks the best
}


def _marks(values: pd.Series, form: str) -> pd.Series:
    """How to write the values of a column: the best is bold, the second best italic."""
    # Values that look equal share a rank.
    shown = (100 * values).map("{:.2f}".format).astype(float)
    ranks = shown.rank(method="dense", ascending=False)
    return ranks.map(dict(enumerate(BOLD_ITALIC[form], start=1))).fillna("{}")


def table_of(
    section: Section,
    form: str = "markdown",
    *,
    extended: bool = False,
    policies: Sequence[str] | None = None,
) -> Table:
    """Policies against metrics in %: means ± deviations, best bold, second italic.

    Figures of the paper stand below ours, in brackets. ``extended`` adds seconds; ``policies`` are
    those to show, all by default.
    """
    policies = section.policies if policies is None else policies
    texts: dict[str, list[str]] = {"policy": [POLICIES[name].title for name in policies]}
    below = "<br>" if form in ("markdown", "html") else " "
    for target, (metric, k) in section.targets.items():
        # NaN where a policy was not run, or where the paper has no figure.
        values, paper = (
            pd.Series({policy: value(policy, target) for policy in policies}, dtype=float)
            for value in (section.mean, section.paper_value)
        )
        marks, paper_marks = _marks(values, form), _marks(paper[values.notna()], form)
        column = []
        for policy in policies:
            if math.isnan(values[policy]):
                column.append(MISSING if supports(policy, metric, k) else UNSUPPORTED)
                continue
            cell = section.cells.loc[(policy, target)]
            text = with_deviation(cell["mean"], cell["std"])
            text += f" ({duration(cell['seconds'])})" if extended else ""
            text += "" if section.is_complete(policy, target) else PARTIAL
            text = marks[policy].format(text)
            if not math.isnan(paper[policy]):
                note = LABEL_FED if is_label_fed(policy, target) else ""
                text += f"{below}[{paper_marks[policy].format(f'{100 * paper[policy]:.2f}')}{note}]"
            column.append(text)
        texts[heading(target)] = column
    return Table(section.title, pd.DataFrame(texts), 1, " ".join(_notes(section)))


def with_deviation(mean: float, deviation: float) -> str:
    """A mean over sequences in %, with its standard deviation; one sequence has none.

    >>> with_deviation(0.51234, 0.0012), with_deviation(0.5, math.nan)
    ('51.23 ± 0.12', '50.00')
    """
    return f"{100 * mean:.2f}" + ("" if math.isnan(deviation) else f" ± {100 * deviation:.2f}")


def paper_tables(sections: Iterable[Section], form: str, *, extended: bool = False) -> list[Table]:
    """Tables in the paper's layout: one for each suite, in which sets are blocks of rows."""
    suites: dict[str, list[Section]] = {}
    for section in sections:
        suites.setdefault(section.suite, []).append(section)
    tables = []
    for suite, group in suites.items():
        blocks = []
        for section in group:
            frame = table_of(section, form, extended=extended).frame
            # The dataset stands in the first row of its block.
            names = [escaped(section.title, form), *[""] * (len(frame) - 1)]
            blocks.append(frame.assign(dataset=names)[["dataset", *frame]])
        # Each sentence once: most hold for all datasets.
        notes = dict.fromkeys(note for section in group for note in _notes(section))
        tables.append(Table(suite, pd.concat(blocks).fillna(MISSING), 2, " ".join(notes)))
    return tables


def duration(seconds: float) -> str:
    """A time that people can read.

    >>> duration(0.00123), duration(75.2)
    ('1.23 ms', '75.2 s')
    """
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def plain(number: float) -> str:
    """A number as people write it.

    >>> plain(0.0), plain(1e-6), plain(0.001)
    ('0', '1e-6', '0.001')
    """
    return f"{number:g}".replace("e-0", "e-")


def _notes(section: Section) -> list[str]:
    """Sentences below a table: how λ was chosen and η estimated."""
    estimator, name = section.estimator, section.estimator["name"]
    notes = [f"Mean ± standard deviation over {section.seeds} shuffled sequences, in %."]
    if len(section.priors) > 1:
        tried = ", ".join(map(plain, section.priors))
        notes.append(f"λ is the best of {tried} for each entry, chosen with hindsight.")
    notes.append(f"{UNSUPPORTED} not supported, {PARTIAL} some runs are missing.")
    keys = ("C", "learning_rate", "train_rows")
    options = ", ".join(f"{key} = {estimator[key]}" for key in keys if key in estimator)
    origin = "as the data were drawn with" if name == "known" else f"by {name}"
    notes.append(f"{section.dataset}: η̂ {origin}{f' ({options})' * bool(options)}.")
    if section.paper or section.stands_for:
        notes.append(
            f"In brackets the paper's figure; {LABEL_FED} is the paper's Greedy with labels."
        )
    return notes


def markdown(frame: pd.DataFrame, words: int = 1) -> str:
    """A table in Markdown; its first ``words`` columns are words, the others numbers."""
    heads, cells = list(frame.columns), frame.astype(str).to_numpy().tolist()
    rule = [":--"] * words + ["--:"] * (len(heads) - words)
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *cells))


def escaped(text: str, form: str = "markdown") -> str:
    """A text that Markdown, HTML or LaTeX shows as it is."""
    if form == "html":
        return html.escape(text)
    signs = r"([\\|<*`])" if form == "markdown" else r"([&%$#_{}])"
    return re.sub(signs, r"\\\1", text)


def _latex(text: str) -> str:
    """A text of a table, whose braces and backslashes are marks of LaTeX already."""
    return re.sub(r"(?<!\\)([%_])", r"\\\1", text).replace("η̂", r"$\hat\eta$")


def written(tables: Iterable[Table], form: str) -> str:
    """Tables one after another, as text for a terminal, Markdown, LaTeX, HTML or CSV."""
    parts = []
    for table in tables:
        title, frame, words, note = table
        if form == "markdown":
            text = markdown(frame, words)
            parts.append(f"### {escaped(title)}\n\n{text}\n\n{escaped(note)}\n")
        elif form == "latex":
            frame = frame.map(_latex).rename(columns=_latex)
            caption = escaped(f"{title}. {note}", form)
            # Words to the left, numbers to the right.
            left = "l" * words + "r" * (frame.shape[1] - words)
            parts.append(frame.to_latex(index=False, caption=caption, column_format=left))
        elif form == "html":
            body = frame.to_html(index=False, escape=False, border=0)
            parts.append(f"<h2>{escaped(title, form)}</h2>\n{body}\n<p>{escaped(note, form)}</p>\n")
        elif form == "csv":
            parts.append(frame.to_csv(index=False))
        else:
            text = frame.to_string(index=False, line_width=100)
            parts.append(f"\n{title}\n{text}\n{note}\n")
    return "\n".join(parts)


def cells_csv(sections: Iterable[Section]) -> str:
    """A line for each policy, metric and λ of each section; ``chosen`` marks the best λ."""
    frames = []
    for section in sections:
        frame = section.by_prior.reset_index()
        metrics, budgets = zip(*frame["target"].map(section.targets), strict=True)
        frame["metric"], frame["k"] = metrics, pd.array(budgets, dtype="Int64")
        chosen = section.cells["prior"].reindex(pd.MultiIndex.from_frame(frame[CELL])).to_numpy()
        # Policies without λ have nothing to choose.
        frame["chosen"] = (frame["prior"] == chosen) | frame["prior"].isna()
        values = [section.paper_value(*place) for place in frame[CELL].itertuples(index=False)]
        frame["paper"] = pd.Series(values, dtype=float).where(frame["chosen"])
        frame["difference"] = frame["mean"] - frame["paper"]
        names = ("suite", "dataset", "protocol", "n", "m")
        head = {name: getattr(section, name) for name in names}
        frames.append(frame.assign(**head, estimator=section.estimator["name"]))
    return pd.concat(frames).to_csv(index=False)
