"""The recipe for BentoML, as a service that answers."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import omma

pytest.importorskip("bentoml", reason="the recipe for BentoML needs bentoml, which is large")
pytestmark = pytest.mark.filterwarnings("default")  # of BentoML about its own dependencies

PAGE = Path(__file__).parents[2] / "docs/recipes/fastapi.md"


@pytest.fixture(scope="module")  # BentoML registers what it measures once in a process
def client(tmp_path_factory):
    from starlette.testclient import TestClient

    (block,) = re.findall(r"```py\n(import bentoml.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    folder = tmp_path_factory.mktemp("bento")
    (folder / "omma_bento_service.py").write_text(block, encoding="utf-8")
    sys.path.insert(0, str(folder))
    import omma_bento_service

    with TestClient(omma_bento_service.Decisions.to_asgi()) as made:
        yield made
    sys.path.remove(str(folder))


def test_service_decides_as_a_learner_does(client):
    eta, y = omma.datasets.long_tail(n=60, m=3, seed=0)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), n_labels=3)
    for i, (row, labels) in enumerate(zip(eta, y, strict=True)):
        answer = client.post("/decide", json={"id": str(i), "eta": row.tolist()})
        assert answer.json() == learner.predict(row).tolist()
        learner.update(labels)
        learned = client.post("/learn", json={"id": str(i), "y": np.asarray(labels).tolist()})
        assert learned.json() == i + 1


def test_bad_rows_and_unknown_ids_are_sentences(client):
    wrong = client.post("/decide", json={"id": "a", "eta": [0.9, 0.2, 1.1]})
    assert wrong.status_code == 400
    assert "must hold probabilities from 0 to 1, got 1.1" in wrong.text
    assert client.post("/learn", json={"id": "nobody", "y": [1, 0, 0]}).status_code == 400
