"""A minute of spoiled files; ``python -m tests.fuzz --minutes 60`` by hand."""

import signal
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.fuzz.child import run
from tests.fuzz.targets import TARGETS
from tests.fuzz.verdict import fault

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs limits of Unix")
CASES = 150


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return list(run(list(TARGETS), tmp_path_factory.mktemp("fuzz"), seed=0, count=CASES))


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_our_errors_comes_out(records, name):
    found = [record for record in records if record["target"] == name]
    assert not [f"{one['file']}: {one['fault']}" for one in found if "fault" in one]
    assert sum(one.get("cases", 0) for one in found) == CASES


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("name", [name for name, one in TARGETS.items() if one.safe])
def test_choices_of_hypothesis(tmp_path_factory, name, data):
    one, folder = TARGETS[name], tmp_path_factory.getbasetemp()
    content = data.draw(st.sampled_from(one.seeds()))
    for _ in range(data.draw(st.integers(1, 3))):
        content = one.edit(content, lambda low, high: data.draw(st.integers(low, high)))
    path = folder / f"{name}{one.ending}"
    path.write_bytes(content)
    try:
        one.read(path)
    except Exception as error:
        assert fault(error, path) is None  # noqa: PT017


def slips(path):
    int(path.name)


def points_outside(path):
    raise ValueError("some words")


@pytest.mark.parametrize("read", [slips, points_outside, lambda path: {}["x"], lambda path: 1 / 0])
def test_errors_of_others_are_told_apart(read):
    try:
        read(Path("a.csv"))
    except Exception as error:
        assert fault(error, Path("a.csv")) is not None  # noqa: PT017


@pytest.mark.parametrize("name", TARGETS)
def test_sound_files_are_read(tmp_path, monkeypatch, name):
    """Or a target that refuses all files would be found to be safe."""
    monkeypatch.chdir(tmp_path)
    one, refused = TARGETS[name], []
    path = tmp_path / f"{name}{one.ending}"
    seeds = one.seeds()
    for content in seeds:
        path.write_bytes(content)
        try:
            one.read(path)
        except Exception as error:
            refused.append(error)
    assert seeds
    assert refused == []


def test_a_process_that_dies_is_a_fault_and_the_others_go_on(tmp_path):
    names = ["crash", "leave", "sound"]
    found = list(run(names, tmp_path, seed=0, count=3, module="tests.fuzz.crashing"))
    assert [one["target"] for one in found] == names
    assert "the process ended with -11" in found[0]["fault"]
    assert "the process ended with 3" in found[1]["fault"]
    assert found[2] == {"target": "sound", "cases": 3}
    assert Path(found[0]["file"]).is_file()
