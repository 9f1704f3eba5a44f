"""Every page says where its measured numbers come from: a record, a test or a command.

A number counts if it looks measured: a decimal, a percentage, points, a factor, a time. It may
stand in a page or a part that a script makes of records, in code that tests run, in a section (or
below an introduction) that names a command, a script or a test, or on a page that its section links
to. All others are listed.
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEASURED = re.compile(
    r"(?<![\w.=@^·/–-])[+−]?\d[\d,]*(?:\.\d+)? ?(?:%|points|times|ms|µs|seconds|minutes)(?!\w)"
    r"|(?<![\w.=@^·/≥<>–-])[+−]?\d+\.\d{2,}(?!\w|\.\d)"
)
SOURCE = re.compile(
    r"python -m benchmarks|omma-study run|make_\w+\.py|tests/|omma demo|omma evaluate"
    r"|benchmark\s`\w+` of version"
)
SKIPPED = (
    r"```.*?```",  # code, which tests run
    r"<!-- \w+.*?-->.*?<!-- end.*?-->",  # parts that scripts write
    r"`[^`\n]*`",  # options and settings
    r"\]\([^)]*\)",
)
# Made of records as a whole, which test_pages.py compares; the reference is made of docstrings, the
# gallery of examples that tests run.
MADE = ("study.md", "likeness.md", "auto.md", "intervals.md", "reference/", "gallery/")


def sections(text):
    """Headings with their texts."""
    # Comments of code begin like headings.
    text = re.sub(
        r"```.*?```", lambda match: match[0].replace("\n#", "\n #"), text, flags=re.DOTALL
    )
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def is_on(number, text):
    """Whether a number, whatever its unit, is part of a text."""
    digits = re.match(r"[+−]?([\d,.]*\d)", number)[1]
    return re.search(rf"(?<![\d.]){re.escape(digits)}(?![\d]|\.\d)", text) is not None


def linked(body, folder):
    """The texts of pages of this site that a section links to, and that name a source."""
    paths = [folder / target for target in re.findall(r"\]\(([\w./-]+\.md)", body)]
    texts = [path.read_text("utf-8") for path in paths if path.exists()]
    return [text for text in texts if SOURCE.search(text)]


def unsourced(text, folder=DOCS):
    """Measured numbers of a page in sections that name no source, by heading."""
    parts = sections(text)
    # A source in the introduction holds for the whole page.
    if SOURCE.search(parts[0][1]):
        return {}
    numbers = {}
    for heading, body in parts:
        if SOURCE.search(body):
            continue
        # What the code of a section prints is tested, and may be told again in its text.
        sources = [*linked(body, folder), *re.findall(r"```.*?```", body, flags=re.DOTALL)]
        for pattern in SKIPPED:
            body = re.sub(pattern, "", body, flags=re.DOTALL)
        measured = [match[0] for match in MEASURED.finditer(body)]
        measured = [each for each in measured if not any(is_on(each, text) for text in sources)]
        if measured:
            numbers[heading] = measured
    return numbers


def test_every_measured_number_has_a_source():
    listed = {}
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if not name.startswith(MADE):
            numbers = unsourced(path.read_text("utf-8"), path.parent)
            listed |= {name: numbers} if numbers else {}
    assert listed == {}


def test_numbers_without_a_source_are_listed():
    page = "# A page\n\nText.\n\n## Speed\n\nIt is 3.7 times as fast (`x=0.25`), 0.51 in all.\n"
    assert unsourced(page) == {"## Speed": ["3.7 times", "0.51"]}
    assert unsourced(page.replace("Text.", "From `python -m benchmarks speed`.")) == {}
    assert unsourced(page + "\nBy `python -m benchmarks speed`.\n") == {}
    assert unsourced(page + "\n```pycon\n>>> 0.5 + 0.01\n0.51\n```\n") == {
        "## Speed": ["3.7 times"]
    }


def test_numbers_of_a_linked_page_are_sourced_if_that_page_is(tmp_path):
    page = "# A page\n\n## Speed\n\nIt is [0.51](other.md), and not 0.52.\n"
    (tmp_path / "other.md").write_text("# Other\n\n0.51\n")
    assert unsourced(page, tmp_path) == {"## Speed": ["0.51", "0.52"]}
    (tmp_path / "other.md").write_text("# Other\n\n0.51, 10.52, 0.521 by `omma demo`\n")
    assert unsourced(page, tmp_path) == {"## Speed": ["0.52"]}
