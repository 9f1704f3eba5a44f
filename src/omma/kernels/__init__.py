"""Compiled code: arrays in, arrays out; it never raises and never prints.

NumPy and Numba only; nothing else of the package is imported here. Callers check their input first
(``omma.rows``, ``omma._validate``) and say what is wrong with it.

One row is columns. The numbers of a row's labels (counts, calibration, probabilities, flags) lie
side by side in rows of two-dimensional arrays whose width is a multiple of eight, so plain loops
over labels become vector instructions. A dense row uses the columns of the state itself; a sparse
row is gathered into such columns and scattered back. ``row`` decides and learns one row; ``replay``
has the loops over rows and the entries for single rows, which all call it. Therefore a replay
equals single steps, and dense rows equal sparse ones, by construction.
"""
