"""True labels of a block of rows, turned from indicators into ids."""

from __future__ import annotations

from omma.kernels.jit import entry


@entry
def find_labels(indicators, rows, starts, ids):
    """Write the ids of the ones in each row; returns how many rows are good.

    ``starts`` has one more place than there are rows; a row that holds anything but zeros and
    ones ends the search.
    """
    m = indicators.shape[1]
    found = 0
    starts[0] = 0
    for t in range(rows.shape[0]):
        given = indicators[rows[t]]
        wrong = 0
        for j in range(m):
            wrong += (given[j] != 0) & (given[j] != 1)
            ids[found] = j  # kept only if the next line moves on: no branch to mispredict
            found += given[j] == 1
        if wrong > 0:
            return t
        starts[t + 1] = found
    return rows.shape[0]
