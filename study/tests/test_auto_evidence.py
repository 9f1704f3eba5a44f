"""``omma-study run auto``: the same sequences for everybody, records, and honest verdicts."""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse
from scipy.special import expit, logit

import omma
from omma_study import Source, auto
from omma_study.auto.cells import DISTORTIONS, contenders, distorted
from omma_study.cli import main
from omma_study.records import make, read

MADE = {"by": "long_tail", "n": 300, "m": 5, "seed": 0}
TINY = Source("tiny", "multilabel", "fixed", {"name": "known"}, MADE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("records")
    done = auto.run(out, sources=[TINY], quick=True)
    assert done.summary.done == len(DISTORTIONS) * 7
    assert not done.summary.failed
    return out


def test_records_hold_what_replay_gives(folder):
    records = read(folder)
    batch = omma.Batch.of(*omma.datasets.long_tail(n=300, m=5, seed=0))
    for record in records[::9]:
        spec, values = record["spec"], record["result"]["values"]
        rows = distorted(batch, spec["distortion"])
        metric = omma.metric(spec["metric"])
        for name, policy in contenders(metric, spec["k"], spec["priors"]).items():
            assert values[name] == omma.replay(policy, rows, metric=metric, seed=0).value
    assert {"auto", "both", "calibrated", "baseline", "omma 1e-6", "omma_eta 1e-6"} == set(values)


def test_what_was_done_is_not_done_again(folder):
    again = auto.run(folder, sources=[TINY], quick=True)
    assert again.summary.done == 0
    assert again.summary.skipped == len(DISTORTIONS) * 7
    with pytest.raises(ValueError, match="has no dataset 'tny'; did you mean 'tiny'"):
        auto.run(folder, sources=[TINY], datasets=["tny"])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_distortions_move_probabilities_and_leave_zeros(layout):
    eta = np.array([[0.5, 0.0, 0.9], [0.2, 0.7, 0.0]])
    batch = omma.Batch.of(layout(eta), np.array([[1, 0, 1], [0, 1, 0]]))
    some = eta > 0
    for name, change in {
        "as is": lambda p: p,
        "logits × 2": lambda p: expit(2 * logit(p)),
        "logits − 1.5": lambda p: expit(logit(p) - 1.5),
    }.items():
        moved = distorted(batch, name).values
        found = moved.toarray() if sparse.issparse(moved) else moved
        np.testing.assert_allclose(found[some], change(eta[some]))
        assert not found[~some].any()
    powers = distorted(batch, "powers by label").values
    found = powers.toarray() if sparse.issparse(powers) else powers
    by_label = np.log(found[0, [0, 2]]) / np.log(eta[0, [0, 2]])
    assert np.abs(np.log(by_label)).max() <= np.log(3)
    assert by_label[0] != pytest.approx(by_label[1])


def record(dataset, values, distortion="as is", seed=0, priors=(1e-6,)):
    spec = {
        "dataset": dataset,
        "estimator": {"name": "logistic"},
        "distortion": distortion,
        "metric": "macro_f1",
        "k": 3,
        "priors": list(priors),
        "seed": seed,
    }
    values = {"baseline": 0.1, "both": 0.2, "calibrated": 0.2, **values}
    return make("auto", spec, "Auto", kind="auto", result={"values": values})


def test_verdicts_are_those_of_the_numbers():
    usual = {"omma 1e-6": 0.30, "omma_eta 1e-6": 0.40}
    records = [
        record("yeast", {**usual, "auto": 0.47}),
        record("yeast", {**usual, "auto": 0.43}, seed=1),
        record("imdb", {**usual, "omma_eta 1e-6": 0.20, "auto": 0.29}, "logits × 2"),
        record("imdb", {**usual, "omma_eta 1e-6": 0.20, "auto": 0.296}, "logits + 1.5"),
        # Run again with more λ, which is what counts.
        record("yeast", {**usual, "omma 1": 0.5, "auto": 0.46}, priors=(1e-6, 1.0)),
    ]
    cells = {(one.dataset, one.distortion): one for one in auto.cells_of(records)}
    assert cells["yeast", "as is"].sequences == 1
    assert cells["yeast", "as is"].gain == pytest.approx(0.06)
    assert cells["yeast", "as is"].hindsight == 0.5
    assert cells["yeast", "as is"].metric == "macro_f1@3"
    lost = [one for one in cells.values() if one.lost]
    assert [one.distortion for one in lost] == ["logits × 2"]  # half a point is no loss
    found = {one.words.split()[0]: one for one in auto.goals(list(cells.values()))}
    assert found["cells"].found == pytest.approx(100 * 2 / 3)
    assert not found["cells"].reached
    titles = [grid.title for grid in auto.tables(records)]
    assert titles[:3] == [
        "Goals, all sets (3 cells)",
        "Goals, sets of the design (1 cells)",
        "Goals, other sets (2 cells)",
    ]
    assert titles[-1] == "Lost cells, in % (1)"
    assert auto.tables([]) == []


def test_the_report_shows_them(folder):
    done = CliRunner().invoke(main, ["report", str(folder)])
    assert done.exit_code == 0, done.stderr
    assert "Means by distortion, in %" in done.stdout
    text = CliRunner().invoke(main, ["report", str(folder), "--format", "markdown"]).stdout
    assert "### Means by metric, in %" in text


def test_the_command_says_what_is_not_there(tmp_path):
    out = ["--out", str(tmp_path / "out"), "--data", str(tmp_path)]
    done = CliRunner().invoke(main, ["run", "auto", "--quick", "--datasets", "yeast", *out])
    assert done.exit_code == 1
    assert "Skipped yeast" in done.stderr
    wrong = CliRunner().invoke(main, ["run", "auto", "--datasets", "yest", *out])
    assert "did you mean 'yeast'" in wrong.stderr
