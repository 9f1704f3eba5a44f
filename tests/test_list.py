"""``omma list``: everything that has a name."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from click.testing import CliRunner

import omma
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
        name for name in ALL if name.endswith("_eta") or name == "baseline"
    }
    assert max(map(len, listed("policies").stdout.splitlines())) <= 80


def test_every_dataset_is_listed(listed):
    rows = json.loads(listed("datasets", "--json").stdout)
    assert [row["name"] for row in rows] == list(omma.datasets.CATALOGUE)
    assert {row["name"]: row["n"] for row in rows}["yeast"] == 2417
    lines = listed("datasets").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line.strip()} >= set(omma.datasets.CATALOGUE)


def test_suites_come_from_the_benchmark(listed, monkeypatch):
    room = ModuleType("omma.benchmark")
    room.suites = lambda: [SimpleNamespace(name="all", title="Everything", runs=[1, 2, 3])]
    monkeypatch.setitem(sys.modules, "omma.benchmark", room)
    rows = json.loads(listed("suites", "--json").stdout)
    assert rows == [{"suite": "all", "runs": 3, "title": "Everything"}]


def test_without_a_benchmark_there_are_no_suites(listed, monkeypatch):
    monkeypatch.setitem(sys.modules, "omma.benchmark", None)
    done = listed("suites")
    assert done.exit_code == 1
    assert done.stderr == "Error: This version of omma has no suites.\n"


def test_anything_else_is_bad_usage(listed):
    for arguments in (["metric"], [], ["metrics", "--jsn"]):
        done = listed(*arguments)
        assert done.exit_code == 2
        assert len(done.stderr.strip().splitlines()) == 1
