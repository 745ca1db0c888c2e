"""CuPy, which has NVIDIA's static runtime in it, calls memsim's; scripts of kernels of tiles run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsim.driver.native_arithmetic import LIBRARY
from memsim.driver.native_build import libraries
from tests.captured.test_documents import PAGE, block
from tests.driver.test_own_device import done, pytestmark

__all__ = ["pytestmark"]

#: A module as Cython writes CuPy's, with functions whose types are known, are others, and are not memsim's.
STAND_IN = """
import ctypes
import memsim

with memsim.device():
    from memsim.driver.in_python import sitecustomize as hook

    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int, ctypes.c_int)
    check = kind(lambda *_: None)
    types = {
        "check_status": b"PyObject *(int, int __pyx_skip_dispatch)",
        "getDeviceCount": b"int (int __pyx_skip_dispatch)",
        "setDevice": b"PyObject *(int, int __pyx_skip_dispatch)",
        "malloc": b"intptr_t (int, int __pyx_skip_dispatch)",
        "other": b"int (int)",
        "streamCreateWithPriority": b"intptr_t (unsigned int, int, int __pyx_skip_dispatch)",
        "streamWaitEvent": b"PyObject *(intptr_t, intptr_t, int __pyx_skip_dispatch, struct __pyx_opt_args_13"
        b"cupy_backends_4cuda_3api_7runtime_streamWaitEvent *__pyx_optional_args)",
        "streamBeginCapture": b"PyObject *(intptr_t, int __pyx_skip_dispatch)",
    }
    place = ctypes.cast(check, ctypes.c_void_p)

    class Module:
        __pyx_capi__ = {name: hook.new_capsule(place, said, None) for name, said in types.items()}

        @staticmethod
        def runtimeGetVersion():
            return VERSION

    before = dict(Module.__pyx_capi__)
    hook.replace_functions(Module)
    print(sorted(name for name in types if Module.__pyx_capi__[name] is not before[name]))
    print(Module.getDeviceCount(), Module.setDevice(0), hasattr(Module, "malloc"))
    count = hook.address_of(Module.__pyx_capi__["getDeviceCount"], types["getDeviceCount"])
    print(ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(count)(0))
    stream = Module.streamCreateWithPriority(1, -1)
    print(Module.streamWaitEvent(stream, 0, flags=0), Module.streamWaitEvent(stream, 0))
