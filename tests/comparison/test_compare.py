"""Comparisons: one protocol for all policies, and tables that say what was done."""

import _thread
import csv
import io
import pickle
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import omma
from omma._pool import progress_bar
from omma.comparison import compare, protocol

ETA, Y = omma.datasets.long_tail(n=300, m=8, seed=3)
TRAIN = omma.datasets.long_tail(n=300, m=8, seed=4)
CLASS_ETA = ETA / ETA.sum(axis=1, keepdims=True)
CLASSES = np.array(
    [np.random.default_rng(row).choice(8, p=eta) for row, eta in enumerate(CLASS_ETA)]
)


@pytest.fixture(scope="module")
def found():
    return compare(
        ETA, Y, ["macro_f1", "macro_f1@3"], ["baseline", "ofo", "omma", "omma_eta"], seeds=range(3)
    )


def numbers(result):
    """All that must not depend on how the work was shared out."""
    return [
        (
            key,
            runs.prior,
            runs.seeds,
            runs.values.tolist(),
            runs.rows.tolist(),
            runs.running.tolist(),
        )
        for key, cell in result.cells.items()
        for runs in cell.by_prior.values()
    ]


# The protocol.


@dataclass(frozen=True)
class Spy(omma.OMMA):
    """OMMA that notes in which order its rows come."""

    seen = []  # noqa: RUF012

    def engine(self, state):
        engine = super().engine(state)
        replay = engine.replay

        def noted(owner, batch, order=None, **options):
            self.seen.append((self.prior, tuple(order)))
            return replay(owner, batch, order, **options)

        engine.replay = noted
        return engine


def test_every_policy_runs_on_the_same_sequences():
    Spy.seen.clear()
    spies = {name: lambda metric, k, prior: Spy(metric, k, prior=prior) for name in ("a", "b")}
    compare(ETA, Y, ["macro_f1", "macro_f1@3"], spies, seeds=(5, 9), priors=(0, 0.1), n_jobs=1)
    orders = {seed: tuple(np.random.default_rng(seed).permutation(300)) for seed in (5, 9)}
    runs = [(prior, orders[seed]) for prior in (0, 0.1) for seed in (5, 9)]
    assert sorted(Spy.seen) == sorted(runs * 2 * 2)  # two names, two metrics


def test_a_run_is_a_replay(found):
    cell = found.cell("omma", "macro_f1@3")
    for prior, runs in cell.by_prior.items():
        for place, seed in enumerate(runs.seeds):
            trace = omma.replay(omma.OMMA("macro_f1", k=3, prior=prior), ETA, Y, seed=seed)
            assert runs.values[place] == trace.value
            assert np.array_equal(runs.running[place], trace.history.values)
            assert np.array_equal(runs.rows, trace.history.rows)


def test_all_priors_are_kept_and_the_best_mean_is_chosen(found):
    cell = found.cell("omma", "macro_f1")
    assert tuple(cell.by_prior) == found.priors == (0, 1e-6, 1e-3, 0.1, 1)
    means = [runs.values.mean() for runs in cell.by_prior.values()]
    assert cell.prior == found.priors[int(np.argmax(means))]
    assert cell.mean == max(means)
    assert cell.std == cell.by_prior[cell.prior].values.std(ddof=1)
    mine = [row for row in found.rows if (row["policy"], row["metric"]) == ("omma", "macro_f1")]
    assert [row["mean"] for row in mine] == means
    assert [row["prior"] for row in mine if row["chosen"]] == [cell.prior]


def test_a_policy_without_prior_runs_once_a_seed(found):
    cell = found.cell("baseline", "macro_f1")
    assert list(cell.by_prior) == [None]
    assert cell.prior is None
    assert cell.fixed
    assert not found.cell("omma", "macro_f1").fixed
    assert cell.std == 0  # the order of rows does not matter to a fixed rule
    assert (cell.running_std[:-1] > 0).any()


