"""Sources to compile. Where no compiler is installed, the tests that import them are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.compile.prepare import Compiled
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from memsim.sass.machine_code import read_module

SCALE = """\
extern "C" __global__ void scale(float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= FACTOR;
}
"""
GOOD = SCALE.replace("FACTOR", "2.0f")
HOST = "#include <cstdio>\n" + GOOD + '\nint main() { scale<<<1, 32>>>(nullptr, 0); std::printf("done"); }\n'
TWICE = "__device__ inline float twice(const float *x) { return *x * 2.0f; }\n"
INCLUDING = '#include "twice.cuh"\n' + SCALE.replace("x[i] *= FACTOR", "x[i] = twice(x + i)")

try:
    compile_cubin(GOOD)
except MemsimError as error:
    pytest.skip(error.message, allow_module_level=True)


def write(source: Path, header: Path | None = None) -> Path:
    """Writes INCLUDING as `source`, and what it includes beside it, or as `header`; returns `source`."""
    header = header or source.with_name("twice.cuh")
    for path, text in ((source, INCLUDING), (header, TWICE)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return source


def ptx_in(compiled: Compiled) -> str:
    """The PTX that a cubin was made from."""
    return read_cubin(compiled.cubin).ptx or ""


def places_of(compiled: Compiled) -> list[tuple[str, int]]:
    """(file, line) of each instruction, by the display names of files."""
    module = read_module(compiled.cubin, names=compiled.names)
    lines = (line for listing in module.listings.values() for line in listing.lines)
    return [(line.source.file, line.source.line) for line in lines if line.source is not None]


def files_of(compiled: Compiled) -> list[str]:
    """The files that its code names, by their display names, in order."""
    return sorted({file for file, _ in places_of(compiled)})
