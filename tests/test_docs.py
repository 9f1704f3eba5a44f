"""The site cannot drift away from the code: commands run, names exist, the site builds.

Python blocks of every page are doctests of their own (see pyproject.toml).
"""

import doctest
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import omma
from omma.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Commands that do much, or go on until they are stopped: their options are read, and no more.
LONG = ("report", "serve", "watch")
OTHERS = ("omma-study", "pip", "python", "python3", ".venv/bin", "NUMBA_DISABLE_JIT=1", "mkdocs")


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
        if language == "python":  # the commands may need what these write
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
        if language == "python":
            assert text.lstrip().startswith(">>> ")


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


def test_pictures_are_up_to_date(scripts, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.testing.compare import compare_images

    made = scripts("make_idea")
    for name, draw in made.PICTURES.items():
        path = tmp_path / f"{name}.png"
        draw().savefig(path, dpi=made.DPI, facecolor="white")
        # Other versions of matplotlib and FreeType draw letters a little differently.
        difference = compare_images(str(made.FOLDER / f"{name}.png"), str(path), tol=8)
        assert difference is None, f"run python docs/make_idea.py: {difference}"


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


@needs_docs
def test_the_navigation_leaves_out_what_is_missing(scripts):
    hooks = scripts("hooks")
    nav = ["a.md", {"B": "b.md"}, {"More": ["c.md", {"D": "d.md"}]}, {"Gone": [{"E": "e.md"}]}]
    assert hooks._without(nav, {"a.md", "d.md", "e.md"}) == [{"B": "b.md"}, {"More": ["c.md"]}]


REMOTES = {
    "https://example.org/someone/omma.git": "https://example.org/someone/omma",
    "https://example.org/someone/omma/": "https://example.org/someone/omma",
    "https://example.org:8443/group/part/omma": "https://example.org:8443/group/part/omma",
    "https://token@example.org/someone/omma.git": "https://example.org/someone/omma",
    "https://user:secret@example.org/someone/omma": "https://example.org/someone/omma",
    "https://example.org/someone/omma?token=secret#part": "https://example.org/someone/omma",
    "git@example.org:someone/omma.git": "https://example.org/someone/omma",
    "ssh://git@example.org:2222/someone/omma.git": "https://example.org/someone/omma",
    "/home/someone/omma": None,
    "../omma": None,
    "omma.git": None,
    "file:///home/someone/omma": None,
    "file://example.org/home/someone/omma": None,
    "http://example.org/someone/omma": None,
    "C:\\Users\\someone\\omma": None,
    "C:/Users/someone/omma": None,
    "someone@machine:omma": None,
    "https://localhost:3000/someone/omma": None,
    "https://10.0.0.7/someone/omma": None,
    "https://[::1]/someone/omma": None,
    "https://example.org:port/someone/omma": None,
    "https://example.org/": None,
    "javascript:alert(1)": None,
    "": None,
}


@pytest.mark.parametrize("remote", REMOTES)
def test_only_addresses_on_the_web_are_shown_and_nothing_secret_in_them(scripts, remote):
    assert scripts("repository").on_the_web(f"{remote}\n") == REMOTES[remote]


def test_a_clone_tells_where_it_came_from(scripts, tmp_path):
    found = scripts("repository").found
    assert found(tmp_path) is None
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert found(tmp_path) is None
    remote = "https://user:secret@example.org/someone/omma.git"
    subprocess.run(["git", "remote", "add", "origin", remote], cwd=tmp_path, check=True)
    assert found(tmp_path) == "https://example.org/someone/omma"
    (tmp_path / "unpacked").mkdir()  # something else inside of a clone
    assert found(tmp_path / "unpacked") is None


@needs_docs
@pytest.mark.parametrize("address", ["https://example.org/someone/omma", None])
def test_every_page_links_to_the_source_where_it_is_known(scripts, monkeypatch, tmp_path, address):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    hooks = scripts("hooks")
    monkeypatch.setattr(hooks.repository, "found", lambda folder: None)
    monkeypatch.setattr(hooks, "on_files", lambda files, config: files)  # no pages but these two
    monkeypatch.setenv("OMMA_REPOSITORY", address or "")
    for page in ("index.md", "faq.md"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / page).write_text("# A title\n\n<p>Some words.</p>\n")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        docs_dir=str(tmp_path / "docs"),
        site_dir=str(tmp_path / "site"),
        nav=["index.md", "faq.md"],
        plugins=[],
        hooks=[],
    )
    for event in ("on_config", "on_page_markdown", "on_post_page"):
        config.plugins.events[event.removeprefix("on_")].append(getattr(hooks, event))
    build(config)
    home, other = (
        (tmp_path / "site" / page).read_text() for page in ("index.html", "faq/index.html")
    )
    line = f'<p><a href="{address}">Source</a></p>'
    assert (line in home, line in other) == (address is not None, False)
    for page in (home, other):
        assert ('title="Go to repository"' in page) == (address is not None)
        assert (f'href="{address}"' in page) == (address is not None)
        assert 'data-md-component="source"' not in page  # which asks other servers for stars
