"""How a service goes, in the text format that Prometheus reads."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Seconds; the last one, infinity, is not written here.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Requests:
    """Requests by where they went and how they ended, and how long they took.

    >>> requests = Requests()
    >>> requests.note("/decide", 200, 0.002)
    >>> print(next(requests.lines()))
    # HELP omma_requests_total Requests by path and status.
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}
        self.below = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def note(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.counts[path, status] = self.counts.get((path, status), 0) + 1
        place = sum(seconds > one for one in BUCKETS)
        self.below[place] += 1
        self.seconds += seconds

    def lines(self) -> Iterable[str]:
        """What was counted, in the format."""
        found = {f'path="{path}",status="{code}"': n for (path, code), n in self.counts.items()}
        yield from _family("omma_requests_total", "counter", "Requests by path and status.", found)
        name, total = "omma_request_seconds", 0
        yield f"# HELP {name} How long requests took, from their last byte to the answer."
        yield f"# TYPE {name} histogram"
        for bound, more in zip((*BUCKETS, math.inf), self.below, strict=True):
            total += more
            yield f'{name}_bucket{{le="{_number(bound)}"}} {total}'
        yield f"{name}_sum {self.seconds!r}"
        yield f"{name}_count {total}"


def exposition(stats: Mapping[str, Any] | None, metric: str | None, requests: Requests) -> str:
    """All of it; ``stats`` are those of a learner, None before the first row."""
    lines = [*requests.lines()]
    if stats is not None:
        for key, kind, text in SINGLE:
            if stats[key] is not None:
                own = f'metric="{_quoted(metric)}"' if key.endswith("value") and metric else ""
                name = f"omma_{key}" + ("_total" if kind == "counter" else "")
                lines += _family(name, kind, text, {own: stats[key]})
        refused = {f'kind="{kind}"': n for kind, n in stats["refused"].items()}
        lines += _family("omma_refused_total", "counter", "Rows and labels refused.", refused)
        for part in ("value", "bound", "price") if stats["limits"] else ():
            found = {
                f'limit="{_quoted(one["name"])}"': math.nan if one[part] is None else one[part]
                for one in stats["limits"]
            }
            lines += _family(f"omma_limit_{part}", "gauge", f"The {part} of each limit.", found)
    return "\n".join(lines) + "\n"


SINGLE = (
    ("rows", "gauge", "Rows that decisions look at, by weight."),
    ("labels", "counter", "Rows whose labels came, by weight."),
    ("decided", "counter", "Rows decided by id."),
    ("waiting", "gauge", "Rows that wait for their labels."),
    ("dropped", "counter", "Rows forgotten before their labels came."),
    ("value", "gauge", "The metric over all labelled rows."),
    ("recent_value", "gauge", "The metric over the last labelled rows."),
    ("window_value", "gauge", "The metric over the rows that decisions look at."),
    ("calibration_error", "gauge", "Mean distance of probabilities from frequencies."),
)


def _family(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterable[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        own = f"{{{labels}}}" if labels else ""
        yield f"{name}{own} {_number(value)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")


def _quoted(text: str | None) -> str:
    """A value of a label, as the format has it."""
    return str(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
