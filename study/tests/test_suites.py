"""Suites: those that are shipped, and what the reader of TOML says about a wrong one."""

from collections import Counter
from importlib import resources

import pytest

import omma_study as study
from omma_study.config import parse
from omma_study.datasets import CATALOGUE
from omma_study.paper import paper_values
from omma_study.policies import POLICIES

GOOD = """
title = "Mine"
protocol = "fixed"
task = "multilabel"
datasets = ["a", "yeast"]
policies = ["baseline", "ofo", "online_fw", "omma_eta", "offline_fw"]
metrics = ["macro_f1", "macro_f1@3"]
priors = [0, 1]
seeds = 3

[estimator]
name = "known"

[dataset.a.made]
by = "long_tail"
n = 50
m = 4

[policy.online_fw]
history = 20
"""


def test_a_suite_is_a_grid_without_what_is_not_supported():
    runs = parse("mine", GOOD).runs
    # a sequence: two that have no λ and both metrics; OFO one metric, two others both, twice each
    assert len(runs) == 2 * 3 * (2 * 2 + 2 * (1 + 2 + 2))
    assert len({str(run.spec) for run in runs}) == len(runs)
    by_policy = Counter((run.policy, run.k) for run in runs)
    assert by_policy["ofo", 3] == 0
    assert by_policy["ofo", None] == by_policy["omma_eta", 3] == 2 * 3 * 2
    run_of_fw = next(run for run in runs if run.policy == "online_fw")
    assert run_of_fw.spec["options"] == {"history": 20}
    assert run_of_fw.spec["made"] == {"by": "long_tail", "n": 50, "m": 4}
    assert {type(run.prior) for run in runs} == {float, type(None)}
    eta = next(run for run in runs if run.policy == "omma_eta")
    assert (eta.spec["policy"], eta.spec["feedback"]) == ("omma", "estimates")
    assert POLICIES[eta.policy].title == "OMMA(η̂)"


def test_a_suite_can_be_limited():
    whole = parse("mine", GOOD)
    less = whole.limited(datasets=["yeast"], seeds=1, priors=[0.5])
    assert less.datasets == ("yeast",)
    assert {run.seed for run in less.runs} == {0}
    assert {run.prior for run in less.runs} == {0.5, None}
    with pytest.raises(ValueError, match="a dataset of the suite 'mine' must be one of"):
        whole.limited(datasets=["yeats"])
    with pytest.raises(ValueError, match="a policy of the suite 'mine' must be one of"):
        whole.limited(policies=["oma"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Mine"', "", "must have the key 'title'"),
        ('title = "Mine"', 'title = "Mine"\nseed = 1', "got 'seed', did you mean 'seeds'"),
        ('title = "Mine"', "title = 3", "the suite 'mine' must have the key 'title' of type"),
        ('protocol = "fixed"', 'protocol = "fix"', "did you mean 'fixed'"),
        ('task = "multilabel"', 'task = "multi-label"', "did you mean 'multilabel'"),
        ('"omma_eta"', '"oma_eta"', "got 'oma_eta', did you mean 'omma_eta'"),
        ('"macro_f1@3"', '"macro_fx@3"', "did you mean 'macro_f1'"),
        ('"macro_f1@3"', '"macro_f1@x"', "must follow the @"),
        ('["a", "yeast"]', '["a", "a"]', "list of distinct names"),
        ('["a", "yeast"]', "[]", "list of distinct names"),
        ('["a", "yeast"]', '"a"', "must have the key 'datasets' of type"),
        ("[0, 1]", "[-1]", "priors of at least 0"),
        ("seeds = 3", "seeds = 0", "seeds of at least 1"),
        ('name = "known"', 'name = "logistik"', "did you mean 'logistic'"),
        ('name = "known"', 'nam = "known"', "the estimator of the suite 'mine' must be one of"),
        ('name = "known"', 'name = "logistic"\nc = 1', "an option of the estimator 'logistic'"),
        ('name = "known"', 'name = "online"', "the estimator of the suite 'mine' must be one of"),
        ('protocol = "fixed"', 'protocol = "online"', "cannot hold 'offline_fw': it learns"),
        ("[dataset.a.made]", "[dataset.b.made]", "got 'b'"),
        ("[dataset.a.made]", "[dataset.a.mad]", "got 'mad', did you mean 'made'"),
        ("history = 20", "histry = 20", "got 'histry', did you mean 'history'"),
        ("history = 20", "history = -2", "history of OnlineFrankWolfe must be"),
        ("[policy.online_fw]", "[policy.greedy]", "got 'greedy'"),
        ("[policy.online_fw]\nhistory = 20", "[policy.baseline]\na = 1", "an option of the policy"),
        ("[estimator]", "[estimator", "is no TOML"),
    ],
)  # fmt: skip
def test_a_wrong_suite_gets_one_sentence(old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=message.replace("[", "\\[")) as caught:
        parse("mine", GOOD.replace(old, new))
    assert "\n" not in str(caught.value)


