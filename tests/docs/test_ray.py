"""The recipe for Ray, with its merger killed where it matters: after the state is written, before
the answer. A random kill hardly ever meets that moment."""

import doctest
import os
from pathlib import Path

import pytest

import omma

ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "omma-learn[ray]"')

PAGE = Path(__file__).parents[2] / "docs/recipes/ray.md"
AT = (0, 3)


def recipe():
    """What the first example of the page defines."""
    block = PAGE.read_text().split("```pycon\n")[1].split("```")[0]
    made = {"__name__": "recipe"}
    for example in doctest.DocTestParser().get_examples(block):
        exec(example.source, made)
    return made


def dying(merger, flag):
    class Dying(merger):
        def merge(self, shard, number, delta):
            state = super().merge(shard, number, delta)
            if (shard, number) == AT and not os.path.exists(flag):
                Path(flag).touch()
                os._exit(1)
            return state

    return Dying


def without_fence(merger):
    class Unfenced(merger):
        def is_new(self, shard, number):
            return True

    return Unfenced


@pytest.fixture
def cluster(monkeypatch):
    # Workers find omma where this process found it, and need no environment variable for it.
    monkeypatch.setenv("PYTHONPATH", str(Path(omma.__file__).parents[1]))
    yield ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1"
    )
    ray.shutdown()


def test_a_merger_that_dies_before_it_answers_counts_once(cluster, tmp_path):
    made = recipe()
    eta, y = omma.datasets.long_tail(n=1200, m=5, seed=0)
    parts = [range(i, 1200, 2) for i in range(2)]
    shards = [
        [(eta[some[j : j + 100]], y[some[j : j + 100]]) for j in range(0, 600, 100)]
        for some in parts
    ]
    counted = {}
    for name, merger in (("fence", made["Merger"]), ("control", without_fence(made["Merger"]))):
        folder = tmp_path / name
        folder.mkdir()
        actor = ray.remote(dying(merger, str(folder / "flag"))).options(**made["restarted"])
        actor = actor.remote(5, str(folder / "state"))
        ray.get([made["start"](i, shard, actor, folder) for i, shard in enumerate(shards)])
        assert (folder / "flag").exists()
        state, last = ray.get(actor.now.remote(1))
        counted[name] = state.rows, last
        assert len(list(folder.glob("*-*"))) == 12
    assert counted == {"fence": (1200, 5), "control": (1300, 5)}
