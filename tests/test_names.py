"""Names of the package: all are there, and rooms are imported when they are asked for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import omma


@pytest.mark.parametrize("name", omma.__all__)
def test_every_public_name_is_found(name):
    assert getattr(omma, name) is getattr(omma, name)
    assert name in omma.SUBMODULES or name in omma.PUBLIC_NAMES


def test_others_are_not():
    with pytest.raises(AttributeError, match="module 'omma' has no attribute 'Rules'"):
        omma.Rules  # noqa: B018 (asking is the test)


def test_an_import_loads_nothing_until_a_name_is_asked_for():
    names = ("numba", "omma.evaluation", "omma.online.learner", "scipy.optimize")
    told = f"print(*(name in sys.modules for name in {names}))"
    code = f"import sys, omma; {told}; omma.replay; {told}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    alone, asked = done.stdout.splitlines()
    assert alone.split() == ["False", "False", "False", "False"]
    assert asked.split() == ["True", "True", "False", "False"]


def test_public_names_without_another_place_are_policies():
    rest = [name for name, place in omma.PUBLIC_NAMES.items() if place == "policies"]
    assert {"OMMA", "Auto", "Policy", "Window"} <= set(rest) <= set(omma.policies.__all__)
    public = set(omma.policies.POLICIES) | {"FrankWolfe"}
    assert public <= set(rest)
    placed = {name for names in omma.NAMES_BY_MODULE.values() for name in names}
    assert placed <= set(omma.__all__)
    assert all(getattr(omma, name) is not None for name in omma.__all__)


def test_every_metric_of_one_label_is_an_attribute():
    names = [name for name in omma.metrics.NAMES if omma.metric(name).binary]
    assert [name for name in names if name not in omma.metrics.__all__] == []
    assert all(getattr(omma.metrics, name) is omma.metric(name) for name in names)


def test_every_policy_is_in_the_reference():
    page = (Path(__file__).parents[1] / "docs/reference/policies.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: omma\.(\w+)$", page, re.MULTILINE)
    assert [name for name in omma.policies.POLICIES if name not in listed] == []
