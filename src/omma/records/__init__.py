"""One JSON file for each run: written once, read by every table and figure.

``perform`` carries out a list of jobs and leaves a record of each; ``read`` gives the records back.
Studies (``omma.benchmark``) and simulations (``omma.theory``) both stand on this room.
"""

from omma.records.files import distinct, path_of, read, write
from omma.records.jobs import Job, Outcome, Summary, perform
from omma.records.record import FORMAT, KINDS, Record, make, versions

__all__ = [
    "FORMAT",
    "KINDS",
    "Job",
    "Outcome",
    "Record",
    "Summary",
    "distinct",
    "make",
    "path_of",
    "perform",
    "read",
    "versions",
    "write",
]
