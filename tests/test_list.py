"""``omma list``: everything that has a name."""

import json

import pytest
from click.testing import CliRunner

import omma
from omma import study, theory
from omma.cli import main
from omma.cli.evaluation import ALL


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
    assert [row["policy"] for row in rows] == list(ALL)
    assert {row["policy"] for row in rows if not row["labels"]} == {
        name for name in ALL if name.endswith("_eta") or name in ("auto", "baseline")
    }
    assert max(map(len, listed("policies").stdout.splitlines())) <= 80


def test_every_dataset_is_listed(listed):
    rows = json.loads(listed("datasets", "--json").stdout)
    assert [row["name"] for row in rows] == list(omma.datasets.CATALOGUE)
    assert {row["name"]: row["n"] for row in rows}["yeast"] == 2417
    lines = listed("datasets").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line.strip()} >= set(omma.datasets.CATALOGUE)


def test_suites_are_those_of_the_study_and_of_the_theory(listed):
    rows = json.loads(listed("suites", "--json").stdout)
    names = [row["suite"] for row in rows]
    assert names == [*(one.name for one in (*study.suites(), *theory.suites())), "auto"]
    assert {"smoke", "theory-regret"} <= set(names)
    assert next(row for row in rows if row["suite"] == "smoke")["runs"] == 64


def test_anything_else_is_bad_usage(listed):
    for arguments in (["metric"], [], ["metrics", "--jsn"]):
        done = listed(*arguments)
        assert done.exit_code == 2
        assert len(done.stderr.strip().splitlines()) == 1
