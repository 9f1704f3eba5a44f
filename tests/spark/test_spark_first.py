"""The first rows of a fresh worker: within ten seconds where its host has seen such rows before."""

import numpy as np
import pytest
from naive_baselines import stream as long_stream

import omma


@pytest.mark.parametrize("policy", [omma.OMMA("macro_f1", prior=1.0), omma.Auto("macro_f1")])
def test_a_fresh_worker_is_soon_at_work(tmp_path, policy):
    pytest.importorskip(
        "pyspark", reason='PySpark is not installed: pip install "omma-learn[spark]"'
    )
    from spark_worker import first_rows, prepare

    eta, y = long_stream(0, 1000, 20)
    prepare(tmp_path / "work", policy, eta.astype(np.float32), y.astype(np.int8))
    # On the processor: how long others keep it is not ours to promise.
    _, cold = first_rows(tmp_path / "work", tmp_path / "cache")
    assert any((tmp_path / "cache").rglob("*.nbc"))  # it did compile
    _, warm = first_rows(tmp_path / "work", tmp_path / "cache")
    assert warm < 5
    assert cold < 15  # once for each host
