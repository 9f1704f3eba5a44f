"""Numba's compiler with the steps that kernels need, and no others.

Numba goes over every function some thirty times. Half of that looks for what no kernel has:
closures, ``with``, exceptions, literals to unroll, expressions of whole arrays, functions that
Numba itself would inline. Types are found by ``typed``. Both together halve the time to compile.
"""

from __future__ import annotations

from typing import Any, Final

from numba.core import typed_passes, untyped_passes
from numba.core.compiler import Compiler

from omma.kernels.typed import Inference, Lowering

REPLACED: Final[dict[Any, Any]] = {
    typed_passes.NopythonTypeInference: Inference,
    typed_passes.NativeLowering: Lowering,
}
LEFT_OUT: Final = frozenset(
    {
        untyped_passes.WithLifting,
        untyped_passes.InlineClosureLikes,
        untyped_passes.RewriteDynamicRaises,
        untyped_passes.MakeFunctionToJitFunction,
        untyped_passes.InlineInlinables,
        untyped_passes.FindLiterallyCalls,
        untyped_passes.LiteralUnroll,
        untyped_passes.LiteralPropagationSubPipelinePass,
        typed_passes.InlineOverloads,
        typed_passes.NopythonRewrites,
        typed_passes.NoPythonSupportedFeatureValidation,
        typed_passes.DumpParforDiagnostics,
    }
)


class LeanCompiler(Compiler):
    """Compiles what is written as kernels are."""

    def define_pipelines(self) -> Any:
        """The steps, in their order."""
        every = super().define_pipelines()
        for one in every:
            # Each once, at its first place: Numba prunes again what was inlined meanwhile.
            wanted = {step: why for step, why in reversed(one.passes) if step not in LEFT_OUT}
            in_order = dict.fromkeys(step for step, _ in one.passes if step in wanted)
            one.passes = [(REPLACED.get(step, step), wanted[step]) for step in in_order]
        return every
