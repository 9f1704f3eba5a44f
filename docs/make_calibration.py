"""The table of docs/calibration.md: online calibration beside scikit-learn's, on the same streams.

    python docs/make_calibration.py

scikit-learn's calibrators are fitted to the first half of each stream, label by label; all are
judged on the second half. ``OnlineCalibrator`` is judged twice: as it is after the first half, and
while it continues to learn, with each row calibrated before its labels are seen.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from page_parts import markdown, replaced
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import omma
from omma.calibration import OnlineCalibrator, expected_error, log_loss

PAGE = Path(__file__).with_name("calibration.md")
ROWS, LABELS, SEEDS = 6000, 10, range(2)


def logit_model():
    """A model whose only feature is the logit that it gives."""
    model = LogisticRegression()
    model.classes_, model.coef_, model.intercept_ = np.array([0, 1]), np.ones((1, 1)), np.zeros(1)
    return FrozenEstimator(model)


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
    calibrated = np.empty_like(fresh)
    model = logit_model()
    for j in range(z.shape[1]):
        fitted = CalibratedClassifierCV(model, method=method).fit(z[:, [j]], y[:, j])
        calibrated[:, j] = fitted.predict_proba(fresh[:, [j]])[:, 1]
    return calibrated


def ways(z, y):
    """Calibrated probabilities of the second half by each way, and the labels of that half."""
    half = len(z) // 2
    first, second = z[:half], z[half:]
    online = OnlineCalibrator(LABELS)
    online.update(expit(first), y[:half])
    calibrated = {
        "as given": expit(second),
        "Platt": offline("sigmoid", first, y[:half], second),
        "isotonic": offline("isotonic", first, y[:half], second),
        "temperature": offline("temperature", first, y[:half], second),
        "online, then fixed": online.predict(expit(second)),  # before it learns from these rows
        "online": online.replay(expit(second), y[half:]).probabilities,
    }
    return calibrated, y[half:]


def table():
    """Log-loss and calibration error of each way on each stream, means over seeds."""
    scores = []
    for seed in SEEDS:
        eta, y = omma.datasets.long_tail(n=ROWS, m=LABELS, seed=seed)
        for name, distort in distortions(seed).items():
            calibrated, truth = ways(distort(logit(eta)), y)
            for way, values in calibrated.items():
                loss, error = log_loss(values, truth), expected_error(values, truth)
                scores.append({"probabilities": name, "way": way, "loss": loss, "error": error})
    means = pd.DataFrame(scores).groupby(["probabilities", "way"], sort=False).mean()
    cells = [f"{loss:.4f} ({100 * error:.2f})" for loss, error in means.itertuples(index=False)]
    # A row for each stream; both streams and ways stay in the order in which they were scored.
    wide = pd.Series(cells, means.index).unstack("way", sort=False)
    return markdown(["probabilities", *wide], wide.reset_index().to_numpy())


if __name__ == "__main__":
    page = replaced(PAGE.read_text(encoding="utf-8"), "table: make_calibration.py", table())
    PAGE.write_text(page, encoding="utf-8")
