"""The command: what it prints, what it writes, and how it says no."""

import importlib
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import omma
from omma import demo as job
from omma.cli import COMMANDS, main

SMALL = ["demo", "--rows", "300", "--labels", "6", "--k", "2"]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, [*map(str, arguments)])


def values_in(output):
    """The cells of the table by the name of the metric."""
    lines = (line.split() for line in output.splitlines())
    return {cells[0]: cells[1:] for cells in lines if cells and cells[0].startswith(("ma", "mi"))}


def test_demo_prints_every_metric_and_writes_the_picture(invoke, tmp_path):
    done = invoke(*SMALL, "--output", tmp_path / "running.png")
    assert done.exit_code == 0, done.output
    table = values_in(done.stdout)
    assert set(table) >= {"macro_f1", "micro_f1", "macro_f1@2", "macro_precision@2"}
    for name in ("threshold", "0.5", "top-2", "tuned", "Auto", "OMMA", "OMMA(η̂)", "seconds"):
        assert name in done.stdout
    assert (tmp_path / "running.png").read_bytes().startswith(b"\x89PNG")
    assert "running.png" in done.stdout


def test_demo_shows_a_cross_where_a_policy_does_not_apply(invoke):
    table = values_in(invoke(*SMALL, "--no-plot").stdout)
    assert table["macro_f1"][1] == "×"
    assert table["macro_f1@2"][0] == "×"
    # Each metric has one usual rule; thresholds are tuned for the three macro ones without k.
    assert sum(cells.count("×") for cells in table.values()) == 2 * len(table) - 3


def test_demo_names_what_runs_on_standard_error(invoke):
    done = invoke(*SMALL, "--no-plot")
    steps = done.stderr.splitlines()
    assert len(steps) == job.STEPS
    assert "compiling" in steps[1]
    assert steps[-1].endswith("macro_gmean@2")


def test_no_plot_writes_nothing(invoke, tmp_path):
    done = invoke(*SMALL, "--no-plot")
    assert done.exit_code == 0
    assert not list(tmp_path.iterdir())
    assert "Saved" not in done.output


def test_the_picture_has_a_name_of_its_own_by_default(invoke, tmp_path):
    invoke(*SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["omma-demo.png"]


def test_one_row_of_one_label_is_enough(invoke):
    assert invoke("demo", "--rows", 1, "--labels", 1, "--k", 1).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["demo", "--rows", "0"], "--rows"),
        (["demo", "--rows", "many"], "'many'"),
        (["demo", "--labels", "-3"], "--labels"),
        (["demo", "--labels", "4", "--k", "5"], "5 is more than the 4 of --labels"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--output", "nowhere/a.png"], "'nowhere' is not a folder"),
        (["demo", "--output", "a.txt"], "must end in .png"),
        (["demo", "--row", "3"], "Did you mean '--rows'"),
        (["dmo"], "No such command 'dmo'; did you mean 'demo'?"),
        (["eval"], "did you mean 'evaluate'?"),
        (
            ["xyz"],
            "No such command 'xyz'; there are demo, evaluate, stream, serve, watch, journal, "
            "report, list, warmup.",
        ),
        (["run", "smoke"], "omma run moved to the package omma-study: pip install omma-study"),
        (["report", "records", "--paper"], "moved to the package omma-study: pip install"),
        (["--verbos"], "--verbos"),
    ],
)
def test_bad_values_get_one_line_and_exit_code_2(invoke, arguments, expected):
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert expected in line


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("multiclass_f1", "use macro_f1 with k=1, as in 'macro_f1@1'"),
        ("roc_auc", "not a metric of decisions"),
        ("macro_roc_auc", "not a metric of decisions"),
        ("log_loss", "not a metric of decisions"),
        ("mcc_weighted", "averages are macro_ and micro_"),
        ("macro_f", "did you mean 'macro_f1'"),
    ],
)
def test_metrics_of_other_names(invoke, name, expected):
    done = invoke("stream", "--metric", name)
    assert done.exit_code == 2
    (line,) = done.stderr.strip().splitlines()
    assert expected in line


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("f1_macro", "macro_f1"),
        ("precision_micro", "micro_precision"),
        ("f1_score", "f1"),
        ("matthews_corrcoef", "multiclass_mcc"),
        ("cohen_kappa_score", "multiclass_kappa"),
    ],
)
def test_metrics_by_the_names_of_others(name, meant):
    assert omma.metric(name).name == meant


@pytest.fixture
def without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_the_table_still_comes(invoke, tmp_path):
    done = invoke(*SMALL)
    assert done.exit_code == 0
    assert "macro_f1" in done.stdout
    assert 'pip install "omma-learn[plots]"' in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("without_matplotlib")
def test_a_picture_that_was_asked_for_and_cannot_be_drawn_is_an_error(invoke):
    done = invoke(*SMALL, "--output", "a.png")
    assert done.exit_code == 1
    (line,) = done.stderr.strip().splitlines()
    assert 'pip install "omma-learn[plots]"' in line


def test_version(invoke):
    done = invoke("--version")
    assert done.exit_code == 0
    assert omma.__version__ in done.stdout


def test_help_has_an_example(invoke):
    assert "omma demo" in invoke().stdout
    assert "Example:\n      omma demo --rows" in invoke("demo", "--help").stdout


def test_the_demo_returns_what_the_table_shows():
    found = job.run(300, 6, 2, seed=1)
    assert [one.title for one in found.comparisons][-1] == "macro_gmean@2"
    for comparison in found.comparisons:
        for name, trace in comparison.traces.items():
            assert name in found.policies
            assert trace.metric.name == comparison.metric
    assert found.seconds("OMMA") == sum(one.traces["OMMA"].seconds for one in found.comparisons)


def test_the_best_of_a_row_is_bold():
    found = job.run(300, 6, 2, seed=1)
    for comparison in found.comparisons:
        cells = job._cells(comparison, found.policies)
        bold = [float(cell.plain) for cell in cells if cell.style == "bold"]
        shown = [float(cell.plain) for cell in cells if cell.plain != "×"]
        assert set(bold) == {max(shown)}


@pytest.mark.parametrize(
    ("arguments", "inside"),
    [
        (["evaluate", "--help"], "λ"),
        (["list", "metrics"], "Σ"),
        (["list", "ηλ"], "ηλ"),
    ],
)
def test_output_is_utf8_where_the_system_would_take_another_code(arguments, inside):
    done = subprocess.run(
        [sys.executable, "-c", "from omma.cli import main; main()", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert inside in (done.stdout + done.stderr).decode("utf-8")


@pytest.mark.parametrize("name", ["study", "theory", "estimators"])
def test_what_moved_says_where(name):
    sentence = f"omma.{name} moved to the package omma-study: pip install omma-study"
    with pytest.raises(ImportError, match=sentence):
        importlib.import_module(f"omma.{name}")
    with pytest.raises(ImportError, match=sentence):
        getattr(omma, name)


def test_the_catalogue_of_datasets_says_where_it_moved():
    with pytest.raises(
        AttributeError, match=r"pip install omma-study, then omma_study\.datasets\.load"
    ):
        omma.datasets.load("yeast")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_neither_numba_nor_scipy(command):
    code = (
        "import sys; from omma.cli import main; main([*sys.argv[1:], '--help'], "
        "standalone_mode=False); print({'numba', 'numpy', 'scipy', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: ")
    assert done.stdout.endswith("\nset()\n")
