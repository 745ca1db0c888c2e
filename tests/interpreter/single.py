"""Runs one instruction by native/interpreter.c, on registers of a warp that hold given words."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from memsim.interpreter.lowered_kernel import LoweredKernel
from memsim.interpreter.native_launch import NativeInterpreter, Structure
from memsim.isa.op import PREDICATE, UNIFORM_PREDICATE, slots_of
from memsim.isa.readers import Binder
from memsim.sass.decode import decode
from memsim.simt.code import Code
from memsim.simt.dataflow import Dataflow
from memsim.state.address_spaces import GLOBAL_BASE
from tests.simt.listings import listing

#: Registers that the samples leave alone: the address of results, a one, and what predicates are made of.
ADDRESS, TRUTH, MADE = 244, 246, 248
OUTPUT = 128


def is_truth(slot: int) -> bool:
    return PREDICATE <= slot < PREDICATE + 7 or UNIFORM_PREDICATE <= slot < UNIFORM_PREDICATE + 7


def name_of(slot: int) -> str:
    """A register as listings name it."""
    if is_truth(slot):
        return f"P{slot - PREDICATE}" if slot < UNIFORM_PREDICATE else f"UP{slot - UNIFORM_PREDICATE}"
    return f"R{slot}" if slot < 256 else f"UR{slot - 256}"


def run_one(
    interpreter: NativeInterpreter, text: str, given: Mapping[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """What the registers of a warp hold after an instruction, by slot: words, uint32 [32].

    given: what they hold before.
    """
    program = decode(listing(text))
    written = slots_of(program.ops[0].writes)
    lines, tables = [], {}
    for slot, words in given.items():
        tables[f"SR_IN{slot}"] = words
        if is_truth(slot):
            lines += [f"S2R R{MADE}, SR_IN{slot}", f"ISETP.NE.AND {name_of(slot)}, PT, R{MADE}, RZ, PT"]
        else:
            lines.append(f"S2R {name_of(slot)}, SR_IN{slot}")
    lines += [
        text,
        f"S2R R{ADDRESS}, SR_LOW",
        f"MOV R{ADDRESS + 1}, {GLOBAL_BASE >> 32:#x}",
        f"MOV R{TRUTH}, 0x1",
    ]
    tables["SR_LOW"] = (GLOBAL_BASE + 4 * np.arange(32)).astype(np.uint32)
    for at, slot in enumerate(written):
        held = name_of(slot)
        if is_truth(slot):
            lines.append(f"SEL R{MADE}, R{TRUTH}, RZ, {held}")
            held = f"R{MADE}"
        elif slot >= 256:
            lines.append(f"MOV R{MADE}, {held}")
            held = f"R{MADE}"
        lines.append(f"STG.E desc[UR62][R{ADDRESS}.64+{OUTPUT * at:#x}], {held}")
    whole = decode(listing("\n".join([*lines, "EXIT"])))
    code = Code(Dataflow(whole), Binder({}), None, {})
    kernel = LoweredKernel(code, interpreter.names, has_clock=False)
    of_threads = np.array([tables[name] for name in kernel.of_threads], np.uint32)
    memory = np.zeros(OUTPUT * max(1, len(written)), np.uint8)
    starts, ends = (np.array([GLOBAL_BASE + end], np.uint64) for end in (0, memory.size))
    touched = np.zeros(1, np.uint8)
    structure = Structure(
        **kernel.addresses(),
        of_threads=of_threads.ctypes.data,
        threads=32,
        global_=memory.ctypes.data,
        global_base=GLOBAL_BASE,
        starts=starts.ctypes.data,
        ends=ends.ctypes.data,
        touched=touched.ctypes.data,
        allocations=1,
        budget=10_000,
        grid=(ctypes.c_uint32 * 3)(1, 1, 1),
        block=(ctypes.c_uint32 * 3)(32, 1, 1),
    )
    interpreter.execute([structure], 1)
    assert structure.fault == 0
    words = memory.view(np.uint32).reshape(-1, 32)
    return dict(zip(written, words))
