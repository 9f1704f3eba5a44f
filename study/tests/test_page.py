"""The page: whole, closed to the network, and safe against the names it shows."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import omma
from omma_study.page import FEW, model, page
from omma_study.records import make
from omma_study.sections import grouped, section_of

NAMES = ["a</script><b>", "b & c", "<!--links-->"]
VOID = {"meta", "link", "br"}


def record(policy="omma", metric="macro_f1", k=None, prior=1e-6, seed=0, m=3, names=None, **tp):
    counts = {
        "tp": np.full(m, tp.get("tp", 2.0)),
        "predicted": np.full(m, 4.0),
        "positive": np.arange(2.0, 2.0 + m),
        "n": 10.0 + m,
    }
    counted = omma.Counts(counts["tp"], counts["predicted"], counts["positive"], counts["n"])
    value = omma.metric(metric).value(counted)
    spec = {
        "dataset": "made", "task": "multilabel", "protocol": "fixed", "policy": policy,
        "feedback": "labels", "metric": metric, "k": k, "prior": prior, "seed": seed,
        "estimator": {"name": "known"},
    }  # fmt: skip
    result = {
        "value": value, "rows": 13, "counts": counts, "names": names,
        "history": {"rows": [5, 13], "values": [0.25, value]},
    }  # fmt: skip
    seconds = {"compile": 0.0, "run": 0.01, "evaluate": 0.0}
    return make("mine", spec, policy.upper(), result=result, seconds=seconds)


def grid(**options):
    return [
        record(policy, metric, prior=prior, seed=seed, tp=1.0 + (policy == "omma"), **options)
        for policy, prior in (("baseline", None), ("omma", 1e-6), ("omma", 0.1))
        for metric in ("macro_f1", "macro_gmean")
        for seed in (0, 1)
    ]


class Tree(HTMLParser):
    """Every element is closed by its own end, and what it refers to is noted."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.links, self.cells = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "b" and "td" in self.open:
            self.cells.append(data)


def models_in(text):
    found = re.search(r'<script id="models" type="application/json">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_a_page_is_whole_and_asks_for_nothing():
    text = page(grid(names=NAMES))
    tree = Tree(text)
    assert tree.links == ["data:,"]
    assert "@import" not in text
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert tree.found.count("section") == 1
    assert tree.found.count("script") == 2


def test_names_cannot_break_out():
    text = page(grid(names=NAMES), title="<i>mine</i>")
    assert "<i>mine" not in text
    assert "a</script>" not in text
    assert models_in(text)[0]["labels"]["names"] == NAMES


def test_the_table_has_the_means():
    records = grid()
    means = [
        f"{100 * np.mean([one['result']['value'] for one in records if _is(one, *key)]):.2f}"
        for key in (("baseline", "macro_f1"), ("baseline", "macro_gmean"),
                    ("omma", "macro_f1"), ("omma", "macro_gmean"))
    ]  # fmt: skip
    assert Tree(page(records)).cells == means


def _is(one, policy, metric):
    return one["spec"]["policy"] == policy and one["spec"]["metric"] == metric


def test_labels_average_to_the_macro_metric():
    records = grid()
    (shown,) = models_in(page(records))
    for one in records:
        values = shown["labels"]["values"][one["spec"]["metric"]][one["spec"]["policy"]]
        assert np.mean(values) == pytest.approx(100 * one["result"]["value"], abs=0.01)
    assert shown["labels"]["measured"] == {"macro_f1": "f1", "macro_gmean": "gmean"}
    np.testing.assert_allclose(shown["labels"]["rates"], np.array([2, 3, 4]) / 13, rtol=5e-3)


def test_curves_and_priors_are_those_of_the_records():
    (shown,) = models_in(page(grid()))
    assert shown["running"]["macro_f1"]["omma"]["rows"] == [5, 13]
    assert shown["running"]["macro_f1"]["omma"]["mean"][0] == 25.0
    assert [one["prior"] for one in shown["priors"]["macro_f1"]["omma"]] == [1e-6, 0.1]
    assert [one["prior"] for one in shown["priors"]["macro_f1"]["baseline"]] == [None]
    assert shown["policies"]["baseline"]["fixed"]
    assert not shown["policies"]["omma"]["fixed"]


def test_of_many_labels_only_some_policies_are_shown():
    records = [*grid(m=FEW + 1), record("ofo", m=FEW + 1)]
    (group,) = grouped(records)
    shown = model(section_of(group), group)
    assert set(shown["labels"]["values"]["macro_f1"]) == {"baseline", "omma"}
    assert "ofo" in shown["running"]["macro_f1"]


def test_failures_and_other_kinds_are_left_out():
    failed = make("mine", record(seed=7)["spec"], "OMMA", error=ValueError("no"))
    other = make("rate", {"item": 1}, "x", kind="theory", result={"value": 1.0})
    assert "1 runs failed" in page([*grid(), failed, other])
    assert "no finished runs" in page([failed, other])