def test_cells_hold_running_values_and_seconds(found):
    cell = found.cell("omma_eta", "macro_f1")
    assert cell.rows[-1] == 300
    assert len(cell.rows) == len(cell.running_mean) == len(cell.running_std) == 50
    assert cell.running_mean[-1] == pytest.approx(cell.mean)
    assert cell.running_std[-1] == pytest.approx(cell.std)
    assert cell.seconds > 0
    assert cell.seconds_std >= 0
    assert len(cell.values) == 3


def test_unsupported_metrics_are_cells_that_say_why(found):
    cell = found.cell("ofo", "macro_f1@3")
    assert not cell.supported
    assert cell.complete
    assert np.isnan(cell.mean)
    assert "without a budget" in cell.reason
    assert len(cell.rows) == len(cell.values) == 0
    more = compare(
        ETA, Y, ["micro_f1", "macro_f1", "macro_recall"], ["greedy", "ofo", "tuned"],
        train=TRAIN, seeds=[0], priors=[0.1],
    )  # fmt: skip
    assert {key for key, cell in more.cells.items() if not cell.supported} == {
        ("greedy", "micro_f1"), ("ofo", "macro_recall"), ("tuned", "micro_f1"),
    }  # fmt: skip


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_results_do_not_depend_on_the_number_of_jobs(found, n_jobs):
    policies = ["baseline", "ofo", "omma", "omma_eta"]
    again = compare(ETA, Y, ["macro_f1", "macro_f1@3"], policies, seeds=range(3), n_jobs=n_jobs)
    assert numbers(again) == numbers(found)


def test_any_form_of_the_data_gives_the_same(found):
    policies = ["baseline", "ofo", "omma", "omma_eta"]
    for eta, y in ((np.asfortranarray(ETA), Y.astype(float)), (ETA.tolist(), sparse.csr_array(Y))):
        again = compare(eta, y, ["macro_f1", "macro_f1@3"], policies, seeds=range(3))
        assert numbers(again) == numbers(found)


def test_none_as_a_seed_keeps_the_order():
    result = compare(ETA, Y, "macro_f1", "omma", seeds=[None], priors=1e-6)
    assert result.cell("omma", "macro_f1").mean == omma.replay(omma.OMMA("macro_f1"), ETA, Y).value
    assert "in the order given" in result.to_markdown()
    assert "±" not in result.to_markdown()


# Who takes part.

PLUG_IN, RANDOM = {"expectation": "plug_in"}, {"start": "random"}


def test_names_make_the_policies_they_say(monkeypatch):
    made = {}

    def replay(policy, *data, metric, **options):
        made.setdefault((metric.name, policy.budget), []).append(policy)
        return omma.replay(policy, *data, metric=metric, **options)

    monkeypatch.setattr(protocol, "replay", replay)
    pairs = ("omma", "greedy", "greedy_plug_in", "ofo", "online_fw", "online_fw_random")
    both_kinds = [name for pair in pairs for name in (pair, f"{pair}_eta")]
    names = ["baseline", "top_k_or_half", "auto", *both_kinds, "tuned"]
    metrics = ["macro_f1", "macro_f1@2"]
    options = {"seeds": [0], "priors": [0.1], "n_jobs": 1, "train": TRAIN}
    compare(ETA, Y, metrics, names, **options)
    free, both = {"k": None, "prior": 0.1}, ("labels", "estimates")
    assert made["macro_f1", None][:2] == [omma.Threshold(0.5)] * 2
    assert made["macro_f1", None][2] == omma.Auto("macro_f1")
    assert made["macro_f1", None][3:-1] == [
        *(omma.OMMA("macro_f1", **free, feedback=feedback) for feedback in both),
        *(omma.Greedy("macro_f1", **free, feedback=feedback) for feedback in both),
        *(omma.Greedy("macro_f1", **free, **PLUG_IN, feedback=feedback) for feedback in both),
        *(omma.OFO("macro", feedback, 0.1) for feedback in both),
        *(omma.OnlineFrankWolfe("macro_f1", **free, feedback=feedback) for feedback in both),
        *(
            omma.OnlineFrankWolfe("macro_f1", **free, **RANDOM, feedback=feedback)
            for feedback in both
        ),
    ]
    assert made["macro_f1", None][-1] == omma.TunedThresholds("macro_f1").fit(*TRAIN)
    assert made["macro_f1", 2] == [omma.TopK(2)] * 2 + [omma.Auto("macro_f1", 2)] + [
        kind("macro_f1", 2, feedback, 0.1, **more)
        for kind, more in (
            (omma.OMMA, {}),
            (omma.Greedy, {}),
            (omma.Greedy, PLUG_IN),
            (omma.OnlineFrankWolfe, {}),
            (omma.OnlineFrankWolfe, RANDOM),
        )
        for feedback in both
    ]


