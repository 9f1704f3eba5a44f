"""MLflow stores fitted models in both of its formats."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.sklearn.test_native import problems, same

from omma.sklearn import MetricClassifier

pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow-skinny")
pytestmark = pytest.mark.filterwarnings("ignore")  # mlflow has much to say of its own future

FORMATS = ("cloudpickle", "skops")
KINDS = ("one label", "classes", "labels, k", "costs")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_models_come_back_from_mlflow(kind, form, tmp_path):
    import mlflow.sklearn

    model, X, y = problems()[kind]
    trusted = None
    if form == "skops":
        skops = pytest.importorskip("skops.io", reason="skops is not installed")
        trusted = skops.get_untrusted_types(data=skops.dumps(model.fit(X, y)))
        assert all(name.startswith(("omma.", "numpy.", "sklearn.")) for name in trusted), trusted
    mlflow.sklearn.save_model(
        model.fit(X, y),
        tmp_path / "model",
        serialization_format=form,
        skops_trusted_types=trusted,
        pip_requirements=["omma-learn"],
    )
    same(model, mlflow.sklearn.load_model(str(tmp_path / "model")), X)


def test_a_logged_model_decides_as_it_did(tmp_path):
    import mlflow.pyfunc
    import mlflow.sklearn

    _, X, y = problems()["one label"]
    model = MetricClassifier(LogisticRegression(), metric="f1").fit(X, y)
    mlflow.sklearn.save_model(
        model,
        tmp_path / "model",
        serialization_format="cloudpickle",
        pip_requirements=["omma-learn"],
    )
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(served.predict(X), model.predict(X))
