"""The device code of a source for NVRTC, with its headers: those of the project, CUDA's own, and stand-ins
for the standard ones; and extra options.

For each `#include` it decides between a text of the project, a CUDA header, a stand-in, or nothing if only
host code needs it; and lists missing ones. There is no preprocessing: an `#include` counts whether or not it
is compiled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memsim.compile.host_code import Assertion, set_aside
from memsim.compile.options import include_folders
from memsim.compile.toolkit import cccl_folders, crt_folders, curand_folders, header_folders
from memsim.files import file_exists, read_bytes

STANDARD = Path(__file__).parent / "standin" / "standard.h"
STANDARD_NAME = "memsim/standard.h"

_INCLUDE = re.compile(
    rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"(?P<quoted>[^"\n]+)"|<(?P<system>[^>\n]+)>)', re.M
)

# The standard headers of C, C++ and POSIX. The stand-in provides what device code needs of them.
_STANDARD = frozenset((STANDARD.parent / "host_headers.txt").read_text(encoding="utf-8").split())
EMPTY_NAMES = sorted(_STANDARD)
#: What device code reads of the driver's header, `cuda.h`: which release it is of, that of NVRTC, and the
#: type of a tensor map; and another header that includes it.
DRIVER_NAME, OF_DRIVER = "cuda.h", "cudaTypedefs.h"
# Prefixes of headers that only host code can use.
_HOST = re.compile(
    r"(?:EGL|torch|ATen|c10|pybind11|nanobind|opencv2?|GL|GLFW|glad|gtest|gmock|benchmark|boost|Eigen|fmt|spdlog|nlohmann|nvtx3|"
    r"sys|linux|arpa|netinet|tensorflow|xla|absl|google|paddle|mkl|hip|CL|X11|OpenImageIO|tbb)/"
    r"|(?:cuda|cuda_runtime|cuda_runtime_api|device_launch_parameters|driver_types|cuda_profiler_api|cudaProfiler|"
    r"cuda_device_runtime_api|builtin_types|host_defines|vector_types|vector_functions|device_functions|"
    r"device_atomic_functions|math_functions|sm_\w+|cuda_\w+_interop|cuda(?:EGL|GL|Profiler|VDPAU)Typedefs|cudaEGL|cudaGL|cuda_texture_types|texture_types|texture_fetch_functions|surface_types|channel_descriptor|driver_functions|"
    r"nvrtc|nvJitLink|nvml|cupti\w*|nvToolsExt\w*|nvtx\w*|Python|helper_(?!math)\w+|numa|zlib|png|jpeglib)\.h(?:pp)?$"
    r"|(?:cublas|cudnn|cufft|cusparse|cusolver|curand|nccl|nvshmem|npp|nvjpeg|cutensor|cufile|nvgraph|cudss)\w*(?:\.h|/)(?<!curand_kernel\.h)"
)
# CUDA headers that are included only if device code uses their names: they are large, or need a host.
_BY_NAME = re.compile(r"(?:cub|thrust|cuda|nv)/")

# Where projects usually keep headers.
_USUAL = tuple("include inc src src/include common common/inc Common utils utilities util".split())
_LEVELS = 8


@dataclass(slots=True)
class SourceTree:
    """The texts of a source and of its project's headers, by path, and what becomes of their includes."""

    texts: dict[str, str]
    becomes: dict[tuple[str, str], str | None] = field(default_factory=dict)
    missing: dict[str, tuple[str, int]] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)


