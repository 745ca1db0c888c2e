"""Lowering of warp-level and control-flow instructions: shuffles, votes, branches, barriers.

Lanes named by a mask first wait for each other, unless the mask names all lanes: these have converged
already.
"""

from __future__ import annotations

from memsim.isa.op import Immediate, Label, Operand, Unsupported, operand_of_kind, require
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import PT, RZ, Assembler
from tests.ptx_front.lowering.lowered_opcodes import lowers
from tests.ptx_front.lowering.memory import address
from tests.ptx_front.program import PtxInstruction


def is_everybody(mask: ptx.Operand) -> bool:
    """Is it the mask of all lanes?"""
    return isinstance(mask, ptx.PtxImmediate) and int(mask.value) & 0xFFFFFFFF == 0xFFFFFFFF


def gather(asm: Assembler, mask: ptx.Operand, name: str = "WARPSYNC.COLLECTIVE") -> None:
    """Make the lanes of the mask wait for each other and execute the next instruction as one group."""
    if is_everybody(mask):
        return
    guard, asm.guard = asm.guard, None
    barrier = asm.barrier()
    asm.emit("BSSY", barrier)
    asm.meets.append(barrier)
    asm.guard = guard
    asm.emit(name, asm.word(mask))


def check_sync(instruction: PtxInstruction) -> None:
    """Does it have a mask? Forms without one were removed with sm_70."""
    require("sync" in instruction.modifiers)


@lowers("shfl")
def lower_shuffle(asm: Assembler, instruction: PtxInstruction) -> None:
    check_sync(instruction)
    mode = {"up": "UP", "down": "DOWN", "bfly": "BFLY", "idx": "IDX"}[instruction.modifiers[1]]
    to, a, b, c, mask = instruction.operands
    require(instruction.modifiers[-1] == "b32")
    gather(asm, mask)
    value, answer = (to.first, to.second) if isinstance(to, ptx.PtxPair) else (to, None)
    holds = PT if answer is None else asm.target_predicate(answer)
    asm.emit(f"SHFL.{mode}", holds, asm.target(value), asm.register(a), asm.word(b), asm.word(c))


@lowers("vote")
def lower_vote(asm: Assembler, instruction: PtxInstruction) -> None:
    check_sync(instruction)
    _, mode, kind = instruction.modifiers
    to, asked, mask = instruction.operands
    gather(asm, mask)
    if (mode, kind) == ("ballot", "b32"):
        asm.emit("VOTE.ANY", asm.target(to), PT, asm.predicate(asked))
    elif kind == "pred" and mode in ("all", "any", "uni"):
        name = {"all": "ALL", "any": "ANY", "uni": "EQ"}[mode]
        asm.emit(f"VOTE.{name}", asm.target_predicate(to), asm.predicate(asked))
    else:
        raise Unsupported


@lowers("match")
def lower_match(asm: Assembler, instruction: PtxInstruction) -> None:
    check_sync(instruction)
    mode, _, kind = instruction.modifiers
    to, a, mask = instruction.operands
    gather(asm, mask)
    source = asm.pair(a) if kind == "b64" else asm.word(a)
    name = f"MATCH.{mode.upper()}{'.U64' if kind == 'b64' else ''}"
    if isinstance(to, ptx.PtxPair):
        asm.emit(name, asm.target_predicate(to.second), asm.target(to.first), source)
    else:
        asm.emit(name, asm.target(to), source)


@lowers("redux")
def lower_reduce(asm: Assembler, instruction: PtxInstruction) -> None:
    check_sync(instruction)
    _, operation, kind = instruction.modifiers
    name = {"add": "SUM", "min": "MIN", "max": "MAX", "and": "AND", "or": "OR", "xor": "XOR"}[operation]
    require(kind in ("b32", "u32", "s32"))
    to, a, mask = instruction.operands
    gather(asm, mask)
    asm.emit(f"REDUX.{name}{'.S32' if kind == 's32' else ''}", asm.target(to), asm.word(a))


