"""Tables and figures in the paper's own layout, with the paper's figures beside ours."""

import re
import shutil
import subprocess

import pytest
from click.testing import CliRunner
from matplotlib.image import imread

import omma_study as study
from omma.comparison.entrants import TITLES
from omma_study import printed
from omma_study.cli import main
from omma_study.policies import NAMES
from omma_study.records import make, write
from omma_study.sections import STAND_INS, decides_as, figures, find

TARGETS = (("micro_f1", None), ("macro_f1", None), ("macro_precision", 3), ("macro_gmean", None))


def record(
    dataset, policy, metric, k, value, *, seed=0, prior=None, suite="mine", feedback=None,
    task="multilabel", protocol="fixed",
):  # fmt: skip
    spec = {
        "dataset": dataset, "task": task, "protocol": protocol,
        "estimator": {"name": "logistic"}, "policy": policy, "feedback": feedback,
        "metric": metric, "k": k, "prior": prior, "seed": seed,
    }  # fmt: skip
    result = {
        "value": value, "rows": 8, "history": {"rows": [4, 8], "values": [value, value]},
        "counts": {"tp": [1.0], "predicted": [2.0], "positive": [3.0], "n": 8.0}, "names": None,
    }  # fmt: skip
    return make(suite, spec, policy, result=result, seconds={"run": 0.25 + seed})


@pytest.fixture
def records():
    """A set that stands in for one of the paper, and one that stands for none."""
    return [
        record(dataset, policy, metric, k, 0.1 + 0.1 * place, seed=seed)
        for dataset in ("youtube_deepwalk", "yeast")
        for place, policy in enumerate(("baseline", "auto"))
        for metric, k in TARGETS
        for seed in (0, 1)
    ]


def test_the_papers_line_stands_under_ours(records):
    (table,) = printed.tables(records)
    assert table.groups == [("Micro", 1), ("Macro", 3)]
    assert [column.name for column in table.columns] == ["F1", "F1", "Pr.@3", "G-mean"]
    yeast, youtube = sorted(table.blocks, key=lambda block: block.title)
    assert not any(line.theirs for line in yeast.lines)
    assert [line.theirs for line in youtube.lines] == [False, True, False]
    wanted = [find("fixed", "YouTube", "baseline", *target) for target in TARGETS]
    assert [n.value for n in youtube.lines[1].numbers] == [figure.value for figure in wanted]
    assert youtube.paper == "stands in for YouTube"
    assert [number.rank for number in youtube.lines[2].numbers] == [1] * 4


def test_in_two_ways_the_papers_line_is_of_the_one_that_its_code_ran():
    records = [
        record("news20", name, "macro_f1", 3, 0.5, prior=0.1, feedback="labels")
        for name in ("greedy", "greedy_plug_in", "online_fw", "online_fw_random", "omma")
    ]
    (table,) = printed.tables(records)
    lines = table.blocks[0].lines
    above = [lines[i - 1].name for i, line in enumerate(lines) if line.theirs]
    assert above == ["greedy_plug_in", "online_fw_random", "omma"]
    assert table.blocks[0].paper == "News20 of the paper"
    assert decides_as("greedy", ["greedy", "omma"])


def test_every_figure_of_the_paper_has_a_policy_of_ours():
    places = [place for place in figures() if place.policy != "top_k_or_half"]
    assert {place.policy for place in places} <= set(NAMES)
    assert set(STAND_INS.values()) <= {place.dataset for place in figures()}


@pytest.mark.parametrize("extended", [False, True])
def test_rows_of_latex_have_as_many_cells_as_there_are_columns(records, extended):
    text = printed.document(printed.tables(records, extended=extended))
    places = re.search(r"begin\{tabular\}\{(.*)\}$", text, re.M)[1]
    columns = len(re.sub(r"@\{\}|\|", "", places))
    assert columns == (1 + 4 * 4 if extended else 1 + 2 * 4)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) >= 6
    for row in rows:
        spans = [int(span) for span in re.findall(r"multicolumn\{(\d+)\}", row)]
        gaps = len(re.findall(r"(?<!\\)&", row))
        assert 1 + gaps + sum(spans) - len(spans) == columns, row
    assert r"\textbf{20.00}" in text
    assert ("0.7500" in text) == extended  # mean of 0.25 and 1.25 seconds
    assert r"{\scriptsize 31.20}" in text
    assert (r"{\scriptsize \scriptsize\,$\pm$\,0.0100}" in text) == extended  # of its seconds


def test_a_line_that_one_of_two_sets_lacks_is_a_gap(records):
    more = [record("yeast", "ofo", "macro_f1", None, 0.3, prior=0.1, feedback="labels")]
    text = printed.document(printed.tables(records + more))
    (line,) = [line for line in text.splitlines() if line.strip().startswith("ofo")]
    assert "30.00" in line
    assert line.count("&") == 8


