"""Targets that die, to test that this is noticed."""

import ctypes
import os

from tests.fuzz import edits
from tests.fuzz.targets import Target


def crash(path):
    ctypes.string_at(0)


def leave(path):
    os._exit(3)


def sound(path):
    path.read_bytes()


TARGETS = {
    read.__name__: Target(read.__name__, ".txt", read, lambda: [b"seed"], edits.blind, False)
    for read in (crash, leave, sound)
}
