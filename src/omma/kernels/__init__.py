"""Compiled code: arrays in, arrays out; it never raises and never prints.

NumPy and Numba only; nothing else of the package is imported here. The callers check their input
at the door (``omma.rows.arrays``, ``omma._validate``) and say what is wrong.
"""
