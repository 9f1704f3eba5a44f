"""``omma-study run auto``: the same sequences for everybody, records, and honest verdicts."""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse
from scipy.special import expit, logit

import omma
from omma_study import Source, auto
from omma_study.auto import DISTORTIONS, contenders, distorted
from omma_study.cli import main
from omma_study.paper import title
from omma_study.records import make, read

MADE = {"by": "long_tail", "n": 300, "m": 5, "seed": 0}
TINY = Source("tiny", "multilabel", "fixed", {"name": "known"}, MADE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("records")
    done = auto.run(out, sources=[TINY], quick=True)
    assert (done.done, done.failed) == (len(DISTORTIONS) * 7, 0)
    return out


def test_records_hold_what_replay_gives(folder):
    records = read(folder)
    eta, y = omma.datasets.long_tail(n=300, m=5, seed=0)
    for record in records[::9]:
        spec, values = record["spec"], record["result"]["values"]
        rows, metric = distorted(eta, spec["distortion"]), spec["metric"]
        target = title(metric, spec["k"])
        for name, policy in contenders(target, spec["priors"]).items():
            assert values[name] == omma.replay(policy, rows, y, metric=metric, seed=0).value
    assert {"auto", "both", "calibrated", "baseline", "omma 1e-6", "omma_eta 1e-6"} == set(values)


def test_what_was_done_is_not_done_again(folder):
    again = auto.run(folder, sources=[TINY], quick=True)
    assert (again.done, again.skipped) == (0, len(DISTORTIONS) * 7)
    with pytest.raises(ValueError, match="got 'tny', did you mean 'tiny'"):
        auto.run(folder, sources=[TINY], datasets=["tny"])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_distortions_move_probabilities_and_leave_zeros(layout):
    eta = np.array([[0.5, 0.0, 0.9], [0.2, 0.7, 0.0]])
    positive = eta > 0
    for name, change in {
        "as is": lambda p: p,
        "logits × 2": lambda p: expit(2 * logit(p)),
        "logits − 1.5": lambda p: expit(logit(p) - 1.5),
    }.items():
        moved = distorted(layout(eta), name)
        table = moved.toarray() if sparse.issparse(moved) else moved
        np.testing.assert_allclose(table[positive], change(eta[positive]))
        assert not table[~positive].any()
    powers = distorted(layout(eta), "powers by label")
    table = powers.toarray() if sparse.issparse(powers) else powers
    by_label = np.log(table[0, [0, 2]]) / np.log(eta[0, [0, 2]])
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
    cells = auto.cells(records)
    yeast = cells[cells["dataset"] == "yeast"].iloc[0]
    assert yeast["sequences"] == 1
    assert yeast["gain"] == pytest.approx(0.06)
    assert yeast["hindsight"] == 0.5
    assert yeast["metric"] == "macro_f1@3"
    assert cells[cells["lost"]]["distortion"].tolist() == ["logits × 2"]  # half a point is no loss
    first = auto.goals(cells).iloc[0]
    assert first.reached == pytest.approx(100 * 2 / 3)
    assert not first.holds
    titles = [grid.title for grid in auto.tables(records)]
    assert titles[:3] == [
        "Goals, all sets (3 cells)",
        "Goals, sets of the design (1 cells)",
        "Goals, other sets (2 cells)",
    ]
    assert titles[-1] == "Lost cells, in % (1)"


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
