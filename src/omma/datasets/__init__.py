"""Data to run on: files in many formats, a catalogue of public sets, streams with known η."""

from omma.datasets.catalogue import CATALOGUE
from omma.datasets.dataset import Dataset
from omma.datasets.entry import Entry, File
from omma.datasets.formats.folder import read_folder, write_folder
from omma.datasets.loading import load
from omma.datasets.synthetic import long_tail

__all__ = [
    "CATALOGUE",
    "Dataset",
    "Entry",
    "File",
    "load",
    "long_tail",
    "read_folder",
    "write_folder",
]