def test_offline_policies_learn_from_train():
    names = ["offline_fw", "offline_fw_top", "offline_fw_random", "tuned"]
    result = compare(ETA, Y, ["macro_gmean"], names, train=TRAIN, seeds=[1])
    mixture = omma.FrankWolfe("macro_gmean").fit(*TRAIN)
    thresholds = omma.TunedThresholds("macro_gmean").fit(*TRAIN)
    others = {
        f"offline_fw_{start}": omma.FrankWolfe("macro_gmean", start=start).fit(*TRAIN)
        for start in ("top", "random")
    }
    for name, policy in {"offline_fw": mixture, "tuned": thresholds, **others}.items():
        wanted = omma.replay(policy, ETA, Y, metric="macro_gmean", seed=1).value
        assert result.cell(name, "macro_gmean").mean == wanted


def test_policies_given_as_objects_run_as_they_are():
    own = omma.OMMA("macro_gmean", prior=0.3)
    result = compare(
        ETA, Y, ["macro_f1", "macro_f1@3"], [own, ("half", omma.Threshold(0.5)), omma.Greedy],
        seeds=[2],
    )  # fmt: skip
    first, *others = result.policies
    assert first.startswith("OMMA(metric=<metric macro_gmean>")
    assert others == ["half", "Greedy"]
    cell = result.cell(first, "macro_f1")
    assert cell.prior == 0.3
    assert cell.mean == omma.replay(own, ETA, Y, metric="macro_f1", seed=2).value
    assert len(result.cell("Greedy", "macro_f1").by_prior) == 5
    assert result.cell("half", "macro_f1@3").reason == (
        "it predicts any number of labels a row, and macro_f1@3 asks for 3"
    )


def test_functions_make_a_policy_for_each_metric_and_prior():
    def scaled(metric, k, prior):
        return omma.OMMA(metric, k, prior=10 * prior)

    def most_probable(metric, k, prior):
        return omma.TopK(k or 2)

    result = compare(ETA, Y, "macro_f1@3", [scaled, most_probable], priors=(0, 0.1), seeds=[0])
    assert list(result.cell("scaled", "macro_f1@3").by_prior) == [0, 0.1]
    assert list(result.cell("most_probable", "macro_f1@3").by_prior) == [None]
    wanted = omma.replay(omma.OMMA("macro_f1", k=3, prior=1.0), ETA, Y, seed=0).value
    assert result.cell("scaled", "macro_f1@3").by_prior[0.1].mean == wanted


def test_metrics_may_be_names_pairs_and_objects():
    mixed = 0.5 * omma.metric("macro_f1") + 0.5 * omma.metric("micro_f1")
    metrics = ["macro_f1@3", ("macro_recall", 2), (omma.metric("macro_f1"), None), mixed]
    result = compare(ETA, Y, metrics, "omma", seeds=[0], priors=[0])
    assert result.metrics == ("macro_f1@3", "macro_recall@2", "macro_f1", mixed.name)
    assert [result.cell("omma", one).k for one in result.metrics] == [3, 2, None, None]


