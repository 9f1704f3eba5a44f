"""Each statement of the theory, checked by a short run of its suite."""

import numpy as np
import pytest
from click.testing import CliRunner

import omma
from omma_study.cli import main
from omma_study.records import read
from omma_study.runs import perform
from omma_study.theory import figures, run, suites, tables
from omma_study.theory.cases import CASES, policy
from omma_study.theory.simulations import bounds, estimation, order, regret, rules


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


def records_of(suite, folder, selects=lambda spec: True):
    """Quick runs of a suite, those that a function of the specification selects."""
    done = perform([job for job in suite.jobs(True) if selects(job.spec)], folder)
    assert not done.failed
    return [
        record
        for record in read(folder)
        if record["suite"] == suite.name and selects(record["spec"])
    ]


def test_regret_shrinks_for_f1_and_not_for_precision_at_1(folder):
    chosen = ("f1", "macro-precision-at-1")
    records = records_of(
        regret.REGRET,
        folder,
        lambda spec: spec["dataset"] in chosen and spec["policy"] in ("OMMA", "OFO"),
    )
    by_name = {(r["spec"]["dataset"], r["label"]): r["result"] for r in records}
    for who in ("OMMA", "OFO"):
        result = by_name["f1", who]
        assert result["regret"][-1] < 0.2 * result["regret"][0]
        assert abs(result["gap"]) < 1e-8
    stuck = by_name["macro-precision-at-1", "OMMA"]
    assert abs(stuck["regret"][-1]) > 0.01  # a few lucky rows decide for good


def test_regret_of_a_ratio_shrinks_nearly_as_one_by_n(folder):
    (record,) = records_of(
        regret.RATIOS,
        folder,
        lambda spec: (spec["dataset"], spec["policy"]) == ("micro-f1", "OMMA"),
    )
    result = record["result"]
    assert result["rows"][-1] == 10_000
    assert abs(result["gap"]) < 1e-8
    assert result["regret"][-1] < 0.05 * result["regret"][0]
    assert regret.RATIOS.tables([record])[0].frame.iloc[0, -1].count(",") == 1
    assert regret.RATIOS.runs[0].spec["rows"] == 10_000_000


def test_the_last_rule_is_worth_more_on_the_population_than_one_drawn_from_all(folder):
    (record,) = records_of(
        rules.POPULATION, folder, lambda spec: (spec["dataset"], spec["policy"]) == ("f1", "OMMA")
    )
    ends = {way: record["result"][way]["shortfall"][-1] for way in rules.WAYS}
    assert 0 <= ends[rules.LAST] < ends[rules.DRAWN] / 2
    table = rules.POPULATION.tables([record])[0]
    assert table.frame["classifier"].tolist() == list(rules.WAYS)
    assert "population" in rules.POPULATION.figures([record])


def test_rules_are_those_that_omma_had():
    problem = CASES["f1"].problem
    chosen = policy("OMMA", problem.metric)
    stream = problem.distribution.draw(300, np.random.default_rng(0))
    times = rules.moments(300)
    assert {1, 100, 215, 300} >= set(times) & {1, 100, 215, 300} >= {1, 100, 215}
    seen = rules.rules_of(problem, chosen, stream, times)
    for n, rule in zip(times[::9], seen[::9], strict=True):
        trace = omma.replay(chosen, stream.eta[:n], stream.y[:n], checkpoints=0)
        np.testing.assert_allclose(rule.thresholds, trace.rule.thresholds, rtol=1e-9)


def test_bounds_are_never_crossed(folder):
    records = records_of(bounds.BOUNDS, folder)
    assert {r["spec"]["dataset"] for r in records} == set(bounds.UTILITIES)
    for record in records:
        result = record["result"]
        shortfall, error, bound = (
            np.array(result[part]) for part in ("shortfall", "error", "bound")
        )
        assert (shortfall - 3 * error <= bound + 1e-9).all(), record["spec"]
    curved = [r for r in records if r["result"]["smoothness"] > 0]
    assert all(r["result"]["shortfall"][-1] > 0 for r in curved)  # they are not trivially below


def test_regret_grows_with_the_error_of_estimates(folder):
    records = records_of(
        estimation.ESTIMATION,
        folder,
        lambda spec: spec["dataset"] == "binary" and spec["distortion"] in ("noise", "bias"),
    )
    for record in records:
        result = record["result"]
        assert (np.diff(result["distance"]) > 0).all()
        ends = np.array(result["regret"])[:, -1]
        assert ends[-1] > 5 * abs(ends[0])
        if record["label"] == "OMMA":
            assert (ends < np.array(result["bound"])[:, -1]).all()
    biased = {r["label"]: r for r in records if r["spec"]["distortion"] == "bias"}
    labels = biased.pop("OMMA")
    (trusting,) = biased.values()
    # Counts that are biased as the probabilities are give a rule that fits those.
    assert trusting["result"]["regret"][-1][-1] < 0.8 * labels["result"]["regret"][-1][-1]


def test_a_crossing_is_found_between_strengths():
    def record(*regrets):
        return {"result": {"regret": [[regret] for regret in regrets], "strength": [0.0, 1.0, 2.0]}}

    flat = record(1.0, 1.0, 1.0)
    assert estimation.crossing(record(0.0, 0.5, 1.5), flat, 0) == pytest.approx(1.5)
    assert estimation.crossing(record(2.0, 2.0, 2.0), flat, 0) == 0.0
    assert estimation.crossing(record(0.0, 2.0, 0.5), flat, 0) is None


