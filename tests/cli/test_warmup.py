"""``omma warmup``: what it runs, and that nothing is left to compile afterwards."""

import pytest
from click.testing import CliRunner
from scipy import sparse

import omma
from omma.cli import main, warmup
from omma.kernels.jit import CACHE
from omma.metrics import NAMES

COMMON = list(warmup.policies(everything=False))
ALL = list(warmup.policies(everything=True))


def test_every_metric_is_compiled_with_budgets_and_without():
    metrics = {policy.objective.name for policy in ALL if policy.objective is not None}
    assert metrics == set(NAMES)
    assert {policy.budget for policy in ALL} == {None, 1, 2}


@pytest.mark.parametrize("policy", ALL, ids=repr)
def test_every_policy_has_a_sample_that_it_accepts(policy):
    eta, y = warmup.sample(policy, "dense")
    policy.check_labels(eta.shape[1])
    assert eta.shape == y.shape


def test_the_command_says_what_was_done_and_where_it_lies(monkeypatch):
    monkeypatch.setattr(warmup, "policies", lambda everything: COMMON[:1])
    monkeypatch.setenv("OMMA_QUIET", "1")
    done = CliRunner().invoke(main, ["warmup"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Compiled 2 policies in ")
    assert str(CACHE) in done.stdout
    assert repr(COMMON[0]) in done.stderr


@pytest.mark.parametrize("policy", [*COMMON, omma.Auto("macro_f1")], ids=repr)
def test_batches_of_every_policy_are_run(policy, monkeypatch):
    seen, step = [], omma.step

    def counted(policy, state, eta, y):
        done = step(policy, state, eta, y)
        seen.append((sparse.issparse(eta), eta.dtype.name, done[1].rows))
        return done

    monkeypatch.setattr(omma, "step", counted)
    warmup.run_all_ways(policy, with_certificate=False)
    rows = float(warmup.ROWS)
    kinds = [(thin, kind) for thin in (False, True) for kind in ("float64", "float32")]
    assert seen == [(*one, rows) for one in kinds]
