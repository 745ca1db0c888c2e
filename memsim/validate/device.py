"""The GPU of this machine, through CuPy; files of recordings, never overwritten: JSON read by types; and the
program of one file that measures a GPU which nobody measured: `standalone.py` with its data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from memsim.arch import ARCHS
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.validate import standalone
from memsim.validate.standalone import Gpu, Refused, driver_version
from memsim.version import __version__

# Types of the fields of recordings, by which `check_record` validates files.
Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Chip = Annotated[str, Meta(pattern=r"^sm_\d+[a-z]?$")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="UTC")]
Dim3 = tuple[Positive, Positive, Positive]

#: Characters of a part of a record that is not broken into lines.
ON_ONE_LINE = 180
T = TypeVar("T")


def now() -> str:
    """The date of a recording: UTC, ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_record(record: object, version: int, document: type[T], file: str | None = None) -> T:
    """A record of schema `version`, validated as type `document`.

    Raises:
        MemsimError: it is invalid.
    """
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != version:
        said = f"a recording of schema {schema!r}; this memsim reads schema {version}"
        raise MemsimError(said, file=file)
    try:
        found = msgspec.convert(record, document)
    except (msgspec.ValidationError, ValueError) as error:
        raise MemsimError(f"not a recording: {error}", file=file) from None
    unknown = _unknown(record, {"schema": version, **msgspec.to_builtins(found)})
    if unknown is not None:
        raise MemsimError(f"not a recording: unknown field `{unknown}`", file=file)
    return found


def _unknown(record: object, known: object) -> str | None:
    """A field that is in `record`, or in objects inside it, and not in `known`; None if there is none."""
    found: Iterable[str | None] = ()
    if isinstance(record, dict) and isinstance(known, dict):
        found = (key if key not in known else _unknown(value, known[key]) for key, value in record.items())
    elif isinstance(record, list) and isinstance(known, Sequence) and record and isinstance(record[0], dict):
        found = map(_unknown, record, known)
    return next(filter(None, found), None)


