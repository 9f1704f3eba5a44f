"""Labels seen only where predicted, in plain NumPy, with no code shared."""

import numpy as np


def estimated(eta, y, predictions, audited):
    """(tp, predicted, positive) of each label; probabilities are as they came.

    What was predicted or audited counts. The rest counts by its probability, times the labels that
    audits found per unit of probability: (A_y + 3 r) / (A_c + 3) for each label, where r is
    (A_y + 1) / (A_c + 1) over all labels.
    """
    shown = np.asarray(predictions, dtype=bool)
    looked_up = np.asarray(audited, dtype=bool)[:, np.newaxis] & ~shown
    hidden = ~shown & ~looked_up
    labels, expected = ((values * looked_up).sum(axis=0) for values in (y, eta))
    shared = (labels.sum() + 1) / (expected.sum() + 1)
    ratios = (labels + 3 * shared) / (expected + 3)
    positive = (y * ~hidden).sum(axis=0) + ratios * (eta * hidden).sum(axis=0)
    return np.array([(y * shown).sum(axis=0), shown.sum(axis=0), positive])


def audit_weights(audited):
    """What audits weigh in calibration: 1/α by the share so far, at most 10; else −1."""
    weights = []
    for place, flag in enumerate(audited, start=1):
        share = sum(audited[:place]) / place
        weights.append(min(1 / share, 10) if flag else -1)
    return weights
