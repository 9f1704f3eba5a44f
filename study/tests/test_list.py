"""``omma-study list``: datasets and suites."""

import json

import pytest
from click.testing import CliRunner

import omma_study as study
from omma_study import theory
from omma_study.cli import main
from omma_study.datasets import CATALOGUE


@pytest.fixture
def listed():
    return lambda *arguments: CliRunner().invoke(main, ["list", *arguments])


def test_every_dataset_is_listed(listed):
    rows = json.loads(listed("datasets", "--json").stdout)
    assert [row["name"] for row in rows] == list(CATALOGUE)
    assert {row["name"]: row["n"] for row in rows}["yeast"] == 2417
    lines = listed("datasets").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(CATALOGUE)


def test_suites_are_those_of_the_study_and_of_the_theory(listed):
    rows = json.loads(listed("suites", "--json").stdout)
    names = [row["suite"] for row in rows]
    assert names == [*(suite.name for suite in (*study.suites(), *theory.suites())), "auto"]
    assert {"smoke", "theory-regret"} <= set(names)
    assert next(row for row in rows if row["suite"] == "smoke")["runs"] == 64
