"""A rule as the last layer of a PyTorch model."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma._validate import require
from omma.export.parts import Parts
from omma.kernels.layout import LEAST, MOST


def head_of(rule: Any) -> Any:
    """The rule as an ``nn.Module``; ``Rule.to_torch`` says more."""
    require("torch", "Rule.to_torch needs", '"omma[torch]"')
    from omma.export._torch_head import RuleHead

    parts = Parts.of(rule)
    calibrated = parts.scale is not None and parts.bias is not None
    bias = parts.bias if parts.bias is not None else np.zeros(parts.m)
    matrix = parts.matrix if parts.matrix is not None else np.zeros((0, parts.m))
    head = RuleHead(
        parts.slope,
        parts.offset,
        matrix,
        bias,
        seats=parts.seats or 0,
        filled=parts.k is not None,
        scale=1.0 if parts.scale is None else parts.scale,
        least=LEAST,
        most=MOST,
        calibrated=calibrated,
    )
    return head.eval()
