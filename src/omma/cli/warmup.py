"""``omma warmup``: compile ahead, for images and containers."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import click

import omma
from omma.cli.options import say, work

ROWS, LABELS = 12, 4  # of the small stream that every policy runs on
COMMON = ("macro_f1", "micro_f1")  # without --all


@click.command("warmup")
@click.option("--all", "everything", is_flag=True, help="All kinds of metrics and policies.")
def command(everything: bool) -> None:
    """Compile kernels ahead of their first use, for images and containers.

    Machine code is kept in the cache folder of the user, or in the folder NUMBA_CACHE_DIR. In an
    image, set that variable to a folder that its user can write to, and keep it set. The code is
    for this machine's processor. Without --all this takes about a minute and covers macro and micro
    averages of rates such as F1; --all takes much longer.

    \b
    Examples:
        omma warmup
        NUMBA_CACHE_DIR=/opt/omma omma warmup --all
    """  # noqa: D301
    from omma.kernels.jit import CACHE

    os.environ["OMMA_QUIET"] = "1"  # the progress bar says what is compiled
    started = time.perf_counter()
    with work():
        # Auto decides batches of clusters by kernels of its own.
        todo = [*policies(everything), omma.Auto("macro_f1")]
        bar = click.progressbar(
            todo,
            label="Compiling",
            show_pos=True,
            item_show_func=lambda policy: None if policy is None else repr(policy),
            file=sys.stderr,
        )
        with bar as policies_left:
            for number, policy in enumerate(policies_left, start=1):
                if not sys.stderr.isatty():  # a log has no bar
                    say(f"{number}/{len(todo)} {policy!r}")
                run_all_ways(policy, with_certificate=everything)
    seconds = time.perf_counter() - started
    where = f"cached in {CACHE}" if CACHE else "not cached: no folder can be written to"
    click.echo(f"Compiled {len(todo)} policies in {seconds:.0f} s; machine code is {where}")


def run_all_ways(policy: Any, with_certificate: bool) -> None:
    """Run replays, single rows and batches of a policy, dense and sparse, which compiles all."""
    metric = policy.objective or "macro_f1"  # what judges a fixed rule
    for layout, kind in product(("dense", "sparse"), ("float64", "float32")):
        eta, y = sample(policy, layout, kind)
        omma.replay(policy, eta, y, metric=metric)
        if not isinstance(policy, omma.Greedy):  # it has no rule for a batch of rows
            omma.step(policy, policy.init(eta.shape[1]), eta, y)
        if kind == "float64":
            learner = omma.OnlineClassifier(policy, n_labels=eta.shape[1])
            first = 0 if layout == "dense" else slice(0, 1)
            learner.predict(eta[first])
            learner.update(y[first])
            learner.rule  # noqa: B018 — the rule has a kernel of its own
        if kind == "float64" and with_certificate and isinstance(policy, omma.OMMA):
            try:
                omma.replay(policy, eta, y, gap=True)
            except ValueError as error:  # the metric has no certificate
                if "gap" not in str(error):
                    raise


def policies(everything: bool) -> Iterator[Any]:
    """Policies that together use all kernels; where nothing is left to compile, one takes 30 ms."""
    names = omma.metrics.NAMES if everything else COMMON
    classes: tuple[Any, ...] = (omma.OMMA, omma.Greedy) if everything else (omma.OMMA,)
    feedbacks = ("labels", "estimates") if everything else ("labels",)
    for make, name, k, feedback in product(classes, names, (None, 2), feedbacks):
        metric = omma.metric(name)
        if k is None or not (metric.multiclass or metric.binary):
            with suppress(omma.policies.UnsupportedMetricError):
                yield make(metric, k=k, feedback=feedback)
    yield from (omma.Threshold(0.5), omma.TopK(2))
    if everything:
        yield from (omma.OFO("macro"), omma.OFO("micro"))


def sample(policy: Any, layout: str, kind: str = "float64") -> tuple[Any, Any]:
    """A small stream that a policy can run on."""
    import numpy as np
    from scipy import sparse

    m = 1 if policy.objective is not None and policy.objective.binary else LABELS
    eta = np.random.default_rng(0).dirichlet(np.ones(LABELS), size=ROWS)[:, :m].astype(kind)
    y = np.eye(LABELS, dtype=np.int8)[np.arange(ROWS) % LABELS][:, :m]
    return (eta, y) if layout == "dense" else (sparse.csr_array(eta), sparse.csr_array(y))
