"""The PTX programs of the probe by clock: `python -m lab.clock.clock_programs` writes those that ship.

One block of 32 warps executes one instruction `REPEATS` times a round, on the addresses of a pattern. The
difference between two numbers of rounds leaves out what happens once, and is the time for which the unit is
busy: with so many warps, latencies are hidden.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.probe.instructions import INSTRUCTIONS, TILE_BYTES, ProbedInstruction
from lab.probe.patterns import make_patterns
from lab.rates.loops import LOOPS, Loop
from memsim.validate.device import PROGRAMS

THREADS = 1024
#: Accesses of a round; they are 128 bytes apart, which changes no bank.
REPEATS = 8
#: Instructions of a round of a loop of arithmetic.
LONG_REPEATS = 128
ROUNDS = (32, 288)
PATTERNS = 128
SEED = 14
#: Bit of a lane in a table that tells whether it is active; the rest is its address.
ACTIVE_BIT = 15
#: PTX type of a loop's registers, by its type in CUDA.
REGISTERS = {"unsigned": "b32", "float": "f32", "double": "f64", "unsigned long long": "b64"}
#: Release of PTX that knows a chip, by its compute capability.
RELEASES = {75: "6.5", 80: "7.0", 90: "7.8"}
#: Loops that every compiler leaves as they are (it joins or replaces the instructions of others), and the
#: machine instruction of each.
PIPES = {
    "ffma": "FFMA",
    "fadd": "FADD",
    "fmul": "FMUL",
    "imad": "IMAD",
    "dp4a": "IDP",
    "lop3": "LOP3",
    "shf": "SHF",
    "prmt": "PRMT",
    "f2fp": "F2FP",
    "popc": "POPC",
    "flo": "FLO",
    "brev": "BREV",
    "f2i": "F2I",
    "ex2": "MUFU",
    "rsq": "MUFU",
    "frnd": "FRND",
    "dfma": "DFMA",
    "dadd": "DADD",
    "dmul": "DMUL",
    "hmma_16816_f32": "HMMA.16816.F32",
    "hmma_16816_f16": "HMMA.16816.F16",
    "hmma_1688_f32": "HMMA.1688.F32",
    "hmma_1688_tf32": "HMMA.1688.F32.TF32",
    "imma_16832": "IMMA.16832.S8.S8",
    "imma_16816": "IMMA.16816.S8.S8",
    "dmma_884": "DMMA.8x8x4",
    "shfl": "SHFL",
}
#: Those of instructions that older chips lack; so do those of matrices.
SINCE_80 = ("f2fp",)

ACCESSES = {name: one for name, one in INSTRUCTIONS.items() if one.space == "shared" and not one.copies}


def data() -> dict[str, Any]:
    """What the program of one file runs: programs, and tables of patterns."""
    return {
        "rounds": list(ROUNDS),
        "threads": THREADS,
        "tables": tables(),
        "programs": list(_programs()),
    }


def tables() -> dict[str, list[str]]:
    """Patterns in hexadecimal, four digits for a lane: all of a width, or of the lanes of a matrix."""
    rng = np.random.default_rng(SEED)
    found = {"none": [f"{0:0128x}"]}
    for one in ACCESSES.values():
        if table_of(one) not in found:
            addresses, active = make_patterns(PATTERNS, one.width, rng, one.lanes, one.matrices > 0)
            words = addresses | active.astype(np.int64) << ACTIVE_BIT
            found[table_of(one)] = ["".join(f"{word:04x}" for word in row) for row in words.tolist()]
    return found


def table_of(one: ProbedInstruction) -> str:
    """The name of an instruction's table."""
    return f"matrices {one.matrices}" if one.matrices else f"bytes {one.width}"


def _programs() -> Iterator[dict[str, Any]]:
    for name, one in ACCESSES.items():
        since = max(one.since, 75)
        about = {"name": name, "since": since, "table": table_of(one), "repeats": REPEATS}
        yield {**about, **_access(one, since)}
    for loop in LOOPS:
        if (name := loop.name) not in PIPES:
            continue
        since = 80 if loop.accumulators or name in SINCE_80 else 75
        yield {"name": name, "since": since, "table": "none", "repeats": LONG_REPEATS, **_pipe(loop, since)}


