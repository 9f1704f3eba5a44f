"""The best cut of a label by trying every one, row by row: a slow twin of policies.thresholds."""

import math


def cells_of(eta, y, weights, taken):
    """Of taking the first so many rows by probability: tp, predicted, positive, n."""
    order = sorted((i for i in range(len(eta)) if eta[i] > 0), key=lambda i: -eta[i])[:taken]
    tp = sum(weights[i] for i in order if y[i])
    return (
        tp,
        sum(weights[i] for i in order),
        sum(w for w, yes in zip(weights, y, strict=True) if yes),
        sum(weights),
    )


def best_taken(value, eta, y, weights, stands):
    """How many rows to take: of equals the fewest; where nothing is said, as many as ``stands``."""
    positive, n = cells_of(eta, y, weights, 0)[2:]
    if not 0 < positive < n:
        return stands
    values = sorted((p for p in eta if p > 0), reverse=True)
    places = {i for i in range(1, len(values)) if values[i] < values[i - 1]}
    places |= {0, len(values), stands}
    best = None
    for taken in sorted(places):
        found = value(*cells_of(eta, y, weights, taken))
        if best is None or found > best[0]:
            best = (found, taken)
    return best[1]


def steady_taken(value, eta, y, weights, drawings, stands):
    """The geometric mean over drawings, and cells of both ways on the rows left out."""
    logs, tuned, standing = [], [0.0] * 4, [0.0] * 4
    for drawn in drawings:
        kept = [d * w for d, w in zip(drawn, weights, strict=True)]
        left = [w if d == 0 else 0.0 for d, w in zip(drawn, weights, strict=True)]
        taken = best_taken(value, eta, y, kept, stands)
        logs.append(math.log(taken + 0.5))
        for sums, at in ((tuned, taken), (standing, stands)):
            for j, cell in enumerate(cells_of(eta, y, left, at)):
                sums[j] += cell
    return math.exp(sum(logs) / len(logs)) - 0.5, tuned, standing