@lowers("elect")
def lower_elect(asm: Assembler, instruction: PtxInstruction) -> None:
    check_sync(instruction)
    to, mask = instruction.operands
    both = operand_of_kind(to, ptx.PtxPair)
    gather(asm, mask)
    asm.emit("ELECT", asm.target_predicate(both.second), asm.target(both.first), PT)


# --- control --------------------------------------------------------------------------------


@lowers("bra")
def lower_branch(asm: Assembler, instruction: PtxInstruction) -> None:
    target = operand_of_kind(instruction.operands[-1], ptx.PtxSymbol).name
    asm.emit("BRA", Label(target, None), label=target)


@lowers("brx")
def lower_indexed_branch(asm: Assembler, instruction: PtxInstruction) -> None:
    """A comparison and a branch for each target; an index out of range traps."""
    index, table = instruction.operands
    guard, labels = asm.guard, asm.function.tables[operand_of_kind(table, ptx.PtxSymbol).name]
    join = PT if guard is None else guard
    for number, label in enumerate(labels):
        here = asm.temporary_predicate()
        asm.guard = None
        asm.emit("ISETP.EQ.AND", here, PT, asm.word(index), Immediate(number), join)
        asm.guard = here
        asm.emit("BRA", Label(label, None), label=label)
    beyond, asm.guard = asm.temporary_predicate(), None
    asm.emit("ISETP.GE.U32.AND", beyond, PT, asm.word(index), Immediate(len(labels)), join)
    asm.guard = beyond
    asm.emit("BPT.TRAP")
    asm.guard = guard


@lowers("call")
def lower_call(asm: Assembler, instruction: PtxInstruction) -> None:
    """A failed CUDA C++ assertion ends the launch, as on a GPU; no other call is executed."""
    target = operand_of_kind(instruction.operands[0], ptx.CallTarget)
    require(operand_of_kind(target.target, ptx.PtxSymbol).name == "__assertfail")
    asm.emit("CALL.ABS.NOINC", Label("__assertfail", None))
    asm.emit("BPT.TRAP")


@lowers("bar", "barrier")
def lower_barrier(asm: Assembler, instruction: PtxInstruction) -> None:
    names = [name for name in instruction.modifiers if name not in ("aligned", "cta")]
    operands = list(instruction.operands)
    if names[:2] == ["warp", "sync"]:
        if is_everybody(operands[0]):
            asm.emit("WARPSYNC", Immediate(-1))
        else:
            gather(asm, operands[0], "WARPSYNC")
    elif names[0] == "sync":
        asm.emit("BAR.SYNC", *(asm.word(one) for one in operands))
    elif names[0] == "arrive":
        asm.emit("BAR.ARV", *(asm.word(one) for one in operands))
    elif names[0] == "red" and names[1] in ("popc", "and", "or"):
        to, number, *counts, asked = operands
        reads: list[Operand] = [asm.word(number), *(asm.word(one) for one in counts)]
        asm.emit(f"BAR.RED.{names[1].upper()}", *reads, asm.predicate(asked))
        if names[1] == "popc":
            asm.emit("B2R.RESULT", asm.target(to))
        else:
            asm.emit("B2R.RESULT", RZ, asm.target_predicate(to))
    else:
        raise Unsupported


@lowers("mbarrier")
def lower_object(asm: Assembler, instruction: PtxInstruction) -> None:
    """An mbarrier: waits succeed, and nothing else of its state is known."""
    waits = instruction.modifiers[0] in ("try_wait", "test_wait")
    first = instruction.operands[0]
    places = [one for one in instruction.operands if isinstance(one, ptx.PtxAddress)]
    at = address(asm, places[0], "shared")
    if waits:
        asm.emit("MBARRIER.WAIT", asm.target_predicate(first), at)
    elif isinstance(first, ptx.PtxRegister):
        asm.emit("MBARRIER", asm.target(first), at)
    else:
        asm.emit("MBARRIER", at)