def test_class_ids_take_one_class_a_row():
    metrics = ["macro_f1", "macro_f1@3", "multiclass_gmean"]
    result = compare(CLASS_ETA, CLASSES, metrics, ["baseline", "ofo", "omma"], seeds=[0])
    assert [result.cell("omma", one).k for one in metrics] == [1, 3, 1]
    top = omma.replay(omma.TopK(1), CLASS_ETA, CLASSES, metric="macro_f1").value
    assert result.cell("baseline", "macro_f1").mean == top
    assert not result.cell("ofo", "macro_f1").supported


def test_binary_problems_and_costs():
    result = compare(ETA[:, 0], Y[:, 0], "f1", ["baseline", "ofo", "omma"], seeds=[0])
    assert all(cell.supported for cell in result.cells.values())
    worth = omma.metrics.costs(np.eye(8))
    result = compare(CLASS_ETA, CLASSES, worth, ["baseline", "greedy", "omma"], seeds=[0, 1])
    assert result.cell("baseline", "costs").mean == result.cell("omma", "costs").mean
    assert result.cell("omma", "costs").running_mean[-1] == result.cell("omma", "costs").mean
    assert not result.cell("greedy", "costs").supported


# Stopping early.


def stopped_after(count, monkeypatch):
    """A comparison in which Ctrl-C comes during a run, when others have finished."""
    calls = []
    started = threading.Lock()

    def replay(*arguments, **options):
        with started:
            calls.append(options["seed"])
            if len(calls) == count + 1:
                _thread.interrupt_main()  # what Ctrl-C does
                threading.Event().wait(1.0)
        return omma.replay(*arguments, **options)

    monkeypatch.setattr(protocol, "replay", replay)
    return compare(
        ETA, Y, ["macro_f1", "macro_f1@3"], ["baseline", "omma", "ofo"],
        seeds=range(50), priors=(0, 0.1), n_jobs=1,
    )  # fmt: skip


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_what_has_finished(monkeypatch):
    result = stopped_after(10, monkeypatch)
    assert not result.complete
    done = [run for run in result.runs if run["value"] is not None]
    assert 10 <= len(done) < 300
    cell = result.cell("omma", "macro_f1")
    seeds = cell.seeds
    assert seeds == tuple(range(len(seeds)))
    for seed, value in zip(seeds, cell.values, strict=True):
        policy = omma.OMMA("macro_f1", prior=cell.prior)
        assert value == omma.replay(policy, ETA, Y, seed=seed).value
    assert "stopped early" in repr(result)
    assert "†" in result.to_markdown()
    assert "Stopped before all had run" in result.to_markdown()
    assert r"$^\dagger$" in result.to_latex()
    assert result.plot().axes


def test_a_cell_that_never_ran_is_marked(monkeypatch):
    def replay(policy, *data, **options):
        if isinstance(policy, omma.OMMA):
            raise KeyboardInterrupt
        return omma.replay(policy, *data, **options)

    monkeypatch.setattr(protocol, "replay", replay)
    result = compare(ETA, Y, "macro_f1", ["baseline", "omma"], seeds=[0], n_jobs=1)
    assert not result.complete
    assert result.cell("omma", "macro_f1").supported
    assert "| OMMA            |         – |" in result.to_markdown()
    assert [run["value"] for run in result.runs][1:] == [None]


