"""Where a learner can be looked at from outside: a journal, a saved state, a running service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omma.cli.looks import Looks
from omma.online import OnlineClassifier

SECONDS = 5.0  # for a service to answer
MOST = 10_000_000  # bytes of an answer


def looker(place: str) -> Callable[[], dict[str, Any]]:
    """What gives the present stats of whatever is at a place, each time that it is called."""
    if place.startswith(("http://", "https://")):
        return lambda: _asked(place.rstrip("/") + "/stats")
    looks, path = Looks(), Path(place)
    if path.is_dir():
        from omma.online.following import Follower

        follower = Follower(path)
        return lambda: looks.stats(follower.look(looks.note))
    if not path.exists():
        raise ValueError(f"{place} is no journal, no saved learner and no address of a service")
    return lambda: looks.stats(OnlineClassifier.load(path))


def _asked(address: str) -> dict[str, Any]:
    """What a service answers; its own sentence where it refuses."""
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=SECONDS) as answer:
            content = json.loads(answer.read(MOST))
    except HTTPError as error:
        with error:
            said = error.read(1_000).decode(errors="replace")
        raise ValueError(f"{address} answered {error.code}: {said}") from error
    except (URLError, TimeoutError) as error:
        raise ValueError(f"{address} does not answer: {error}") from error
    if not isinstance(content, dict) or "refused" not in content:
        raise ValueError(f"{address} is no service of omma")
    return content
