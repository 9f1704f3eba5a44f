"""Pages that are made from records hold what the records say, and nothing else."""

import importlib
import sys
from pathlib import Path

import pytest
from matplotlib.testing.compare import compare_images
from pictures import colliding, cut_off

from omma_study import theory
from omma_study.records import make, pack, read, write
from omma_study.sections import sections

STUDY = Path(__file__).resolve().parents[1]
DOCS = STUDY.parent / "docs"


@pytest.fixture
def script(monkeypatch):
    """A script that makes a page, as a module."""
    monkeypatch.syspath_prepend(str(STUDY / "pages"))
    yield importlib.import_module
    for name in [name for name in sys.modules if name.startswith("make_")]:
        del sys.modules[name]


def drawn_as(figure, picture, folder, dpi):
    """Whether a picture of the repository is this figure."""
    path = folder / picture.name
    figure.savefig(path, dpi=dpi, facecolor="white")
    # Other versions of matplotlib and FreeType draw letters a little differently.
    return compare_images(str(picture), str(path), tol=8) is None


def test_pictures_of_the_theory_come_from_records(script, tmp_path):
    records = read(sorted((STUDY / "records").glob("theory-*.jsonl.xz")))
    pictures = script("make_theory").PICTURES
    figures = theory.figures(records)
    assert {path.stem for path in pictures.glob("*.png")} == set(figures)
    for name, figure in figures.items():
        assert drawn_as(figure, pictures / f"{name}.png", tmp_path, 80), "run make_theory.py"


def test_tables_of_the_theory_come_from_records(script):
    records = read(sorted((STUDY / "records").glob("theory-*.jsonl.xz")))
    assert {suite.name for suite in theory.suites()} == {record["suite"] for record in records}
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    assert script("make_theory").refreshed(page, records) == page


def test_the_page_of_the_study_comes_from_records(script):
    make_study = script("make_study")
    study, like = (
        make_study.load(make_study.packed(*suites))
        for suites in (make_study.SUITES, make_study.MADE)
    )
    page = make_study.page(study, like)
    assert page == (DOCS / "study.md").read_text(encoding="utf-8")
    assert "we do not know" not in page


def test_the_folder_of_records_holds_no_other_lines_of_json(script):
    """``omma-study report study/records`` would warn of each of them."""
    make_study = script("make_study")
    assert not list(make_study.RECORDS.glob("*.jsonl"))
    assert all(path.is_file() for path in (make_study.TIMES, make_study.ROUNDING))


def toy(policy, metric, prior, *, estimator="known", value=0.5, seed=0):
    """A record of a set that nobody has."""
    result = {
        "value": value, "rows": 4, "history": {"rows": [4], "values": [0.5]},
        "counts": {"tp": [1.0], "predicted": [1.0], "positive": [1.0], "n": 4.0}, "names": None,
    }  # fmt: skip
    spec = {
        "dataset": "toy", "task": "multilabel", "protocol": "fixed",
        "estimator": {"name": estimator}, "policy": policy,
        "feedback": None if prior is None else "labels",
        "metric": metric, "k": None, "prior": prior, "seed": seed,
    }  # fmt: skip
    return make("multilabel_fixed", spec, "?", result=result, seconds={"run": 1.0})


def test_what_was_not_run_to_the_end_is_not_packed(script, tmp_path):
    """A policy may lack altogether, but not on one of the metrics, nor with one λ."""
    make_study = script("make_study")
    for policy, metric, prior in (
        ("omma", "macro_f1", 0.1), ("omma", "macro_gmean", 0.1), ("omma", "macro_f1", 1.0),
        ("omma", "macro_gmean", 1.0), ("greedy", "macro_f1", 0.1), ("greedy", "macro_f1", 1.0),
        ("online_fw", "macro_f1", 1.0), ("online_fw", "macro_gmean", 1.0),
        ("auto", "macro_f1", None), ("auto", "macro_gmean", None),
    ):  # fmt: skip
        write(tmp_path, toy(policy, metric, prior))
    merged = make_study.merged(tmp_path)
    assert {record["label"] for record in merged} == {"OMMA", "Auto"}
    assert len(merged) == 6


