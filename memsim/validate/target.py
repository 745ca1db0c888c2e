"""The program that runs under ncu: `python -m memsim.validate.target PLAN RESULT`.

In: PLAN, a JSON list of launches (`kernel`, `size`, `seed`). Out: RESULT, JSON with how far each kernel's
output was from the reference, or with the error that ended the program. What runs is the shipped PTX on
the arguments that the prediction is made for; the driver compiles it, and keeps its source lines.
Left out on purpose: measuring, which is ncu's. It looks only at what stands between the start and the
stop of the profiler here, so that the reference costs nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.kernels import Plan, Spec, catalog
from memsim.validate.device import load_cupy
from memsim.validate.onchip import launcher, make_arrays, refusals

REFERENCE = "the same in float64 on the GPU, by CuPy (products by cuBLAS)"
UNIT_ROUNDOFF = 2.0**-24  # of float32


def main(arguments: Sequence[str]) -> int:
    """Runs the plan in `arguments[0]` and writes `arguments[1]`; 0 if every launch could be made."""
    plan, result = map(Path, arguments)
    try:
        done = [run(**launch) for launch in json.loads(plan.read_text("utf-8"))]
    except MemsimError as error:
        result.write_text(json.dumps({"error": error.message, "hint": error.hint}), "utf-8")
        return error.exit_code
    result.write_text(json.dumps({"results": done}), "utf-8")
    return 0


def run(kernel: str, size: Sequence[int], seed: int) -> dict[str, Any]:
    """Launches a kernel of the catalogue, measured, and compares its outputs with the reference.

    Raises:
        MemsimError: CuPy absent, or CUDA refuses the kernel or its launch.
    """
    spec = catalog()[kernel].pick(size)
    cupy = load_cupy()
    with refusals(cupy, kernel, size):
        arrays = launch(cupy, spec, spec.launch(size, seed))
        return {"kernel": kernel, "size": list(size), **check(cupy, spec, spec.sizes(size), arrays)}


def launch(cupy: Any, spec: Spec, plan: Plan) -> dict[str, Any]:
    """The launch itself, between the profiler's start and stop; the arrays by name, on the device."""
    from cupyx.profiler import profile  # type: ignore[import-not-found,unused-ignore]

    arrays = make_arrays(cupy, plan)
    for name in plan.outputs:
        arrays[name].fill(np.nan)  # so that an element that the kernel leaves out is seen
    run_once = launcher(cupy, spec, plan, arrays)
    cupy.cuda.Device().synchronize()
    with profile():
        run_once()
    return arrays


def check(cupy: Any, spec: Spec, sizes: Mapping[str, int], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """How far the outputs are from the reference, and whether float32 rounding explains it.

    The bound: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1, for sums of K products
    in any order; the same reference worked out on absolute values gives its second factor. A kernel that
    sums nothing has to be equal.
    """
    roundings = sizes.get("K", 0) * UNIT_ROUNDOFF
    inputs = {name: arrays[name] for name in arrays if name not in spec.family.outputs}
    expected = spec.expected(inputs)
    scale = spec.expected({name: cupy.abs(array) for name, array in inputs.items()})
    right, largest = True, 0.0
    for name in spec.family.outputs:
        error = cupy.abs(arrays[name] - expected[name])
        right = right and bool((error <= roundings / (1 - roundings) * scale[name]).all())
        largest = max(largest, float(cupy.nan_to_num(error, nan=np.inf).max()))
    return {
        "reference": REFERENCE,
        "right": right,
        "largest_error": largest if np.isfinite(largest) else None,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
