"""Frames and tensors: what they hold is decided as arrays are, and names are never mixed up."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from strategies import class_stream, stream

import omma
from omma.rows.frames import open_table

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
NAMES = ["sports", "music", "war", "tax"]
ORDERS = st.permutations(range(4))
POLICY = omma.OMMA("macro_f1")


def pandas_frame(values, names=NAMES):
    return pd.DataFrame(values, columns=names, index=[f"row {i}" for i in range(len(values))])


def polars_frame(values, names=NAMES):
    return pl.DataFrame(values, schema=list(names), orient="row")


FRAMES = pytest.mark.parametrize("frame", [pandas_frame, polars_frame])


def as_array(found):
    return found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)


@FRAMES
@given(seed=st.integers(0, 50), order=ORDERS, y_order=ORDERS)
@settings(max_examples=15)
def test_columns_are_found_by_name_in_a_replay(frame, seed, order, y_order):
    eta, y = stream(seed)
    shuffled = frame(eta[:, order], [NAMES[j] for j in order])
    labels = frame(y[:, y_order], [NAMES[j] for j in y_order])
    plain = omma.replay(POLICY, eta[:, order], y[:, order])
    trace = omma.replay(POLICY, shuffled, labels)
    assert trace.value == plain.value
    assert trace.rule == plain.rule.named([NAMES[j] for j in order])
    np.testing.assert_array_equal(as_array(trace.predictions), plain.predictions)
    assert type(trace.predictions) is type(shuffled)
    assert list(trace.predictions.columns) == list(shuffled.columns)


@FRAMES
@given(seed=st.integers(0, 50), order=ORDERS)
@settings(max_examples=15)
def test_a_rule_with_names_decides_columns_in_any_order(frame, seed, order):
    eta, y = stream(seed)
    rule = omma.replay(POLICY, frame(eta), y).rule
    names = [NAMES[j] for j in order]
    found = rule.predict(frame(eta[:, order], names))
    assert list(found.columns) == names
    np.testing.assert_array_equal(as_array(found), rule.predict(eta)[:, order])


def test_pandas_predictions_have_the_index_and_columns_of_eta():
    eta, y = stream()
    given = pandas_frame(eta)
    trace = omma.replay(POLICY, given, pandas_frame(y))
    assert trace.predictions.index.equals(given.index)
    assert trace.predictions.columns.equals(given.columns)
    assert (trace.predictions.dtypes == np.int8).all()
    assert trace.rule.predict(given).index.equals(given.index)


def test_names_come_from_the_labels_where_only_they_have_them():
    eta, y = stream()
    trace = omma.replay(POLICY, eta, pandas_frame(y))
    assert trace.rule.names == tuple(NAMES)
    assert isinstance(trace.predictions, np.ndarray)


def test_columns_nobody_named_go_by_their_place():
    eta, y = stream()
    for frame in (pd.DataFrame(eta), pl.DataFrame(eta)):
        trace = omma.replay(POLICY, frame, pandas_frame(y))
        assert trace.rule.names == tuple(NAMES)
        np.testing.assert_array_equal(
            as_array(trace.predictions), omma.replay(POLICY, eta, y).predictions
        )


def test_numbers_as_names_are_not_taken_for_places():
    eta, y = stream()
    order = [2, 0, 3, 1]
    rule = omma.replay(POLICY, pd.DataFrame(eta[:, order], columns=order), y[:, order]).rule
    found = rule.predict(pd.DataFrame(eta))  # columns 0, 1, 2, 3
    np.testing.assert_array_equal(found.to_numpy()[:, order], rule.predict(eta[:, order]))


@FRAMES
def test_other_names_are_refused(frame):
    eta, y = stream()
    rule = omma.replay(POLICY, frame(eta), y).rule
    with pytest.raises(ValueError, match=r"eta of Rule.predict must have columns named.*'war'.*"):
        rule.predict(frame(eta, ["sports", "music", "wart", "tax"]))
    with pytest.raises(ValueError, match=r"y of replay must have columns named as the labels"):
        omma.replay(POLICY, frame(eta), frame(y, ["a", "b", "c", "d"]))


def test_two_columns_of_one_name_are_refused():
    eta, y = stream()
    with pytest.raises(ValueError, match="columns of eta of replay must have different names"):
        omma.replay(POLICY, pandas_frame(eta, ["a", "b", "a", "c"]), y)


# A learner


@FRAMES
@given(seed=st.integers(0, 50), order=ORDERS)
@settings(max_examples=15)
def test_a_learner_finds_columns_by_name(frame, seed, order):
    eta, y = stream(seed)
    learner, plain = (omma.OnlineClassifier(POLICY, 4) for _ in range(2))
    names = [NAMES[j] for j in order]
    for start, now in ((0, range(4)), (20, order), (30, range(4))):
        rows = slice(start, start + 10)
        here = [NAMES[j] for j in now]
        found = learner.predict(frame(eta[rows][:, list(now)], here))
        np.testing.assert_array_equal(as_array(found), plain.predict(eta[rows])[:, list(now)])
        learner.update(frame(y[rows][:, order], names))
        plain.update(y[rows])
    assert learner.names == tuple(NAMES)
    assert learner.counts == plain.counts
    assert learner.rule.names == tuple(NAMES)


def test_a_pandas_row_is_decided_by_its_index():
    eta, y = stream()
    learner, plain = omma.OnlineClassifier(POLICY, 4, names=NAMES), omma.OnlineClassifier(POLICY, 4)
    frame, labels = pandas_frame(eta), pandas_frame(y)
    for i in range(len(eta)):
        row = frame.iloc[i][NAMES[::-1]]
        found = learner.predict(row)
        assert list(found.index) == NAMES[::-1]
        np.testing.assert_array_equal(found.to_numpy()[::-1], plain.predict(eta[i]))
        learner.update(labels.iloc[i])
        plain.update(y[i])
    assert learner.counts == plain.counts
    assert plain.rule.named(NAMES) == learner.rule
    found = learner.rule.predict(frame.iloc[0][NAMES[::-1]])
    np.testing.assert_array_equal(found[NAMES], plain.rule.predict(eta[0]))


def test_predicting_a_frame_names_nothing_until_it_is_learned():
    eta, y = stream()
    learner = omma.OnlineClassifier(POLICY, 4)
    learner.predict(pandas_frame(eta))
    assert learner.names is None
    assert learner.rule.names is None
    learner.predict(pandas_frame(eta).iloc[0])
    learner.update(y[0])
    assert learner.names == tuple(NAMES)


@pytest.mark.parametrize("way", ["at once", "late"])
def test_labels_without_names_do_not_go_with_reordered_columns(way):
    eta, y = stream()
    learner = omma.OnlineClassifier(POLICY, 4, names=NAMES)
    back = pandas_frame(eta)[NAMES[::-1]]
    found = learner.predict(back)
    late = {"prediction": found} if way == "late" else {}
    for labels in (y[:, ::-1], sparse.csr_array(y), pd.DataFrame(y)):
        with pytest.raises(ValueError, match="y of update must be a frame with names"):
            learner.update(labels, **late)
    learner.update(pandas_frame(y), **late)
    learner.predict(back.iloc[0])
    with pytest.raises(ValueError, match="y of update must be a frame with names"):
        learner.update(y[0])
    learner.predict(eta[0])
    learner.update(y[0])
    assert learner.counts.n == len(y) + 1


def test_late_frames_are_matched_by_name_too():
    eta, y = stream()
    back = NAMES[::-1]
    policy = omma.OMMA("macro_f1", feedback="estimates")
    learner, plain = omma.OnlineClassifier(policy, 4, names=NAMES), omma.OnlineClassifier(policy, 4)
    frame = pandas_frame(eta)[back]
    late = learner.predict(frame)
    learner.update(pandas_frame(y), prediction=late, eta=frame)
    plain.predict(eta)
    plain.update(y)
    assert learner.counts == plain.counts
    assert learner.state == plain.state


def test_names_survive_saving_and_pickling(tmp_path):
    eta, y = stream()
    learner = omma.OnlineClassifier(POLICY, 4)
    learner.predict(pandas_frame(eta))
    learner.update(y)
    learner.save(tmp_path / "learner.npz")
    for again in (
        omma.OnlineClassifier.load(tmp_path / "learner.npz"),
        pickle.loads(pickle.dumps(learner)),
    ):
        assert again.names == tuple(NAMES)
        assert again.rule == learner.rule
    rule = learner.rule
    assert omma.Rule.from_json(rule.to_json()) == rule
    assert pickle.loads(pickle.dumps(rule)).names == tuple(NAMES)
    fixed = omma.OnlineClassifier(omma.FixedRule(rule), 4)
    assert fixed.names == tuple(NAMES)
    assert rule.named_thresholds == dict(zip(NAMES, rule.thresholds.tolist(), strict=True))


def test_a_refused_update_leaves_the_names():
    eta, y = stream()
    learner = omma.OnlineClassifier(POLICY, 4)
    learner.predict(pandas_frame(eta))
    with pytest.raises(ValueError, match="must hold only 0 and 1"):
        learner.update(pandas_frame(y + 1))
    assert learner.names is None


@pytest.mark.parametrize("names", [["a"], ["a", "a", "b", "c"], "abcd"])
def test_names_must_be_different_and_as_many_as_labels(names):
    with pytest.raises(ValueError, match="names of OnlineClassifier must be 4 different names"):
        omma.OnlineClassifier(POLICY, 4, names=names)


def test_a_rule_without_names_has_no_named_thresholds():
    with pytest.raises(ValueError, match="needs names"):
        omma.Rule([1.0], [0.5]).named_thresholds  # noqa: B018


# Classes


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, list, np.array])
def test_class_names_stand_for_ids_where_names_are_known(kind):
    eta, ids = class_stream()
    names = [NAMES[i] for i in ids]
    policy = omma.OMMA("multiclass_gmean")
    plain = omma.replay(policy, eta, ids)
    trace = omma.replay(policy, polars_frame(eta), kind(names))
    assert trace.value == plain.value
    np.testing.assert_array_equal(trace.classes, np.array(NAMES)[plain.classes])
    with pytest.raises(ValueError, match="class names in y of replay must be among"):
        omma.replay(policy, polars_frame(eta), kind(["sport"] * len(ids)))
    with pytest.raises(TypeError, match="must hold numbers"):
        omma.replay(policy, eta, kind(names))


def test_a_learner_takes_class_names():
    learner = omma.OnlineClassifier(omma.OMMA("multiclass_accuracy"), 4, names=NAMES)
    learner.predict([0.1, 0.2, 0.3, 0.4])
    learner.update("music")
    assert learner.counts.positive.tolist() == [0, 1, 0, 0]
    learner.predict(np.full((4, 4), 0.25))
    learner.update(pd.Series([0, 1, 1, 3], index=["w", "x", "y", "z"]))
    assert learner.counts.positive.tolist() == [1, 3, 0, 1]


NUMBERS = st.lists(st.integers(-3, 9), min_size=4, max_size=4, unique=True)


@given(seed=st.integers(0, 50), numbers=NUMBERS, kind=st.sampled_from([np.array, pd.Series]))
@settings(max_examples=25)
def test_class_ids_are_names_where_names_are_numbers(seed, numbers, kind):
    eta, ids = class_stream(seed)
    policy = omma.OMMA("multiclass_gmean")
    plain = omma.replay(policy, eta, ids)
    classes = kind(np.array(numbers)[ids])
    for frame in (pandas_frame, polars_frame):
        names = numbers if frame is pandas_frame else [str(one) for one in numbers]
        trace = omma.replay(policy, frame(eta, names), classes)
        assert trace.value == plain.value
        np.testing.assert_array_equal(trace.classes, np.array(numbers)[plain.classes])


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_classes_come_out_as_they_went_in(frame):
    eta, ids = class_stream(n=60)
    for policy in (omma.OMMA("multiclass_gmean"), omma.TopK(1)):
        told = {"metric": "multiclass_gmean"}
        plain = omma.replay(policy, eta, ids, **told).classes
        assert plain.dtype == np.int32
        named = np.array(NAMES)[plain]
        sets = [[NAMES[i]] for i in ids]
        for y in (frame(np.eye(4, dtype=int)[ids]), sets, [NAMES[i] for i in ids]):
            np.testing.assert_array_equal(omma.replay(policy, frame(eta), y, **told).classes, named)
        # Places in, places out; and a batch that was read before tells the same.
        np.testing.assert_array_equal(omma.replay(policy, frame(eta), ids, **told).classes, plain)
        batch = omma.Batch.of(frame(eta), [NAMES[i] for i in ids])
        np.testing.assert_array_equal(omma.replay(policy, batch, **told).classes, named)
    turned = frame(eta[:, ::-1], NAMES[::-1])
    rule = omma.FixedRule(omma.Rule(np.ones(4), np.zeros(4), k=1, names=NAMES))
    found = omma.replay(rule, turned, [NAMES[i] for i in ids], metric="multiclass_gmean").classes
    np.testing.assert_array_equal(found, np.array(NAMES)[eta.argmax(axis=1)])
    soft = omma.OMMA("multiclass_gmean", feedback="estimates")
    assert set(omma.replay(soft, frame(eta)).classes) <= set(NAMES)


def test_columns_of_classes_in_another_order_give_the_same_value():
    eta, ids = class_stream(n=200)
    policy = omma.OMMA("multiclass_gmean")
    plain = omma.replay(policy, eta, ids).value
    backwards = pd.DataFrame(eta[:, ::-1], columns=[3, 2, 1, 0])
    assert omma.replay(policy, backwards, pd.Series(ids)).value == pytest.approx(plain)
    assert omma.replay(policy, backwards, ids.astype(float)).value == pytest.approx(plain)
    two = eta[:, :2] / eta[:, :2].sum(axis=1, keepdims=True)
    yes = ids == 1
    flags = pd.DataFrame(two[:, ::-1], columns=[True, False])
    expected = omma.replay(policy, two, yes.astype(int)).value
    assert omma.replay(policy, flags, pd.Series(yes)).value == pytest.approx(expected)


def test_a_class_id_that_is_no_name_is_refused():
    eta, ids = class_stream()
    frame = pd.DataFrame(eta, columns=[1, 2, 3, 4])
    with pytest.raises(ValueError, match=r"class ids in y of replay must be names .* got 0$"):
        omma.replay(omma.OMMA("multiclass_gmean"), frame, np.minimum(ids, 0))
    learner = omma.OnlineClassifier(omma.OMMA("multiclass_gmean"), 4)
    learner.predict(frame)
    with pytest.raises(ValueError, match=r"class ids in y of update must be names .* got 5$"):
        learner.update(pd.Series(ids + 2).clip(upper=5).replace(4, 5))
    assert learner.counts.n == 0


def test_a_learner_takes_class_ids_by_name():
    learner = omma.OnlineClassifier(omma.OMMA("multiclass_accuracy"), 3)
    row = pd.DataFrame([[0.2, 0.3, 0.5]], columns=[1, 2, 3])
    learner.predict(row)
    learner.update(1)
    assert learner.counts.positive.tolist() == [1, 0, 0]
    learner.predict(row[[3, 1, 2]])  # a name says which class it is in any order
    learner.update(3)
    assert learner.counts.positive.tolist() == [1, 0, 1]
    learner.predict([0.2, 0.3, 0.5])
    learner.update([0, 1, 0])  # indicators are no ids
    assert learner.counts.positive.tolist() == [1, 1, 1]
    learner.predict(row[[3, 1, 2]])
    with pytest.raises(ValueError, match="y of update must be a frame with names"):
        learner.update([0, 1, 0])


def test_vectors_of_a_binary_problem():
    eta, y = stream(m=1)
    plain = omma.replay(omma.OMMA("f1"), eta[:, 0], y[:, 0])
    index = np.arange(len(eta))[::-1]
    trace = omma.replay(omma.OMMA("f1"), pd.Series(eta[:, 0], index), pd.Series(y[:, 0], index))
    assert trace.value == plain.value
    assert trace.predictions.index.equals(pd.Index(index))
    found = plain.rule.predict(pl.Series("p", eta[:, 0]))
    assert found.name == "p"
    np.testing.assert_array_equal(found.to_numpy(), plain.rule.predict(eta[:, 0]))


# Scores, counts, comparisons, policies that are fitted


@FRAMES
def test_scores_match_columns_by_name(frame):
    rng = np.random.default_rng(0)
    y, found = rng.integers(0, 2, (2, 30, 4))
    order = [3, 1, 0, 2]
    metric = omma.metric("macro_f1")
    shuffled = frame(found[:, order], [NAMES[j] for j in order])
    assert metric.score(frame(y), shuffled) == metric.score(y, found)
    counts = omma.Counts.from_labels(frame(y), shuffled)
    assert counts == omma.Counts.from_labels(y, found)


def test_counts_add_rows_by_name():
    counts = omma.Counts.zeros(2)
    counts.add(pd.Series([1, 0], ["a", "b"]), pd.Series([0, 1], ["b", "a"]))
    assert counts == omma.Counts([1, 0], [1, 0], [1, 0], 1)


@FRAMES
def test_compare_takes_frames(frame):
    eta, y = stream()
    order = [3, 1, 0, 2]
    other = [NAMES[j] for j in order]
    options = {
        "metrics": ["macro_f1"],
        "policies": ["omma", "tuned"],
        "priors": [0.1],
        "seeds": [0],
    }
    plain = omma.compare(eta, y, train=(eta, y), **options)
    found = omma.compare(
        frame(eta),
        frame(y[:, order], other),
        train=(frame(eta[:, order], other), frame(y)),
        **options,
    ).cell("omma", "macro_f1")
    assert found.mean == plain.cell("omma", "macro_f1").mean
    rule = omma.replay(POLICY, frame(eta[:, order], other), y[:, order]).rule
    with pytest.raises(ValueError, match="must have labels in the order of eta"):
        omma.compare(frame(eta), y, metrics=["macro_f1"], policies={"mine": omma.FixedRule(rule)})


@FRAMES
@pytest.mark.parametrize(
    "maker", [omma.TunedThresholds("macro_f1"), omma.FrankWolfe("macro_f1", prior=0.1)]
)
def test_what_is_fitted_on_frames_knows_the_names(frame, maker):
    eta, y = stream(n=200)
    order = [3, 1, 0, 2]
    other = [NAMES[j] for j in order]
    plain = maker.fit(eta, y)
    policy = maker.fit(frame(eta), frame(y[:, order], other))
    assert policy.names == tuple(NAMES)
    trace = omma.replay(policy, frame(eta[:, order], other), frame(y), metric="macro_f1")
    assert trace.value == omma.replay(plain, eta, y, metric="macro_f1").value
    with pytest.raises(ValueError, match="y of replay must be a frame with names"):
        omma.replay(policy, frame(eta[:, order], other), y[:, order], metric="macro_f1")


# Types of data


def test_missing_values_are_refused_as_nan():
    eta, y = stream()
    with_gap = pandas_frame(eta).astype("Float64")
    with_gap.iloc[3, 2] = pd.NA
    gap = polars_frame(eta).with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("war")).alias("war")
    )
    for frame in (with_gap, gap):
        with pytest.raises(
            ValueError, match=r"probabilities from 0 to 1, got nan in row 3, label 2"
        ):
            omma.replay(POLICY, frame, y)


def test_text_is_refused():
    _, y = stream(n=2)
    frame = pd.DataFrame([["0.1", "0.2", "0.3", "0.4"]] * 2, columns=NAMES)
    with pytest.raises(TypeError, match="eta of replay must hold real numbers"):
        omma.replay(POLICY, frame, y)


@pytest.mark.parametrize("kind", ["float32", "Float32", "float64[pyarrow]"])
def test_types_of_pandas(kind):
    eta, y = stream()
    eta = eta.astype(np.float32)
    frame = pandas_frame(eta).astype(kind)
    labels = pandas_frame(y).astype("Int64")
    assert omma.replay(POLICY, frame, labels).value == omma.replay(POLICY, eta, y).value


def test_sparse_frames_are_csr_matrices():
    eta, y = stream()
    frame = pandas_frame(eta).astype(pd.SparseDtype(np.float64, 0.0))
    order = ["tax", "sports", "war", "music"]
    assert sparse.issparse(open_table("f", "eta", frame).values)
    trace = omma.replay(POLICY, frame, pandas_frame(y)[order])
    plain = omma.replay(POLICY, sparse.csr_array(eta), y)
    assert trace.value == plain.value
    assert all(isinstance(one, pd.SparseDtype) for one in trace.predictions.dtypes)
    np.testing.assert_array_equal(trace.predictions.to_numpy(), plain.predictions.toarray())
    found = trace.rule.predict(frame[order])
    assert list(found.columns) == order
    np.testing.assert_array_equal(found[NAMES].to_numpy(), trace.rule.predict(eta))
    with pytest.raises(ValueError, match="must be sparse with 0 for what is not stored"):
        omma.replay(POLICY, pandas_frame(eta).astype(pd.SparseDtype(np.float64, 1.0)), y)


def test_frames_not_in_memory_are_refused():
    eta, y = stream()
    with pytest.raises(TypeError, match=r"frame in memory, got LazyFrame: pass its collect\(\)"):
        omma.replay(POLICY, polars_frame(eta).lazy(), y)


def test_the_core_imports_no_library_of_frames():
    code = (
        "import omma, sys; omma.replay, omma.Auto, omma.OnlineClassifier; "
        "print({'pandas', 'polars', 'torch', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_pandas_and_polars_are_not_copied_where_they_need_not_be():
    eta, _ = stream()
    assert np.shares_memory(open_table("f", "eta", pd.DataFrame(eta, copy=False)).values, eta)


# Tensors


def test_tensors_are_read_in_place_and_answered_in_kind():
    torch = pytest.importorskip("torch")
    eta, y = stream()
    tensor = torch.from_numpy(eta.astype(np.float32))
    assert np.shares_memory(open_table("f", "eta", tensor).values, tensor.numpy())
    plain = omma.replay(POLICY, eta.astype(np.float32), y)
    trace = omma.replay(POLICY, tensor, torch.from_numpy(y), weights=torch.ones(len(y)))
    assert trace.value == plain.value
    assert trace.predictions.dtype == torch.int8
    np.testing.assert_array_equal(trace.predictions.numpy(), plain.predictions)
    assert (trace.rule.predict(tensor).numpy() == plain.rule.predict(eta.astype(np.float32))).all()
    learner, other = omma.OnlineClassifier(POLICY, 4), omma.OnlineClassifier(POLICY, 4)
    for row, labels in zip(tensor, y, strict=True):
        assert (learner.predict(row).numpy() == other.predict(row.numpy())).all()
        learner.update(torch.from_numpy(labels))
        other.update(labels)
    assert learner.counts == other.counts
    assert omma.metric("macro_f1").score(torch.from_numpy(y), trace.predictions) == trace.value


def test_tensors_that_cannot_be_read_are_refused_with_the_way_out():
    torch = pytest.importorskip("torch")
    eta, y = stream()
    tensor = torch.from_numpy(eta)
    for wrong, way in (
        (tensor.clone().requires_grad_(), r"require gradients.*: pass eta.detach\(\)"),
        (tensor.to("meta"), r"on the CPU, got a tensor on meta: pass eta.cpu\(\)"),
        (tensor.bfloat16(), r"got torch.bfloat16: pass eta.float\(\)"),
        (tensor.to_sparse(), r"dense tensor, got torch.sparse_coo: pass eta.to_dense\(\)"),
    ):
        with pytest.raises(TypeError, match="eta of replay must .*" + way):
            omma.replay(POLICY, wrong, y)
