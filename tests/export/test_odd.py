"""Rules of every kind elsewhere: up to so many labels, calibration, odd probabilities."""

import sqlite3

import numpy as np
import pytest
from rules_elsewhere import odd_rows, odd_rule

KINDS = ["none", "k", "a", "m"]


def cases(kind, times=15):
    rng = np.random.default_rng(5)
    for at in range(times):
        m = int(rng.integers(2, 7))
        yield odd_rule(rng, m, kind, calibrate=at % 3 > 0), odd_rows(rng, 40, m)


@pytest.mark.parametrize("kind", KINDS)
def test_onnx(kind):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    for rule, eta in cases(kind):
        model = rule.to_onnx(dtype="float64").SerializeToString()
        (found,) = onnxruntime.InferenceSession(model).run(["decisions"], {"eta": eta})
        np.testing.assert_array_equal(found, rule.predict(eta))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_torch(kind):
    torch = pytest.importorskip("torch")
    for rule, eta in cases(kind):
        head, given = rule.to_torch(), torch.from_numpy(eta)
        np.testing.assert_array_equal(head(given).numpy(), rule.predict(eta))
    scripted = torch.jit.script(head)
    np.testing.assert_array_equal(scripted(given).numpy(), rule.predict(eta))


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kind", KINDS[:3])
def test_sql(kind, engine):
    for rule, eta in cases(kind):
        if engine == "sqlite":
            database = sqlite3.connect(":memory:")
        else:
            database = pytest.importorskip("duckdb").connect(":memory:")
        rows = [(i, j, float(eta[i, j])) for i in range(len(eta)) for j in range(rule.m)]
        database.execute("CREATE TABLE probabilities (id INTEGER, label INTEGER, eta DOUBLE)")
        database.executemany("INSERT INTO probabilities VALUES (?, ?, ?)", rows)
        found = database.execute(rule.to_sql(engine)).fetchall()
        assert sorted(found) == list(zip(*map(list, rule.predict(eta).nonzero()), strict=True))
        database.close()
