"""The table of docs/calibration.md: online calibration beside scikit-learn's, on the same streams.

    python docs/make_calibration.py

The first half of each stream is what scikit-learn's calibrators are fitted on, label by label; the
second half judges all. ``OnlineCalibrator`` is judged twice: kept as it is after the first half,
and going on to learn, each row being calibrated before its labels are seen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import omma
from omma.calibration import OnlineCalibrator, Scores, brier, expected_error, log_loss

PAGE = Path(__file__).with_name("calibration.md")
BEGIN, END = "<!-- table: make_calibration.py -->", "<!-- end of table -->"
ROWS, LABELS, SEEDS = 6000, 10, range(2)


class Logits(ClassifierMixin, BaseEstimator):
    """A model whose only feature is the logit that it gives."""

    def fit(self, X, y):  # noqa: N803
        """Nothing is learned."""
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):  # noqa: N803
        """The logit."""
        return X[:, 0]

    def predict_proba(self, X):  # noqa: N803
        """What the logit says."""
        return np.column_stack((expit(-X[:, 0]), expit(X[:, 0])))

    def predict(self, X):  # noqa: N803
        """The likelier class."""
        return (X[:, 0] >= 0).astype(int)


def distortions(seed):
    """Ways to be wrong: those of the calibrator's own shape, and one that is not."""
    powers = np.exp(0.5 * np.random.default_rng(seed + 100).standard_normal(LABELS))
    return {
        "as they are": lambda z: z,
        "logits × 0.5": lambda z: 0.5 * z,
        "logits × 2": lambda z: 2 * z,
        "logits + 1.5": lambda z: z + 1.5,
        "a power for each label": lambda z: logit(np.clip(expit(z) ** powers, 1e-9, 1 - 1e-9)),
    }


def offline(method, z, y, fresh):
    """scikit-learn's calibrator of each label, fitted on one half for the other."""
    found = np.empty_like(fresh)
    model = FrozenEstimator(Logits().fit(None, None))
    for j in range(z.shape[1]):
        fitted = CalibratedClassifierCV(model, method=method).fit(z[:, [j]], y[:, j])
        found[:, j] = fitted.predict_proba(fresh[:, [j]])[:, 1]
    return found


def ways(z, y):
    """Calibrated probabilities of the second half, by each way."""
    half = len(z) // 2
    first, second = z[:half], z[half:]
    online = OnlineCalibrator(LABELS)
    online.update(expit(first), y[:half])
    frozen = online.predict(expit(second))
    found = {"as given": expit(second)}
    for method, title in (("sigmoid", "Platt"), ("isotonic", "isotonic")):
        found[title] = offline(method, first, y[:half], second)
    found["temperature"] = offline("temperature", first, y[:half], second)
    found["online, then fixed"] = frozen
    found["online"] = online.replay(expit(second), y[half:]).probabilities
    return found, y[half:]


def table():
    """Log-loss and calibration error of each way on each stream, means over seeds."""
    scores = {}
    for seed in SEEDS:
        eta, y = omma.datasets.long_tail(n=ROWS, m=LABELS, seed=seed)
        for name, distort in distortions(seed).items():
            found, truth = ways(distort(logit(eta)), y)
            for way, values in found.items():
                judged = (judge(values, truth) for judge in (log_loss, brier, expected_error))
                scores.setdefault((name, way), []).append(Scores(*judged))
    streams = list(dict.fromkeys(name for name, _ in scores))
    columns = list(dict.fromkeys(way for _, way in scores))
    lines = ["| probabilities | " + " | ".join(columns) + " |"]
    lines.append("| --- |" + " ---: |" * len(columns))
    for name in streams:
        cells = [_cell(scores[name, way]) for way in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(every):
    loss = np.mean([one.log_loss for one in every])
    error = np.mean([one.expected_error for one in every])
    return f"{loss:.4f} ({100 * error:.2f})"


def main():
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
