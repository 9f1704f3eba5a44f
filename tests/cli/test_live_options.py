"""Options of commands that keep a learner: which rows it looks at, and for how long rows wait."""

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from naive_baselines import stream as rows_of

import omma
from omma.cli import main
from omma.online import waiting as waiting_module

ETA, Y = rows_of(5, 90, 4, zeros=0.0)
LOOKING = {
    ("--half-life", "7.5"): lambda policy: omma.Forgetting(policy, 7.5),
    ("--window", "11"): lambda policy: omma.Window(policy, 11),
}


@pytest.fixture
def stream(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(lines, *options):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        return CliRunner().invoke(main, ["stream", "--json", *map(str, options)], input=text)

    return run


def labelled(part=slice(None)):
    return [{"eta": e.tolist(), "y": y.tolist()} for e, y in zip(ETA[part], Y[part], strict=True)]


def waiting(ids):
    return [{"id": t, "eta": ETA[t].tolist()} for t in ids]


def decisions(done):
    return np.array([json.loads(line)["decision"] for line in done.stdout.splitlines()])


@pytest.mark.parametrize("looking", LOOKING, ids=lambda one: one[0])
@pytest.mark.parametrize(("name", "policy"), [("auto", omma.Auto), ("omma", omma.OMMA)])
def test_counts_fade_or_have_a_window(stream, looking, name, policy):
    around = LOOKING[looking](policy("macro_f1"))
    options = ("--metric", "macro_f1", "--policy", name, *looking, "--state", "s.npz")
    first = stream(labelled(slice(0, 60)), *options)
    second = stream(labelled(slice(60, 90)), "--state", "s.npz")
    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr + second.stderr
    expected = omma.replay(around, ETA, Y)
    found = np.vstack([decisions(first), decisions(second)])
    np.testing.assert_array_equal(found, expected.predictions)
    assert (found != omma.replay(policy("macro_f1"), ETA, Y).predictions).any()
    assert omma.OnlineClassifier.load("s.npz").policy == around
    other = stream([], "--metric", "macro_f1", "--policy", name, "--state", "s.npz")
    assert other.exit_code == 1
    assert "was asked for" in other.stderr


@pytest.mark.parametrize("command", ["stream", "serve"])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--half-life", "5", "--window", "5"), "Pass --half-life or --window, not both."),
        (("--half-life", "5", "--policy", "baseline"), "must be an OMMA, Auto or OFO"),
        (("--window", "5", "--policy", "greedy"), "must be an OMMA, Auto or OFO"),
        (("--half-life", "0.5"), "0.5 is not in the range x>=1"),
        (("--half-life", "inf"), "half_life of Forgetting must be"),
        (("--window", "0"), "0 is not in the range x>=1"),
        (("--max-seconds", "0"), "0.0 is not in the range x>0"),
    ],
)
def test_what_does_not_go_together_is_bad_usage(command, options, sentence):
    done = CliRunner().invoke(main, [command, "--metric", "macro_f1", *options], input="")
    assert done.exit_code == 2
    assert sentence in " ".join(done.output.split())


def test_a_window_needs_a_metric_to_look_by(stream):
    stream(labelled(), "--metric", "macro_f1", "--state", "s.npz")
    done = stream([], "--window", 5, "--state", "s.npz")
    assert done.exit_code == 2
    assert "--window needs --metric" in done.stderr


def test_rows_wait_for_seconds(stream, monkeypatch):
    clock = itertools.count(1000.0, 3.0)  # three seconds later whenever somebody looks
    monkeypatch.setattr(waiting_module.time, "monotonic", lambda: next(clock))
    done = stream(waiting(range(40)), "--metric", "macro_f1", "--max-seconds", 50)
    assert done.exit_code == 0
    assert done.stderr.count("was forgotten") == 1
    told = "id 0 was forgotten: it has waited for more than 50 seconds (--max-seconds)"
    assert told in done.stderr
    assert " forgotten." in done.stderr


def test_bounds_of_what_waits_may_change_and_a_journal_knows(stream):
    kept = ("--journal", "j")
    stream(waiting(range(6)), "--metric", "macro_f1", "--max-seconds", 1000, *kept)
    done = stream(waiting([6]), "--pending", 3, "--max-seconds", 2000, *kept)
    assert done.exit_code == 0, done.stderr
    with omma.Journal.resume("j") as journal:  # the log is done again with the new bounds
        own = journal.learner.waiting
        assert (list(own), own.limit, own.max_seconds, own.forgotten) == ([4, 5, 6], 3, 2000, 4)
    stream(waiting([7]), *kept)
    with omma.Journal.resume("j") as journal:
        assert list(journal.learner.waiting) == [5, 6, 7]


def test_seconds_cannot_be_counted_from_nowhere(stream):
    stream(waiting(range(2)), "--metric", "macro_f1", "--state", "s.npz")
    done = stream(waiting([2]), "--state", "s.npz", "--max-seconds", 60)
    assert done.exit_code == 1
    assert "were made without a clock: max_seconds must be given when it is begun" in done.stderr
    assert list(omma.OnlineClassifier.load("s.npz").waiting) == [0, 1]
