"""A small set, run again here, shows the digits that the records of the repository show."""

from pathlib import Path

import pytest

import omma_study
from omma_study.records import key_of, read
from omma_study.sections import policy_of

STUDY = Path(__file__).resolve().parents[1]
DATASET = "like_news20"  # made-up, so that it needs no data
# Frank-Wolfe may end elsewhere when the last bit of an estimate differs: docs/study.md says where.
POLICIES = ("baseline", "omma", "omma_eta")


def test_a_small_set_has_the_same_digits_on_every_machine(tmp_path):
    suite = omma_study.suite("paper_synthetic_classes")
    again = suite.limited(datasets=[DATASET], policies=POLICIES, seeds=1, priors=[1e-6])
    omma_study.run(again, tmp_path)
    packed = read(STUDY / "records" / f"paper_synthetic_classes-{DATASET}.jsonl.xz")
    expected = {key_of(record): record["result"]["value"] for record in packed}
    fresh = read(tmp_path)
    assert {policy_of(record) for record in fresh} == set(POLICIES)
    assert len(fresh) == 3 * 7
    for record in fresh:
        # Pages print hundredths of a percent.
        value = expected[key_of(record)]
        assert record["result"]["value"] == pytest.approx(value, abs=5e-6), record["spec"]
