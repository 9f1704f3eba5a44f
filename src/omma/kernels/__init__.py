"""Compiled code: arrays in, arrays out. Kernels never raise and never print.

Kernels import only NumPy and Numba, and nothing else of the package. Callers (``omma.rows``,
``omma._validate``) check the input first and report what is wrong with it.

Kernels see one row as columns. The numbers of the row's labels (counts, calibration, probabilities,
flags) lie side by side in rows of two-dimensional arrays. The width of these arrays is a multiple
of eight, so the compiler turns plain loops over labels into vector instructions. A dense row uses
the columns of the state itself. A sparse row is gathered into such columns and scattered back.
``row`` decides one row and learns from it. ``replay`` (loops over rows) and ``single`` (one row,
called from Python) both call ``row``. Therefore a replay equals single steps, and dense rows equal
sparse rows, by construction.
"""
