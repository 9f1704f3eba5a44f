"""River's own checks of estimators, all that apply, on every kind of model we wrap."""

import pickle

import pytest
from river import checks, datasets, linear_model, multioutput, preprocessing, tree

from omma.river import MetricClassifier, MultiLabelMetricClassifier, SingleLabelMetricClassifier

FURTHER = [
    (tree.HoeffdingTreeClassifier(), {"metric": "multiclass_kappa"}),
    (
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        {"metric": "mcc", "feedback": "estimates"},
    ),
]


def models():
    for params in MetricClassifier._unit_test_params():
        yield MetricClassifier(**params)
    for model, options in FURTHER:
        yield MetricClassifier(model, **options)


def every_check():
    with pytest.MonkeyPatch.context() as patch:
        # River checks multi-label models on a data set it downloads; this one comes with it.
        patch.setattr(datasets, "Music", datasets.Yeast)
        for model in models():
            for check in checks.yield_checks(model):
                name = f"{model}:{model.metric}:{check.__name__}"
                yield pytest.param(model, check, id=name)


@pytest.mark.parametrize(("model", "check"), list(every_check()))
def test_river_checks_it(model, check):
    check(model.clone())


def test_no_check_is_skipped():
    assert all(not model._unit_test_skips() for model in models())


def test_each_kind_has_parameters_for_tests():
    for kind in (SingleLabelMetricClassifier, MultiLabelMetricClassifier):
        made = [kind(**params) for params in kind._unit_test_params()]
        assert len(made) >= 2
        assert all(type(one) is kind for one in made)


def test_a_pickle_goes_on_where_it_was():
    model = MetricClassifier(
        multioutput.ClassifierChain(linear_model.LogisticRegression()), metric="macro_f1"
    )
    rows = list(datasets.Yeast().take(60))
    for x, y in rows[:30]:
        model.predict_one(x)
        model.learn_one(x, y)
    waiting, _ = rows[30]
    model.predict_one(waiting)
    twin = pickle.loads(pickle.dumps(model))
    for x, y in rows[30:]:
        assert model.predict_one(x) == twin.predict_one(x)
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert model.counts == twin.counts
    assert len(model._waiting) == len(twin._waiting) == 1
