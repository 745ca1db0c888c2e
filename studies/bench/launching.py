"""Launches a kernel of the catalogue on the GPU: its arrays and arguments.

The shipped PTX is compiled by the driver, which keeps its source lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from memsim.argument_types import ArrayArg, Texture1D
from memsim.job import Job
from memsim.kernels import Spec
from memsim.validate.run_cubin import STATIC_SHARED_BYTES, texture_over
from studies.kernel_ptx import ptx_path

CODE = "the shipped PTX, loaded by CuPy's RawModule and compiled by the driver"


def make_arrays(cupy: Any, job: Job) -> dict[str, Any]:
    """The arrays of a launch by name, on the device."""
    arguments = {
        name: value.array if isinstance(value, Texture1D) else value
        for name, value in zip(_spec(job).arguments, job.args, strict=True)
    }
    return {
        name: cupy.asarray(array.make()) for name, array in arguments.items() if isinstance(array, ArrayArg)
    }


def launcher(cupy: Any, job: Job, arrays: Mapping[str, Any]) -> Callable[[], None]:
    """A function that launches the kernel on `arrays`, by name, without waiting for it."""
    spec = _spec(job)
    arguments = []
    for name, value, parameter in zip(spec.arguments, job.args, spec.kernel().parameters, strict=True):
        if isinstance(value, Texture1D):
            arguments.append(texture_over(cupy, arrays[name]))
        elif name in arrays:
            arguments.append(arrays[name])
        else:
            kind = "f" if isinstance(value, float) else "i"
            arguments.append(np.dtype(f"{kind}{parameter.size}").type(value))

    function = _module(cupy, str(ptx_path(spec))).get_function(spec.entry)
    shape = job.launch
    if shape.shared_bytes > STATIC_SHARED_BYTES:
        function.max_dynamic_shared_size_bytes = shape.shared_bytes
    return lambda: function(shape.grid, shape.block, tuple(arguments), shared_mem=shape.shared_bytes)


@cache
def _module(cupy: Any, path: str) -> Any:
    """The driver takes a while to compile one."""
    return cupy.RawModule(path=path)


def _spec(job: Job) -> Spec:
    assert isinstance(job.kernel, Spec)
    return job.kernel
