"""What executing a launch costs by native/interpreter.c and in the emulator, whose fused multiply-adds are
those of the processor in both.

`python -m tests.benchmarks.interpreter_speed` writes docs/interpreter_speed.json, from which docs/exec.md has
its table. Processor time, by turns, the least of three; the code was lowered before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from memsim.access import Listener
from memsim.api.loading import load
from memsim.api.running import job_of, prepared_launch
from memsim.driver.native_arithmetic import use_processor
from memsim.driver.native_build import libraries
from memsim.interpreter.native_launch import NativeInterpreter, TouchedAllocations
from memsim.job import Job
from memsim.kernels import catalog

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests" / "interpreter" / "kernels.cu"
ROUNDS = 3


def jobs() -> Iterator[tuple[str, Callable[[], Job]]]:
    """What is executed, by what it stands for."""
    rng = np.random.default_rng(7)

    def of_tests(name: str, blocks: int, threads: int, dtype: type) -> Job:
        count = blocks * threads * (2 if name == "half_arithmetic" else 1)
        x = rng.integers(0, 10_000, count).astype(dtype)
        return job_of(load(KERNELS, ["-std=c++17"])[name], blocks, threads, [np.zeros_like(x), x])

    yield (
        "a product of matrices, 256 cubed (kernel_v4)",
        lambda: catalog()["kernel_v4"].job([256] * 3),
    )
    yield "loops of lanes that diverge, a million threads", lambda: of_tests("diverging", 4096, 256, np.int32)
    yield "the same, one block", lambda: of_tests("diverging", 1, 256, np.int32)
    yield (
        "sums in shared memory with barriers, a million threads",
        lambda: of_tests("barriers", 4096, 256, np.int32),
    )
    yield "special functions of float32, a million threads", lambda: of_tests("floats", 4096, 256, np.float32)
    yield "tensor cores, 65,536 products of 16 x 16 x 16", lambda: of_tests("products", 512, 256, np.float16)
    yield (
        "arithmetic of float16, half a million threads",
        lambda: of_tests("half_arithmetic", 2048, 256, np.float16),
    )
    yield "recursion, 16,384 threads", lambda: of_tests("calls", 64, 256, np.int32)


def seconds(job: Job, interpreter: NativeInterpreter | None) -> float:
    launch = prepared_launch(job, everything=True)
    launch.memory.space("global")
    began = time.process_time()
    if interpreter is None:
        launch.run(Listener())
    else:
        interpreter.run(launch, Listener(), TouchedAllocations(set(), set()))
    return time.process_time() - began


def main() -> None:
    folder = libraries()
    use_processor(folder)
    interpreter = NativeInterpreter(folder)
    rows = []
    for name, make in jobs():
        job = make()
        seconds(job, interpreter)
        both = [(seconds(job, None), seconds(job, interpreter)) for _ in range(ROUNDS)]
        emulator, native = (min(times) for times in zip(*both))
        rows.append({"launch": name, "emulator": round(emulator, 4), "interpreter": round(native, 4)})
        print(f"{name:60} {emulator:8.4f} {native:8.4f} {emulator / native:6.1f}", file=sys.stderr)
    text = json.dumps(rows, indent=1) + "\n"
    (ROOT / "docs" / "interpreter_speed.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