def test_smoothing_helps_where_there_is_a_kink(folder):
    by_way = {r["spec"]["way"]: r["result"] for r in records_of(bounds.SMOOTHING, folder)}
    kinked = by_way.pop("with its kink")
    for result in by_way.values():
        assert (np.array(result["shortfall"]) < result["bound"]).all()
        low, high = result["rate"][1:]
        assert low - 0.15 < -0.5 < high + 0.15
        assert result["shortfall"][-1] < 0.2 * kinked["shortfall"][-1]


def test_the_adversary(folder):
    by_player = {r["label"]: r["result"] for r in records_of(order.ADVERSARY, folder)}
    for result in by_player.values():
        for worse, error, least in zip(
            np.max(result["regret"], axis=1),
            np.max(result["error"], axis=1),
            result["lower_bound"],
            strict=True,
        ):
            assert worse >= least - 3 * error
    at_end = {who: max(result["regret"][-1]) for who, result in by_player.items()}
    assert at_end["OMMA"] == pytest.approx(1 / 9, abs=0.006)
    assert at_end["hedge 0.833"] == pytest.approx(1 / 36, abs=0.006)
    assert at_end["hedge 0.833"] == min(at_end.values())
    for who, result in by_player.items():
        limit = order.worst_regret(result["share"][-1])
        assert at_end[who] == pytest.approx(limit, abs=0.008)


def test_worst_regret_of_a_share_is_what_the_best_second_half_leaves():
    later = np.linspace(0, 1, 2001)
    for share in (0.2, 0.5, 0.75, 5 / 6, 1.0):
        # Expected min{tp, tn} of both sequences, by their definition.
        first = np.minimum((share + later) / 3, (2 - share - later) / 6).max()
        second = np.minimum((2 * share + later) / 6, (3 - share - 2 * later) / 6).max()
        worst = max(2 / 9 - first, 1 / 3 - second)
        assert order.worst_regret(share) == pytest.approx(worst, abs=1e-3)
    shares = np.linspace(0, 1, 1201)
    assert shares[np.argmin(order.worst_regret(shares))] == pytest.approx(order.SAFEST)


def test_after_a_shift_old_counts_are_in_the_way(folder):
    records = records_of(order.SHIFT, folder)
    rarer = {r["label"]: r["result"] for r in records if r["spec"]["shift"] == "rarer"}
    before, after = rarer["OMMA"]["halves"]
    assert before == pytest.approx(rarer["OMMA, begun anew"]["halves"][0])
    assert after < rarer["OMMA, begun anew"]["halves"][1] - 0.02
    assert rarer["best for all rows"]["all"] > rarer["best for each half"]["all"]


def test_greedy_and_omma_agree_more_and_more(folder):
    records = records_of(rules.AGREEMENT, folder, lambda spec: spec["dataset"] in ("f1", "binary"))
    for record in records:
        result = record["result"]
        assert result["same"][-1] < 0.1 * result["same"][0]
        assert result["own"][-1] < result["own"][0]
        low, high = result["rate"][1:]
        assert low - 0.1 < -1 < high + 0.1


def test_greedys_rule_is_that_of_the_library():
    problem = CASES["macro-f1"].problem
    stream = problem.distribution.draw(400, np.random.default_rng(0))
    trace = omma.replay(omma.Greedy(problem.metric), stream.eta, stream.y)
    rule = rules.greedy_rule(problem.metric, trace.counts, None)
    np.testing.assert_allclose(rule.thresholds, trace.rule.thresholds, rtol=1e-5)


def test_calibration_takes_the_floor_away(folder):
    records = records_of(
        estimation.CALIBRATION,
        folder,
        lambda spec: spec["dataset"] == "f1" and spec["distortion"] == "log-odds × 2",
    )
    by_name = {record["label"]: record["result"]["regret"][-1] for record in records}
    assert by_name["Auto"] < 0.5 * by_name["OMMA"]
    assert by_name["Auto"] < 0.5 * by_name["OMMA(η̂)"]


def test_all_that_was_run_is_shown(folder):
    """Whichever of the tests above have run here."""
    there = {record["suite"] for record in read(folder)}
    for suite in suites():
        if suite.name not in there:
            perform(list(suite.jobs(True))[-1:], folder)
    records = read(folder)
    shown = tables(records)
    assert len(shown) >= len(suites())
    pictures = figures(records)
    assert {"regret", "bounds", "smoothing", "adversary", "shift", "agreement"} <= set(pictures)
    assert tables([]) == []


def test_command_line(tmp_path):
    runner = CliRunner()
    first = runner.invoke(main, ["run", "theory-shift", "--quick", "--out", str(tmp_path)])
    assert first.exit_code == 0, first.output
    assert "8 done" in first.output
    told = runner.invoke(main, ["report", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "begun anew" in told.output
    drawn = runner.invoke(
        main, ["report", str(tmp_path), "--format", "png", "--output", str(tmp_path / "png")]
    )
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "png" / "theory-shift.png").exists()
    for form, sign in (
        ("markdown", "| decided by |"),
        ("latex", "begun anew &"),
        ("csv", "the label becomes,decided by,"),
        ("html", '<img alt="" src="data:image/png;base64,'),
    ):
        written = runner.invoke(main, ["report", str(tmp_path), "--format", form])
        assert written.exit_code == 0, written.output
        assert sign in written.output
    wrong = runner.invoke(main, ["run", "theory-regert", "--out", str(tmp_path)])
    assert "did you mean 'theory-regret'" in wrong.output
    with pytest.raises(ValueError, match="a suite of the theory must be one of"):
        run("nothing", tmp_path)