def write_record(record: JsonObject, path: Path, replaces: bool = False) -> None:
    """Write a new file atomically. replaces: it may be there, with what the same run had so far.

    Raises:
        MemsimError: the file exists, or cannot be written.
    """
    if path.exists() and not replaces:
        raise MemsimError("a recording is never overwritten", file=str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MemsimError(f"cannot write the recording: {error.strerror}", file=str(path)) from None
    write_text(path, _text(record) + "\n", "the recording")


def on_gpu(folder: Path, paths: Iterable[Path], gpu: str | None, what: str, command: str) -> list[Path]:
    """The files below `folder` of the GPU with that folder name, or of any; sorted.

    what, command: what is recorded, and what records it, for the error.

    Raises:
        MemsimError: there is none; the hint lists the GPUs with recordings.
    """
    found = {path: path.relative_to(folder).parts[0] for path in sorted(paths)}
    fitting = [path for path, name in found.items() if gpu in (None, name)]
    if not fitting:
        there = ", ".join(sorted(set(found.values())))
        raise MemsimError(
            f"there is no recording {what}" + (f" on {gpu}" if gpu else ""),
            hint=f"there are: {there}" if there else f"{command} makes one, on a machine with a GPU",
        )
    return fitting


def free_path(home: Path, stem: str, suffix: str = ".json") -> Path:
    """`STEM.json` in the folder `home`, or the first unused of `STEM.run2.json` and so on."""
    names = (stem + (f".run{run}" if run > 1 else "") + suffix for run in count(1))
    return next(home / name for name in names if not (home / name).exists())


def _text(value: object, indent: str = "") -> str:
    """JSON with one line per item, readable and easy to diff; what is short, lists of plain values and
    objects of numbers are on one line.
    """
    inner, whole = indent + " ", json.dumps(value)
    if indent and len(whole) <= ON_ONE_LINE:
        return whole
    if isinstance(value, dict) and not all(isinstance(item, (int, float)) for item in value.values()):
        items = [f"{inner}{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}" if items else "{}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple, dict)) for item in value):
        return "[\n" + ",\n".join(inner + _text(item, inner) for item in value) + f"\n{indent}]"
    return whole


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU and its software. `driver` is the driver's version, `cuda` the CUDA release that it
    supports.
    """

    gpu: Text
    compute_capability: Annotated[str, Meta(pattern=r"^\d+\.\d$")]
    driver: Text
    cuda: Annotated[str, Meta(pattern=r"^\d+\.\d+$")]
    cupy: Text

    @property
    def arch(self) -> str:
        """The chip's name in compilers: sm_90 for 9.0."""
        return f"sm_{self.compute_capability.replace('.', '')}"

    @property
    def slug(self) -> str:
        """The GPU's name as a folder of `traces/`: nvidia-h100-80gb-hbm3."""
        return slug(self.gpu)


def native_arch() -> str:
    """The chip of this machine's GPU, such as sm_86; needs only the driver.

    Raises:
        MemsimError: no driver or no GPU.
    """
    try:
        capability = Gpu().about()["compute_capability"]
    except Refused as error:
        raise MemsimError(str(error), hint="name a chip, such as --arch sm_90") from None
    return f"sm_{capability.replace('.', '')}"


def slug(name: str) -> str:
    """`name` in lower case, with hyphens for anything but letters and digits."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def this_device() -> Device:
    """The first GPU of this machine.

    Raises:
        MemsimError: no CuPy, no driver or no GPU.
    """
    cupy = load_cupy()
    runtime = cupy.cuda.runtime
    try:
        properties = runtime.getDeviceProperties(0)
        cuda = runtime.driverGetVersion()
    except runtime.CUDARuntimeError as error:
        raise _without_gpu(str(error)) from None
    name = properties["name"]
    return Device(
        gpu=name.decode() if isinstance(name, bytes) else name,
        compute_capability=f"{properties['major']}.{properties['minor']}",
        driver=driver_version(),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
        cupy=cupy.__version__,
    )


def check_chip(device: Device) -> None:
    """Raise unless there are rules for this chip."""
    if device.arch not in ARCHS:
        raise MemsimError(
            f"there are no rules for {device.gpu} ({device.arch}), only for {', '.join(ARCHS)}",
            hint="memsim probe --export writes a program that measures this GPU (docs/chips.md)",
        )


def load_cupy() -> ModuleType:
    """The module `cupy`.

    Raises:
        MemsimError: it is not installed or cannot be loaded.
    """
    try:
        import cupy  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        if getattr(error, "name", None) != "cupy":
            raise MemsimError(f"CuPy cannot be loaded: {error}", hint="reinstall it") from None
        raise MemsimError(
            "CuPy is not installed; memsim runs kernels on the GPU through it",
            hint="pip install cupy-cuda12x (cupy-cuda13x for a driver of CUDA 13), or omit --live "
            "to compare with a recording",
        ) from None
    found: ModuleType = cupy
    return found


def _without_gpu(problem: str) -> MemsimError:
    """CUDA's error names distinguish a missing driver from a missing GPU."""
    if "InsufficientDriver" in problem or "StubLibrary" in problem:
        return MemsimError(
            f"there is no NVIDIA driver that CuPy can use ({problem})",
            hint="install NVIDIA's driver (in a container: start it with --gpus all), or omit --live",
        )
    if "NoDevice" in problem or "InvalidDevice" in problem:
        return MemsimError(
            f"there is no NVIDIA GPU here ({problem})",
            hint="check CUDA_VISIBLE_DEVICES, or omit --live to compare with a recording",
        )
    return MemsimError(f"the GPU does not respond: {problem}", hint="see nvidia-smi")


#: The line of the program that has its data.
EMPTY = "DATA: dict[str, Any] = {}"
#: Programs and address patterns, as `python -m lab.clock.clock_programs` writes them.
PROGRAMS = Path(standalone.__file__).with_suffix(".json")


def program_data() -> JsonObject:
    """What the program runs, as `standalone.measure` takes it."""
    return {"memsim": __version__, **json.loads(PROGRAMS.read_text("utf-8"))}


def program_text() -> str:
    """The text of the program of one file."""
    head, tail = Path(standalone.__file__).read_text("utf-8").split(EMPTY, 1)
    text = json.dumps(program_data(), indent=0)
    return f"{head}{EMPTY.removesuffix('{}')}json.loads(r'''\n{text}\n'''){tail}"
