"""Which pipe of a multiprocessor executes an instruction, and how many cycles it occupies it.

Source: an H200. Pipes: ncu's `sm__inst_executed_pipe_*` compared with the executed instructions of 385
kernels, equal in each. Cycles: a loop of one instruction in all warps (`traces/nvidia-h200/rates/`). Not
modelled: the LSU, ADU, CBU and texture pipes, whose counters also include the parts of split instructions;
latencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

_ALU = """BMSK CS2R ELECT F2FP FMNMX FSEL FSET FSETP HMNMX2 HSET2 HSETP2 I2FP I2I IABS IADD3 ISETP LEA LOP3
MOV P2R PLOP3 PRMT R2P R2UR SEL SGXT SHF VABSDIFF VABSDIFF4 VHMNMX VIADDMNMX VIMNMX VIMNMX3 VOTE"""
_FMA = "FADD FFMA FMUL HADD2 HFMA2 HMUL2 IDP IMAD VIADD"
_FP64 = "DADD DFMA DMUL DSETP"
_XU = "BREV F2F F2I FCHK FLO FRND I2F MUFU POPC"
_UNIFORM = "UBREV UFLO UIADD3 UIMAD UISETP ULEA ULOP3 UPLOP3 UPOPC UPRMT USEL USGXT USHF"
_TENSOR = ("HMMA", "HGMMA", "QGMMA", "IGMMA", "IMMA", "DMMA")
_OF_A_WARPGROUP = ("HGMMA", "QGMMA", "IGMMA")
_OTHERS = """ACQBULK ARRIVES ATOM ATOMG ATOMS B2R BAR BRA BREAK BSSY BSYNC CALL CCTL CGAERRBAR DEPBAR ERRBAR
EXIT FENCE LD LDC LDG LDGDEPBAR LDGSTS LDL LDS LDSM MATCH MEMBAR MOVM NANOSLEEP NOP PREEXIT QSPC REDG REDUX
RET S2R S2UR SHFL ST STG STL STS STSM SYNCS UBLKCP UCGABAR_ARV UCGABAR_WAIT ULDC UMOV VOTEU WARPGROUP
WARPSYNC YIELD TLD"""

#: Opcode -> its pipe by ncu's name; "" for one that none of these pipes executes.
PIPE_OF: dict[str, str] = {
    **dict.fromkeys(_OTHERS.split(), ""),
    **dict.fromkeys(_ALU.split(), "alu"),
    **dict.fromkeys(_FMA.split(), "fma"),
    **dict.fromkeys(_FP64.split(), "fp64"),
    **dict.fromkeys(_XU.split(), "xu"),
    **dict.fromkeys(_UNIFORM.split(), "uniform"),
    **dict.fromkeys(_TENSOR, "tensor"),
}
#: Cycles for which one instruction occupies a pipe.
CYCLES = {"alu": 2, "fp64": 2, "uniform": 2, "xu": 8}
#: The same for tensor instructions, by opcode and shape; the slower of two if only the shape is given.
TENSOR_CYCLES = {
    ("HMMA", "16816"): 6,
    ("HMMA", "1688"): 4,
    ("IMMA", "16832"): 6,
    ("IMMA", "16816"): 4,
    ("DMMA", "8"): 16,
    ("DMMA", "8x8x4"): 16,
}
#: With divergence, the chip does not execute these exactly once for each group of lanes.
MEETING = frozenset({"BRA", "BREAK", "BRX", "BSSY", "BSYNC", "CALL", "RET", "WARPSYNC", "YIELD"})
PARTING = frozenset({"BSYNC", "WARPSYNC", "BRX", "RET"})
WIDE = "fma wide"
_HALF = ("HADD2", "HFMA2", "HMUL2")
EXECUTED = "smsp__inst_executed.sum"
_PIPE = "sm__inst_executed_pipe_{}.sum"


@dataclass(frozen=True, slots=True)
class PipeUse:
    """How instructions use the pipes.

    counters: ncu metric -> count; None if an executed opcode is not in the table, and for all instructions if
    lanes of a warp reconverge. cycles: of one partition, if it executed everything, by pipe: "issue", "alu",
    "fma", "fp64", "xu", "tensor", "uniform". unknown: opcodes with unknown pipe or cycles.
    """

    counters: dict[str, int | None]
    cycles: dict[str, int]
    unknown: tuple[str, ...]


def pipe_use(executed: Mapping[str, int], clocked: Sequence[tuple[str, int]] = ()) -> PipeUse:
    """How the instructions `executed` (opcode with modifiers -> warp instructions) use the pipes.

    clocked: (opcode with modifiers, cycles) as measured on another chip than sm_90. The fastest of a kind
    stands for all of it; for kinds that are not there the cycles are sm_90's.
    """
    own: dict[str, int] = {}
    for form, each in clocked:
        kind = _kind(*_parts(form))
        own[kind] = min(each, own.get(kind, each))
    counts = dict.fromkeys(("alu", "fma", "fma_type_fp16", "fp64", "uniform", "xu", "tensor"), 0)
    cycles = dict.fromkeys(("issue", "alu", "fma", "fp64", "xu", "tensor", "uniform"), 0)
    heavy = light = 0  # cycles of the two halves of the FMA pipe; `light` may run on either
    total, parts = 0, False
    missing: set[str] = set()
    unmeasured: set[str] = set()
    for form, times in executed.items():
        if not times:
            continue
        opcode, modifiers = _parts(form)
        kind = _kind(opcode, modifiers)
        total += times
        parts = parts or opcode in PARTING
        if opcode not in MEETING:  # the others may be issued less often than they are executed here
            cycles["issue"] += times
        pipe = pipe_of(opcode, modifiers)
        if pipe is None:
            missing.add(opcode)
            continue
        if pipe:
            counts[pipe] += times
        if pipe in CYCLES:
            cycles[pipe] += own.get(kind, CYCLES[pipe]) * times
        elif pipe == "tensor":
            known = own.get(kind, tensor_cycles(opcode, modifiers))
            cycles[pipe] += (known or 0) * times
            if known is None:
                unmeasured.add(form)
        elif pipe == "fma" and opcode in _HALF:  # two cycles of both halves
            counts["fma_type_fp16"] += times
            heavy += 2 * times
            light += 2 * times
        elif pipe == "fma" and opcode in ("IMAD", "IDP"):  # of the heavy half only
            heavy += own.get(kind, 4 if kind == WIDE else 2) * times
        elif pipe == "fma":
            light += 2 * own.get(kind, 1) * times
    # Light work may be divided between the halves; heavy work may not.
    cycles["fma"] = max(heavy, ceil((heavy + light) / 2))
    if not parts:  # no warp was divided: each instruction is issued as often as it is executed
        cycles["issue"] = total
    counters: dict[str, int | None] = {EXECUTED: None if parts else total}
    counters |= {_PIPE.format(pipe): None if missing else count for pipe, count in counts.items()}
    return PipeUse(counters, cycles, tuple(sorted(missing | unmeasured)))


def _parts(form: str) -> tuple[str, list[str]]:
    opcode, *modifiers = form.split(".")
    return opcode, modifiers


def _kind(opcode: str, modifiers: list[str]) -> str:
    """What has a rate of its own: a pipe; of the FMA pipe single, half, integer and wide integer products; of
    the tensor pipe an opcode and a shape, and TF32.
    """
    pipe = pipe_of(opcode, modifiers) or ""
    if pipe == "tensor":
        return ".".join([opcode, *modifiers[:1], *(word for word in modifiers if word == "TF32")])
    if pipe != "fma":
        return pipe
    if opcode in ("IMAD", "IDP"):
        return WIDE if {"WIDE", "HI"} & set(modifiers) else "fma integer"
    return "fma half" if opcode in _HALF else "fma"


def pipe_of(opcode: str, modifiers: list[str]) -> str | None:
    """The pipe of an instruction; "" for one of none of these, None if unknown."""
    if opcode == "HFMA2" and "MMA" in modifiers:
        return "tensor"
    return PIPE_OF.get(opcode)


def tensor_cycles(opcode: str, modifiers: list[str]) -> int | None:
    """Cycles for which an instruction occupies the tensor pipe; None if not measured."""
    if opcode == "HFMA2":
        return 2
    if opcode in _OF_A_WARPGROUP:
        return _cycles_of_warpgroup(modifiers)
    if opcode == "HMMA" and modifiers[:1] == ["1688"] and "TF32" in modifiers:
        return 6
    return TENSOR_CYCLES.get((opcode, modifiers[0])) if modifiers else None


def _cycles_of_warpgroup(modifiers: list[str]) -> int | None:
    """For `64x128x16`: half a cycle per column, of any type; sparse ones were not measured."""
    shape = modifiers[0].split("x") if modifiers else []
    if len(shape) != 3 or "SP" in modifiers or not shape[1].isdigit():
        return None
    return int(shape[1]) // 2
