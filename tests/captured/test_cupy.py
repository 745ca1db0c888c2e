"""Raw kernels of CuPy without a GPU, and stand-ins of their shape where CuPy is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.argument_types import ArrayArg
from memsim.errors import MemsimError

SOURCE = """
extern "C" __global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i * STRIDE] *= by;
}
extern "C" __global__ void divide(float *x, float y) { x[threadIdx.x] = x[threadIdx.x] / y; }
"""


@dataclass
class Kernel:
    """As `cupy.RawKernel`."""

    code: str
    name: str | None
    options: tuple[str, ...] = ()


@dataclass
class Module:
    """As `cupy.RawModule`."""

    code: str | None
    options: tuple[str, ...] = ()
    name_expressions: tuple[str, ...] | None = None


Kernel.__module__ = Module.__module__ = "cupy._core.raw"


def generated() -> Any:
    """As `cupy.ElementwiseKernel`, whose signature Python cannot tell."""
    kind = type("ElementwiseKernel", (), {"__call__": max, "__module__": "cupy._core._kernel"})
    return kind()


def real_generated() -> Any:
    """CuPy's own."""
    return pytest.importorskip("cupy").ElementwiseKernel("float32 x", "float32 y", "y = x * 2", "double_it")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("make", [generated, real_generated])
def test_a_kernel_that_cupy_writes_is_refused(make: Any) -> None:
    with pytest.raises(MemsimError, match="takes no ElementwiseKernel of CuPy"):
        memsim.analyze(make(), 8, 128, (ArrayArg((2048,)), ArrayArg((2048,))))


def test_what_has_no_signature_is_no_function_of_the_thread() -> None:
    with pytest.raises(MemsimError, match="a builtin_function_or_method is not a kernel that memsim reads"):
        memsim.analyze(max, 1, 32)


def real(source: str, name: str, options: tuple[str, ...]) -> Any:
    """CuPy's own."""
    return pytest.importorskip("cupy").RawKernel(source, name, options)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("make", [Kernel, real])
def test_a_raw_kernel_is_analyzed(make: Any) -> None:
    raw = make(SOURCE, "scale", ("-DSTRIDE=2", "--gpu-architecture=sm_70"))
    found = memsim.analyze(raw, 8, 128, (ArrayArg((2048,)), np.float32(2), 1024))
    assert [(s.op, s.array, s.sectors) for s in found.sites] == [("load", "x", 256), ("store", "x", 256)]
    assert [s.source for s in found.sites] == ["if (i < n) x[i * STRIDE] *= by;"] * 2
    assert {(s.file, s.line) for s in found.sites} == {("scale.cu", 4)}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_raw_module_has_kernels_by_name() -> None:
    for module in (Module(SOURCE, ("-DSTRIDE=1",)), _real_module()):
        found = memsim.analyze(module, 1, 32, (ArrayArg((32,)), 2.0, 32), name="scale")
        assert [s.sectors for s in found.sites] == [4, 4]
        with pytest.raises(MemsimError, match="several kernels"):
            memsim.analyze(module, 1, 32, (ArrayArg((32,)), 2.0, 32))


def _real_module() -> Any:
    try:
        import cupy
    except ImportError:
        return Module(SOURCE, ("-DSTRIDE=1",))
    return cupy.RawModule(code=SOURCE, options=("-DSTRIDE=1",))


@pytest.mark.slow
def test_a_module_of_one_kernel_needs_no_name() -> None:
    found = memsim.analyze(
        Module('extern "C" __global__ void one(int *x) { x[threadIdx.x] = 1; }'),
        1,
        32,
        [ArrayArg((32,), "int32")],
    )
    assert found.verdict.startswith("one: coalesced")


@pytest.mark.slow
def test_a_module_of_templates_has_the_instances_that_it_names() -> None:
    source = "template <typename T, int N> __global__ void fill(T *x) { x[threadIdx.x * N] = N; }"
    one, two = ("fill<float, 2>",), ("fill<float, 2>", "fill<double, 1>")
    for module, name in ((Module(source, (), one), None), (Module(source, (), two), two[0])):
        (site,) = memsim.analyze(module, 1, 32, [ArrayArg((64,))], name=name).sites
        assert (site.sectors, site.file) == (8, "kernel.cu" if name is None else "fill.cu")
    with pytest.raises(MemsimError, match="several kernels") as caught:
        memsim.analyze(Module(source, (), two), 1, 32, [ArrayArg((64,))])
    assert "fill<double, 1>" in str(caught.value.hint)


def test_options_are_those_that_cupy_adds_too() -> None:
    """-ftz=true: a quotient flushes what is too small to zero, as on the chip."""
    tiny = np.float32(1e-40)
    x = np.full(32, tiny, np.float32)
    from memsim.captured.analyze_any import kernel_of

    kernel = kernel_of(Kernel(SOURCE, "divide", ("-DSTRIDE=1",)), None, "sm_90")
    memsim.run(kernel, 1, 32, [x, 1.0])
    assert not x.any()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (Module(None), "loaded from a file"),
        (Kernel(SOURCE, "other", ("-DSTRIDE=1",)), "no kernel 'other'"),
        (Kernel('extern "C" __global__ void other() { oops; }', "other"), r"other\.cu"),
    ],
)
def test_what_is_wrong_is_said(raw: Any, message: str) -> None:
    with pytest.raises(MemsimError, match=message):
        memsim.analyze(raw, 1, 32, ())


def test_grid_and_block_are_needed() -> None:
    with pytest.raises(MemsimError, match="needs a grid and a block"):
        memsim.analyze(Kernel(SOURCE, "scale", ("-DSTRIDE=1",)))
