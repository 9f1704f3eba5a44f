"""The stats of a service in the text format of Prometheus."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the histogram in seconds; the last one is infinity.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
# The stats that are numbers: key, type and description.
NUMBERS = (
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


class RequestCounts:
    """Requests by path and status, and how long they took.

    >>> requests = RequestCounts()
    >>> requests.note("/decide", 200, 0.002)
    >>> print(next(requests.lines()))
    # HELP omma_requests_total Requests by path and status.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int]] = Counter()
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def note(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.counts[path, status] += 1
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def lines(self) -> Iterator[str]:
        """The counts as lines of the format."""
        counts = {f'path="{path}",status="{code}"': n for (path, code), n in self.counts.items()}
        yield from _family("omma_requests_total", "counter", "Requests by path and status.", counts)
        name = "omma_request_seconds"
        text = "How long requests took, from their last byte to the answer."
        yield from _family(name, "histogram", text, {})
        # In the format, each bucket includes all buckets below it.
        for bound, total in zip((*BUCKETS, math.inf), accumulate(self.buckets), strict=True):
            yield f'{name}_bucket{{le="{_number(bound)}"}} {total}'
        yield f"{name}_sum {self.seconds!r}"
        yield f"{name}_count {sum(self.buckets)}"


def exposition(stats: Mapping[str, Any] | None, requests: RequestCounts) -> str:
    """The answer to GET /metrics; ``stats`` are those of the learner, None before the first row."""
    lines = [*requests.lines()]
    if stats is not None:
        for key, kind, text in NUMBERS:
            if stats[key] is not None:
                is_value = key.endswith("value") and stats["metric"]
                labels = _label("metric", stats["metric"]) if is_value else ""
                name = f"omma_{key}" + ("_total" if kind == "counter" else "")
                lines += _family(name, kind, text, {labels: stats[key]})
        refused = {f'kind="{kind}"': n for kind, n in stats["refused"].items()}
        lines += _family("omma_refused_total", "counter", "Rows and labels refused.", refused)
        for key in ("value", "bound", "price") if stats["limits"] else ():
            values = {
                _label("limit", limit["name"]): math.nan if limit[key] is None else limit[key]
                for limit in stats["limits"]
            }
            lines += _family(f"omma_limit_{key}", "gauge", f"The {key} of each limit.", values)
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {_number(value)}" if labels else f"{name} {_number(value)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("+Inf" if value > 0 else "-Inf")


def _label(name: str, value: str) -> str:
    """A label of the format, with its value in quotes."""
    quoted = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{quoted}"'