"""


@pytest.mark.slow
def test_functions_of_the_same_type_are_replaced(tmp_path: Path) -> None:
    from memsim.driver.native_build import newest_headers

    shown = done(STAND_IN.replace("VERSION", str(max(newest_headers()))), tmp_path)
    replaced = "['getDeviceCount', 'setDevice', 'streamCreateWithPriority', 'streamWaitEvent']"
    assert shown.stdout == f"{replaced}\n1 None False\n1\nNone None\n", shown.stderr


@pytest.mark.slow
def test_a_programs_own_sitecustomize_is_executed(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    code = "import sitecustomize, sys; print('cupy.cuda.thrust' in sys.modules, sys.argv)"
    command = [sys.executable, "-m", "memsim", "exec", "--", "env", f"PYTHONPATH={tmp_path}", sys.executable]
    plain = subprocess.run([*command, "-c", code], capture_output=True, text=True, timeout=60)
    assert plain.stdout == "mine\nFalse ['-c']\n", plain.stderr
    with_ours = [
        "sh",
        "-c",
        f'PYTHONPATH="$PYTHONPATH:{tmp_path}" {sys.executable} -c "{code}"',
    ]
    both = subprocess.run([*command[:5], *with_ours], capture_output=True, text=True, timeout=60)
    assert both.stdout == plain.stdout, both.stderr


@pytest.mark.slow
def test_what_nvrtc_opens_by_name_is_loaded_with_pytorch(tmp_path: Path) -> None:
    """Beside it are NVIDIA's packages, of which PyTorch loads nothing behind a cuBLAS that fails."""
    library = tmp_path / "nvidia" / "cu13" / "lib" / "libnvrtc-builtins.so.13.0"
    library.parent.mkdir(parents=True)
    shutil.copy(libraries() / LIBRARY, library)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    code = (
        f"open_ = lambda: {library.name!r} in open('/proc/self/maps').read(); before = open_(); import torch"
    )
    command = [
        sys.executable,
        "-m",
        "memsim",
        "exec",
        "--",
        sys.executable,
        "-c",
        f"{code}; print(before, open_())",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert shown.stdout == "False True\n", shown.stderr


@pytest.mark.slow
def test_the_pages_generated_kernels(tmp_path: Path) -> None:
    pytest.importorskip("cupy")
    (tmp_path / "generated.py").write_text(block(PAGE, "python", "cupy.ReductionKernel("))
    command = [sys.executable, "-m", "memsim", "exec", "--analyze", "--", sys.executable, "generated.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    norm, blended = map(float, ran.stdout.split())
    assert ran.returncode == 0 and (round(norm, 3), round(blended, 5)) == (724.077, 1.41421), ran.stderr
    said = " ".join(ran.stderr.split())
    assert "114,688 of 147,456 global sectors are not needed" in said and "blend: coalesced" in said


@pytest.mark.slow
def test_what_cupy_has_compiled_is_done_by_others_or_refused(tmp_path: Path) -> None:
    """Its kernels of CUB and Thrust would not run, and not say so."""
    pytest.importorskip("cupy")
    script = """
import memsim
with memsim.device():
    import cupy
    x = cupy.arange(100, dtype=cupy.float32)
    print(float(x.sum()), float(x.max()), int(x.argmax()), float(cupy.cumsum(x)[-1]))
    try:
        cupy.sort(x)
    except RuntimeError as error:
        print(error)
    try:
        cupy.cuda.runtime.setDevice(7)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        print(error)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    first, second, third = ran.stdout.splitlines()
    assert first == "4950.0 99.0 99 4950.0" and second.startswith("Thrust is needed")
    assert third.startswith("cudaErrorInvalidDevice") and "has ended" not in ran.stderr


@pytest.mark.slow
def test_the_pages_kernels_of_tiles(tmp_path: Path) -> None:
    pytest.importorskip("cuda.tile")
    pytest.importorskip("cupy")
    (tmp_path / "tiles.py").write_text(block(PAGE, "python", "def turn(a, out)"))
    command = [sys.executable, "-m", "memsim", "exec"]
    ran, refused = (
        subprocess.run(
            [*command, "--arch", arch, "--", sys.executable, "tiles.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        for arch in ("sm_80", "sm_90")
    )
    assert (ran.returncode, ran.stdout) == (0, "True 1156.0 1156.0\n"), ran.stderr
    assert refused.returncode and "product copies by TMA" in refused.stderr
    assert "hint: give its loads and stores allow_tma=False, or choose --arch sm_80" in refused.stderr


@pytest.mark.slow
def test_the_pages_kernel_of_tilelang(tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    (tmp_path / "product.py").write_text(block(PAGE, "python", "def product(size"))
    command = [sys.executable, "-m", "memsim", "exec", "--analyze", "--", sys.executable, "product.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    told = block(PAGE, "text", "main_kernel")
    assert (ran.returncode, ran.stdout.startswith("True\n")) == (0, True), ran.stderr
    assert told.splitlines()[-1] in (ran.stdout + ran.stderr).splitlines()


def test_a_device_comes_before_cupy(tmp_path: Path) -> None:
    script = """
import sys, types
import memsim
sys.modules["cupy_backends"] = types.ModuleType("cupy_backends")
try:
    with memsim.device():
        pass
except memsim.MemsimError as error:
    print(error)
"""
    assert done(script, tmp_path).stdout.startswith("CuPy is loaded already, so this process has its device")
