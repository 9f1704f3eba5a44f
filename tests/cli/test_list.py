"""``omma list``: everything that has a name."""

import json

import pytest
from click.testing import CliRunner

import omma
from omma.cli import main
from omma.comparison import NAMES

ALL = [name for name in NAMES if name != "top_k_or_half"]  # another name of baseline


@pytest.fixture
def listed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: CliRunner().invoke(main, ["list", *arguments])


def test_every_metric_is_listed(listed):
    rows = json.loads(listed("metrics", "--json").stdout)
    assert [row["metric"] for row in rows] == list(omma.metrics.NAMES)
    assert {row["for"] for row in rows} == {"binary", "multilabel", "multiclass"}
    lines = listed("metrics").stdout.splitlines()
    assert {line.split()[0] for line in lines if line.strip()} >= set(omma.metrics.NAMES)
    assert max(map(len, lines)) <= 80


def test_every_policy_is_listed(listed):
    rows = json.loads(listed("policies", "--json").stdout)
    assert [row["policy"] for row in rows] == ALL
    without = {row["policy"] for row in rows if not row["labels"]}
    assert without >= {"auto", "baseline", *(name for name in ALL if name.endswith("_eta"))}
    assert not without & {"omma", "greedy", "ofo", "online_fw", "offline_fw", "tuned"}
    assert max(map(len, listed("policies").stdout.splitlines())) <= 80


@pytest.mark.parametrize("what", ["datasets", "suites"])
def test_lists_of_the_study_say_where_they_moved(listed, what):
    done = listed(what)
    assert done.exit_code == 2
    assert f"omma-study list {what}" in done.stderr


def test_anything_else_is_bad_usage(listed):
    for arguments in (["metric"], [], ["metrics", "--jsn"]):
        done = listed(*arguments)
        assert done.exit_code == 2
        assert len(done.stderr.strip().splitlines()) == 1
