"""``omma_study.small``: sets are read, cells are those of replays, and verdicts are honest."""

import numpy as np
import pytest

import omma
from omma_study import small


def test_a_file_of_keel_is_read(tmp_path):
    path = tmp_path / "made.dat"
    path.write_text("1.5, red, yes\n2.0, blue, yes\n?, red, no\n0.5, red, no\n1.0, red, yes\n")
    features, y = small.read_keel(path)
    assert features.tolist() == [[1.5, 0, 1], [2.0, 1, 0], [0.5, 0, 1], [1.0, 0, 1]]
    assert y.tolist() == [0, 0, 1, 0]  # the rarer class is the positive one


def test_values_are_those_of_a_replay_and_of_its_second_half():
    eta, y = omma.datasets.long_tail(n=200, m=4, seed=0)
    order = np.random.default_rng(1).permutation(200)
    policy = omma.OMMA("macro_f1")
    whole, late = small.values_of("macro_f1", policy, eta, y, 1)
    trace = omma.replay(policy, eta[order], y[order])
    assert whole == trace.value
    assert late == omma.metric("macro_f1").score(y[order][100:], trace.predictions[100:])


@pytest.mark.parametrize(("m", "target"), [(1, "f1"), (3, "macro_f1@1"), (3, "multiclass_gmean")])
def test_one_label_and_classes_have_both_halves(m, target):
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(120, 2)), rng.integers(0, max(m, 2), 120)
    features[:, 0] += y
    eta, true = small.estimates(small.MODELS["logistic"], features, y)
    assert eta.shape == ((60,) if m == 1 else (60, m))
    values = [small.values_of(target, p, eta, true, 0) for p in small.policies_of(target).values()]
    assert all(0.0 <= value <= 1.0 for pair in values for value in pair)


def test_no_set_is_both_of_the_design_and_another():
    assert not set(small.SETS["design"]) & set(small.SETS["other"])


def test_a_summary_counts_lost_cells():
    values = {"simple": [0.7], "labels": [0.6], "estimates": [0.68], "auto": [0.69]}
    records = [
        {"spec": {"model": "forest"}, "result": {"rows": 500, "whole": values}},
        {
            "spec": {"model": "forest"},
            "result": {"rows": 500, "whole": {**values, "estimates": [0.72]}},
        },
    ]
    (_, whole) = small.summary(small.cells(records), "model").to_dict("records")
    assert whole["lost"] == "50.0 %"
    assert whole["lost by chance"] == "100.0 %"  # without other splits, labels are picked
    assert whole["below 0.5 / top-k"] == "100.0 %"
    assert whole["gain"] == "-1.00"


def test_a_choice_by_other_splits_is_judged_on_its_own():
    values = {"labels": [0.6, 0.2, 0.6], "estimates": [0.5, 0.5, 0.5]}
    values |= {"simple": [0.5] * 3, "auto": [0.5] * 3}
    frame = small.cells([{"spec": {"set": "a"}, "result": {"rows": 9, "whole": values}}])
    # Elsewhere labels have 0.8, 1.2 and 0.8, estimates 1.0: estimates, labels, estimates.
    assert frame["picked"][0] == pytest.approx((0.5 + 0.2 + 0.5) / 3)
