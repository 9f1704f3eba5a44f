"""The address of a kind's numbers, with the kind as a type beside it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model


class Held(types.Type):
    """The address of a kind's numbers."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Held({of})")


@register_model(Held)
class HeldModel(models.PrimitiveModel):
    """An address is a whole number."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64))
