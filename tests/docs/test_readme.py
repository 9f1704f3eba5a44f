"""The README and the pages it points to cannot drift away from the code."""

import re
from pathlib import Path

import pytest

import omma
from omma.cli.demo import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/prior.md",
    "docs/certificate.md",
    "docs/overview.md",
]


def test_the_table_is_what_the_demo_prints():
    text = " ".join(README.split())
    _, comparison = run()
    for metrics in (comparison.metrics[:4], comparison.metrics[4:]):
        for policy, title in comparison.titles.items():
            cells = [comparison.cell(policy, metric) for metric in metrics]
            shown = [f"{100 * cell.mean:.2f}" if cell.supported else "×" for cell in cells]
            assert " ".join([title, *shown]) in text


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("https://"):
            assert (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_figures_about_thresholds_are_those_of_their_page(page):
    measured = (ROOT / "docs/thresholds.md").read_text(encoding="utf-8")
    text = (ROOT / page).read_text(encoding="utf-8")
    figures = re.findall(r"(?<=[| *])0\.\d{3}\b", text)
    assert len(figures) >= 12
    assert all(f" {number} " in measured for number in figures)


def test_it_is_read_in_a_few_minutes():
    assert len(README.split()) < 1000


def test_every_metric_is_named():
    for name in omma.metrics.NAMES:
        short = re.sub("^(macro|micro|weighted|multiclass)_", "", name)
        assert f"`{short}`" in README, f"name {short} in the list of metrics of README.md"


def test_the_version_is_that_of_the_citation():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {omma.__version__}\n" in citation
    assert f"## [{omma.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
