"""Which loops this process has compiled, and whether one more is worth the seconds it takes.

Signs decide rows some times faster than gains, in loops that take a second or two to compile. Where
the loop that goes by gains is there already, rows go by it until that has cost about as much as
compiling would: whoever decides little never waits for the faster loop, and whoever decides much
has lost next to nothing. Decisions are the same to the bit.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

# Probabilities that gains decide in place of signs, of each kind: some hundredths of a second, so
# that a dozen replays of a small set run at full speed soon.
MOST = 2**22

_READY: Final[set[Any]] = set()
_SPARED: Final[Counter[Any]] = Counter()


def note(loop: Any) -> None:
    """Remember that a loop ran in this process."""
    _READY.add(loop)


def ready(loop: Any) -> bool:
    """Whether a loop ran in this process before."""
    return loop in _READY


def compiling(loop: Any, other: Any, entries: int) -> bool:
    """Whether a loop that is there, or worth compiling, takes so many entries; else another one.

    >>> from omma.running import worth
    >>> worth.MOST = 100
    >>> note("slow")
    >>> compiling("fast", "slow", 100), compiling("fast", "none", 1)
    (False, True)
    >>> compiling("fast", "slow", 1)
    True
    """
    if loop in _READY or other not in _READY:
        return True
    if _SPARED[loop] + entries > MOST:
        return True
    _SPARED[loop] += entries
    return False
