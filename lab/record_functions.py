"""Records what the multi-function unit of this GPU computes: `python -m lab.record_functions FOLDER`.

`functions.cu` executes MUFU.RCP; each other function is put into the machine code in its place (bits 74 to 77
of the instruction), since the PTX for some computes more. Of each function all 2**32 arguments are executed;
those of each chunk of 2**20 add up to a digest, the sum modulo 2**64 of splitmix64's finalizer of
argument << 32 | result.

Out: `<gpu>/functions.npz` in FOLDER: `head` JSON, `source`, for each function uint64[4096] digests, and for
each of the 16-bit functions uint16[65536] results. The machine needs a GPU, CuPy and nvcc.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lab.recordings import write_arrays
from memsim.validate.device import load_cupy, this_device

SOURCE = Path(__file__).with_name("functions.cu")
NAMES = ("COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH")
HALVES = ("ex2_f16", "ex2_bf16", "tanh_f16", "tanh_bf16")
#: MUFU in the low 16 bits of an instruction of 128, and where its function is in the upper half.
OPCODE, FUNCTION_BIT = 0x7308, 10
CHUNKS = 4096


def with_function(cubin: bytes, name: str) -> bytes:
    """The machine code with this function in place of RCP, in its two instructions."""
    words = np.frombuffer(cubin[: len(cubin) // 16 * 16], np.uint64).copy()
    of_rcp = np.uint64(NAMES.index("RCP") << FUNCTION_BIT)
    found = [
        at
        for at in np.flatnonzero(words[:-1] & np.uint64(0xFFFF) == OPCODE)
        if words[at + 1] & np.uint64(15 << FUNCTION_BIT) == of_rcp
    ]
    assert len(found) == 2, f"{len(found)} instructions look like MUFU.RCP"
    for at in found:
        words[at + 1] ^= of_rcp ^ np.uint64(NAMES.index(name) << FUNCTION_BIT)
    return bytes(words.tobytes()) + cubin[len(cubin) // 16 * 16 :]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    cupy, device = load_cupy(), this_device()
    arrays: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        cubin = Path(work, "functions.cubin")
        subprocess.run(["nvcc", "-arch=sm_90", "-cubin", "-o", cubin, SOURCE], check=True)
        made = cubin.read_bytes()
        for name in NAMES:
            cubin.write_bytes(with_function(made, name))
            out = cupy.zeros(CHUNKS, cupy.uint64)
            cupy.RawModule(path=str(cubin)).get_function("digest")((CHUNKS,), (1024,), (out,))
            arrays[name] = out.get()
        cubin.write_bytes(made)
        for name in HALVES:
            out = cupy.zeros(1 << 16, cupy.uint16)
            cupy.RawModule(path=str(cubin)).get_function(name)((256,), (256,), (out,))
            arrays[name] = out.get()
    target = folder / device.slug / "functions.npz"
    write_arrays({"source": SOURCE.read_text(), **arrays}, target, device)
    print(target)


if __name__ == "__main__":
    main()
