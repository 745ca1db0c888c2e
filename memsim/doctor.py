"""Lists what memsim can use on this machine, and what is missing for which feature."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from memsim.arch import ARCHS, ASSUMED, BY_CLOCK, MEASURED, PUBLISHED, get_arch
from memsim.compile.assemble import PTXAS_WHEEL
from memsim.compile.compilers import find_nvcc
from memsim.compile.libraries import NVRTC
from memsim.compile.toolkit import find_tool, header_folders, tool_release
from memsim.document import Document
from memsim.driver.native_build import c_compiler
from memsim.errors import MemsimError
from memsim.validate.profiler import find_profiler

# The driver's setting that restricts GPU counters to root:
# https://developer.nvidia.com/nvidia-development-tools-solutions-err_nvgpuctrperm-permission-issue-performance-counters
DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
ONLY_ROOT = "RmProfilingAdminOnly: 1"


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that memsim uses if it is installed.

    needed_for: what does not work without it. found: version and path; "" if missing. hint: how to get it.
    required: whether memsim cannot count the accesses of a CUDA file without it.
    """

    name: str
    needed_for: str
    found: str
    hint: str
    required: bool = False


class DoctorDocument(Document, frozen=True, kw_only=True):
    """What memsim finds on a machine."""

    parts: tuple[Tool, ...]


def examine() -> tuple[Tool, ...]:
    """All tools, those required for counting first."""
    nvrtc, disassembler = "pip install nvidia-cuda-nvrtc-cu12", "pip install nvidia-cuda-nvdisasm"
    headers = ", ".join(map(str, header_folders()[:1]))
    return (
        Tool("NVRTC", "compiling .cu files", _nvrtc(), nvrtc, required=True),
        Tool("nvdisasm", "reading machine code", _tool("nvdisasm"), disassembler, required=True),
        Tool("cuobjdump", "programs and libraries", _tool("cuobjdump"), "pip install nvidia-cuda-cuobjdump"),
        Tool("CUDA headers", "cuda_fp16.h and its like", headers, "pip install nvidia-cuda-runtime-cu12"),
        Tool("nvcc", "what NVRTC cannot compile", _path(find_nvcc()), "install the CUDA toolkit"),
        Tool("C compiler", "memsim exec", c_compiler() or "", "install gcc or clang; Linux only"),
        Tool("ptxas", "reading .ptx files", _tool("ptxas"), f"pip install {PTXAS_WHEEL}"),
        Tool("matplotlib", "pictures as files", _package("matplotlib"), "pip install matplotlib"),
        Tool("CuPy", "--live", _cupy(), "pip install cupy-cuda12x, or cupy-cuda13x"),
        Tool("GPU and driver", "--live", _gpu(), "predictions need none"),
        Tool("ncu", "--live", _profiler(), "install Nsight Compute"),
        Tool("GPU counters", "--live", _counters(), "allow them to all users, or run memsim as root"),
    )


def compilers() -> tuple[str, ...]:
    """The compilers and the disassembler that are found, such as `NVRTC 12.9.86`."""
    found = (("NVRTC", _nvrtc()), ("nvcc", _path(find_nvcc())), ("nvdisasm", _tool("nvdisasm")))
    return tuple(f"{name} {version.split()[0]}" for name, version in found if version)


def tables() -> tuple[str, ...]:
    """Chips whose rules are known equally well, such as `sm_90: measured (NVIDIA H200)`."""
    alike: dict[str, list[str]] = {}
    for arch in map(get_arch, ARCHS):
        known = {rule.basis for rule in arch.rules}
        basis = ", ".join(how for how in (MEASURED, BY_CLOCK, PUBLISHED, ASSUMED) if how in known)
        products = ", ".join(board.product for board in arch.boards)
        alike.setdefault(f"{basis} ({products})" if products else basis, []).append(arch.name)
    return tuple(f"{' '.join(names)}: {basis}" for basis, names in alike.items())


def _nvrtc() -> str:
    path = NVRTC.path()
    version = _package("nvidia-cuda-nvrtc-cu12") or _package("nvidia-cuda-nvrtc")
    return f"{version} {path}".strip() if path is not None else ""


def _tool(name: str) -> str:
    return _path(find_tool(name))


def _path(tool: Path | None) -> str:
    return "" if tool is None else f"{tool_release(tool)} {tool}".strip()


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _cupy() -> str:
    names = ("cupy-cuda12x", "cupy-cuda13x", "cupy")
    return next((f"{version} ({name})" for name in names if (version := _package(name))), "")


def _gpu() -> str:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return ""
    query = [smi, "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if done.returncode or not done.stdout.strip():
        return ""
    name, capability, driver = (part.strip() for part in done.stdout.splitlines()[0].split(","))
    return f"{name}, sm_{capability.replace('.', '')}, driver {driver}"


def _profiler() -> str:
    try:
        found = find_profiler()
    except MemsimError:
        return ""
    return f"{found.version} {found.path}"


def _counters() -> str:
    try:
        said = DRIVER_PARAMETERS.read_text(encoding="utf-8")
    except OSError:
        return ""
    return "" if ONLY_ROOT in said else "open to all users"
