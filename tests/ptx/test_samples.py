"""The PTX that NVRTC 12.0 and nvcc 13.0 write for `cuda/*.cu` parses, and parses to what is there.

What is compared with is read from the text by cruder means than the parser's.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from memsim.ptx.basic_blocks import basic_blocks
from memsim.ptx.inline import inline_calls
from memsim.ptx.lowering.lower import lower
from memsim.ptx.parser import parse
from memsim.ptx.program import CallTarget, Function, PtxImmediate, PtxModule, PtxSymbol, Vector
from memsim.ptx.used_registers import defs, uses
from memsim.simt.dataflow import Dataflow

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.ptx"))
NAMES = [path.name for path in SAMPLES]

# Every opcode that 309 kernels of public CUDA code use, compiled by nvcc 13.0.
OPCODES = (
    "ld cvta mov add st mul setp bra mad shl cvt and sub fma shr div bar or selp shfl rcp neg barrier "
    "not max rem ex2 sqrt bfi atom min xor tex abs rsqrt copysign clz wmma vote mbarrier nanosleep sin "
    "cos cp popc sust brev bfind call ret "
)

# Their memory and synchronisation instructions: how the name starts, and what else is in it.
FORMS = (
    "ld.shared. ld.global. ld.param. st.global. st.shared. shfl.sync.bfly ld.shared.v4 ld.global.v4 "
    "st.local. st.global.v4 bar.sync ld.shared.v2 st.param. st.local.v4 st.shared.v4 shfl.sync.down "
    "barrier.sync ld.global.v2 ld.global.cs st.global.v2 tex.2d.v4 st.global.cs ld.local. "
    "wmma.mma.sync~m16n16k16 ld.global.nc atom.shared.add atom.global.add ld.const. call.uni "
    "cp.async.ca.shared.global cp.async.mbarrier.arrive wmma.load~shared wmma.load~global "
    "wmma.store~shared wmma.store~global bar.warp.sync cp.async.bulk.shared::cluster.global.mbarrier "
    "mbarrier.init mbarrier.arrive mbarrier.expect_tx mbarrier.try_wait tex.cube tex.3d tex.a2d "
    "atom.global.cas atom.global.exch atom.global.min atom.global.max atom.global.inc atom.global.dec "
    "atom.global.and atom.global.or atom.global.xor atom.global.sys ld.acquire.gpu vote.sync membar.gl "
)


@cache
def sample(name: str) -> PtxModule:
    path = Path(__file__).parent / "samples" / name
    return parse(path.read_text(encoding="utf-8"), name)


def bodies(text: str) -> dict[str, list[str]]:
    """The lines between the braces of each function, by its name."""
    found: dict[str, list[str]] = {}
    for match in re.finditer(r"^(?:\.\w+ +)*\.(?:entry|func)([^{;]*)\{\n(.*?)\n\n\}$", text, re.M | re.S):
        name = re.search(r"([\w$]+)\s*(?:\(|$)", re.sub(r"^\s*\([^)]*\)", "", match[1]))
        assert name is not None
        found[name[1]] = match[2].split("\n")
    return found


def instructions_in(lines: list[str]) -> int:
    """Statements that start with a small letter or `@`, labels, braces and `.loc` before them taken off."""
    text = re.sub(r"//[^\n]*", "", "\n".join(lines))
    before = re.compile(r"(?:\s|[{}]|\.loc[^\n]*\n|[\w$]+\s*:)*")
    return sum(1 for statement in text.split(";") if re.match(r"[a-z@]", before.sub("", statement, count=1)))


@pytest.mark.parametrize("name", NAMES)
def test_functions_and_instruction_counts(name: str) -> None:
    module = sample(name)
    counted = {function: instructions_in(lines) for function, lines in bodies(module.text).items()}
    assert {key: len(function.instructions) for key, function in module.functions.items()} == counted
    assert module.entries
    assert set(module.entries) == set(re.findall(r"\.entry ([\w$]+)", module.text))


@pytest.mark.parametrize("name", NAMES)
def test_positions_point_at_the_opcode(name: str) -> None:
    lines = sample(name).text.split("\n")
    for function in sample(name).functions.values():
        for instruction in function.instructions:
            rest = lines[instruction.line - 1][instruction.column - 1 :]
            assert re.match(r"(@!?[%\w]+\s+)?" + re.escape(instruction.name) + r"(?![\w.])", rest)
            assert rest.startswith("@") == (instruction.guard is not None)


@pytest.mark.parametrize("name", NAMES)
def test_branches_lead_to_labels(name: str) -> None:
    for function in sample(name).functions.values():
        for instruction in function.instructions:
            if instruction.opcode == "bra":
                (target,) = instruction.operands
                assert isinstance(target, PtxSymbol)
                assert 0 <= function.labels[target.name] <= len(function.instructions)


@pytest.mark.parametrize("name", NAMES)
def test_registers_are_declared(name: str) -> None:
    for function in sample(name).functions.values():
        used = {name for i in function.instructions for name in (*defs(i), *uses(i))}
        assert used <= function.registers.keys()


@pytest.mark.parametrize("name", NAMES)
def test_no_register_is_read_before_it_is_written(name: str) -> None:
    """A wrong classification of destinations and sources would show as a register alive at the start."""
    module = sample(name)
    for entry in module.entries:
        program = lower(module, inline_calls(module, entry)).program
        assert Dataflow(program).live[0] & ~program.barriers == 0


def test_every_opcode_of_public_code_is_among_the_samples() -> None:
    found = {i.opcode for name in NAMES for f in sample(name).functions.values() for i in f.instructions}
    assert set(OPCODES.split()) - found == set()


def test_every_memory_form_of_public_code_is_among_the_samples() -> None:
    found = {i.name for name in NAMES for f in sample(name).functions.values() for i in f.instructions}
    missing = []
    for form in FORMS.split():
        start, _, part = form.partition("~")
        if not any(name.startswith(start) and part in name for name in found):
            missing.append(form)
    assert missing == []


def test_calls_with_prototypes_are_among_the_samples() -> None:
    calls = [
        i.operands[0]
        for name in NAMES
        for f in sample(name).functions.values()
        for i in f.instructions
        if i.opcode == "call"
    ]
    assert any(isinstance(call, CallTarget) and call.prototype is not None for call in calls)


@pytest.mark.parametrize("name", NAMES)
def test_source_lines_are_in_the_file(name: str) -> None:
    module = sample(name)
    source = Path(__file__).parent / "cuda" / f"{name.split('.')[0]}.cu"
    last = len(source.read_text(encoding="utf-8").splitlines())
    lines = [i.source for f in module.functions.values() for i in f.instructions]
    assert sum(line is not None for line in lines) > 0.9 * len(lines)
    for line in lines:
        for file, number in () if line is None else ((line.file, line.line), *line.callers):
            assert file in module.files.values()
            assert file != source.name or 1 <= number <= last


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_inlined_functions(compiler: str) -> None:
    function = sample(f"flow.{compiler}.ptx").functions["_Z7inlinedPfPKf"]
    places = [i.source for i in function.instructions if i.source and len(i.source.callers) == 2]
    chains = {(place.line, *(line for _, line in place.callers)) for place in places}
    assert chains == {(2, 4, 8), (2, 4, 9)}


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_variables(compiler: str) -> None:
    module = sample(f"memory.{compiler}.ptx")
    found = module.variables
    assert found["counters"].init == bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0])
    assert found["cursor"].pointers == ((0, "counters", 8),)
    assert found["packed"].pointers == ((1, "counters", 4),)
    assert (found["packed"].size, found["packed"].align) == (18, 1)
    assert found["list"].pointers == ((8, "last", 0),)
    assert (found["table"].space, found["table"].size) == ("const", 24)
    assert found["text"].init == b'a "quoted" text; with { braces } // and slashes\0'
    assert (found["dynamic"].size, found["dynamic"].align) == (0, 16)
    assert found["uninitialised"].init is None
    loads = module.functions["_Z5loadsPfPKfPK6float43Bigi"]
    assert [(p.offset, p.size) for p in loads.parameters] == [(0, 8), (8, 8), (16, 8), (24, 48), (72, 4)]
    tile = next(v for name, v in loads.variables.items() if name.endswith("E4tile"))
    assert (tile.space, tile.size, tile.align) == ("shared", 32 * 33 * 4, 4)


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_launch_bounds(compiler: str) -> None:
    functions = sample(f"flow.{compiler}.ptx").functions
    assert functions["_Z7inlinedPfPKf"].maxntid == (256, 1, 1)
    assert functions["_Z5tablePii"].maxntid is None


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_inline_assembly(compiler: str) -> None:
    functions = sample(f"async.{compiler}.ptx").functions
    copies = functions["_Z6copiesPfPKfi"]
    waits = [i for i in copies.instructions if i.name.startswith("mbarrier.try_wait")]
    assert [i.operands[0] for i in waits] != [] and len({i.operands[0] for i in waits}) == 2
    assert {"LAB_WAIT", "LAB_WAIT#2", "DONE", "DONE#2"} <= copies.labels.keys()
    (mma,) = [i for i in functions["_Z8matricesPfPKf"].instructions if i.opcode == "mma"]
    assert [len(v.items) for v in mma.operands if isinstance(v, Vector)] == [4, 4, 2, 4]


def all_functions() -> list[tuple[str, Function]]:
    return [(name, function) for name in NAMES for function in sample(name).functions.values()]


def test_blocks_of_every_function() -> None:
    for name, function in all_functions():
        found = basic_blocks(function)
        assert [b.start for b in found[1:]] == [b.end for b in found[:-1]], name
        assert (found[0].start, found[-1].end) == (0, len(function.instructions))


def test_inlining_every_kernel() -> None:
    for name in NAMES:
        module = sample(name)
        for entry in module.entries:
            function = inline_calls(module, entry)
            before = module.functions[entry]
            used = {r for i in function.instructions for r in (*defs(i), *uses(i))}
            assert used <= function.registers.keys()
            calls = [i.operands[0] for i in before.instructions if i.opcode == "call"]
            direct = [c for c in calls if isinstance(c, CallTarget) and isinstance(c.target, PtxSymbol)]
            with_body = [c for c in direct if c.target.name in module.functions]
            assert (function is before) == (with_body == [])


def test_immediates_of_both_kinds() -> None:
    values = [
        v.value
        for _, f in all_functions()
        for i in f.instructions
        for v in i.operands
        if isinstance(v, PtxImmediate)
    ]
    assert {type(value) for value in values} == {int, float}
