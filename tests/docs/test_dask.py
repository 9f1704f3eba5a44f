"""The recipe for Dask, with a worker killed in the middle of a batch."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import omma

distributed = pytest.importorskip(
    "distributed", reason='Dask is not installed: pip install "omma-learn[dask]"'
)

POLICY = omma.OMMA("macro_f1", prior=1.0)


def test_a_killed_worker_counts_nothing_twice(tmp_path):
    flag = str(tmp_path / "flag")

    def step(number, *batch):
        if number == 3 and not os.path.exists(flag):
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return omma.step(*batch)

    eta, y = omma.datasets.long_tail(n=800, m=5, seed=0)
    state, expected, decided, others = POLICY.init(5), POLICY.init(5), [], []
    with distributed.Client(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as client:
        for start in range(0, 800, 200):
            parts = np.array_split(np.arange(start, start + 200), 2)
            batches = [(POLICY, state, eta[rows], y[rows]) for rows in parts]
            work = [client.submit(step, start // 100 + i, *one) for i, one in enumerate(batches)]
            for made, delta in client.gather(work):
                decided.append(made)
                state = state + delta
            rows = slice(start, start + 200)
            made, delta = omma.step(POLICY, expected, eta[rows], y[rows])
            others.append(made)
            expected = expected + delta
    assert os.path.exists(flag)
    assert state.rows == 800
    assert state == expected
    np.testing.assert_array_equal(np.concatenate(decided), np.concatenate(others))
