"""A process whose own CUDA device is memsim."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
    ),
]
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")

LIBRARY = """\
__global__ void twice(int *a) { a[threadIdx.x] *= 2; }
extern "C" int run(int *words, int n) {
  int *a;
  cudaMalloc(&a, n * sizeof *a);
  cudaMemcpy(a, words, n * sizeof *a, cudaMemcpyHostToDevice);
  twice<<<1, n>>>(a);
  cudaMemcpy(words, a, n * sizeof *a, cudaMemcpyDeviceToHost);
  return cudaDeviceSynchronize();
}
"""
SCRIPT = """
import ctypes
import memsim

words = (ctypes.c_int * 32)(*range(32))
with memsim.device(analyze=True) as launches:
    run = ctypes.CDLL("./library.so").run
    assert run(words, 32) == 0 and list(words) == list(range(0, 64, 2))
(kind,) = launches
print(kind.kernel, kind.times, kind.analysis.verdict, len(str(kind.analysis)) > 99)
with memsim.device() as launches:
    print(run(words, 16), run(words, 16), words[15], words[31])
print([(kind.shape.block, kind.times, kind.analysis) for kind in launches])
print(run(words, 1), len(launches))
for arch in ("sm_80", "sm_90"):
    try:
        with memsim.device():
            with memsim.device(arch):
                pass
    except memsim.MemsimError as error:
        print(error)
"""


def done(script: str, folder: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """A script that has ended."""
    command = [*before, sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
@needs_nvcc
def test_a_block_has_its_launches_and_the_device_stays(tmp_path: Path) -> None:
    (tmp_path / "library.cu").write_text(LIBRARY)
    options = ["-arch=sm_90", "-cudart", "shared", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run(["nvcc", *options, "library.cu", "-o", "library.so"], cwd=tmp_path, check=True)
    found = done(SCRIPT, tmp_path)
    assert found.stdout.splitlines() == [
        "twice 1 twice: coalesced: 8 global sectors, all needed True",
        "0 0 120 62",
        "[((16, 1, 1), 2, None)]",
        "0 1",
        "the device of this process is sm_90 already, and not sm_80",
        "a block of memsim.device is not in another one: its launches would be in both",
    ], found.stderr
    assert (found.returncode, found.stderr) == (0, "")
    script = SCRIPT.partition("(kind,)")[0] + "print(launches)"
    within = done(script, tmp_path, sys.executable, "-m", "memsim", "exec", "--")
    assert within.stdout == "[]\n" and "memsim: 1 launch of 1 kind" in within.stderr


@pytest.mark.slow
def test_another_cuda_that_is_loaded_is_told(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int nothing;")
    subprocess.run(["cc", "-shared", "other.c", "-o", "libcudart.so.12"], cwd=tmp_path, check=True)
    script = """
import ctypes, memsim
ctypes.CDLL("./libcudart.so.12")
with memsim.device():
    pass
"""
    found = done(script, tmp_path)
    assert found.returncode == 1
    assert "libcudart.so.12 is loaded already, so this process has its device" in found.stderr
    assert done(script.replace("libcudart.so.12", "libc.so.6").replace("./", ""), tmp_path).returncode == 0
