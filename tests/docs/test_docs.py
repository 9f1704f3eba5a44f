"""The site cannot drift away from the code: commands run, names exist, the site builds.

Python blocks of every page are doctests of their own (see pyproject.toml).
"""

import doctest
import importlib.util
import re
import shlex
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import omma
from omma.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that do much, or go on until they are stopped: their options are read, and no more.
LONG = ("report", "serve", "watch")
OTHERS = (
    "omma-study",
    "pip",
    "python",
    "python3",
    ".venv/bin",
    "NUMBA_DISABLE_JIT=1",
    "mkdocs",
    "nox",
    "pre-commit",
    ".ci/",
)


def blocks(page):
    """The code blocks of a page: their language and their text."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def lines(text):
    """The lines of a shell block, continued ones joined."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def name(page):
    return page.relative_to(ROOT).as_posix()


def has_command(page):
    shell = [text for language, text in blocks(page) if language == "sh"]
    return any(line.startswith("omma ") for text in shell for line in lines(text))


def run(line):
    """Run a line that begins with omma, and return what it prints."""
    arguments = shlex.split(line, comments=True)[1:]
    if arguments[0] in LONG:
        command = main.get_command(None, arguments[0])
        command.make_parser(click.Context(command)).parse_args(arguments[1:])
        return ""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.stdout


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("page", list(filter(has_command, PAGES)), ids=name)
def test_commands_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    every = blocks(page)
    while every[-1][0] not in ("sh", "text"):
        every.pop()
    names, printed = {}, None
    for language, text in every:
        if language in ("python", "pycon"):  # the commands may need what these write
            for example in doctest.DocTestParser().get_examples(text):
                exec(compile(example.source, name(page), "single"), names)
        if language == "text" and printed is not None:
            assert words(printed) == words(text)
        printed = None
        if language == "sh":
            printed = "".join(run(line) for line in lines(text) if line.startswith("omma "))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_shell_lines_are_of_a_kind_that_is_known(page):
    for language, text in blocks(page):
        assert language != "bash", "write sh"
        if language == "sh":
            for line in lines(text):
                assert line.startswith(("omma ", *OTHERS)), line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_are_doctests(page):
    if page.name == "CONTRIBUTING.md":
        return
    for language, text in blocks(page):
        if language in ("python", "pycon"):
            assert text.lstrip().startswith(">>> ")


def test_lanes_name_files_that_exist():
    lanes = [*(ROOT / ".ci").iterdir(), ROOT / "noxfile.py", ROOT / "CONTRIBUTING.md"]
    lanes += (ROOT / ".github" / "workflows").iterdir()
    named = {
        path
        for lane in lanes
        for path in re.findall(
            r"(?:tests|docs|study|src)/[\w/]+\.(?:py|md|toml)", lane.read_text(encoding="utf-8")
        )
    }
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_extras_that_are_named_exist():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = project.split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = ", table, re.MULTILINE))
    for page in [*PAGES, *(ROOT / "src").rglob("*.py")]:
        found = re.findall(r'"(?:omma-learn|\.)\[([\w,]+)\]"', page.read_text(encoding="utf-8"))
        for named in found:
            assert set(named.split(",")) <= extras, page


def formulas(page):
    """Names and formulas in the tables of a page."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", page, re.MULTILINE)
    return {known: formula.strip() for known, formula in rows}


def test_formulas_are_those_of_the_code():
    found = formulas((DOCS / "metrics.md").read_text(encoding="utf-8"))
    assert found.pop("omma.metrics.fbeta(2.0)") == omma.metrics.fbeta(2.0).formula
    assert len(found) >= 18
    for known, formula in found.items():
        assert formula == omma.metric(known).formula


def test_every_metric_is_in_the_reference(scripts):
    found = formulas(scripts("make_metrics").page())
    assert set(found) == set(omma.metrics.NAMES)


def test_thresholds_are_compared_as_their_page_says(scripts):
    """The quick tables, made anew: values may move a little as Auto does."""
    made, page = scripts("make_thresholds"), (DOCS / "thresholds.md").read_text(encoding="utf-8")
    for name in ("few", "budgets", "none"):
        shown = page.partition(f"<!-- table {name} -->\n\n")[2].partition("\n\n")[0]
        now = [float(number) for number in re.findall(r"0\.\d{3}", made.table(name))]
        assert [float(number) for number in re.findall(r"0\.\d{3}", shown)] == pytest.approx(
            now, abs=0.01
        ), f"run python docs/make_thresholds.py: {name}"


@pytest.mark.parametrize("script", ["make_idea", "make_limits", "make_certificate", "make_prior"])
def test_pictures_are_up_to_date(scripts, script, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.testing.compare import compare_images

    made, parts = scripts(script), scripts("page_parts")
    for name, draw in made.PICTURES.items():
        path = tmp_path / f"{name}.png"
        draw().savefig(path, dpi=parts.DPI, facecolor="white")
        # Other versions of matplotlib and FreeType draw letters a little differently.
        difference = compare_images(str(parts.FOLDER / f"{name}.png"), str(path), tol=8)
        assert difference is None, f"run python docs/{script}.py: {difference}"


@pytest.fixture
def scripts(monkeypatch):
    """The scripts that make pages, imported."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield lambda module: importlib.import_module(module)
    for module in DOCS.glob("*.py"):
        sys.modules.pop(module.stem, None)


