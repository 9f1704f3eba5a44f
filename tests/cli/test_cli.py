"""The command: what it prints, what it writes, and how it says no."""

import importlib
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

import omma
from omma.cli import COMMANDS, main

SMALL = ["demo", "--rows", "300", "--labels", "6", "--k", "2"]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, [*map(str, arguments)])


def values_in(output):
    """The cells of the tables by policy and metric."""
    values, metrics = {}, []
    for line in output.splitlines():
        name, *cells = re.split(r"\s{2,}", line.strip())
        if name == "policy":
            metrics = cells
        elif metrics and len(cells) == len(metrics):
            values |= {(name, metric): cell for metric, cell in zip(metrics, cells, strict=True)}
    return values


def test_demo_prints_every_metric_and_writes_the_picture(invoke, tmp_path):
    done = invoke(*SMALL, "--output", tmp_path / "running.png")
    assert done.exit_code == 0, done.output
    policies, metrics = (set(names) for names in zip(*values_in(done.stdout), strict=True))
    assert policies == {"Usual rule", "Tuned", "Auto", "OMMA", "OMMA(η̂)"}
    assert metrics >= {"macro_f1", "micro_f1", "macro_f1@2", "macro_precision@2"}
    assert "or the top 2" in " ".join(done.stdout.split())
    assert "Seconds for the above: Usual rule 0." in done.stdout
    assert (tmp_path / "running.png").read_bytes().startswith(b"\x89PNG")
    assert "running.png" in done.stdout


def test_demo_shows_a_cross_where_a_policy_does_not_apply(invoke):
    table = values_in(invoke(*SMALL, "--no-plot").stdout)
    assert len(table) == 5 * 8
    crossed = {name for name, cell in table.items() if cell == "×"}
    # Thresholds are tuned for the three macro metrics without a budget.
    tuned = {metric for policy, metric in table if policy == "Tuned"}
    macro = {"macro_f1", "macro_balanced_accuracy", "macro_gmean"}
    assert crossed == {("Tuned", metric) for metric in tuned - macro}


def test_demo_says_on_standard_error_that_it_compiles(invoke):
    done = invoke(*SMALL, "--no-plot")
    assert done.stderr == "deciding 300 rows; compiling takes some seconds at first\n"


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


def test_the_demo_shows_what_replays_are_worth(invoke):
    table = values_in(invoke(*SMALL, "--seed", 1, "--no-plot").stdout)
    eta, y = omma.datasets.long_tail(300, 6, labels_per_row=2.5, seed=1)
    sample = omma.datasets.long_tail(1000, 6, labels_per_row=2.5, seed=2)
    for title, policy in {
        "Usual rule": omma.Threshold(0.5),
        "Tuned": omma.TunedThresholds("macro_f1").fit(*sample),
        "Auto": omma.Auto("macro_f1"),
        "OMMA(η̂)": omma.OMMA("macro_f1", feedback="estimates"),
    }.items():
        value = omma.replay(policy, eta, y, metric="macro_f1").value
        assert table[title, "macro_f1"] == f"{100 * value:.2f}"


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
