"""Every page says where its measured numbers come from: a record, a test or a command.

A number counts if it looks measured: a decimal, a percentage, points, a factor, a time. It may
stand in a page or a part that a script makes of records, in code that tests run, or in a section
(or below an introduction) that names a command, a script or a test. All others are listed, and
have to be explained here.
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEASURED = re.compile(
    r"(?<![\w.=@^·/–-])[+−]?\d[\d,]*(?:\.\d+)? ?(?:%|points|times|ms|µs|seconds|minutes)(?!\w)"
    r"|(?<![\w.=@^·/≥<>–-])[+−]?\d+\.\d{2,}(?![\w.])"
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
MADE = ("study.md", "likeness.md", "auto.md", "reference/", "gallery/")
# Sections that name no command, by page: where their numbers come from.
EXPLAINED = {
    "faq.md": "the table of index.md",
    "how.md": "read off the pictures that docs/make_idea.py draws",
    "index.md": "docs/make_thresholds.py",
    "options.md": "the table of prior.md",
    "prior.md": "settings, thresholds computed in the text; docs/make_prior.py writes the table",
}


def sections(text):
    """Headings with their texts."""
    # Comments of code begin like headings.
    text = re.sub(
        r"```.*?```", lambda match: match[0].replace("\n#", "\n #"), text, flags=re.DOTALL
    )
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def unsourced(text):
    """Measured numbers of a page in sections that name no source, by heading."""
    parts = sections(text)
    # A source in the introduction holds for the whole page.
    if SOURCE.search(parts[0][1]):
        return {}
    numbers = {}
    for heading, body in parts:
        if SOURCE.search(body):
            continue
        for pattern in SKIPPED:
            body = re.sub(pattern, "", body, flags=re.DOTALL)
        if measured := [match[0] for match in MEASURED.finditer(body)]:
            numbers[heading] = measured
    return numbers


def test_every_measured_number_has_a_source():
    listed = {}
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if not name.startswith(MADE) and name not in EXPLAINED:
            listed |= {name: numbers} if (numbers := unsourced(path.read_text("utf-8"))) else {}
    assert listed == {}


def test_numbers_without_a_source_are_listed():
    page = "# A page\n\nText.\n\n## Speed\n\nIt is 3.7 times as fast (`x=0.25`), 0.51 in all.\n"
    assert unsourced(page) == {"## Speed": ["3.7 times", "0.51"]}
    assert unsourced(page.replace("Text.", "From `python -m benchmarks speed`.")) == {}
    assert unsourced(page + "\nBy `python -m benchmarks speed`.\n") == {}