def test_the_reference_has_every_command_and_option(scripts):
    page = scripts("make_cli").page()
    for command in COMMANDS:
        assert f"## omma {command}\n" in page
        for parameter in main.get_command(None, command).params:
            assert all(option in page for option in parameter.opts if option.startswith("-"))


def test_the_gallery_is_made_of_the_examples(scripts, monkeypatch, tmp_path):
    gallery = scripts("make_gallery")
    monkeypatch.setattr(gallery, "EXAMPLES", tmp_path)
    assert list(gallery.pages()) == ["gallery/index.md"]
    script = '"""A title.\n\nWhat it shows.\n\nMore of it.\n"""\n\nimport omma\n'
    (tmp_path / "plot_one.py").write_text(script)
    (tmp_path / "plot_one.png").write_bytes(b"")
    pages = gallery.pages()
    assert "## [A title](plot_one.md)\n\nWhat it shows.\n" in pages["gallery/index.md"]
    assert pages["gallery/plot_one.md"].startswith("# A title\n\nWhat it shows.\n\nMore of it.\n")
    assert "\nimport omma\n```" in pages["gallery/plot_one.md"]
    assert gallery.pictures() == {"gallery/plot_one.png": tmp_path / "plot_one.png"}
    (tmp_path / "plot_two.py").write_text("import omma\n")
    with pytest.raises(ValueError, match="must begin with a docstring"):
        gallery.pages()


needs_docs = pytest.mark.skipif(
    not importlib.util.find_spec("mkdocstrings"), reason='needs pip install "omma-learn[docs]"'
)


@needs_docs
def test_examples_of_docstrings_become_blocks(scripts):
    fenced = scripts("fences").fenced
    text = "First.\n\n    >>> 1\n    1\n\nLast."
    assert fenced(text) == "First.\n\n\n    ```pycon\n    >>> 1\n    1\n    ```\n\nLast."
    assert fenced("No example.") == "No example."
    assert fenced(">>> 1\n1") == "\n```pycon\n>>> 1\n1\n```"


@needs_docs
def test_words_of_types_are_no_arithmetic(scripts):
    worded = scripts("fences").worded
    assert worded("places : int or array-like") == "places : int or array\u2011like"
    assert worded("A row-wise mean.") == "A row-wise mean."
    assert worded("x : int\n    An array-like.") == "x : int\n    An array-like."


def test_the_home_page_begins_with_how_to_install_it():
    (_, first), *_ = blocks(DOCS / "index.md")
    assert first.startswith("pip install ")


def styled(selector):
    """What the style sheet says of a selector, as numbers of rem."""
    sheet = (DOCS / "assets/omma.css").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^([^{}/*]+?) \{([^}]*)\}", sheet, re.MULTILINE))
    return {key: float(size) for key, size in re.findall(r"([\w-]+): ([\d.]+)rem", rules[selector])}


def test_wide_tables_have_room_and_code_has_a_column_for_its_button():
    """A rem is 20 pixels or more: at 1,400 the page takes all of them, text does not."""
    assert styled(".md-grid")["max-width"] * 20 >= 1400
    assert styled(".md-typeset :is(p, ul, ol, blockquote)")["max-width"] <= 45
    assert styled(".md-typeset .highlight pre")["padding-right"] >= 2  # the button's own width


def test_pages_made_of_code_are_written_before_the_build(scripts, tmp_path):
    scripts("make_pages").write(tmp_path)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert {"reference/cli.md", "reference/names.md", "gallery/index.md"} <= written
    assert "gallery/plot_first.png" in written
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    places = [line.removeprefix("docs/") for line in ignored if line.startswith("docs/")]
    assert all(path.startswith(tuple(places)) for path in written)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PROJECT["project"]["urls"]["Repository"]


def test_links_of_the_readme_are_absolute_on_pypi():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", page)
    assert len(links) > 20
    for picture, target in links:
        assert target.startswith("https://")
        if target.startswith(REPOSITORY):
            assert ("/raw/main/" in target) == bool(picture)
            assert (ROOT / target.split("/main/")[1].split("#")[0]).exists()


def test_the_address_of_the_project_is_the_same_everywhere():
    files = ["mkdocs.yml", "CITATION.cff", "study/pyproject.toml", "pyproject.toml"]
    files += [path.relative_to(ROOT) for path in (ROOT / ".github").rglob("*.yml")]
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8")
        for found in re.findall(r"https://github\.com/[\w-]+/[\w-]+", text):
            assert found == REPOSITORY, file


@needs_docs
def test_every_page_links_to_the_source_and_loads_nothing_from_there(tmp_path):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    for page in ("index.md", "faq.md"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / page).write_text("# A title\n\n```pycon\n>>> 1 + 1\n2\n```\n")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        docs_dir=str(tmp_path / "docs"),
        site_dir=str(tmp_path / "site"),
        nav=["index.md", "faq.md"],
        plugins=[],
    )
    build(config)
    for page in ("index.html", "faq/index.html"):
        text = (tmp_path / "site" / page).read_text(encoding="utf-8")
        assert f'<a href="{REPOSITORY}" title="Go to repository"' in text
        assert 'data-md-component="source"' not in text  # which asks that server for stars
        # The style sheet leaves these two out when code is copied.
        assert '<span class="gp">' in text
        assert '<span class="go">2</span>' in text