def read_project(text: str, path: str, folder: Path, options: Sequence[str]) -> SourceTree:
    """The source `text`, at `path` in `folder`, with the headers that it includes.

    A header is looked up in the folder of the including file and in those of `-I`.
    """
    project = SourceTree({path: text})
    folders = [folder, *include_folders(options)]
    waiting = [(path, folder)]
    while waiting:
        file, here = waiting.pop()
        content = project.texts[file].encode()
        for found in _INCLUDE.finditer(content):
            name = (found["quoted"] or found["system"]).decode("utf-8", "replace")
            places = folders if found["system"] else [here, *folders]
            header = _find(name, places)
            if header is None:
                header = _in_project(name, here, bool(found["system"]))
                if header is not None:
                    project.found[name] = header.as_posix()
            if header is not None:
                inside = header.as_posix()
                project.becomes[file, name] = f'"{inside}"'
                if inside not in project.texts:
                    said = read_bytes(header).decode("utf-8-sig", "replace")
                    project.texts[inside] = said.replace("\r\n", "\n").replace("\r", "\n")
                    waiting.append((inside, header.parent))
            elif name in (DRIVER_NAME, OF_DRIVER):
                project.becomes[file, name] = f"<{DRIVER_NAME}>"
            elif name in _STANDARD or _HOST.match(name) or _BY_NAME.match(name):
                project.becomes[file, name] = None
            elif _is_of_cuda(name):
                project.becomes[file, name] = f"<{name}>"
            else:
                project.becomes[file, name] = None
                project.missing.setdefault(name, (file, content[: found.start()].count(b"\n") + 1))
    return project


def _find(name: str, places: Iterable[Path]) -> Path | None:
    for place in places:
        try:
            if file_exists(place / name):
                return Path(os.path.abspath(place / name))  # noqa: PTH100 (without `..`, and with links)
        except (OSError, ValueError):
            continue
    return None


def _is_of_cuda(name: str) -> bool:
    return _find(name, [*header_folders(), *curand_folders()]) is not None


def _in_project(name: str, here: Path, system: bool) -> Path | None:
    """A header outside of the include paths: in a folder above `here` or a usual place beside one."""
    if name in _STANDARD or _HOST.match(name) or _BY_NAME.match(name):
        return None
    if system and _is_of_cuda(name):
        return None
    for above in [here, *here.parents][:_LEVELS]:
        if above == Path.home() or above.parent == above:
            break
        found = _find(name, [above, *(above / usual for usual in _USUAL)])
        if found is not None:
            return found
        if (above / ".git").exists():
            break
    return None


def with_includes(text: str, file: str, project: SourceTree) -> str:
    """A text of the project with its `#include` lines replaced as decided."""

    def line(found: re.Match[bytes]) -> bytes:
        name = (found["quoted"] or found["system"]).decode("utf-8", "replace")
        becomes = project.becomes.get((file, name))
        return b"" if becomes is None else f"#include {becomes}".encode()

    return _INCLUDE.sub(line, text.encode()).decode("utf-8")


# --- stand-in for the standard headers