def test_ctrl_c_before_anything_has_finished_is_ctrl_c(monkeypatch):
    def replay(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(protocol, "replay", replay)
    with pytest.raises(KeyboardInterrupt):
        compare(ETA, Y, "macro_f1", "omma", n_jobs=2)


def test_an_error_in_a_run_is_raised():
    wrong = ETA.copy()
    wrong[7, 2] = np.nan
    with pytest.raises(ValueError, match="must hold probabilities from 0 to 1, got nan in row 7"):
        compare(wrong, Y, "macro_f1", "omma")


# Tables and figures.


def test_tables_say_how_the_prior_was_chosen(found):
    for text in (found.to_markdown(), found.to_terminal().caption):
        assert "λ is the best of 0, 1e-6, 0.001, 0.1, 1 for each entry, chosen with" in text
        assert "Mean ± standard deviation over 3 shuffled sequences, in %." in text
        assert "× not supported." in text
    assert "hindsight" in found.to_latex()
    assert "hindsight" not in found.to_markdown(priors=True)
    assert found.to_markdown(priors=True).count("| OMMA, λ = ") == 5
    assert "±" not in found.to_markdown(std=False)


def test_csv_parses_back(found):
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == len(found.runs)
    for row, run in zip(rows, found.runs, strict=True):
        assert (row["policy"], row["metric"]) == (run["policy"], run["metric"])
        for name in ("prior", "value", "seconds"):
            assert (float(row[name]) if row[name] else None) == run[name]
        assert row["chosen"] == str(run["chosen"])
    assert sum(row["value"] == "" for row in rows) == 1  # OFO with a budget
    assert sum(row["policy"] == "omma" for row in rows) == 2 * 5 * 3


def test_texts(found):
    assert repr(found) == "<comparison of 4 policies by 2 metrics over 3 shuffled sequences>"
    assert repr(found.cell("ofo", "macro_f1@3")).startswith("<ofo on macro_f1@3: OFO is for")
    assert repr(found.cell("omma", "macro_f1")).endswith(
        f"%, λ = {found.cell('omma', 'macro_f1').prior:g}>"
    )
    assert len(str(found).split("\n")) == 5
    assert found._repr_markdown_() == found.to_markdown()


def test_a_comparison_can_be_pickled(found):
    again = pickle.loads(pickle.dumps(found))
    assert numbers(again) == numbers(found)
    assert again.to_csv() == found.to_csv()


def test_a_dataframe_or_how_to_get_one(found, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_dataframe .* needs pandas, .*: pip install pandas"):
        found.to_dataframe()
    monkeypatch.undo()
    pandas = pytest.importorskip("pandas")
    assert isinstance(found.to_dataframe(), pandas.DataFrame)
    assert len(found.to_dataframe()) == len(found.runs)


@pytest.mark.parametrize("plot", ["plot", "plot_priors"])
def test_figures_name_every_curve_without_overlap(found, plot):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    for metric in (None, *found.metrics):
        figure = getattr(found, plot)(metric)
        FigureCanvasAgg(figure).draw()
        assert len(figure.axes) == (2 if metric is None else 1)
        inside = figure.bbox
        for ax in figure.axes:
            boxes = [Text.get_window_extent(text) for text in ax.texts]  # without leaders
            assert len(boxes) == (4 if "@" not in ax.get_ylabel() else 3)
            for place, box in enumerate(boxes):
                assert inside.x0 <= box.x0 < box.x1 <= inside.x1
                assert not any(box.overlaps(other) for other in boxes[:place])
    assert [tick.get_text() for tick in found.plot_priors().axes[0].get_xticklabels()] == [
        "0", "1e-6", "0.001", "0.1", "1",
    ]  # fmt: skip


def test_a_policy_has_one_colour_in_all_figures(found):
    def colors(figure):
        return {text.get_text().split()[-1]: text.get_color() for text in figure.axes[0].texts}

    with_ofo, without = colors(found.plot("macro_f1")), colors(found.plot_priors("macro_f1@3"))
    assert with_ofo["OMMA"] == without["OMMA"] == with_ofo["OMMA(η̂)"]
    assert with_ofo["OFO"] != with_ofo["OMMA"]


def test_equal_titles_give_way_to_names():
    result = compare(ETA, Y, "macro_f1", ["baseline", "top_k_or_half"], seeds=[0])
    assert result.titles == {"baseline": "baseline", "top_k_or_half": "top_k_or_half"}


def test_progress_goes_to_standard_error(capsys):
    compare(ETA, Y, "macro_f1", "omma", seeds=[0], progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "5/5" in err


# Bad input.


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"policies": "oma"}, ValueError, "policies of compare .* got 'oma'; did you mean 'omma'"),
        ({"policies": [3]}, TypeError, "policies of compare must be names, policies, .* got 3"),
        ({"policies": 3}, TypeError, "policies of compare must be a list, got 3"),
        ({"policies": []}, ValueError, "policies of compare must hold at least one, got none"),
        ({"policies": ["omma", "omma"]}, ValueError, "must be distinct, got 'omma' twice: name"),
        ({"policies": [omma.TopK]}, TypeError, "policies of compare must be names"),
        (
            {"policies": {"own": lambda metric, k, prior: 1}},
            TypeError,
            "the function 'own' in policies of compare must return a policy, got 1",
        ),
        (
            {"policies": "offline_fw"},
            ValueError,
            r"train of compare must be a pair \(eta, y\) for 'offline_fw', .*, got None",
        ),
        ({"policies": "tuned"}, ValueError, "train of compare must be a pair .* for 'tuned'"),
        ({"train": 3}, TypeError, r"train of compare must be a pair \(eta, y\), got 3"),
        (
            {"train": (ETA[:, :3], Y[:, :3])},
            ValueError,
            "train of compare must have 8 labels, as eta, got 3",
        ),
        ({"metrics": "macro_f"}, ValueError, "unknown metric 'macro_f'; did you mean 'macro_f1'"),
        (
            {"metrics": "macro_f1@x"},
            ValueError,
            "a whole number .* must follow the @ .* got 'macro_f1@x'",
        ),
        ({"metrics": "macro_f1@0"}, ValueError, "a whole number .* must follow the @"),
        ({"metrics": "macro_f1@9"}, ValueError, "at most the number of labels, which is 8, got 9"),
        ({"metrics": [1]}, TypeError, "metrics of compare must be names, metrics or pairs"),
        ({"metrics": "f1"}, ValueError, "f1 is a metric of one label, got 8 columns"),
        ({"metrics": ["f1", "f1"]}, ValueError, "metrics of compare must be distinct, got 'f1'"),
        ({"seeds": 5}, TypeError, r"seeds of compare must be .* such as range\(5\), got 5"),
        (
            {"seeds": [-1]},
            ValueError,
            "seeds of compare must be a whole number of at least 0, or None, got -1",
        ),
        ({"seeds": [True]}, ValueError, "seeds of compare must be a whole number"),
        ({"seeds": [1, 1]}, ValueError, "seeds of compare must be distinct, got 1 twice"),
        ({"seeds": []}, ValueError, "seeds of compare must hold at least one"),
        ({"priors": [-1]}, ValueError, "priors of compare must be a finite number of at least 0"),
        ({"priors": []}, ValueError, "priors of compare must hold at least one"),
        ({"n_jobs": 0}, ValueError, "n_jobs of compare must be a whole number of at least 1"),
        ({"y": None}, ValueError, "y of compare must be given"),
        ({"y": Y[:5]}, ValueError, r"y of compare must have the shape \(300, 8\)"),
        ({"y": 2 * Y}, ValueError, "y of compare must hold only 0 and 1, got 2"),
    ],
)
def test_bad_input_gets_a_sentence(change, error, sentence):
    given = {"eta": ETA, "y": Y, "metrics": "macro_f1", "policies": "omma", **change}
    with pytest.raises(error, match=sentence):
        compare(**given)


def test_unknown_cells_get_a_sentence(found):
    with pytest.raises(ValueError, match=r"policy of Comparison .* got 'oma'; did you mean 'omma'"):
        found.cell("oma", "macro_f1")
    with pytest.raises(ValueError, match=r"metric of Comparison .* got 'macro_f1@2'"):
        found.plot("macro_f1@2")


def test_the_bar_says_that_it_compiles_until_a_run_is_done(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with progress_bar(2, "runs"):
        pass
    assert "compiling" in capsys.readouterr().err
    with progress_bar(2, "runs") as advance:
        advance(1)
    said = capsys.readouterr().err
    assert said.rfind("runs") > said.rfind("compiling")


def test_a_plot_says_why_nothing_ran():
    results = compare(ETA, Y, ["macro_mcc"], ["ofo"], seeds=(None,))
    with pytest.raises(ValueError, match=r"no policy ran; ofo by macro_mcc: OFO is for f1"):
        results.plot()
