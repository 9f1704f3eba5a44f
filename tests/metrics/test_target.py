"""What people write for a metric and its budget."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import omma
from omma.metrics.target import Target, parse_target

NAMES = omma.metrics.NAMES


@given(name=st.sampled_from([n for n in NAMES if "_" in n]), k=st.none() | st.integers(1, 10**6))
def test_what_is_printed_is_read_back(name, k):
    target = Target(name, k)
    assert parse_target(str(target)) == target


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_itself(name):
    assert parse_target(name) == (name, None)


@pytest.mark.parametrize("base", ["precision", "recall", "f1", "jaccard"])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_scikit_learns_averages_are_understood(base, average):
    assert parse_target(f"{base}_{average}") == (f"{average}_{base}", None)
    assert parse_target(f"{base}_{average}@4") == (f"{average}_{base}", 4)
    assert parse_target(f"{base}_score_{average}") == (f"{average}_{base}", None)
    assert parse_target(f"{base}_score") == (base, None)


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        ("matthews_corrcoef", "multiclass_mcc"),
        ("cohen_kappa_score", "multiclass_kappa"),
        ("balanced_accuracy_score", "multiclass_balanced_accuracy"),
        ("accuracy_score", "multiclass_accuracy"),
        ("balanced_accuracy", "balanced_accuracy"),
        ("accuracy", "accuracy"),
        ("gmean_macro", "macro_gmean"),
        ("Macro-F1", "macro_f1"),
        (" macro f1 ", "macro_f1"),
        ("macro_f2", "macro_f2"),  # for the catalogue to make
        ("f2_macro", "macro_f2"),
        ("macro_f", "macro_f"),  # for the catalogue to say what it looks like
    ],
)
def test_other_spellings(given_name, expected):
    assert parse_target(given_name).name == expected


def test_weighted_averages_are_understood_where_they_exist():
    assert parse_target("f1_weighted") == ("weighted_f1", None)
    assert parse_target("weighted_f1@2") == ("weighted_f1", 2)
    assert parse_target("f2_weighted") == ("weighted_f2", None)
    for name in ("gmean_weighted", "weighted_gmean"):
        with pytest.raises(ValueError, match=f"no metric '{name}': averages are macro_ and micro_"):
            parse_target(name)


@pytest.mark.parametrize(
    "name",
    [
        *("roc_auc", "roc_auc_ovr", "average_precision", "log_loss", "neg_log_loss", "auc", "ndcg"),
        *("brier_score_loss", "neg_brier_score", "AUROC", "macro_roc_auc"),
        "average_precision_score",
    ],
)
def test_what_judges_probabilities_is_no_metric_of_decisions(name):
    with pytest.raises(ValueError, match=f"'{name}' is not a metric of decisions"):
        parse_target(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("multiclass_f1", "use macro_f1 with k=1, as in 'macro_f1@1'"),
        ("multiclass_precision", "use macro_precision with k=1"),
        ("f1_samples", "a mean over rows"),
        ("hamming_loss", "1 − micro_accuracy"),
        ("zero_one_loss", "1 − multiclass_accuracy"),
        ("top_k_accuracy", "'micro_recall@3'"),
        ("fbeta_score", r"omma.metrics.fbeta\(2.0\)"),
        ("precision@3", "use 'micro_precision@3' or 'macro_precision@3'"),
        ("macro_f1@", "a whole number of at least 1 must follow the @"),
        ("macro_f1@0", "a whole number of at least 1 must follow the @"),
        ("macro_f1@-2", "a whole number of at least 1 must follow the @"),
        ("macro_f1@1.5", "a whole number of at least 1 must follow the @"),
        ("macro_f1@3@4", "a whole number of at least 1 must follow the @"),
        ("macro_f1@²", "a whole number of at least 1 must follow the @"),
        ("macro_f1@" + "9" * 5000, "a whole number of at least 1 must follow the @"),
    ],
)
def test_what_cannot_be_meant_gets_a_sentence(name, message):
    with pytest.raises(ValueError, match=message):
        parse_target(name)


@given(st.text(max_size=30))
def test_no_text_breaks_it(text):
    with contextlib.suppress(ValueError):
        found = parse_target(text)
        assert found.k is None or found.k >= 1


def test_only_text_is_a_name():
    with pytest.raises(TypeError, match="a metric must be a name or a metric, got 3"):
        parse_target(3)


def test_a_target_is_printed_in_one_place():
    """``str(Target(name, k))``; "@{}" is a column of LaTeX."""
    room = Path(omma.__file__).parent
    spelled = {
        path for path in room.rglob("*.py") if re.search(r"@\{[^}]", path.read_text("utf-8"))
    }
    assert spelled == {room / "metrics" / "target.py"}
