"""The probed instructions, and the PTX program that executes one of them once for each pattern.

Line i + 1 of the "source" in its `.loc` directives is pattern i, so that the profiler's rows identify the
pattern; line 0 is the rest of the program. It is written in PTX rather than CUDA C++, so that only the driver
compiles it.
"""

from __future__ import annotations

from dataclasses import dataclass

from memsim.model.operations import operation

ENTRY = "probe"
FILE = "pattern"
TILE_BYTES = 32_768
ACTIVE_BIT = 31  # of a word in the table; the rest is the address
HARNESS_LINE = 1_000_000


@dataclass(frozen=True, slots=True)
class ProbedInstruction:
    """One instruction. `ptx` has $a for its address, and $g for the one in global memory if it has both.

    op: the operation whose rule is tested. counter: suffix of its hardware counters. matrices: of ldmatrix
    and stmatrix, which every lane executes; 0 for all others. since: the first compute capability, times ten,
    that has it. scattered: for a copy, whether its global addresses are arbitrary; else they are contiguous.
    """

    name: str
    space: str
    op: str
    width: int
    ptx: str
    counter: str
    matrices: int = 0
    since: int = 70
    scattered: bool = False

    @property
    def lanes(self) -> int:
        """Lanes that supply an address."""
        return 8 * self.matrices or 32

    @property
    def copies(self) -> bool:
        """Whether it has an address in both spaces."""
        return operation("global", self.op).is_copy


# For 1, 2 and 4 words; half a word has its own register.
REGISTERS = {1: "%a0", 2: "{%a0, %a1}", 4: "{%a0, %a1, %a2, %a3}"}
WIDTHS = (1, 2, 4, 8, 16)


