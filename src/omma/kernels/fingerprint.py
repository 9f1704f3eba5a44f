"""A fingerprint in [0, 1) for each row, computed from its probabilities alone.

The fingerprint is a hash. SplitMix64 mixes each probability above zero with its label, and the
results are added. The order of entries and stored zeros therefore do not matter: dense and sparse
rows with the same probabilities have the same fingerprint, and so do float32 and float64 rows.
"""

from typing import Final

import numpy as np

from omma.kernels.jit import entry, helper

# Constants of SplitMix64: the increment, two multipliers, and the shifts.
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
SECOND: Final = np.uint64(0x94D049BB133111EB)
ONE: Final = np.uint64(1)
SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
UNUSED: Final = np.uint64(11)  # 64 bits minus the 53 bits of a float64's significand
UNIT: Final = 2.0**-53


@helper
def scrambled(bits):
    """The finalizer of SplitMix64: every output bit depends on all input bits."""
    bits = (bits ^ (bits >> SHIFTS[0])) * FIRST
    bits = (bits ^ (bits >> SHIFTS[1])) * SECOND
    return bits ^ (bits >> SHIFTS[2])


@helper
def of_entry(label, eta):
    """The hash of one probability and its label, uint64; zero if the probability is zero."""
    value = np.float64(eta)
    if not value > 0.0:
        return np.uint64(0)
    return scrambled(value.view(np.uint64) ^ scrambled((np.uint64(label) + ONE) * GOLDEN))


@helper
def as_fraction(total):
    """Map the sum of a row's hashes to a float64 in [0, 1)."""
    return np.float64(scrambled(total + GOLDEN) >> UNUSED) * UNIT


@entry
def fingerprints_dense(eta, rows, out):
    """Write the fingerprints of dense rows to ``out``.

    ``eta`` has shape (all rows, m). ``rows``, shape (n,), selects its rows. ``out`` has shape (n,).
    """
    for t in range(rows.shape[0]):
        total = np.uint64(0)
        for j in range(eta.shape[1]):
            total += of_entry(j, eta[rows[t], j])
        out[t] = as_fraction(total)


@entry
def fingerprints_sparse(indices, data, starts, ends, out):
    """Write the fingerprints of sparse rows to ``out``, shape (n,).

    Row t stores the label ids ``indices[starts[t]:ends[t]]`` with the probabilities ``data`` at the
    same positions.
    """
    for t in range(starts.shape[0]):
        total = np.uint64(0)
        for at in range(starts[t], ends[t]):
            total += of_entry(indices[at], data[at])
        out[t] = as_fraction(total)
