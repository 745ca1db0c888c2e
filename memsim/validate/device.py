"""The GPU of this machine, through CuPy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from memsim.arch import ARCHS
from memsim.errors import MemsimError
from memsim.validate.recording_files import Text
from memsim.validate.standalone import Gpu, Refused, driver_version


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


def load_cupy() -> Any:
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
    return cupy


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
