"""Streams with names, for models that learn one row at a time.

``STREAMS`` are those that the hedge of `omma.river.MetricClassifier` was made for, ``OTHERS`` those
on which it was looked at afterwards: generators of river that change in the middle or all along,
and data sets in the order of their files, where a folder of them is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from river import datasets
from river.datasets import synth
from scipy import sparse

from benchmarks.measure import stored

Rows = Iterator[tuple[dict[str, Any], Any]]


def changing(before: Any, after: Any, n: int) -> Rows:
    """A stream whose concept becomes another one in the middle."""
    mixed = synth.ConceptDriftStream(before, after, seed=1, position=n // 2, width=50)
    return mixed.take(n)


def sea() -> Rows:
    return changing(synth.SEA(variant=0, seed=1), synth.SEA(variant=3, seed=2), 10_000)


def noisy_sea() -> Rows:
    before = synth.SEA(variant=0, seed=1, noise=0.2)
    return changing(before, synth.SEA(variant=3, seed=2, noise=0.2), 5000)


def agrawal() -> Rows:
    before = synth.Agrawal(classification_function=0, seed=1)
    return changing(before, synth.Agrawal(classification_function=4, seed=2), 5000)


def agrawals(before: int, after: int, noise: float = 0.0, seed: int = 3) -> Rows:
    """Two more concepts of Agrawal's, one after the other."""
    first = synth.Agrawal(classification_function=before, seed=seed, perturbation=noise)
    return changing(first, synth.Agrawal(after, seed=seed + 1, perturbation=noise), 4000)


def staggers(before: int, after: int) -> Rows:
    first = synth.STAGGER(classification_function=before, seed=1)
    return changing(first, synth.STAGGER(classification_function=after, seed=2), 4000)


def balanced_sine() -> Rows:
    before = synth.Sine(classification_function=1, seed=3, balance_classes=True)
    return changing(before, synth.Sine(3, seed=4, balance_classes=True), 4000)


def noisier_sea() -> Rows:
    before = synth.SEA(variant=1, seed=3, noise=0.1)
    return changing(before, synth.SEA(variant=2, seed=4, noise=0.1), 4000)


def still_clouds() -> Rows:
    return synth.RandomRBF(
        seed_model=4, seed_sample=4, n_classes=2, n_features=6, n_centroids=30
    ).take(4000)


def tree_of_chance(seed: int, n_classes: int) -> Rows:
    return synth.RandomTree(seed_tree=seed, seed_sample=1, n_classes=n_classes).take(4000)


def anomalies() -> Rows:
    return iter(synth.AnomalySine(seed=1, n_samples=4000, n_anomalies=400))


def hyperplane() -> Rows:
    stream = synth.Hyperplane(seed=1, n_drift_features=5, mag_change=0.001, noise_percentage=0.05)
    return stream.take(5000)


def clouds(n_classes: int = 2) -> Rows:
    stream = synth.RandomRBFDrift(
        seed_model=1, seed_sample=1, n_classes=n_classes, n_centroids=20, change_speed=0.01,
        n_drift_centroids=10,
    )  # fmt: skip
    return stream.take(5000)


def sine() -> Rows:
    before = synth.Sine(classification_function=0, seed=1)
    return changing(before, synth.Sine(classification_function=2, seed=2), 5000)


def mixed() -> Rows:
    before = synth.Mixed(classification_function=0, seed=1)
    return changing(before, synth.Mixed(classification_function=1, seed=2), 5000)


def digits_of_leds() -> Rows:
    stream = synth.LEDDrift(seed=1, noise_percentage=0.2, n_drift_features=4)
    return stream.take(4000)


# Name: whether one class of two is looked for, and the rows.
STREAMS: dict[str, tuple[bool, Callable[[], Rows]]] = {
    "Phishing": (True, lambda: iter(datasets.Phishing())),
    "Bananas": (True, lambda: iter(datasets.Bananas())),
    "SEA with drift": (True, sea),
    "Shuttle, 20,000 rows": (True, lambda: datasets.Shuttle().take(20_000)),
    "ImageSegments": (False, lambda: iter(datasets.ImageSegments())),
}
OTHERS: dict[str, tuple[bool, Callable[[], Rows]]] = {
    "SEA, noisy": (True, noisy_sea),
    "Agrawal": (True, agrawal),
    "Hyperplane": (True, hyperplane),
    "moving clouds": (True, clouds),
    "Sine": (True, sine),
    "Mixed": (True, mixed),
    "LED": (False, digits_of_leds),
    "five moving clouds": (False, lambda: clouds(5)),
    "Agrawal 1, 6": (True, lambda: agrawals(1, 6)),
    "Agrawal 2, 8, noisy": (True, lambda: agrawals(2, 8, 0.2)),
    "Agrawal 4, 0": (True, lambda: agrawals(4, 0, seed=7)),
    "Agrawal 7": (True, lambda: synth.Agrawal(classification_function=7, seed=5).take(4000)),
    "STAGGER 0, 2": (True, lambda: staggers(0, 2)),
    "STAGGER 1, 0": (True, lambda: staggers(1, 0)),
    "random tree": (True, lambda: tree_of_chance(1, 2)),
    "random tree, 4 classes": (False, lambda: tree_of_chance(3, 4)),
    "Waveform": (False, lambda: synth.Waveform(seed=1).take(3000)),
    "still clouds": (True, still_clouds),
    "anomalies of a sine": (True, anomalies),
    "Sine, balanced": (True, balanced_sine),
    "SEA 1, 2, noisy": (True, noisier_sea),
}
# Sets of a folder: where to start, how many rows, and the classes looked for, None for all.
SETS: dict[str, tuple[int, int, set[int] | None]] = {
    "mammography": (0, 11_183, {1}),
    "covtype": (100_000, 5000, {5, 6}),
    "kddcup99": (0, 5000, {0, 1, 2}),
}


def of_folder(folder: Path) -> dict[str, tuple[bool, Callable[[], Rows]]]:
    """The sets that a folder has."""
    return {
        name: (wanted is not None, lambda name=name: _rows(folder / name, *SETS[name]))  # type: ignore[misc]
        for name, (_, _, wanted) in SETS.items()
        if (folder / name / "X.npz").exists()
    }


def _rows(folder: Path, start: int, n: int, wanted: set[int] | None) -> Rows:
    X, y = (stored(folder / f"{name}.npz") for name in "XY")
    found = X[start : start + n]
    found = found.toarray() if sparse.issparse(found) else found
    names = [f"x{j}" for j in range(found.shape[1])]
    for row, label in islice(zip(found.tolist(), y[start:].tolist(), strict=False), n):
        yield (
            dict(zip(names, row, strict=True)),
            label if wanted is None else label in wanted,
        )
