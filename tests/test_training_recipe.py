"""The metric for torchmetrics that the recipe for training loops shows."""

import re
from pathlib import Path

import pytest

import omma

torch = pytest.importorskip("torch", reason="the recipe needs PyTorch")
pytest.importorskip("torchmetrics", reason="the recipe needs torchmetrics")

PAGE = Path(__file__).parents[1] / "docs/recipes/training.md"


def made():
    (block,) = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "recipe"}
    exec(block, names)
    return names["OfDecisions"]


def test_batches_add_up_to_the_metric_of_all_rows():
    eta, y = omma.datasets.long_tail(n=300, m=5, seed=0)
    decided = (eta > 0.3).astype(int)
    metric = made()("macro_f1", 5)
    for start in range(0, 300, 64):
        part = slice(start, start + 64)
        metric.update(torch.as_tensor(decided[part]), torch.as_tensor(y[part]))
    assert float(metric.compute()) == pytest.approx(omma.metric("macro_f1").score(y, decided))
    metric.reset()
    metric.update(torch.as_tensor(decided[:10]), torch.as_tensor(y[:10]))
    assert int(metric.rows) == 10
