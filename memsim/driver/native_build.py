"""Builds memsim's stand-ins for CUDA's driver, its runtime and cuBLAS, `native/*.c`, with the system's C
compiler and CUDA's headers.

Each major release of CUDA has a runtime of its own, whose structures differ, and a cuBLAS; the driver is one.
cuBLAS is built where its headers are, which lie beside it. What a header
declares and the sources do not define becomes a function that refuses and says its name. The libraries lie in
the user's cache folder, by a digest of all that they are made of; they are in no library path.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from memsim.compile.toolkit import crt_folders, find_tools, header_folders
from memsim.data import data_folder
from memsim.driver.native_arithmetic import LIBRARY
from memsim.errors import MemsimError
from memsim.interpreter.native_launch import PLAIN, WITH_AVX2
from memsim.programs import run_program, text_of
from memsim.store import Store, cache_folder

OPTIONS = ("-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror=implicit")
#: How the interpreter is compiled: its loops over lanes for vectors, every operation rounded for itself.
VECTORISED = (
    *("-std=gnu11", "-O2", "-ftree-vectorize", "-fPIC", "-fvisibility=hidden"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wno-unknown-pragmas"),
)
#: The libraries of the interpreter, with options for the processors that they are for.
INTERPRETERS = {PLAIN: (), WITH_AVX2: ("-mavx2", "-mfma", "-mf16c")}
#: The way to memsim, which all others need: a libcuda.so.1 that a linker finds first may be another one.
CHANNEL = "libmemsim.so"
X86 = ("x86_64", "AMD64")
#: Where pip puts CUDA's headers in an environment.
WHEELS = "lib/python3*/site-packages/nvidia/*/include"
#: Forms of a function for programs whose default stream is one for each thread; the same here.
PER_THREAD = ("_ptsz", "_ptds")

_VERSION = re.compile(r"^#define CUDA_VERSION (\d+)", re.M)
_DRIVER = re.compile(r"\bCUresult CUDAAPI\s+(cu\w+)\s*\(")
_NEWEST = re.compile(r"^\s*#\s*define (cu[A-Z]\w*)\s+(?:__CUDA_API_PT\w+\()?(cu[A-Z]\w*)\)?\s*$", re.M)
_BLAS = re.compile(r"\bCUBLASWINAPI\s+(cublas\w+)\s*\(")
_RUNTIME = re.compile(r"\bCUDARTAPI\s+(cuda\w+)\s*\(")
_DRIVER_ERROR = re.compile(r"^ +(CUDA_(?:SUCCESS|ERROR_\w+))\s*=\s*(\d+)", re.M)
_RUNTIME_ERROR = re.compile(r"^ +(cuda(?:Success|Error\w+))\s*=\s*(\d+)", re.M)


def libraries(program: str = "") -> Path:
    """The folder with `libcuda.so.1`, which `-lcuda` finds, too, and a `libcudart.so` and a `libcublas.so`
    for each release of CUDA whose headers are found, by preference those of a program's own Python
    environment.

    Raises:
        MemsimError: not Linux, no C compiler, no headers of CUDA, or they do not compile.
    """
    if sys.platform != "linux":
        raise MemsimError(
            "memsim exec runs programs on Linux only", hint="the other verbs analyze their kernels everywhere"
        )
    compiler = c_compiler()
    if compiler is None:
        raise MemsimError(
            "memsim exec needs a C compiler, once, to build its CUDA libraries", hint="install gcc or clang"
        )
    headers = newest_headers(headers_beside(program))
    sources = sorted(data_folder("native").glob("*.[ch]"))
    said = [Path(__file__).read_bytes(), *(one.read_bytes() for one in sources), compiler.encode()]
    said += [f"{folder} {version}".encode() for version, folder in sorted(headers.items())]
    made = cache_folder() / "native" / sha256(b"\0".join(said)).hexdigest()[:24]
    if not made.is_dir():
        made.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=made.parent) as scratch:
            _build(Path(scratch), made, compiler, headers)
            with_mode = Path(scratch, "libraries")
            try:
                with_mode.rename(made)
            except OSError:  # another process was faster
                if not made.is_dir():
                    raise
    return made


def c_compiler() -> str | None:
    """The system's C compiler."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def headers_beside(program: str) -> list[Path]:
    """The folders with headers of the Python environment that a program is of: those of its own CUDA."""
    found = shutil.which(program) if program else None
    return sorted(Path(found).absolute().parent.parent.glob(WHEELS)) if found else []


