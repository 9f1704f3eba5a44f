"""A number in [0, 1) for each row, from its probabilities alone: what tells one row from another.

It is a hash of the stored entries above zero, each mixed with its label by SplitMix64 and added up,
so that dense and sparse rows, and those of 32 bits, of the same probabilities have the same one.
"""

from typing import Final

import numpy as np

from omma.kernels.jit import entry, helper

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
SECOND: Final = np.uint64(0x94D049BB133111EB)
ONE: Final = np.uint64(1)
SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
UNUSED: Final = np.uint64(11)  # bits that a float64 in [0, 1) has no room for
UNIT: Final = 2.0**-53


@helper
def scrambled(bits):
    """The last steps of SplitMix64: every bit of the result hangs on all that are given."""
    bits = (bits ^ (bits >> SHIFTS[0])) * FIRST
    bits = (bits ^ (bits >> SHIFTS[1])) * SECOND
    return bits ^ (bits >> SHIFTS[2])


@helper
def of_entry(label, eta):
    """What one stored probability adds; nothing where it is zero."""
    value = np.float64(eta)
    if not value > 0.0:
        return np.uint64(0)
    return scrambled(value.view(np.uint64) ^ scrambled((np.uint64(label) + ONE) * GOLDEN))


@helper
def as_fraction(total):
    """The sum over a row's entries as a number in [0, 1)."""
    return np.float64(scrambled(total + GOLDEN) >> UNUSED) * UNIT


@entry
def fingerprints_dense(eta, rows, out):
    """The fingerprints of some rows of every label."""
    for t in range(rows.shape[0]):
        total = np.uint64(0)
        for j in range(eta.shape[1]):
            total += of_entry(j, eta[rows[t], j])
        out[t] = as_fraction(total)


@entry
def fingerprints_sparse(indices, data, starts, ends, out):
    """The fingerprints of some rows of stored labels, which are at ``starts[t]:ends[t]``."""
    for t in range(starts.shape[0]):
        total = np.uint64(0)
        for at in range(starts[t], ends[t]):
            total += of_entry(indices[at], data[at])
        out[t] = as_fraction(total)
