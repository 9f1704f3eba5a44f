"""A rule as the last layer of a PyTorch model, in a file that only those with PyTorch import."""

from typing import Any

import numpy as np
import torch
from torch import nn

from omma.export import seats_of
from omma.kernels.calibrate import STRAIGHT
from omma.kernels.layout import LEAST, MOST
from omma.state_parts import Curve


class RuleHead(nn.Module):
    """Decides rows of probabilities; ``torch.jit.script`` takes it as it is.

    Slope, offset and the like are buffers in double precision, so they move with the model and are
    saved in its ``state_dict``.
    """

    # PyTorch reads these where a module is scripted, as types and not as text.
    slope: torch.Tensor
    offset: torch.Tensor
    matrix: torch.Tensor
    bias: torch.Tensor

    def __init__(self, rule: Any) -> None:
        super().__init__()
        curve: Curve = rule.curve or (1.0, 0.0, np.zeros(rule.m), STRAIGHT)
        self.scale, common, biases, self.squash = curve
        matrix = np.zeros((0, rule.m)) if rule.matrix is None else rule.matrix
        bias = common + biases
        buffers = {"slope": rule.slope, "offset": rule.offset, "matrix": matrix, "bias": bias}
        for name, values in buffers.items():
            self.register_buffer(name, torch.from_numpy(np.array(values, dtype=np.float64)))
        self.seats = seats_of(rule) or 0  # 0 seats are as many as there are labels
        self.filled, self.calibrated = rule.k is not None, rule.calibration is not None
        self.least, self.most = LEAST, MOST

    def forward(self, eta: torch.Tensor) -> torch.Tensor:
        """Int8 indicators of the shape of ``eta``: (n, m), one row (m,), or (n,) for one label."""
        rows = eta.to(torch.float64).reshape(-1, self.slope.shape[0])
        gains = self.gains(rows)
        if self.seats == 0:
            return (gains >= 0).to(torch.int8).reshape(eta.shape)
        # topk does not say which of equals it takes; a stable sort takes the lowest label.
        order = torch.argsort(gains, dim=1, descending=True, stable=True)[:, : self.seats]
        seated = torch.ones_like(order, dtype=torch.int8)
        if not self.filled:
            seated = (gains.gather(1, order) >= 0).to(torch.int8)
        decisions = torch.zeros_like(gains, dtype=torch.int8)
        return decisions.scatter_(1, order, seated).reshape(eta.shape)

    def gains(self, eta: torch.Tensor) -> torch.Tensor:
        """What each label is worth; minus infinity where it is no candidate."""
        values = eta
        if self.calibrated:
            clipped = torch.clamp(eta, self.least, self.most)
            z = torch.log(clipped / (1.0 - clipped))
            r = self.squash / torch.clamp(torch.abs(z), min=self.squash)
            values = torch.sigmoid(self.scale * (z * (r * (2.0 - r))) + self.bias)
            values = torch.where(eta > 0, values, torch.zeros_like(values))
        gains = values * self.slope + self.offset
        if self.matrix.shape[0] == 0:
            return torch.where(eta > 0, gains, torch.full_like(gains, float("-inf")))
        for i in range(self.matrix.shape[0]):  # in this order: sums in another one differ
            gains = gains + values[:, i : i + 1] * self.matrix[i]
        return gains
