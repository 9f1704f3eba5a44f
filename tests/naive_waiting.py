"""Decisions that wait, kept in a plain list: slow, and plainly right."""

import numpy as np


class NaiveWaiting:
    """What ``omma.online.waiting.Waiting`` does, by going through everything each time."""

    def __init__(self, limit, max_age, clock, evicted):
        self.limit, self.max_age, self.clock, self.evicted = limit, max_age, clock, evicted
        self.waiting = []  # of (id, time, eta, prediction)
        self.gone = []  # of (id, "labelled" or "forgotten"), the oldest first
        self.forgotten = self.puts = 0

    def put(self, key, eta, prediction):
        self.forget_old()
        if self.find(key) is not None:
            return "waiting"
        copied = None if eta is None else np.array(eta)
        self.waiting.append((key, self.now(), copied, np.array(prediction)))
        self.puts += 1
        self.gone = [one for one in self.gone if one[0] != key]
        self.forget_old()
        while len(self.waiting) > self.limit:
            self.forget(self.waiting[0])
        return "put"

    def take(self, key):
        self.forget_old()
        found = self.find(key)
        if found is None:
            return dict(self.gone).get(key, "unknown")
        self.waiting = [one for one in self.waiting if one[0] != key]
        self.remember(key, "labelled")
        return found

    def find(self, key):
        return next((one for one in self.waiting if one[0] == key), None)

    def now(self):
        return self.puts if self.clock is None else self.clock()

    def forget_old(self):
        if self.max_age is not None:
            for one in [one for one in self.waiting if self.now() - one[1] > self.max_age]:
                self.forget(one)

    def forget(self, one):
        self.waiting = [other for other in self.waiting if other[0] != one[0]]
        self.forgotten += 1
        self.remember(one[0], "forgotten")
        self.evicted.append(one[3].tolist())

    def remember(self, key, what):
        self.gone = [one for one in self.gone if one[0] != key]
        self.gone = [*self.gone, (key, what)][-self.limit :]