def test_sets_abreast_that_lack_policies_keep_the_order_of_tables(records):
    """One has Online-FW, the other figures of the paper: neither is put at the end."""
    more = [
        {**record(dataset, policy, "macro_f1", None, 0.3, prior=0.1, feedback="labels"),
         "label": TITLES[policy]}
        for dataset, policy in (
            ("yeast", "online_fw"), ("yeast", "ofo"), ("yeast", "omma"),
            ("youtube_deepwalk", "ofo"), ("youtube_deepwalk", "omma"),
        )
    ]  # fmt: skip
    text = printed.document(printed.tables(records + more))
    heads = [line.split("&")[0].strip() for line in text.splitlines() if line.endswith(r"\\")]
    theirs = r"\quad {\scriptsize the paper}"
    assert heads[3:] == ["baseline", theirs, "OFO", theirs, "Online-FW", "OMMA", theirs, "auto"]


@pytest.mark.parametrize("extended", [False, True])
def test_a_mark_of_missing_runs_is_explained(records, extended):
    """And is not spoken of where no number has it."""
    fewer = [one for one in records if one["spec"]["policy"] != "auto" or not one["spec"]["seed"]]
    for given, marked in ((records, False), (fewer, True)):
        (table,) = printed.tables(given, extended=extended)
        assert ("† Some of the runs are missing." in table.caption) == marked
        assert ("20.00†" in printed.page([table], {})) == marked
        assert (r"$^\dagger$ Some of the runs" in printed.document([table])) == marked


@pytest.mark.parametrize("extended", [False, True])
def test_rows_of_html_are_as_wide_as_the_head(records, extended):
    text = printed.page(printed.tables(records, extended=extended), {"a < b": b"png"})
    assert "a &lt; b" in text
    widths = set()
    for row in re.findall("<tr.*?</tr>", text):
        cells = re.findall(r"<t[hd][^>]*>", row)
        spans = [int(one) for cell in cells for one in re.findall(r'colspan="(\d+)"', cell)]
        widths.add(len(cells) - len(spans) + sum(spans))
    assert widths == {1 + 4 * (1 + extended)}
    assert "stands in for YouTube; 2 sequences" in text


def test_what_did_not_develop_is_not_drawn(records):
    assert [name.split(":")[1] for name in printed.families(records)] == [
        " The metric so far, against the number of rows"
    ]
    ends = {"rows": [8], "values": [0.5]}
    last = [{**one, "result": {**one["result"], "history": ends}} for one in records]
    assert printed.families(last) == {}


def whole(name):
    """Records of a whole suite, one sequence each; the values are made up."""
    runs = study.suite(name).limited(seeds=1, priors=[0.1]).runs
    return [
        record(
            run.source.dataset, run.policy.removesuffix("_eta"), run.metric, run.k, 0.12345,
            prior=run.prior, suite=name, task=run.source.task, protocol=run.source.protocol,
            feedback="estimates" if run.policy.endswith("_eta") else run.spec["feedback"],
        )
        for run in runs
    ]  # fmt: skip


@pytest.mark.parametrize("extended", [False, True])
def test_tables_of_whole_suites_fit_on_pages(tmp_path, extended):
    """Set by LaTeX itself: nothing wider than its page, no table higher."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: apt-get install texlive-latex-recommended")
    records = [one for name in ("multilabel_fixed", "multiclass_fixed", "online_cpe")
               for one in whole(name)]  # fmt: skip
    tables = printed.tables(records, extended=extended)
    assert [len(table.blocks) for table in tables] == [13, 5, 10]
    text = printed.document(tables)
    head = r"\documentclass{article}\usepackage[a4paper,margin=2cm]{geometry}"
    packages = r"\usepackage{booktabs,graphicx}"
    (tmp_path / "tables.tex").write_text(
        f"{head}{packages}\n\\begin{{document}}\n{text}\n\\end{{document}}\n", encoding="utf-8"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=tmp_path, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    log = (tmp_path / "tables.log").read_text(encoding="latin-1")
    assert done.returncode == 0, log[-2000:]
    complaints = [
        line for line in log.splitlines() if re.search("Overfull|too large|Warning", line)
    ]
    assert complaints == []
    floats = text.count(r"\begin{table*}")
    assert floats > len(tables)
    pages = int(re.search(r"Output written on tables.pdf \((\d+) pages", log)[1])
    assert pages <= floats
    assert "part 2 of" in text


def test_from_the_command_line(records, tmp_path):
    more = [
        record("yeast", "omma", *target, 0.3 + prior / 10, prior=prior, feedback="labels")
        for target in TARGETS
        for prior in (0.0, 1.0)
    ]
    for one in records + more:
        write(tmp_path / "records", one)

    def invoke(*arguments):
        return CliRunner().invoke(main, ["report", str(tmp_path / "records"), *arguments])

    assert r"\begin{table*}" in invoke("--paper", "--format", "latex").output
    page = tmp_path / "page.html"
    done = invoke("--paper", "--extended", "--format", "html", "--output", str(page))
    assert done.exit_code == 0, done.output
    assert page.read_text(encoding="utf-8").count("data:image/png") == 2
    done = invoke("--paper", "--format", "png", "--output", str(tmp_path / "pictures"))
    drawn = sorted((tmp_path / "pictures").glob("*.png"))
    assert len(drawn) == 2
    assert min(imread(drawn[0]).shape[:2]) > 300
    done = invoke("--paper", "--format", "csv")
    assert done.exit_code != 0
    assert "--paper is for --format latex, html, png, got csv" in done.output
