"""Every example of the gallery runs, and draws its picture."""

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.testing.compare import compare_images
from pictures import colliding, cut_off

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_has_a_title_and_a_picture(path):
    title, line, *text = ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()
    assert line == "=" * len(title)
    assert text[1], "the title is followed by an empty line and some sentences"
    assert (ROOT / "examples/images" / f"{path.stem}.png").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_titles_are_whole_phrases(path):
    """A title is read alone: "Labels come", of which a legend says when, seems to be cut off."""
    calls = [one for one in ast.walk(ast.parse(path.read_text("utf-8"))) if is_title(one)]
    for call in calls:
        assert len(ast.unparse(call.args[0]).split()) > 3, ast.unparse(call)


def is_title(node):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "set_title"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_draws(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved, save = [], Figure.savefig

    def watched(figure, *rest, **options):
        saved.append(figure)
        save(figure, *rest, **options)

    monkeypatch.setattr(Figure, "savefig", watched)
    runpy.run_path(str(path), run_name="__main__")
    for figure in saved:
        assert cut_off(figure) == []
        assert colliding(figure) == []
    assert saved
    # Other versions of matplotlib and FreeType draw letters a little differently.
    kept, drawn = (folder / f"{path.stem}.png" for folder in (ROOT / "examples/images", tmp_path))
    assert compare_images(str(kept), str(drawn), tol=8) is None
    pixels = imread(drawn)
    assert pixels.shape[0] > 300
    assert np.mean(pixels[..., :3].min(axis=2) < 0.9) > 0.005, "something is drawn"