def _access(one: ProbedInstruction, since: int) -> dict[str, Any]:
    """Inactive lanes go past the loop; a matrix takes all lanes."""
    kinds = {**{f"%a{i}": "b32" for i in range(4)}, "%h": "b16", "%d": "b64"}
    used = {register: kind for register, kind in kinds.items() if register in one.ptx}
    body = []
    for number in range(REPEATS):
        body.append(one.ptx.replace("[$a]", f"[%s+{128 * number}]"))
        body += [f"xor.{kind} {register}sum, {register}sum, {register};" for register, kind in used.items()]
    body.append("add.u32 %s, %s, %zero;")
    registers = [f".reg .{kind} {register}, {register}sum;" for register, kind in used.items()]
    start = [f"mov.{kind} {name}, 0;" for it, kind in used.items() for name in (it, f"{it}sum")]
    end = [_folded(f"{register}sum", kind) for register, kind in used.items()]
    text = _program(
        since,
        "\n".join([*registers, ".reg .b64 %far;"]),
        ["mov.b64 %far, 9;", *start],
        end,
        "" if one.matrices else "@!%p bra done;",
    )
    return {"ptx": text, "body": "\n".join(body), "times": 1}


def _pipe(loop: Loop, since: int) -> dict[str, Any]:
    """The instruction on independent registers, as in the loops that are measured by counters."""
    kind = REGISTERS[loop.type]
    each = loop.accumulators or 1
    chains = loop.chains
    held = [[f"%c{number * each + i}" for i in range(each)] for number in range(chains)]
    body = [loop.on_registers(registers, "%x", "%x") for registers in held]
    factor = "f64" if loop.type == "double" else "b32" if loop.accumulators else kind
    registers = f".reg .{kind} %c<{chains * each}>;\n.reg .{factor} %x;"
    start = [_moved(f"%c{i}", kind, "%lane") for i in range(chains * each)] + [_moved("%x", factor, "%zero")]
    end = [_folded(f"%c{i}", kind) for i in range(chains * each)]
    text = _program(since, registers, start, end)
    return {"ptx": text, "body": "\n".join(body), "times": LONG_REPEATS // chains}


def _moved(register: str, kind: str, word: str) -> str:
    if kind in ("b32", "f32"):
        return f"mov.b32 {register}, {word};"
    return f"mov.b64 {register}, {{{word}, {word}}};"


def _folded(register: str, kind: str) -> str:
    if kind == "b16":
        return f"cvt.u32.u16 %word, {register};\nxor.b32 %sink, %sink, %word;"
    if kind in ("b32", "f32"):
        return f"mov.b32 %word, {register};\nxor.b32 %sink, %sink, %word;"
    return f"mov.b64 {{%word, %offset}}, {register};\nxor.b32 %sink, %sink, %word;"


def _program(since: int, registers: str, start: list[str], end: list[str], guard: str = "") -> str:
    """Parameters: the table (uint32 [patterns, 32], the highest bit set if the lane is active), cycles
    (uint64 [patterns]), how many patterns, rounds, and zero.
    """
    lines = "\n"
    return f"""\
.version {RELEASES[since]}
.target sm_{since}
.address_size 64
.visible .entry probe(.param .u64 table, .param .u64 cycles, .param .u32 patterns, .param .u32 rounds,
    .param .u32 zero)
.maxntid {THREADS}, 1, 1
{{
.reg .pred %p, %q, %first;
.reg .b32 %lane, %word, %offset, %tile, %s, %sink, %left, %round, %rounds, %zero;
.reg .b64 %table, %cycles, %at, %before, %after;
{registers}
.shared .align 1024 .b8 tile[{TILE_BYTES + 1024}];
ld.param.u64 %table, [table];
ld.param.u64 %cycles, [cycles];
ld.param.u32 %left, [patterns];
ld.param.u32 %rounds, [rounds];
ld.param.u32 %zero, [zero];
mov.u32 %lane, %tid.x;
setp.eq.u32 %first, %lane, 0;
and.b32 %lane, %lane, 31;
mul.wide.u32 %at, %lane, 4;
add.u64 %table, %table, %at;
mov.u32 %tile, tile;
mov.b32 %sink, 0;
{lines.join(start)}
pattern:
ld.global.u32 %word, [%table];
add.u64 %table, %table, 128;
setp.lt.s32 %p, %word, 0;
and.b32 %offset, %word, {2**31 - 1};
add.u32 %s, %tile, %offset;
mov.u32 %round, %rounds;
bar.sync 0;
mov.u64 %before, %clock64;
{guard}
again:
BODY
sub.u32 %round, %round, 1;
setp.ne.u32 %q, %round, 0;
@%q bra again;
done:
bar.sync 0;
mov.u64 %after, %clock64;
sub.u64 %after, %after, %before;
@%first st.global.u64 [%cycles], %after;
add.u64 %cycles, %cycles, 8;
sub.u32 %left, %left, 1;
setp.ne.u32 %q, %left, 0;
@%q bra pattern;
{lines.join(end)}
setp.eq.u32 %q, %zero, 1;
@%q st.global.u32 [%cycles], %sink;
ret;
}}
"""


if __name__ == "__main__":
    PROGRAMS.write_text(json.dumps(data(), indent=0) + "\n", "utf-8")