def test_a_suite_from_a_file(tmp_path):
    (tmp_path / "own.toml").write_text(GOOD)
    assert study.suite(tmp_path / "own.toml").name == "own"
    with pytest.raises(ValueError, match="cannot be read"):
        study.suite(tmp_path / "other.toml")
    with pytest.raises(ValueError, match="did you mean 'multilabel_fixed'"):
        study.suite("multilabel_fix")


def test_a_suite_of_suites_has_their_runs(tmp_path):
    (tmp_path / "both.toml").write_text('title = "B"\nsuites = ["smoke"]')
    both = study.suite(tmp_path / "both.toml")
    assert both.runs == study.suite("smoke").runs
    assert both.limited(seeds=1).runs == study.suite("smoke").limited(seeds=1).runs
    (tmp_path / "both.toml").write_text('title = "B"\nsuites = ["smoke"]\nseeds = 1')
    with pytest.raises(ValueError, match=r"which runs other suites, .*got 'seeds'"):
        study.suite(tmp_path / "both.toml")


def test_every_shipped_suite_can_be_read_and_names_known_data():
    suites = {suite.name: suite for suite in study.suites()}
    assert {"multilabel_fixed", "multiclass_fixed", "online_cpe", "smoke"} <= set(suites)
    for suite in suites.values():
        assert suite.title
        stored = [s.dataset for s in suite.sources if not s.made]
        assert set(stored) <= set(CATALOGUE), suite.name


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("multilabel_fixed", "fixed"),
        ("multiclass_fixed", "fixed"),
        ("multiclass_adam", "fixed"),
        ("online_cpe", "online"),
    ],
)
def test_shipped_suites_cover_every_cell_of_the_paper(name, protocol):
    suite = study.suite(name)
    elsewhere = set() if name.startswith("multiclass_") else {"News20"}  # it stands in Table 3
    papers = {CATALOGUE[dataset].paper for dataset in suite.datasets} - {None} - elsewhere
    paper = paper_values().reset_index()
    paper = paper[(paper["cpe"] == protocol) & paper["dataset"].isin(papers)]
    cells = set(paper[["method", "metric", "k"]].itertuples(index=False, name=None))
    ours = {
        ("top_k_or_half" if run.policy == "baseline" else run.policy, run.metric, run.k or 0)
        for run in suite.limited(seeds=1, priors=[0.0]).runs
    }
    assert cells
    assert cells <= ours
    assert suite.priors == (0.0, 1e-6, 1e-3, 0.1, 1.0)
    assert suite.seeds == 5


def test_the_papers_figures_are_all_there():
    paper = paper_values()
    assert len(paper) == 682
    assert paper.groupby("cpe").size().to_dict() == {"fixed": 486, "online": 196}
    omma = paper.xs(("fixed", "omma"), level=("cpe", "method"))["value"]
    assert omma["YouTube", "micro_f1", 0] == 0.4373
    assert omma["AmazonCat", "macro_hmean", 0] == 0.8004
    assert omma["Caltech-256", "multiclass_qmean", 1] == 0.7615
    assert paper["value"].between(0, 1).all()
    assert (
        paper["seconds"].isna() == (paper.index.get_level_values("method") == "offline_fw")
    ).all()


def test_package_data_is_where_the_wheel_takes_it_from():
    files = resources.files("omma_study")
    assert (files / "paper.csv").is_file()
    assert (files / "suites" / "smoke.toml").is_file()
