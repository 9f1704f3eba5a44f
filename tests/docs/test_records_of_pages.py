"""Pages that are made from records of benchmarks hold what the records say."""

import importlib
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def script(monkeypatch):
    """A script of the documentation as a module."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module
    for name in [name for name in sys.modules if name.startswith("make_")]:
        del sys.modules[name]


def test_tables_of_streams_come_from_records_and_none_loses_a_point(script):
    make_river = script("make_river")
    records = make_river.read()
    page = make_river.PAGE.read_text(encoding="utf-8")
    assert make_river.refreshed(page, records) == page
    assert (~records["new"]).sum() == 20
    for run in records.itertuples():
        if (run.stream, run.model) != ("Agrawal 4, 0", "adaptive random forest"):
            for plain, wrapped in run.values.values():
                assert wrapped > plain - 1.0  # the page says why that one does


def test_the_table_of_peers_comes_from_records(script):
    make_peers = script("make_peers")
    records, page = make_peers.read(), make_peers.PAGE.read_text(encoding="utf-8")
    assert make_peers.refreshed(page, records) == page
    assert set(records["seed"]) == set(range(19))
    assert set(records["method"]) == set(make_peers.METHODS)
