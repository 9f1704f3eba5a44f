"""Wherever the docs use the default, it is at least as good as what people do without it.

Pages and examples are run as they stand; each replay of ``omma.Auto`` in them is held against the
0.5 threshold, or with a budget against the k most probable labels, on the same rows, and so is the
Auto that ``omma.choose`` compares; inside scikit-learn and river, what is wrapped against the model
alone.
"""

import doctest
import runpy
from pathlib import Path

import numpy as np
import pytest

import omma

ROOT = Path(__file__).parents[2]
RECIPES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "docs" / "recipes").glob("*.md"))
    if "omma.replay(omma.Auto(" in path.read_text(encoding="utf-8")
]
WATCHED = ("sklearn", "river")  # what decides is inside another library: see below
OTHERS = {  # recipes without rows enough to tell what is better, and why
    "index": "a list of the others",
    "serving": "commands of a server",
    "fastapi": "three rows that show how to call",
    "dask": "steps on one state, with plain OMMA",
    "ray": "steps on one state, with plain OMMA",
}
PAGES = ["README.md", "docs/index.md", "docs/tutorial.md", "docs/how.md", "docs/faq.md", *RECIPES]
EXAMPLES = ["plot_first", "plot_fraud", "plot_rare_class", "plot_slots"]
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

    def choose(self, eta, y, metric, *args, **options):
        choice = omma.comparison.choose(eta, y, metric, *args, **options)
        if np.shape(eta)[0] >= ENOUGH:
            values = choice["auto"].value, choice["baseline"].value
            self.found.append((f"Auto of choose by {metric}", *values))
        return choice


@pytest.fixture
def watched(monkeypatch, tmp_path):
    made = Watched()
    monkeypatch.setattr(omma, "replay", made)
    monkeypatch.setattr(omma, "choose", made.choose)
    monkeypatch.chdir(tmp_path)
    return made


def check(watched, name):
    assert watched.found, f"{name} does not show the default"
    for policy, ours, usual in watched.found:
        assert ours >= usual - HAIR, f"{policy} in {name}: {ours:.4f}, and without it {usual:.4f}"


def test_every_recipe_is_looked_at():
    """A page that is new, or that shows the default another way, is to be watched, or said why."""
    found = {Path(name).stem for name in RECIPES}
    pages = {path.stem for path in (ROOT / "docs" / "recipes").glob("*.md")}
    assert not found & {*WATCHED, *OTHERS}
    assert pages == {*found, *WATCHED, *OTHERS}


@pytest.mark.parametrize("page", OTHERS)
def test_other_recipes_do_not_show_what_the_default_is_worth(page):
    text = (ROOT / "docs" / "recipes" / f"{page}.md").read_text(encoding="utf-8")
    assert "omma.replay(omma.Auto(" not in text
    assert "progressive_val_score" not in text


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


def run_page(page, scored):
    """Run the examples of a recipe up to the last that is scored, whatever they print."""
    names, text = {}, (ROOT / "docs" / "recipes" / f"{page}.md").read_text(encoding="utf-8")
    every = doctest.DocTestParser().get_examples(text)
    last = max(at for at, one in enumerate(every) if all(part in one.source for part in scored))
    for one in every[: last + 1]:
        if one.exc_msg is None:
            exec(compile(one.source, page, "single"), names)


@pytest.mark.filterwarnings("ignore")
def test_default_wins_in_scikit_learn(monkeypatch, tmp_path):
    """Whatever a page scores that a ``MetricClassifier`` predicted, against its own model."""
    metrics = pytest.importorskip("sklearn.metrics")
    from omma.sklearn import MetricClassifier

    made, compared = {}, []
    predict, scores = MetricClassifier.predict, ("f1_score", "balanced_accuracy_score")

    def watched_predict(self, X):
        found = predict(self, X)
        made[id(found)] = self, X, found  # kept, so that no other has its id
        return found

    def watching(score):
        def judged(y_true, y_pred, **options):
            value = score(y_true, y_pred, **options)
            if id(y_pred) in made:
                model, X, _ = made[id(y_pred)]
                default = model.feedback is None and model.prior is None
                if default and len(y_true) >= ENOUGH and model.subject_to is None:
                    usual = score(y_true, model.estimator_.predict(X), **options)
                    compared.append((repr(model), value, usual))
            return value

        return judged

    monkeypatch.setattr(MetricClassifier, "predict", watched_predict)
    for name in scores:
        monkeypatch.setattr(metrics, name, watching(getattr(metrics, name)))
    monkeypatch.chdir(tmp_path)
    run_page("sklearn", ("_score(", ".predict("))
    assert len(compared) >= 5
    for model, ours, usual in compared:
        assert ours >= usual - HAIR, f"{model}: {ours:.4f}, and without it {usual:.4f}"


@pytest.mark.filterwarnings("ignore")
def test_default_wins_in_river(monkeypatch, tmp_path):
    """Every stream of the page is run again with the model that is wrapped."""
    evaluate = pytest.importorskip("river.evaluate")
    from omma.river import MetricClassifier

    score, compared = evaluate.progressive_val_score, []

    def watched(dataset, model, metric, **options):
        rows = list(dataset)
        default = isinstance(model, MetricClassifier) and model.feedback is None
        if default and model.prior is None and model.subject_to is None and len(rows) >= ENOUGH:
            alone = score(rows, model.model.clone(), metric.clone(), **options).get()
            compared.append((repr(model), score(rows, model, metric, **options).get(), alone))
            return metric
        return score(rows, model, metric, **options)

    monkeypatch.setattr(evaluate, "progressive_val_score", watched)
    monkeypatch.chdir(tmp_path)
    run_page("river", ("progressive_val_score(",))
    assert len(compared) >= 3
    for model, ours, usual in compared:
        assert ours >= usual - HAIR, f"{model}: {ours:.4f}, and without it {usual:.4f}"


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_default_wins_in_the_example(name, watched):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    check(watched, name)
