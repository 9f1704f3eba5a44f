"""OnlineCalibrator: the calibration of Auto alone, to the bit; merged, saved, refused."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_auto import Auto as Twin, logits
from naive_baselines import stream
from scipy import sparse
from scipy.special import expit, logit
from streams import dense

import omma
from omma.calibration import OnlineCalibrator, brier, expected_error, log_loss
from omma.plots import plot_reliability

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array, "float32": np.float32}


def miscalibrated(seed=0, n=3000, m=8):
    rng = np.random.default_rng(seed)
    z = rng.normal(-2.0, 1.5, (n, m))
    y = (rng.random((n, m)) < expit(z)).astype(np.int8)
    return expit(0.6 * z + 1.0), y


@pytest.mark.parametrize("layout", LAYOUTS)
def test_is_the_calibration_of_auto(layout):
    eta, y = stream(1, 200, 5, zeros=0.3)
    eta, weights = LAYOUTS[layout](eta), np.linspace(0.5, 2.0, 200)
    calibrator = OnlineCalibrator(5)
    calibrator.replay(eta, y, weights=weights, seed=3)
    state = omma.replay(omma.Auto("macro_f1"), eta, y, weights=weights, seed=3).state
    for name, array in calibrator.arrays().items():
        np.testing.assert_array_equal(array, getattr(state.calibration, name))


@given(st.integers(0, 10_000), st.floats(0.3, 3.0))
@settings(max_examples=25, deadline=None)
def test_steps_are_a_replay_dense_is_sparse_and_the_twin_agrees(seed, power):
    eta, y = stream(seed, 40, 4, zeros=0.4)
    eta = eta**power
    wide, thin, steps, slow = *(OnlineCalibrator(4) for _ in range(3)), Twin("macro_f1", 4)
    found, sparse_found = wide.replay(eta, y), thin.replay(sparse.csr_array(eta), y)
    for row, true, expected in zip(eta, y, found.probabilities, strict=True):
        np.testing.assert_array_equal(steps.predict(row), expected)
        stored = np.flatnonzero(row)
        np.testing.assert_allclose(
            slow.calibrate(row[stored], stored)[0], expected[stored], rtol=1e-6
        )
        steps.update(row, true)
        slow.predict(row[stored], stored)
        slow.update(np.flatnonzero(true))
    np.testing.assert_array_equal(dense(sparse_found.probabilities), found.probabilities)
    assert wide == thin == steps


@pytest.mark.parametrize("layout", LAYOUTS)
def test_undoes_a_shift_and_says_by_how_much(layout):
    eta, y = miscalibrated()
    eta = LAYOUTS[layout](eta)
    calibrator = OnlineCalibrator(8)
    found = calibrator.replay(eta, y)
    assert found.before.log_loss == log_loss(eta, y)
    assert found.after.brier == brier(found.probabilities, y)
    assert found.after.expected_error == expected_error(found.probabilities, y)
    assert found.after.expected_error < 0.25 * found.before.expected_error
    assert found.after.log_loss < found.before.log_loss
    assert calibrator.slope == pytest.approx(1 / 0.6, rel=0.1)
    assert calibrator.rows == 3000
    assert "log-loss" in repr(found)
    assert "8 labels" in repr(calibrator)
    assert len(plot_reliability(found.curves).axes[0].get_legend().get_texts()) == 2


def test_prediction_is_the_formula_and_learns_nothing():
    eta, y = miscalibrated(n=300)
    calibrator = OnlineCalibrator(8)
    np.testing.assert_array_equal(calibrator.predict(eta), eta)  # until labels come
    calibrator.update(eta, y)
    before = calibrator.arrays()
    z, mean = logits(eta), calibrator.mean
    within = calibrator.slope * (z - mean) + calibrator.between * mean
    formula = expit(within + calibrator.intercept + calibrator.bias)
    np.testing.assert_allclose(calibrator.predict(eta), formula, rtol=1e-9)
    assert all(np.array_equal(one, before[name]) for name, one in calibrator.arrays().items())
    calibrator.update(eta[0], None)  # a row without labels moves the mean logits alone
    after = calibrator.arrays()
    moved = {name for name in after if not np.array_equal(after[name], before[name])}
    assert moved == {"shared", "mean", "entries"}
    np.testing.assert_array_equal(after["shared"][:10], before["shared"][:10])
    np.testing.assert_allclose(calibrator.mean, logits(eta[[*range(300), 0]]).mean(axis=0))


def test_weights_class_ids_and_one_label():
    eta, y = miscalibrated(n=200)
    ids = y.argmax(axis=1)
    by_id, by_row = OnlineCalibrator(8), OnlineCalibrator(8)
    by_id.update(eta, ids)
    by_row.update(eta, np.eye(8, dtype=np.int8)[ids])
    assert by_id == by_row
    one, column = OnlineCalibrator(1), OnlineCalibrator(1)
    one.update(eta[:, 0], y[:, 0], weight=2.0)
    column.update(eta[:, [0]], y[:, [0]], weight=np.full(200, 2.0))
    assert one == column
    assert one.predict(eta[:, 0]).shape == (200,)
    assert one.rows == 400


def test_merged_parts_know_what_the_whole_knows():
    eta, y = miscalibrated(n=20_000)
    parts = [OnlineCalibrator(8) for _ in range(2)]
    for place, part in enumerate(parts):
        part.update(eta[place::2], y[place::2])
    whole, both = OnlineCalibrator(8), parts[0] + parts[1]
    whole.update(eta, y)
    assert both.rows == whole.rows
    np.testing.assert_allclose(both.predict(eta), whole.predict(eta), atol=0.02)
    nothing = both + OnlineCalibrator(8)
    np.testing.assert_allclose(nothing.predict(eta), both.predict(eta), rtol=1e-9)


def test_saved_and_loaded(tmp_path):
    eta, y = miscalibrated(n=100)
    calibrator = OnlineCalibrator(8)
    calibrator.update(eta, y)
    calibrator.save(tmp_path / "calibrator.npz")
    assert OnlineCalibrator.load(tmp_path / "calibrator.npz") == calibrator
    broken = calibrator.arrays() | {"precision": -np.ones(8)}
    with pytest.raises(ValueError, match="precision"):
        OnlineCalibrator.from_arrays(broken)
    with pytest.raises(ValueError, match="bias"):
        OnlineCalibrator.from_arrays({})
    earlier = {"shared": np.zeros(6), "bias": np.zeros(8), "precision": np.zeros(8)}
    without_trust = calibrator.arrays() | {"shared": calibrator.arrays()["shared"][:-1]}
    for arrays in (earlier, without_trust):
        with pytest.raises(ValueError, match="shared of a state must be finite numbers of shape"):
            OnlineCalibrator.from_arrays(arrays)


def test_squeezed_probabilities_are_stretched():
    """A slope within labels has no scale: models with much regularization give narrow bands."""
    eta, y = miscalibrated(n=1000)
    squeezed = expit(0.05 * (logit(eta) - logit(eta).mean(axis=0)) - 0.3)
    found = OnlineCalibrator(8).replay(squeezed, y)
    sound = OnlineCalibrator(8).replay(eta, y)
    assert found.after.log_loss < sound.after.log_loss + 0.03  # two numbers: 0.1 above


def test_frames_keep_their_columns():
    pandas = pytest.importorskip("pandas")
    eta, y = miscalibrated(n=50, m=2)
    frame = pandas.DataFrame(eta, columns=["cat", "dog"])
    found = OnlineCalibrator(2).replay(frame, y).probabilities
    assert list(found.columns) == ["cat", "dog"]


def test_wrong_rows_change_nothing():
    eta, y = miscalibrated(n=20)
    calibrator = OnlineCalibrator(8)
    calibrator.update(eta, y)
    before = OnlineCalibrator.from_arrays(calibrator.arrays())
    wrong = eta.copy()
    wrong[10, 3] = np.nan
    for call in (calibrator.update, calibrator.replay):
        with pytest.raises(ValueError, match="probabilities from 0 to 1, got nan in row 10"):
            call(wrong, y)
        with pytest.raises(ValueError, match="must have 8 labels, got 7"):
            call(eta[:, :7], y)
        with pytest.raises(ValueError, match="only 0 and 1"):
            call(eta, 2 * y)
    assert calibrator == before
    with pytest.raises(ValueError, match="must be given"):
        calibrator.replay(eta, None)
    with pytest.raises(ValueError, match="same number of labels"):
        calibrator + OnlineCalibrator(3)
    with pytest.raises(ValueError, match="a calibrator of classes and one of labels"):
        calibrator + OnlineCalibrator(8, classes=True)
    with pytest.raises(ValueError, match="n_labels"):
        OnlineCalibrator(0)


def test_tiny_probabilities_keep_their_order():
    """Labels that are rare are ranked by them: softmax over many classes gives 1e-9 and less."""
    eta, y = miscalibrated()
    calibrator = OnlineCalibrator(8)
    calibrator.replay(eta, y)
    tiny = np.full((6, 8), 0.5)
    tiny[:, 0] = [1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6]
    assert (np.diff(np.log(calibrator.predict(tiny)[:, 0])) > 0.05).all()  # squashed, in order
    classes = OnlineCalibrator(8, classes=True)
    classes.replay(eta, y)
    found = classes.predict(tiny)[:, 0]
    assert (np.diff(np.log(found)) > 0.5).all()
    mean, offset = classes.mean[0], classes.intercept + classes.bias[0]
    expected = classes.slope * (logit(tiny[:, 0]) - mean) + classes.between * mean + offset
    np.testing.assert_allclose(logit(found), expected, rtol=1e-9)


def test_scores_weigh_rows_as_learning_does():
    eta, y = miscalibrated(n=300)
    weights = np.arange(300) % 3
    heavy, copies = OnlineCalibrator(8), OnlineCalibrator(8)
    found = heavy.replay(eta, y, weights=weights, bins=5)
    repeated = np.repeat(np.arange(300), weights)
    expected = copies.replay(eta[repeated], y[repeated], bins=5)
    assert found.before.log_loss == pytest.approx(expected.before.log_loss)
    assert found.before.brier == pytest.approx(expected.before.brier)
    assert found.before.expected_error == pytest.approx(expected.before.expected_error)
    assert found.curves["as given"].count == pytest.approx(expected.curves["as given"].count)
    assert found.after.log_loss == pytest.approx(log_loss(found.probabilities, y, weights=weights))


def test_a_replay_that_is_refused_has_learned_nothing():
    eta, y = miscalibrated(n=20)
    calibrator = OnlineCalibrator(8)
    with pytest.raises(ValueError, match=r"bins of OnlineCalibrator\.replay"):
        calibrator.replay(eta, y, bins=0)
    with pytest.raises(ValueError, match="weights"):
        calibrator.replay(eta, y, weights=np.zeros(20))
    with pytest.raises(ValueError, match=r"y of OnlineCalibrator\.replay must have labels"):
        calibrator.replay(eta, np.full(y.shape, np.nan))
    assert calibrator == OnlineCalibrator(8)


def test_a_number_is_a_row_of_one_label_and_a_sparse_row_has_labels():
    single, column = OnlineCalibrator(1), OnlineCalibrator(1)
    for eta, y in ((0.3, 1), (0.7, 0), (0.2, np.nan)):
        single.update(eta, y)
        column.update([eta], [y])
    assert single == column
    assert single.rows == 2
    assert single.predict(0.4) == column.predict([0.4])[0]
    assert np.ndim(single.predict(0.4)) == 0
    wide, thin = OnlineCalibrator(2), OnlineCalibrator(2)
    wide.update([0.3, 0.6], [0, 1])
    thin.update([0.3, 0.6], sparse.csr_array([[0, 1]]))
    assert wide == thin
