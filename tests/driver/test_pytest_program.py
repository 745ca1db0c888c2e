"""A program in a test, and tests as a program."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from memsim.driver.program_code import ABI_TAGS
from tests.driver.test_programs import programs

pytest_plugins = ("pytester",)
pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
    ),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]
__all__ = ["programs"]
ALONE = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "xdist", "benchmark")]


@pytest.mark.slow
def test_the_launches_of_a_program_are_judged(pytester: pytest.Pytester, programs: Path) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.memsim("sectors_per_request <= 4")
        def test_coalesced(memsim_exec):
            done = memsim_exec({str(programs)!r}, "vector_add")
            assert done.exit_code == 0 and [kind.kernel for kind in done.kinds] == ["add"]

        @pytest.mark.memsim("sectors_per_request <= 3")
        def test_broken(memsim_exec):
            memsim_exec({str(programs)!r}, "vector_add")

        def test_fault(memsim_exec):
            done = memsim_exec({str(programs)!r}, "out_of_bounds")
            assert "by thread (31, 0, 0)" in done.said[0]

        @pytest.mark.memsim("ways <= 1")
        def test_nothing_is_judged(memsim_exec):
            assert memsim_exec("true").exit_code == 0
    """)
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(passed=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*add: budget broken: sectors_per_request <= 3*"])


def test_a_suite_of_numba_kernels_runs(pytester: pytest.Pytester) -> None:
    pytest.importorskip("numba_cuda")
    pytester.makepyfile("""
        import numpy as np
        from numba import cuda

        @cuda.jit
        def saxpy(a, x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] += a * x[i]

        def test_saxpy():
            x = np.arange(1000, dtype=np.float32)
            there = cuda.to_device(np.ones_like(x))
            saxpy[4, 256](np.float32(2), cuda.to_device(x), there)
            np.testing.assert_array_equal(there.copy_to_host(), 2 * x + 1)
    """)
    found = pytester.runpytest_subprocess(*ALONE, "--memsim-analyze")
    found.assert_outcomes(passed=1)
    found.stderr.fnmatch_lines(["*::saxpy  (4,1,1)  (256,1,1)*", "*::saxpy: coalesced: *"])


def test_tags_of_numba_are_no_part_of_a_name() -> None:
    for name in ("f[abi:v1[abi:cw51cXTL_3d]]::g", "f[abi:cxx11]::g", "f::g"):
        assert ABI_TAGS.sub("", name) == "f::g"
    assert ABI_TAGS.sub("", "f<int [4]>") == "f<int [4]>"


@pytest.mark.slow
def test_a_suite_runs_with_memsim_for_a_device(pytester: pytest.Pytester, programs: Path) -> None:
    pytester.makepyfile("""
        import ctypes

        def test_device():
            assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0

        def test_bad():
            assert not "reached"
    """)
    found = pytester.runpytest_subprocess(*ALONE, "--memsim")
    found.assert_outcomes(passed=1, failed=1)
    assert found.ret == 1
    found.stderr.fnmatch_lines(["memsim: the program launched no kernel"])
    assert pytester.runpytest_subprocess(*ALONE, "--memsim", "--memsim-no").ret == 4