def newest_headers(first: Sequence[Path] = ()) -> dict[int, Path]:
    """By version of CUDA (13000) a folder with `cuda.h` and `cuda_runtime_api.h`: the newest of each major
    release. What these include of `crt` is beside them, or in a wheel of its own.

    Raises:
        MemsimError: there is none.
    """
    roots = [
        *first,
        *header_folders(),
        *(tool.resolve().parents[1] / "include" for tool in find_tools("nvcc")),
    ]
    roots += sorted(Path("/usr/local").glob("cuda*/include"))
    found: dict[int, Path] = {}
    needed = ("cuda.h", "cuda_runtime_api.h", *(() if crt_folders() else ("crt/host_defines.h",)))
    for folder in roots:
        if all((folder / name).is_file() for name in needed):
            version = _VERSION.search((folder / "cuda.h").read_text(errors="replace"))
            if version is not None and int(version[1]) >= 12000:
                found.setdefault(int(version[1]), folder)
    newest = {version // 1000: version for version in sorted(found)}
    if not newest:
        raise MemsimError(
            "memsim exec needs CUDA's headers (cuda.h, cuda_runtime_api.h) of release 12 or later",
            hint="pip install nvidia-cuda-runtime-cu12 nvidia-cuda-crt, or install the CUDA toolkit",
        )
    return {version: found[version] for version in newest.values()}


def _build(scratch: Path, made: Path, compiler: str, headers: dict[int, Path]) -> None:
    """made: the folder that the libraries are for; a linker may meet them by links from others."""
    beside = f"-Wl,-rpath,$ORIGIN:{made}"
    libraries = scratch / "libraries"
    libraries.mkdir()
    native = data_folder("native")
    _run([compiler, "-O3", "-fPIC", "-shared", native / "arithmetic.c", "-o", libraries / LIBRARY, "-lm"])
    for name, options in INTERPRETERS.items() if platform.machine() in X86 else [(PLAIN, ())]:
        how = (*VECTORISED, *options, "-shared")
        _run([compiler, *how, native / "interpreter.c", "-o", libraries / name, "-lm"])
    newest = max(headers)
    driver, channel = libraries / "libcuda.so.1", libraries / CHANNEL
    named = f"-Wl,-soname,{CHANNEL}"
    _run([compiler, *OPTIONS, "-shared", named, native / "channel.c", "-o", channel, "-lpthread"])
    for version, folder in sorted(headers.items(), reverse=True):
        work = scratch / str(version)
        (work / "nv").mkdir(parents=True)
        (
            work / "nv" / "target"
        ).touch()  # cuBLAS's headers include it; in C it says nothing, and PyTorch lacks it
        if version == newest:
            _write_driver(folder, work)
            _link(compiler, work, folder, ("driver",), driver, [str(channel), beside, "-ldl", "-lpthread"])
            # `-lcuda` finds it, by which Triton up to 3.5 links what it launches kernels with.
            driver.with_suffix("").symlink_to(driver.name)
        soname = f"libcudart.so.{version // 1000}"
        _write_runtime(folder, work)
        (work / "version").write_text(f"{soname} {{ global: *; }};\n")
        linked = [str(driver), str(channel), beside, f"-Wl,--version-script={work / 'version'}"]
        _link(compiler, work, folder, ("runtime", "cupy"), libraries / soname, linked)
        if (folder / "cublasLt.h").is_file():
            _build_blas(compiler, folder, work, channel, beside, version // 1000)


def _build_blas(compiler: str, folder: Path, work: Path, channel: Path, beside: str, major: int) -> None:
    """libcublas and libcublasLt, which belong together."""
    for part, name, headers in (
        ("blas", "libcublas", ("cublas.h", "cublas_api.h")),
        ("blas_lt", "libcublasLt", ("cublasLt.h",)),
    ):
        soname = f"{name}.so.{major}"
        texts = ((folder / header).read_text(errors="replace") for header in headers)
        _write_refused(work, {found for text in texts for found in _BLAS.findall(text)})
        (work / "version").write_text(f"{soname} {{ global: *; }};\n")
        linked = [str(channel), beside, f"-Wl,--version-script={work / 'version'}"]
        _link(compiler, work, folder, (part,), channel.with_name(soname), linked)


def _link(
    compiler: str, work: Path, headers: Path, parts: tuple[str, ...], out: Path, more: list[str]
) -> None:
    """Compiles parts and what they leave out, and links them."""
    sources = data_folder("native")
    folders = [work, headers, *([] if (headers / "crt").is_dir() else crt_folders()), sources]
    objects = []
    for source in (*(sources / f"{part}.c" for part in parts), work / "refused.c"):
        objects.append(work / f"{source.stem}.o")
        include = [f"-I{folder}" for folder in folders] if source.parent == sources else []
        _run([compiler, *OPTIONS, "-Wno-unused", *include, "-c", source, "-o", objects[-1]])
    _run([compiler, "-shared", f"-Wl,-soname,{out.name}", "-o", out, *objects, f"@{work / 'aliases'}", *more])


def compile_library(functions: str) -> bytes | None:
    """A library of functions in C that include native/*.h, for AVX2; None if it cannot be made."""
    compiler, native = c_compiler(), data_folder("native")
    how = (*VECTORISED, *INTERPRETERS[WITH_AVX2], "-shared", f"-I{native}")
    headers = [one.read_text() for one in sorted(native.glob("*.h"))]
    store, key = Store(cache_folder()), "\n".join((f"library by {compiler} {how}", functions, *headers))
    found = store.get(key)
    if found is None and compiler is not None:
        with suppress(MemsimError, OSError), TemporaryDirectory(prefix="memsim") as scratch:
            source, made = Path(scratch, "functions.c"), Path(scratch, "functions.so")
            source.write_text(functions)
            _run([compiler, *how, source, "-o", made, "-lm"])
            store.put(key, found := made.read_bytes())
    return found


def _run(command: list[str | Path]) -> None:
    done = run_program(command, "the C compiler")
    if done.returncode:
        raise MemsimError("memsim's CUDA libraries do not compile here", hint=text_of(done).strip()[-2000:])


def _write_driver(folder: Path, work: Path) -> None:
    text = (folder / "cuda.h").read_text(errors="replace")
    newest = {name: newer for name, newer in _NEWEST.findall(text) if name != newer}
    _write_refused(work, {*_DRIVER.findall(text), *newest, *newest.values()})
    _write_pairs(work / "versions.h", ((f'"{name}"', newer) for name, newer in sorted(newest.items())))
    _write_pairs(work / "driver_errors.h", ((number, name) for name, number in _DRIVER_ERROR.findall(text)))


def _write_runtime(folder: Path, work: Path) -> None:
    text = (folder / "cuda_runtime_api.h").read_text(errors="replace")
    types = (folder / "driver_types.h").read_text(errors="replace")
    _write_refused(work, {*_RUNTIME.findall(text), "__cudaLaunchKernel"})
    _write_pairs(
        work / "runtime_errors.h", ((number, name) for name, number in _RUNTIME_ERROR.findall(types))
    )


def _write_refused(work: Path, names: set[str]) -> None:
    """A weak definition of each function, which a real one replaces, and its forms for streams of threads."""
    plain = sorted(name for name in names if not name.endswith(PER_THREAD))
    weak = '__attribute__((weak, visibility("default")))'
    lines = [f'{weak} int {name}(void) {{ return memsim_refuse("{name}"); }}' for name in plain]
    (work / "refused.c").write_text("int memsim_refuse(const char *);\n" + "\n".join(lines) + "\n")
    aliases = (f"-Wl,--defsym={name}{form}={name}" for name in plain for form in PER_THREAD)
    (work / "aliases").write_text("\n".join(aliases) + "\n")


def _write_pairs(file: Path, pairs: Iterator[tuple[str, str]]) -> None:
    file.write_text("".join(f'{{{first}, "{second}"}},\n' for first, second in pairs))
