"""``omma warmup``: what it runs, and that nothing is left to compile afterwards."""

import pytest
from click.testing import CliRunner
from scipy import sparse

import omma
from omma.cli import main, warming
from omma.metrics import NAMES

COMMON = warming.paths(every=False)
ALL = list(warming.policies(every=True))


def kinds(policies):
    return {warming.kind_of(one) for one in policies if one.objective is not None}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", [omma.OMMA, omma.Greedy])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_every_metric_is_of_a_kind_that_is_compiled(name, make, feedback):
    policy = warming.made(make, name, None, feedback)
    if policy is not None:
        assert warming.kind_of(policy) in kinds(ALL)


def test_no_kind_comes_twice_and_budgets_come_too():
    known = [one for one in ALL if one.objective is not None and not isinstance(one, omma.OFO)]
    assert len(kinds(known)) == len(known)
    assert {one.budget for one in known} >= {None, 1, 2}


@pytest.mark.parametrize("policy", ALL, ids=warming.name_of)
def test_every_policy_has_a_stream_that_it_accepts(policy):
    eta, y = warming.stream(policy)
    policy.check_labels(eta.shape[1])
    assert eta.shape == y.shape


def test_the_command_says_what_was_done_and_where_it_lies(monkeypatch):
    monkeypatch.setattr(warming, "paths", lambda every: COMMON[:1] + COMMON[-1:])
    monkeypatch.setenv("OMMA_QUIET", "1")
    done = CliRunner().invoke(main, ["warmup"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 paths are compiled, in ")
    assert str(warming.cache_folder()) in done.stdout
    assert COMMON[0].title in done.stderr


@pytest.mark.parametrize("policy", warming.batch_policies(every=False), ids=warming.name_of)
def test_batches_run_for_every_policy(policy, monkeypatch):
    seen, step = [], omma.step

    def counted(policy, state, eta, y):
        done = step(policy, state, eta, y)
        seen.append((sparse.issparse(eta), eta.dtype.name, done[1].rows))
        return done

    monkeypatch.setattr(omma, "step", counted)
    warming.batches(policy)
    rows = float(warming.ROWS)
    kinds = [(thin, kind) for thin in (False, True) for kind in ("float64", "float32")]
    assert seen == [(*one, rows) for one in kinds]
