"""Pages that are made from records hold what the records say, and nothing else."""

import importlib
import sys
from pathlib import Path

import pytest
from pictures import colliding, cut_off

from omma.study.records import read

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def script(monkeypatch):
    """A script of the documentation as a module."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module
    for name in [name for name in sys.modules if name.startswith(("make_", "study_"))]:
        del sys.modules[name]


def test_tables_of_the_theory_come_from_records(script):
    records = read(sorted((DOCS / "records").glob("theory-*.jsonl.xz")))
    wanted = {"theory-ratios", "theory-population", "theory-smoothing"}
    assert wanted <= {one["suite"] for one in records}
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    assert script("make_theory").refreshed(page, records) == page


def test_the_page_of_the_study_comes_from_records(script):
    make_study, cells = script("make_study"), script("study_cells")
    made = make_study.page(cells.load(make_study.packed()))
    assert made == (DOCS / "study.md").read_text(encoding="utf-8")
    assert "we do not know" not in made


def test_the_page_of_likeness_comes_from_records(script):
    make_likeness, cells = script("make_likeness"), script("study_cells")
    study = cells.load(make_likeness.packed())
    assert make_likeness.page(study) == (DOCS / "likeness.md").read_text(encoding="utf-8")
    found = make_likeness.pairs(study)
    assert {one.dataset for one in found} >= {"YouTube", "Eurlex-LexGlue"}
    turned = [one._replace(ours=-one.ours) for one in found]  # a check that can fail
    assert (
        make_likeness.agreement(turned)["pearson"] < 0 < make_likeness.agreement(found)["pearson"]
    )


def test_the_page_of_auto_comes_from_records(script):
    make_auto = script("make_auto")
    made = make_auto.page(make_auto.load(make_auto.KEPT)).rstrip() + "\n"
    assert made == (DOCS / "auto.md").read_text(encoding="utf-8")


def test_names_of_datasets_do_not_run_into_each_other(script):
    pictures = script("study_pictures")
    names = [f"a dataset of a long name, {number} %" for number in range(12)]
    gaps = {metric: [0.1 * place for place in range(12)] for metric in ("one", "another")}
    few = pictures.draw_rare(script("study_cells").load(script("make_study").packed()))
    for figure in (few, pictures.dots(names, gaps)):
        assert colliding(figure) == []
        assert cut_off(figure) == []


def test_tables_of_streams_come_from_records_and_none_loses_a_point(script):
    make_river = script("make_river")
    records = make_river.read()
    page = make_river.PAGE.read_text(encoding="utf-8")
    assert make_river.refreshed(page, records) == page
    first = [one for one in records if not one["new"]]
    assert len(first) == 20
    for one in first:
        for plain, wrapped in one["values"].values():
            assert wrapped > plain - 1.0


def test_the_table_of_peers_comes_from_records(script):
    make_peers = script("make_peers")
    records, page = make_peers.read(), make_peers.PAGE.read_text(encoding="utf-8")
    assert make_peers.refreshed(page, records) == page
    assert {one["seed"] for one in records} == {0, 1, 2}
    assert {one["method"] for one in records} == set(make_peers.METHODS)
