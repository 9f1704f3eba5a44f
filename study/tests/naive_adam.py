"""A slow twin of the online linear model, written from the textbook; it shares no code with it."""

import numpy as np


class NaiveOnline:
    """Adam (Kingma and Ba, Algorithm 1) on a linear model, a row at a time.

    ``touched`` says which features a row moves; the intercept moves with every row.
    """

    def __init__(
        self, weights, softmax, rate, l2, intercept_l2=0.0, beta1=0.9, beta2=0.999, epsilon=1e-8
    ):
        self.theta = np.array(weights)
        self.mean = np.zeros_like(self.theta)
        self.square = np.zeros_like(self.theta)
        self.softmax, self.rate, self.l2, self.intercept_l2 = softmax, rate, l2, intercept_l2
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.t = 0

    def predict(self, x):
        scores = np.append(x, 1.0) @ self.theta
        if self.softmax:
            powers = np.exp(scores - scores.max())
            return powers / powers.sum()
        return 1.0 / (1.0 + np.exp(-scores))

    def learn(self, x, y, touched):
        gradient = np.outer(np.append(x, 1.0), self.predict(x) - y)
        gradient[:-1] += self.l2 * self.theta[:-1]
        gradient[-1] += self.intercept_l2 * self.theta[-1]
        self.t += 1
        for i in [*np.flatnonzero(touched), len(x)]:
            self.mean[i] = self.beta1 * self.mean[i] + (1 - self.beta1) * gradient[i]
            self.square[i] = self.beta2 * self.square[i] + (1 - self.beta2) * gradient[i] ** 2
            unbiased = self.mean[i] / (1 - self.beta1**self.t)
            spread = np.sqrt(self.square[i] / (1 - self.beta2**self.t))
            self.theta[i] -= self.rate * unbiased / (spread + self.epsilon)


def naive_estimates(X, Y, touched, **options):
    """Predict each row, then learn from it; Y are indicators."""
    model = NaiveOnline(**options)
    eta = np.empty(Y.shape)
    for t in range(len(X)):
        eta[t] = model.predict(X[t])
        model.learn(X[t], Y[t], touched[t])
    return eta, model


def naive_standardised(X, limit=10.0):
    """Each row in deviations from the mean of the rows before it."""
    out = np.zeros(X.shape)
    for t in range(2, len(X)):
        before = X[:t]
        deviation = before.std(axis=0)
        deviation[deviation == 0] = 1.0
        out[t] = np.clip((X[t] - before.mean(axis=0)) / deviation, -limit, limit)
    return out
