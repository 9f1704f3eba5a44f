"""Wherever the docs use the default, it is at least as good as what people do without it.

Pages and examples are run as they stand; each replay of ``omma.Auto`` in them is held against the
0.5 threshold, or with a budget against the k most probable labels, on the same rows.
"""

import doctest
import runpy
from pathlib import Path

import numpy as np
import pytest

import omma

ROOT = Path(__file__).parents[1]
RECIPES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "docs" / "recipes").glob("*.md"))
    if "omma.replay(omma.Auto(" in path.read_text(encoding="utf-8")
]
PAGES = ["README.md", "docs/index.md", "docs/tutorial.md", *RECIPES]
EXAMPLES = ["plot_first", "plot_rare_class", "plot_slots"]
ENOUGH = 500  # rows: a handful shows how to call, not what is better
HAIR = 0.002  # a metric that top-k maximizes by itself, as precision over all slots, is not lost by


class Watched:
    """``omma.replay`` that remembers what the default made of each metric, and what others do."""

    def __init__(self):
        self.found = []

    def __call__(self, policy, eta, y=None, **options):
        trace = omma.evaluation.replay(policy, eta, y, **options)
        if isinstance(policy, omma.Auto) and np.shape(eta)[0] >= ENOUGH:
            k = policy.budget
            usual = omma.Threshold(0.5) if k is None else omma.TopK(k)
            judged = {**options, "metric": trace.metric}
            other = omma.evaluation.replay(usual, eta, y, **judged)
            self.found.append((repr(policy), trace.value, other.value))
        return trace


@pytest.fixture
def watched(monkeypatch, tmp_path):
    made = Watched()
    monkeypatch.setattr(omma, "replay", made)
    monkeypatch.chdir(tmp_path)
    return made


def check(watched, name):
    assert watched.found, f"{name} does not show the default"
    for policy, ours, usual in watched.found:
        assert ours >= usual - HAIR, f"{policy} in {name}: {ours:.4f}, and without it {usual:.4f}"


def test_recipes_are_found():
    found = {Path(name).stem for name in RECIPES}
    assert {"deploying", "files", "fraud", "rare-class", "slots", "tagging"} <= found


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore")
def test_default_wins_on_the_page(page, watched):
    pytest.importorskip("sklearn")
    text = (ROOT / page).read_text(encoding="utf-8")
    names = {}
    for one in doctest.DocTestParser().get_examples(text):
        if "print(text)" not in one.source:
            exec(compile(one.source, page, "single"), names)
    check(watched, page)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_default_wins_in_the_example(name, watched):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    check(watched, name)