def test_policies_that_are_run_later_stand_beside_those_of_the_repository(
    script, tmp_path, monkeypatch
):
    make_study = script("make_study")
    monkeypatch.setattr(script("common"), "RECORDS", tmp_path / "packed")
    before = [toy(policy, "macro_f1", 0.1) for policy in ("omma", "greedy")]
    pack(before, tmp_path / "packed")
    write(tmp_path / "fresh", toy("online_fw", "macro_f1", 0.1))
    write(tmp_path / "fresh", toy("omma", "macro_f1", 0.1, value=0.75))
    merged = make_study.merged(tmp_path / "fresh")
    assert {record["label"]: record["result"]["value"] for record in merged} == {
        "Greedy": 0.5, "OMMA": 0.75, "Online-FW": 0.5
    }  # fmt: skip
    write(tmp_path / "other", toy("omma", "macro_f1", 0.1, estimator="logistic"))
    assert [record["label"] for record in make_study.merged(tmp_path / "other")] == ["OMMA"]


def test_the_page_says_which_policies_have_fewer_sequences(script):
    records = [toy("omma", "macro_f1", 0.1, seed=seed) for seed in range(3)]
    records += [toy("online_fw", "macro_f1", 0.1, seed=seed) for seed in range(2)]
    (section,) = sections(records)
    study = script("common").study_of([section])
    lines = script("claims").data_table(study, ["multilabel_fixed"]).splitlines()
    *_, sequences = lines[-1].strip("| ").split(" | ")
    assert sequences.startswith("3, Online-FW 2, without Auto, Greedy, ")


def test_claims_are_told_as_their_sections_tell_them(script, monkeypatch):
    claims = script("claims")
    monkeypatch.setattr(
        claims,
        "CLAIMS",
        {"One": lambda study: (9, 10, "More."), "Other": lambda study: (5, 10, "")},
    )
    summary, parts = claims.claims(None)
    assert summary.splitlines()[2:] == [
        "| One | holds | 9 of 10 |",
        "| Other | does not hold | 5 of 10 |",
    ]
    assert "It **holds** (9 of 10). More." in parts


def test_the_page_of_likeness_comes_from_records(script, tmp_path):
    likeness = script("make_likeness")
    study = likeness.load(likeness.packed(*likeness.MADE))
    assert likeness.page(study) == (DOCS / "likeness.md").read_text(encoding="utf-8")
    fitted = likeness.first_rows(study)
    assert (fitted["paper"] == 0).sum() <= 2  # G- and H-mean of one set of the paper
    fitted = fitted[fitted["paper"] > 0]
    assert ((fitted["ours"] - fitted["paper"]).abs() < 0.02).all()
    pairs = likeness.pairs(study)
    picture = likeness.draw(pairs)
    assert drawn_as(picture, likeness.PICTURE, tmp_path, 100), "run make_likeness.py"
    assert set(pairs["dataset"]) >= {"YouTube", "Eurlex-LexGlue"}
    turned = pairs.assign(ours=-pairs["ours"])  # a check that can fail
    assert likeness.agreement(turned)["pearson"] < 0 < likeness.agreement(pairs)["pearson"]


def test_the_page_of_auto_comes_from_records(script):
    make_auto = script("make_auto")
    page = make_auto.page(make_auto.load(make_auto.PACKED)).rstrip() + "\n"
    assert page == (DOCS / "auto.md").read_text(encoding="utf-8")


def test_pictures_of_the_study_are_whole_and_come_from_records(script, tmp_path):
    make_study = script("make_study")
    (section,) = sections(
        read(make_study.RECORDS / f"multilabel_fixed-{make_study.DRAWN}.jsonl.xz")
    )
    for name, figure in make_study.pictures(section).items():
        assert colliding(figure) == []
        assert cut_off(figure) == []
        picture = make_study.PICTURES / f"{name}.png"
        assert drawn_as(figure, picture, tmp_path, 100), "run make_study.py"


def test_the_page_of_intervals_comes_from_records(script):
    make_intervals = script("make_intervals")
    page = make_intervals.page(read(make_intervals.PACKED)).rstrip() + "\n"
    assert page == (DOCS / "intervals.md").read_text(encoding="utf-8")