def _plain(space: str) -> list[ProbedInstruction]:
    """Loads and stores of 1 to 16 bytes."""
    letter = space[0].upper()
    found = []
    for width in WIDTHS:
        kind, value = (f"u{8 * width}", "%h") if width < 4 else ("u32", REGISTERS[width // 4])
        vector = f".v{width // 4}" if width > 4 else ""
        load = f"ld.{space}{vector}.{kind} {value}, [$a];"
        store = f"st.{space}{vector}.{kind} [$a], {value};"
        found.append(ProbedInstruction(f"LD{letter}{8 * width}", space, "load", width, load, "ld"))
        found.append(ProbedInstruction(f"ST{letter}{8 * width}", space, "store", width, store, "st"))
    return found


def _matrices(count: int) -> list[ProbedInstruction]:
    form = f"sync.aligned.m8n8.x{count}.shared.b16"
    values = f"{{{REGISTERS[count].strip('{}')}}}"
    load, store = f"ldmatrix.{form} {values}, [$a];", f"stmatrix.{form} [$a], {values};"
    return [
        ProbedInstruction(f"LDM{count}", "shared", "ldmatrix", 16, load, "ld", count, since=75),
        ProbedInstruction(f"STM{count}", "shared", "stmatrix", 16, store, "st", count, since=90),
    ]


def _copy(width: int, cache: str, scattered: bool) -> ProbedInstruction:
    ptx = f"cp.async.{cache}.shared.global [$a], [$g], {width};"
    name = f"CP{8 * width}{cache}{'_scattered' * scattered}"
    op = "cp_async_cg" if cache == "cg" else "cp_async"
    return ProbedInstruction(name, "shared", op, width, ptx, "ldgsts", since=80, scattered=scattered)


INSTRUCTIONS = {
    instruction.name: instruction
    for instruction in (
        *_plain("shared"),
        ProbedInstruction("ATOMS", "shared", "atomic", 4, "atom.shared.add.u32 %a0, [$a], 1;", "atom"),
        ProbedInstruction("REDS", "shared", "reduction", 4, "red.shared.add.u32 [$a], %offset;", "atom"),
        # Adding the constant 1 becomes ATOMS.POPC.INC, for which lanes with the same address share.
        ProbedInstruction("INCS", "shared", "atomic_inc", 4, "red.shared.add.u32 [$a], 1;", "atom"),
        ProbedInstruction(
            "CASS32", "shared", "atomic_cas", 4, "atom.shared.cas.b32 %a0, [$a], 7, %offset;", "atom"
        ),
        ProbedInstruction(
            "CASS64", "shared", "atomic_cas", 8, "atom.shared.cas.b64 %d, [$a], 7, %far;", "atom"
        ),
        ProbedInstruction("EXCHS64", "shared", "atomic", 8, "atom.shared.exch.b64 %d, [$a], %far;", "atom"),
        *_matrices(1),
        *_matrices(2),
        *_matrices(4),
        *(_copy(width, "ca", scattered) for scattered in (False, True) for width in (4, 8, 16)),
        *(_copy(16, "cg", scattered) for scattered in (False, True)),
        *_plain("global"),
        ProbedInstruction("ATOMG32", "global", "atomic", 4, "atom.global.add.u32 %a0, [$a], 1;", "atom"),
        ProbedInstruction("ATOMG64", "global", "atomic", 8, "atom.global.add.u64 %d, [$a], 1;", "atom"),
        ProbedInstruction("REDG32", "global", "reduction", 4, "red.global.add.u32 [$a], 1;", "red"),
        ProbedInstruction("REDG64", "global", "reduction", 8, "red.global.add.u64 [$a], 1;", "red"),
    )
}
# The program without an instruction: what the rest of it contributes to the counters.
EMPTY = ProbedInstruction("EMPTY", "", "", 4, "", "")


def program(instruction: ProbedInstruction, patterns: int, compute_capability: str) -> str:
    """PTX that executes `instruction` once for each of `patterns` rows of the tables.

    Parameters: the table of addresses (uint32 [patterns, 32], the highest bit set if the lane is active; for
    a copy, of its shared side), the table of global addresses (the same, without the bit), the memory, and 32
    words for a result that keeps everything alive.
    """
    body = "\n".join(_step(instruction, number) for number in range(patterns))
    return f"""\
.version {"8.0" if float(compute_capability) < 10 else "8.7"}
.target sm_{compute_capability.replace(".", "")}
.address_size 64
.visible .entry {ENTRY}(.param .u64 table, .param .u64 origins, .param .u64 memory, .param .u64 result)
{{
.reg .pred %p, %q;
.reg .b16 %h;
.reg .b32 %lane, %word, %offset, %tile, %s, %sink, %a<4>;
.reg .b64 %table, %origins, %memory, %result, %far, %g, %d;
.shared .align 1024 .b8 tile[{TILE_BYTES}];
.loc 1 {HARNESS_LINE} 0
ld.param.u64 %table, [table];
ld.param.u64 %origins, [origins];
ld.param.u64 %memory, [memory];
ld.param.u64 %result, [result];
mov.u32 %lane, %tid.x;
mul.wide.u32 %far, %lane, 4;
add.u64 %table, %table, %far;
add.u64 %origins, %origins, %far;
add.u64 %result, %result, %far;
mov.u32 %tile, tile;
mov.b32 %sink, 0;
mov.b16 %h, 0;
mov.b64 %d, 0;
{"".join(f"mov.b32 %a{i}, 0;" for i in range(4))}
{body}
.loc 1 {HARNESS_LINE} 0
st.global.u32 [%result], %sink;
ret;
}}
.file 1 "{FILE}"
"""


def _step(instruction: ProbedInstruction, number: int) -> str:
    """One pattern: fetch its address, execute, and wait, so that no two of them overlap."""
    guard = "" if instruction.matrices or not instruction.ptx else "@%p "
    ptx = instruction.ptx.replace("$a", "%g" if instruction.space == "global" else "%s").replace("$g", "%g")
    far = f"ld.global.u32 %offset, [%origins + {128 * number}];" if instruction.copies else ""
    wait = "cp.async.wait_all;" if instruction.copies else ""
    return f"""\
.loc 1 {HARNESS_LINE} 0
ld.global.u32 %word, [%table + {128 * number}];
setp.lt.s32 %p, %word, 0;
and.b32 %offset, %word, {2**ACTIVE_BIT - 1};
add.u32 %s, %tile, %offset;
{far}
cvt.u64.u32 %far, %offset;
add.u64 %g, %memory, %far;
.loc 1 {number + 1} 0
{guard}{ptx}
.loc 1 {HARNESS_LINE} 0
{wait}
bar.sync 0;
xor.b32 %sink, %sink, %offset;
{"".join(f"xor.b32 %sink, %sink, %a{i};" for i in range(4))}
cvt.u32.u16 %word, %h;
xor.b32 %sink, %sink, %word;
cvt.u32.u64 %word, %d;
xor.b32 %sink, %sink, %word;"""
