"""In an editor and a notebook: names to complete, types that are true, tables to look at."""

import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st
from matplotlib.figure import Figure

import omma
from omma._html import MOST, html_table
from omma._types import Calibration, Feedback
from omma.metrics.names import MetricName
from omma.plots import FIXED, LEARNING, color_of
from omma.plots.palette import FAMILIES, LEARNERS, STILL, name_of
from omma.policies import POLICIES
from omma.policies.registry import REGISTRY

ROOT = Path(__file__).parents[2]
VOID = {"br"}


class Shown(HTMLParser):
    """Reads HTML: its text, and whether all that opens is closed."""

    def __init__(self, source):
        super().__init__()
        self.open, self.text, self.tags = [], [], set()
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def stream():
    return omma.datasets.long_tail(n=300, m=12, seed=0)


# Names


def test_only_public_names_are_completed():
    assert dir(omma) == sorted([*omma.__all__, "__version__"])
    for name in dir(omma):
        assert getattr(omma, name) is not None


def test_names_of_metrics_are_those_of_the_catalogue(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    make_names = importlib.import_module("make_names")
    assert get_args(MetricName) == omma.metrics.NAMES, "run python docs/make_names.py"
    assert make_names.PAGE.read_text(encoding="utf-8") == make_names.text()


def test_choices_are_those_that_are_taken():
    assert set(get_args(Feedback)) == set(omma.OMMA.FEEDBACKS)
    for feedback in get_args(Feedback):
        assert omma.OMMA("f1", feedback=feedback).feedback == feedback
    named, none = get_args(Calibration)
    assert get_args(named) == ("online",)
    for calibration in (*get_args(named), None):
        assert omma.OMMA("f1", calibration=calibration).calibration == calibration
    assert none is type(None)


def test_a_type_checker_sees_what_comes_back(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "user.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np
        import omma

        eta = np.zeros((2, 3))
        trace = omma.replay(omma.OMMA("macro_f1", feedback="both"), eta, eta)
        reveal_type(trace)
        reveal_type(trace.rule.predict(eta))
        reveal_type(trace.rule.predict([0.1, 0.2, 0.3]))
        reveal_type(omma.OnlineClassifier(omma.TopK(1), 3).predict(eta))
        omma.OMMA("macro_f1", feedback="label")
        omma.OMMA("macro_f1", calibration="offline")
        """)
    )
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent"]
    config = f"--config-file={ROOT / 'pyproject.toml'}"
    done = subprocess.run(
        [*command, config, str(script)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    revealed = re.findall(r'Revealed type is "([^"]*)"', done.stdout)
    assert len(revealed) == 4, done.stdout + done.stderr
    assert revealed[0].endswith("trace.Trace")
    assert all("ndarray" in one and "signedinteger" in one for one in revealed[1:]), revealed
    wrong = re.findall(r'user.py:(\d+): error: Argument "(\w+)" to "OMMA"', done.stdout)
    assert wrong == [("11", "feedback"), ("12", "calibration")]


# Tables


def test_objects_are_tables_in_a_notebook(stream):
    eta, y = stream
    trace = omma.replay(omma.OMMA("macro_f1"), eta, y)
    compared = omma.compare(eta, y, metrics=["macro_f1"], policies=["baseline", "auto"])
    choice = omma.choose(eta, y, "macro_f1")
    curve = omma.curve(eta, y, "macro_f1", bootstrap=0)
    policy = omma.Auto("macro_f1", subject_to="micro_precision >= 0.5")
    learner = omma.OnlineClassifier(policy, n_labels=12)
    assert "no labels yet" in learner._repr_html_()
    learner.predict(eta[0])
    learner.update(y[0])
    for shown_object in (trace, trace.counts, trace.rule, compared, choice, curve, learner):
        source = shown_object._repr_html_()
        shown = Shown(source)
        assert {"table", "td"} <= shown.tags
        assert not re.search("#[0-9a-fA-F]{3}|black|white", source)  # readable in the dark
    assert f"{trace.value:.4f}"[:6] in trace._repr_html_()
    assert "… and 2 more" in trace.counts._repr_html_()
    cell = compared.cell("auto", "macro_f1")
    assert f"{100 * cell.mean:.2f}" in compared._repr_html_()
    choice_text, learner_text = (
        "".join(Shown(shown_object._repr_html_()).text) for shown_object in (choice, learner)
    )
    assert choice_text.startswith(choice.verdict)
    assert all(f"{100 * rule.value:.2f}" in choice_text for rule in choice.candidates)
    assert f"label 0{curve[0].threshold:.4g}{curve[0].value:.4g}" in "".join(
        Shown(curve._repr_html_()).text
    )
    assert f"macro_f1{learner.value:.4g}labels12" in learner_text
    assert "micro_precision >= 0.5" in learner_text


def test_rules_with_a_budget_show_what_they_rank_by():
    rule = omma.Rule([1.0, 2.0], [-0.5, 0.25], k=1, names=["a<b", "c"])
    text = "".join(Shown(rule._repr_html_()).text)
    assert "the 1 largest of slope · η + offset" in text
    assert "a<b1-0.5c20.25" in text


@given(st.text(), st.lists(st.tuples(st.text(), st.floats()), max_size=2 * MOST), st.text())
def test_nothing_in_a_table_is_markup(title, rows, notes):
    shown = Shown(html_table(title, ("name", "value"), rows, len(rows), notes))
    assert shown.tags <= {"div", "table", "tr", "th", "td", "small"}


def test_thresholds_are_shown_by_name():
    rule = omma.Rule([1.0, 2.0], [-0.5, -0.2], names=["sports", "music"])
    assert repr(rule) == "Rule(thresholds={'sports': 0.5, 'music': 0.1})"
    assert repr(omma.Rule([1.0, 2.0], [-0.5, -0.2])).startswith("Rule(slope=[1. 2.], offset=")
    many = omma.Rule([1.0] * 9, [-0.5] * 9, names=list("abcdefghi"), at_most=2)
    assert repr(many) == "Rule(thresholds={'a': 0.5, 'b': 0.5, …, 'h': 0.5, 'i': 0.5}, at_most=2)"
    assert repr(omma.Rule([1.0], [0.0], k=1, names=["a"])).startswith("Rule(slope=")


# Colours


def test_a_trace_draws_itself_in_the_colour_of_its_policy(stream):
    for name, policy in (("auto", omma.Auto("macro_f1")), ("greedy", omma.Greedy("macro_f1"))):
        ax = omma.replay(policy, *stream).plot(Figure().add_subplot())
        assert [line.get_color() for line in ax.lines] == [color_of(name)]


def test_every_policy_has_a_colour_of_its_own():
    assert len({*LEARNING, *FIXED}) == len(LEARNING) + len(FIXED)
    assert set(FAMILIES) <= set(POLICIES)
    named = {name.removesuffix("_eta") for name in REGISTRY} - {"top_k_or_half"}
    assert {*LEARNERS, *STILL} <= named
    assert name_of(omma.OMMA("f1", feedback="estimates")) == "omma_eta"
    assert name_of(omma.Auto("f1")) == "auto"


def test_colours_are_spelled_in_the_palette_alone():
    spelled = re.compile("#[0-9a-fA-F]{6}")
    scripts = [*ROOT.glob("docs/*.py"), *ROOT.glob("examples/*.py"), *ROOT.glob("src/omma/**/*.py")]
    for script in scripts:
        found = {one.lower() for one in spelled.findall(script.read_text(encoding="utf-8"))}
        mine = {color.lower() for color in LEARNING}
        assert script.name == "palette.py" or not found & mine, script


def public_callables():
    for room in (omma, omma.metrics, omma.river, omma.sklearn, omma.datasets):
        for name in room.__all__:
            if room is omma and name in omma.SUBMODULES:
                continue
            one = getattr(room, name)
            if callable(one):
                yield f"{room.__name__}.{name}", one
            if isinstance(one, type) and one.__module__.startswith("omma"):
                methods = inspect.getmembers(one, inspect.isfunction)
                yield from ((f"{name}.{key}", own) for key, own in methods if key[0] != "_")


def test_help_names_types_and_does_not_spell_them_out():
    for name, one in public_callables():
        with suppress(ValueError):  # NumPy's own functions may have no signature
            written = str(inspect.signature(one))
            spelled = re.search(r"_typing|numpy\.dtype\[|Literal\[[^]]{60}", written)
            assert not spelled, (name, written)


@pytest.mark.parametrize("around", [omma.Forgetting, omma.Window])
def test_properties_of_policies_around_others_say_what_they_are(around):
    for name in dir(around):
        found = inspect.getattr_static(around, name)
        assert not isinstance(found, property) or found.__doc__, name
