"""Repeats the launches of recordings of the Hopper microbenchmarks on this machine's GPU.

The kernels are compiled here, and each part runs under ncu with the counters that rules predict for it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.hopper.hopper_launch import HopperLaunch, HopperRecording
from lab.hopper.judge_hopper import compared_metrics
from memsim.argument_types import TensorMap
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.validate.device import load_cupy, now, this_device
from memsim.validate.device_memory import driver, encode_tiled
from memsim.validate.profiler import LaunchCounter, Profiler, Progress, answer, find_profiler, run_under_ncu

#: The chip with these instructions, by its name in compilers.
CHIP, CAPABILITY = "sm_90a", "9.0"
PROGRAM = "lab.hopper.run_hopper"
CODE, PLAN, TABLES = "kernels.cubin", "launches.json", "tables.npy"
MEMORY_BYTES, OUTPUT_BYTES, SHARED_BYTES = 1 << 18, 1 << 18, 225_280
ALIGNMENT = MEMORY_BYTES  # which bits of an address lanes have in common is known


def run_hopper(models: Sequence[HopperRecording], progress: Progress = None) -> Iterator[HopperRecording]:
    """Measure every launch of `models` on this machine.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing; another chip; no compiler.
    """
    device, profiler = this_device(), find_profiler()
    if device.compute_capability != CAPABILITY:
        raise MemsimError(
            f"{device.gpu} has compute capability {device.compute_capability}, but these instructions need"
            f" {CAPABILITY}",
            hint="python -m lab probe --live probes the instructions that the chip has",
        )
    counter = LaunchCounter(sum(len(part) for model in models for part in model.parts.values()), progress)
    head = {"gpu": device.gpu, "driver": device.driver, "ncu": profiler.version, "date": now()}
    for model in models:
        compiled = compile_cubin(model.source, arch=CHIP)
        metrics = compared_metrics(model.parts)
        parts = {
            part: tuple(measured_launches(profiler, compiled.cubin, launches, metrics[part], counter))
            for part, launches in model.parts.items()
        }
        yield replace(model, head={**head, "compiler": compiled.compiler}, parts=parts)


def measured_launches(
    profiler: Profiler,
    code: bytes,
    launches: Sequence[HopperLaunch],
    metrics: Sequence[str],
    counter: LaunchCounter,
) -> list[HopperLaunch]:
    """One run of the profiler; returns the launches with their counters."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / CODE).write_bytes(code)
        np.save(folder / TABLES, np.array([one.table for one in launches], np.uint32))
        (folder / PLAN).write_text(json.dumps([one.described() for one in launches]), "utf-8")
        what = ("--cache-control", "none", "--metrics", ",".join(metrics))
        kernels = [one.kernel for one in launches]
        _, profiles = run_under_ncu(profiler, PROGRAM, folder, kernels, what, counter)
    counts = [
        {metric: int(found.counters[metric].value) for metric in metrics if metric in found.counters}
        for found in profiles
    ]
    return [replace(one, counters=counted) for one, counted in zip(launches, counts, strict=True)]


# --- the program under the profiler ---------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the contents of the folder `arguments[0]`; returns 0 if every launch succeeds."""
    folder = Path(arguments[0])
    launches = json.loads((folder / PLAN).read_text("utf-8"))
    tables = np.load(folder / TABLES)
    return answer(folder, lambda: launch_all(load_cupy(), folder / CODE, launches, tables, driver()))


def launch_all(
    cupy: Any, code: Path, launches: Sequence[Mapping[str, Any]], tables: np.ndarray, library: Any
) -> None:
    """Make every launch, each with memory whose bytes are 0, 1, 2, ...

    Raises:
        MemsimError: CUDA rejects one.
    """
    from cupyx.profiler import profile  # type: ignore[import-not-found,unused-ignore]

    module = cupy.RawModule(path=str(code))
    room = cupy.zeros(MEMORY_BYTES + ALIGNMENT, np.uint8)
    start = -(-int(room.data.ptr) // ALIGNMENT) * ALIGNMENT
    memory = room[start - int(room.data.ptr) :][:MEMORY_BYTES]
    contents = cupy.arange(MEMORY_BYTES, dtype=np.uint32).astype(np.uint8)
    output = cupy.zeros(OUTPUT_BYTES, np.uint8)
    cupy.cuda.Device().synchronize()
    with profile():  # from here on copies only: another kernel would be measured too
        for launch, table in zip(launches, tables, strict=True):
            memory.data.copy_from_device(contents.data, MEMORY_BYTES)
            given = launch["map"]
            encoded = bytes(TensorMap.nbytes) if given is None else encode(library, given, start)
            numbers = map(np.int32, launch["numbers"])
            arguments = (np.frombuffer(encoded, "V128")[0], memory, cupy.asarray(table), output, *numbers)
            try:
                function = module.get_function(launch["kernel"])
                function.max_dynamic_shared_size_bytes = SHARED_BYTES
                function((launch["grid"],), (launch["block"],), arguments, shared_mem=SHARED_BYTES)
                cupy.cuda.Device().synchronize()
            except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
                raise MemsimError(f"{launch['kernel']} does not run on this GPU: {error}") from None


def encode(library: Any, given: Mapping[str, Any], start: int) -> bytes:
    """The bytes of a tensor map over memory from `start` on."""
    return encode_tiled(
        library,
        kind=given["dt"],
        address=start + given["base"],
        extents=given["dims"],
        steps=given["strides"],
        box=given["box"],
        swizzle=given["swz"],
        fill=given["fill"],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