# A libcu++ header on each line, and the names of namespace std in it; first the functions of CUDA's own math.
_NAMES = (STANDARD.parent / "standard_names.txt").read_text(encoding="utf-8")
_LIBRARY = {header: names for header, *names in map(str.split, _NAMES.splitlines())}
_MATH = frozenset(_LIBRARY.pop("math"))
_OF_NAME = {name: header for header, names in _LIBRARY.items() for name in names}
_TYPE_TRAIT = re.compile(
    r"is_\w+|(?:add|remove|make)_(?:cv|const|volatile|reference|pointer|extent|lvalue|rvalue|signed|unsigned|all|cvref)\w*"
    r"|enable_if\w*|conditional\w*|integral_constant|true_type|false_type|bool_constant|decay\w*|common_type\w*"
    r"|underlying_type\w*|void_t|result_of\w*|invoke_result\w*|conjunction\w*|disjunction\w*|negation\w*|alignment_of\w*"
    r"|rank\w*|extent\w*|aligned_storage\w*|type_identity\w*"
)
# CUDA headers by names in device code: another header may have included them.
_OF_CUDA = {
    "cuda_fp16.h": re.compile(r"\b(?:__half2?|half2?)\b(?=[\s*&>),(]|$)", re.M),
    "cuda_bf16.h": re.compile(r"\b(?:__)?nv_bfloat16\w*|\b__nv_bfloat162\b"),
    "cuda_fp8.h": re.compile(r"\b__nv_fp8\w+"),
    "cooperative_groups.h": re.compile(r"\bcooperative_groups\b"),
    "cooperative_groups/reduce.h": re.compile(
        r"\b(?:cg|cooperative_groups)\s*::\s*(?:reduce|plus|greater|less)\b"
    ),
    "cooperative_groups/memcpy_async.h": re.compile(
        r"\b(?:cg|cooperative_groups)\s*::\s*(?:memcpy_async|wait)\b"
    ),
    "mma.h": re.compile(r"\b(?:wmma|nvcuda)\b"),
    "cuda_pipeline.h": re.compile(r"\b__pipeline_\w+"),
    "cuComplex.h": re.compile(r"\bcu(?:Float|Double)?Complex\b"),
    "math_constants.h": re.compile(r"\bCUDART_\w+"),
}
# The same of libcu++ and Thrust.
_ASYNCHRONOUS = r"memcpy_async|thread_scope|aligned_size_t|device"
_OF_CCCL = {
    header: re.compile(words)
    for header, words in {
        "cuda/atomic": r"\bcuda\s*::\s*atomic\b",
        "cuda/barrier": rf"\bcuda\s*::\s*(?:barrier\b|{_ASYNCHRONOUS})",
        "cuda/latch": r"\bcuda\s*::\s*latch\b",
        "cuda/pipeline": rf"\bcuda\s*::\s*(?:pipeline\b|{_ASYNCHRONOUS})",
        "cuda/semaphore": r"\bcuda\s*::\s*semaphore\b",
        "cuda/std/type_traits": r"\bcuda\s*::\s*std\b",
        "cuda/ptx": r"\bcuda\s*::\s*ptx\b",
        "thrust/complex.h": r"\bthrust\s*::\s*complex\b",
    }.items()
}
_TORCH = re.compile(r"\b(?:at|c10|torch)\s*::|\bC10_\w+")
# Names of std that usually are not meant after `using namespace std`.
_COMMON = frozenset(
    (
        "min max swap get size data array real imag arg norm copy fill reduce plus minus next begin end "
    ).split()
)
_BUILT_IN = frozenset(["move", "forward", "size_t"])


def stand_in(texts: Iterable[str]) -> str:
    """A header that is included first, with the names of `std::`, `cub::` and others that device
    code uses.
    """
    code = "\n".join(texts)
    names = set(re.findall(r"\bstd\s*::\s*(\w+)", code))
    if re.search(r"\busing\s+namespace\s+std\b", code):
        own = set(re.findall(r"\b(?:struct|class|using|union|enum)\s+(\w+)", code))
        names |= (
            {name for name in re.findall(r"\b[a-z_]\w*(?=\s*<)", code) if _header_of(name)} - own - _COMMON
        )
    headers = {_header_of(name) for name in names}
    lines = [STANDARD.read_text(encoding="utf-8")]
    lines += [f"#include <{header}>" for header, word in _OF_CUDA.items() if word.search(code)]
    if _TORCH.search(code):
        lines.append((STANDARD.parent / "torch.h").read_text(encoding="utf-8"))
    cccl = cccl_folders()
    if cccl:
        wanted = sorted(f"cuda/std/{header}" for header in headers if header)
        wanted += _of_cub(code, cccl[0])
        wanted += [header for header, word in _OF_CCCL.items() if word.search(code)]
        lines += [f"#include <{header}>" for header in dict.fromkeys(wanted)]
        if any(headers):
            lines.append("namespace std { using namespace cuda::std; }")
    lines.append((STANDARD.parent / "limits.h").read_text(encoding="utf-8"))
    maths = sorted(names & _MATH)
    lines.append(f"namespace std {{ {' '.join(f'using ::{name};' for name in maths)} }}")
    for name in dict.fromkeys(re.findall(r"\busing\s+namespace\s+([\w:]+)", code)):
        parts = [part for part in name.split("::") if part]
        lines.append("".join(f"namespace {part} {{ " for part in parts) + "}" * len(parts))
    return "\n".join(lines) + "\n"


def _header_of(name: str) -> str | None:
    if name in _BUILT_IN:
        return None
    if name in _OF_NAME:
        return _OF_NAME[name]
    return "type_traits" if _TYPE_TRAIT.fullmatch(name) else None


