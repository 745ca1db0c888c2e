"""Measures what memory accesses and arithmetic cost on this machine's GPU, in cycles.

It needs Python 3.8 or later and NVIDIA's driver, nothing else:

    python3 memsim_probe.py [RECORDING.json]

and `python -m lab clock RECORDING.json`, in memsim's repository, judges what it writes. The driver compiles
each of the programs below, in which 32 warps execute one instruction over and over and read the clock before
and after.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: Programs and address patterns; `memsim probe --export` writes them here.
DATA: dict[str, Any] = {}

SCHEMA = 1
LIBRARIES = ("libcuda.so.1", "nvcuda.dll", "libcuda.so")
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
#: A figure is the least of so many: whatever interferes adds cycles.
TRIES = 3


class Refused(Exception):
    """The driver is missing, or refuses something."""


class Gpu:
    """The first GPU, through the driver's interface."""

    def __init__(self, cuda: ctypes.CDLL | None = None) -> None:
        self.cuda = load_driver() if cuda is None else cuda
        self.device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver; raises Refused unless it succeeds."""
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            raise Refused(f"{name}: {text.value.decode() if text.value else status}")

    def about(self) -> dict[str, str]:
        """The GPU and its driver."""
        name, cuda = ctypes.create_string_buffer(256), ctypes.c_int()
        self.call("cuDeviceGetName", name, len(name), self.device)
        self.call("cuDriverGetVersion", ctypes.byref(cuda))
        return {
            "gpu": name.value.decode(),
            "compute_capability": f"{self.attribute(MAJOR)}.{self.attribute(MINOR)}",
            "driver": driver_version(),
            "cuda": f"{cuda.value // 1000}.{cuda.value % 1000 // 10}",
        }

    def attribute(self, number: int) -> int:
        """An attribute of the device."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def cycles(self, ptx: str, table: Sequence[int], rounds: Sequence[int], threads: int) -> list[list[int]]:
        """Cycles of each pattern, 32 words of the table, for each number of rounds of a program's loop."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"probe")
        words = (ctypes.c_uint32 * len(table))(*table)
        cycles = (ctypes.c_uint64 * (len(table) // 32))()
        tables, results = self._memory(words), self._memory(cycles)
        self.call("cuMemcpyHtoD_v2", tables, words, ctypes.c_size_t(ctypes.sizeof(words)))

        def run(number: int) -> list[int]:
            numbers = (ctypes.c_uint32(value) for value in (len(cycles), number, 0))
            values = tables, results, *numbers
            arguments = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
            shape = map(ctypes.c_uint, (1, 1, 1, threads, 1, 1, 0))
            self.call("cuLaunchKernel", function, *shape, None, arguments, None)
            self.call("cuCtxSynchronize")
            self.call("cuMemcpyDtoH_v2", cycles, results, ctypes.c_size_t(ctypes.sizeof(cycles)))
            return list(cycles)

        least = [[min(tries) for tries in zip(*(run(number) for _ in range(TRIES)))] for number in rounds]
        for memory in (tables, results):
            self.call("cuMemFree_v2", memory)
        self.call("cuModuleUnload", module)
        return least

    def _memory(self, like: ctypes.Array[ctypes.c_uint32] | ctypes.Array[ctypes.c_uint64]) -> ctypes.c_uint64:
        """The address of as much device memory."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(like)))
        return address


def load_driver() -> ctypes.CDLL:
    """NVIDIA's driver library; raises Refused if there is none."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Refused(f"there is no NVIDIA driver here: no {' or '.join(LIBRARIES[:2])}")


def driver_version() -> str:
    """The driver's version by nvidia-smi; "unknown" without it."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        said = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return said.stdout.decode().strip() or "unknown"
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def text_of(program: dict[str, Any]) -> str:
    """A program's PTX, whose body is repeated."""
    text: str = program["ptx"]
    return text.replace("BODY", "\n".join([program["body"]] * program["times"]))


def words_of(patterns: Sequence[str]) -> list[int]:
    """Patterns, four hexadecimal digits for a lane, as words: the highest bit set if it is active, and its
    address.
    """
    digits = "".join(patterns)
    lanes = [int(digits[i : i + 4], 16) for i in range(0, len(digits), 4)]
    return [lane & 0x7FFF | (lane >> 15) << 31 for lane in lanes]


def measure(
    gpu: Gpu, data: dict[str, Any], tell: Callable[[str], None] = lambda name: None
) -> dict[str, Any]:
    """The recording: every program whose instruction the GPU has."""
    about = gpu.about()
    chip = int(about["compute_capability"].replace(".", ""))
    measured, refused = {}, {}
    for program in data["programs"]:
        name = program["name"]
        if program["since"] > chip:
            continue
        tell(name)
        table = words_of(data["tables"][program["table"]])
        try:
            cycles = gpu.cycles(text_of(program), table, data["rounds"], data["threads"])
            measured[name] = {"table": program["table"], "repeats": program["repeats"], "cycles": cycles}
        except Refused as error:
            refused[name] = str(error)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kept = {key: data[key] for key in ("memsim", "rounds", "threads", "tables")}
    return {"schema": SCHEMA, **about, "date": date, **kept, "measured": measured, "refused": refused}


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the recording."""
    try:
        recording = measure(Gpu(), DATA, lambda name: print(name, end=" ", flush=True))
    except Refused as error:
        print(f"memsim probe: {error}", file=sys.stderr)
        return 2
    print()
    name = re.sub("[^a-z0-9]+", "-", recording["gpu"].lower()).strip("-")
    path = Path(arguments[0] if arguments else f"memsim-probe-{name}.json")
    path.write_text(json.dumps(recording, indent=0), "utf-8")
    print(f"recorded: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
