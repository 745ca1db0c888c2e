"""Times loops of FFMAs by the registers that they name: `python -m studies.tuning.record_register_banks`.

It writes recorded/<gpu>/register_banks.json. No compiler lets one choose registers, so they are written
into the machine code: of each FFMA in a compiled loop the four register numbers and the marks of what to
keep. Where those bits are was read off disassembled code for sm_90.
"""

from __future__ import annotations

import struct
from dataclasses import asdict

import numpy as np

from memsim.validate.device import free_path, load_cupy, now, this_device, write_record
from studies.tuning.page import RECORDED
from studies.tuning.registers import EVEN, ODD, PATTERNS, Ffma, Register

STEM = "register_banks"
FFMAS, ROUNDS, WARPS = 512, 40, 4  # in the loop, of the loop, one to each scheduler of a multiprocessor
VALUES = 112
SOURCE = f"""
extern "C" __global__ void ffmas(float *values, long long *cycles, int rounds)
{{
    float r[{VALUES}];
#pragma unroll
    for (int i = 0; i < {VALUES}; ++i) r[i] = values[i * blockDim.x + threadIdx.x];
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {{
#pragma unroll
        for (int i = 0; i < {FFMAS}; ++i)
            asm volatile("fma.rn.f32 %0, %1, %2, %0;"
                         : "+f"(r[48 + i % 64]) : "f"(r[i % 24]), "f"(r[24 + i / 3 % 24]));
    }}
    const long long stop = clock64();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < {VALUES}; ++i) values[i * blockDim.x + threadIdx.x] = r[i];
    if (threadIdx.x == 0) *cycles = stop - start;
}}
"""
OPCODE, FFMA = 0xFFF, 0x223  # the lowest bits of an instruction of 16 bytes
ALWAYS = 7 << 12  # no predicate
# Stall for one cycle, do not yield, wait for no barrier and set none: bits 105 to 121.
CONTROL = (1 | 1 << 4 | 7 << 5 | 7 << 8) << 41
KEEP_A, KEEP_B = 1 << 58, 1 << 59  # bits 122 and 123

Code = bytearray


def places_of_ffmas(code: bytes) -> list[int]:
    """Where the loop's FFMAs are.

    Raises:
        ValueError: not as many as the source has.
    """
    places = [
        place
        for place in range(0, len(code) - 15, 16)
        if struct.unpack_from("<Q", code, place)[0] & OPCODE == FFMA
    ]
    if len(places) != FFMAS:
        raise ValueError(f"{len(places)} FFMAs and not {FFMAS}: another compiler?")
    return places


def free_registers(code: bytes, places: list[int]) -> dict[Register, int]:
    """The registers that the loop's FFMAs name: their values are for nothing, any may stand anywhere."""
    named = {code[place + byte] for place in places for byte in (2, 3, 4, 8)}
    return {
        Register(parity, number): register
        for parity in (EVEN, ODD)
        for number, register in enumerate(sorted(each for each in named if each % 2 == parity))
    }


def write(code: Code, place: int, ffma: Ffma, registers: dict[Register, int]) -> None:
    """Puts an FFMA there."""
    a, b, c = (registers[each] for each in (ffma.a, ffma.b, ffma.c))
    low = FFMA | ALWAYS | c << 16 | a << 24 | b << 32
    high = c | CONTROL | KEEP_A * ffma.keep_a | KEEP_B * ffma.keep_b
    struct.pack_into("<QQ", code, place, low, high)


def main() -> None:
    """Every pattern, with one warp on each scheduler."""
    device, cupy = this_device(), load_cupy()
    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(SOURCE, "ffmas.cu", [], [])
    nvrtc.compileProgram(program, (f"-arch={device.arch}",))
    compiled = bytes(nvrtc.getCUBIN(program))
    places = places_of_ffmas(compiled)
    registers = free_registers(compiled, places)

    values = cupy.zeros(VALUES * 32 * WARPS, np.float32)
    cycles = cupy.zeros(1, np.int64)
    found = {}
    for pattern in PATTERNS:
        code = bytearray(compiled)
        for number, place in enumerate(places):
            write(code, place, pattern.loop[number % len(pattern.loop)], registers)
        module = cupy.cuda.function.Module()
        module.load(bytes(code))
        launch = module.get_function("ffmas")
        for _ in range(2):  # the first run brings the code into the caches
            launch((1,), (32 * WARPS,), (values, cycles, np.int32(ROUNDS)))
        found[pattern.name] = round(int(cycles[0]) / (FFMAS * ROUNDS), 3)
        print(f"{pattern.name:16} {found[pattern.name]}")
    record = {
        "schema": 1,
        "device": asdict(device),
        "date": now(),
        "cycles_per_ffma": found,
    }
    path = free_path(RECORDED / device.slug, STEM)
    write_record(record, path)
    print(f"recorded: {path}")


if __name__ == "__main__":
    main()