def _of_cub(code: str, cccl: Path) -> list[str]:
    """CUB's headers are named after their classes: `BlockReduce` is in `cub/block/block_reduce.cuh`."""
    found = []
    for name in dict.fromkeys(re.findall(r"\w*cub\s*::\s*([A-Z]\w*)", code)):
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        group = f"{snake.split('_')[0]}/{snake}"
        if name in ("Sum", "Max", "Min", "ArgMax", "ArgMin", "Equality", "Inequality"):
            group = "thread/thread_operators"
        if (cccl / "cub" / f"{group}.cuh").is_file():
            found.append(f"cub/{group}.cuh")
    return found


#: The option, in both spellings, that makes functions without an execution space specifier device functions.
DEFAULT_DEVICE = ("-default-device", "--device-as-default-execution-space")


#: NVRTC's error for `const float half = 1 / two;`, which nvcc folds where device code uses it.
DYNAMIC = "dynamic initialization is not supported"
_DYNAMIC = re.compile(rf"^(.+)\((\d+)\): error: {DYNAMIC}", re.MULTILINE)
_LITERAL = re.compile(r"\bconst(?=\s+(?:float|double)\s+\w+\s*=\s*-?[\d.]+(?:[eE][-+]?\d+)?[fF]?\s*;)")


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The device part of a source.

    Attributes:
        text: the source, with its lines and columns unchanged.
        headers: texts by the names that `text` includes them by: headers of the project, stand-ins.
        options: for NVRTC, in addition to the user's.
        missing: headers that were not found, with the file and line that include them.
        found: headers found outside of the include paths, and where.
    """

    text: str
    headers: dict[str, str]
    options: tuple[str, ...]
    missing: dict[str, tuple[str, int]]
    found: dict[str, str]
    asserts: bool


def device_code(
    text: str,
    true_name: str,
    folder: Path,
    options: Sequence[str],
    wanted: str = "",
    asserted: Assertion | None = None,
) -> DeviceCode:
    """The device code of the source `text` at `true_name` in `folder`.

    wanted: code that uses further names, in addition to the kernels.
    """
    project = read_project(text, true_name, folder, options)
    kept = set_aside(project.texts, true_name, re.findall(r"\w+", wanted), asserted)
    texts = {file: with_includes(content, file, project) for file, content in kept.items()}
    driver = (STANDARD.parent / DRIVER_NAME).read_text(encoding="utf-8")
    headers = {**dict.fromkeys(EMPTY_NAMES, "#pragma once\n"), DRIVER_NAME: driver}
    headers |= {file: content for file, content in texts.items() if file != true_name}
    headers[STANDARD_NAME] = stand_in([*kept.values(), wanted])
    more = [
        *(() if {*DEFAULT_DEVICE} & {*options} else DEFAULT_DEVICE[:1]),
        f"--pre-include={STANDARD_NAME}",
        # CUDA's own headers first: beside crt/ there may be those of another release.
        *(
            f"-I{place}"
            for find in (header_folders, cccl_folders, crt_folders, curand_folders)
            for place in find()[:1]
        ),
    ]
    asserts = any("static_assert" in content for content in project.texts.values())
    return DeviceCode(texts[true_name], headers, tuple(more), project.missing, project.found, asserts)


def with_constants(device: DeviceCode, true_name: str, log: str) -> DeviceCode:
    """Use `constexpr` instead of `const` where `log` reports a dynamic initialization, and for literals.

    No line moves, and no column of executed code: constants have none.
    """
    texts = {true_name: device.text, **device.headers}
    rows: dict[str, set[int]] = {}
    for file, row in _DYNAMIC.findall(log):
        rows.setdefault(file, set()).add(int(row))
    changed = {
        file: "\n".join(
            re.sub(r"\bconst\b", "constexpr", line, count=1) if row in rows.get(file, ()) else line
            for row, line in enumerate(_LITERAL.sub("constexpr", text).split("\n"), 1)
        )
        for file, text in texts.items()
    }
    return replace(device, text=changed.pop(true_name), headers=changed)
