"""Looks at a learner that share one window, whoever asks."""

from typing import Any

from omma.online import OnlineClassifier

WINDOW = 1_000  # labelled rows that recent values are of


class Looks:
    """What a learner tells of itself; recent values are of the last whole window."""

    def __init__(self) -> None:
        self._window: dict[str, Any] = {}
        self._at = 0.0

    def note(self, learner: OnlineClassifier) -> None:
        """Begin a new window where one is complete; to be called after labels came."""
        labelled = learner.state.truth.rows
        if labelled - self._at >= WINDOW:
            found = learner.stats()
            self._window = {name: found[name] for name in ("recent_value", "moved")}
            self._at = labelled

    def stats(self, learner: OnlineClassifier) -> dict[str, Any]:
        """As ``learner.stats``; before the first window is complete, recent is since the start."""
        self.note(learner)
        return {**learner.stats(peek=True), **self._window}
