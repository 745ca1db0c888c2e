"""Random structured programs: the machine against a scalar interpreter, thread by thread.

Each program has branches, loops with a trip count of each thread's own, breaks and early
returns. Wrong merging, wrong meeting points or wrong liveness would show in some register.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.api.running import run
from memsim.simt.groups import Groups
from tests.ptx_front.loading import load_ptx

REGISTERS = 4
BLOCKS, THREADS = 3, 48

registers = st.integers(0, REGISTERS - 1)
constants = st.integers(-3, 9)
conditions = st.tuples(registers, st.sampled_from(["lt", "ge", "eq", "ne"]), constants, st.integers(0, 15))
assignments = st.tuples(
    st.just("set"), registers, st.sampled_from(["add", "sub", "xor", "and", "mul.lo"]), registers, constants
)
leaf = st.one_of(
    assignments,
    assignments,
    st.tuples(st.just("break"), conditions),
    st.tuples(st.just("return"), conditions),
)
programs = st.recursive(
    st.lists(leaf, min_size=1, max_size=3),
    lambda body: st.lists(
        st.one_of(
            leaf,
            st.tuples(st.just("if"), conditions, body, body),
            st.tuples(st.just("loop"), conditions, body),
        ),
        min_size=1,
        max_size=4,
    ),
    max_leaves=12,
)

TRIPS = 5  # a loop ends after so many rounds at the latest


class Writer:
    """Turns a program into PTX."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.labels = 0
        self.loops = 0

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"

    def test(self, condition: Any) -> None:
        register, relation, constant, mask = condition
        self.lines += [
            f"and.b32 %t, %x{register}, {mask};",
            f"setp.{relation}.s32 %p, %t, {constant};",
        ]

    def store(self) -> None:
        self.lines += [f"st.global.u32 [%out+{4 * i}], %x{i};" for i in range(REGISTERS)]

    def body(self, statements: Any, end: str | None) -> None:
        for statement in statements:
            kind = statement[0]
            if kind == "set":
                _, target, op, source, constant = statement
                suffix = "b32" if op in ("xor", "and") else "s32"
                self.lines.append(f"{op}.{suffix} %x{target}, %x{source}, {constant};")
            elif kind == "break" and end is not None:
                self.test(statement[1])
                self.lines.append(f"@%p bra {end};")
            elif kind == "return":
                skip = self.label()
                self.test(statement[1])
                self.lines.append(f"@!%p bra {skip};")
                self.store()
                self.lines += ["ret;", f"{skip}:"]
            elif kind == "if":
                otherwise, done = self.label(), self.label()
                self.test(statement[1])
                self.lines.append(f"@!%p bra {otherwise};")
                self.body(statement[2], end)
                self.lines += [f"bra {done};", f"{otherwise}:"]
                self.body(statement[3], end)
                self.lines.append(f"{done}:")
            elif kind == "loop":
                head, done = self.label(), self.label()
                count = self.loops
                self.loops += 1
                self.lines += [f"mov.u32 %n{count}, 0;", f"{head}:"]
                self.test(statement[1])
                self.lines += [
                    f"@!%p bra {done};",
                    f"setp.ge.u32 %p, %n{count}, {TRIPS};",
                    f"@%p bra {done};",
                    f"add.u32 %n{count}, %n{count}, 1;",
                ]
                self.body(statement[2], done)
                self.lines += [f"bra {head};", f"{done}:"]


def to_ptx(program: Any) -> str:
    writer = Writer()
    writer.body(program, None)
    writer.store()
    lines = "\n    ".join(writer.lines)
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p;
    .reg .b32 %t, %x<{REGISTERS}>, %n<{writer.loops + 1}>;
    .reg .b64 %out, %o;
    mov.u32 %x0, %tid.x;
    mov.u32 %x1, %ctaid.x;
    mov.u32 %x2, %ntid.x;
    mad.lo.s32 %x3, %x1, %x2, %x0;
    ld.param.u64 %out, [out];
    mul.wide.s32 %o, %x3, {4 * REGISTERS};
    add.s64 %out, %out, %o;
    {lines}
    ret;
}}
"""


class Returned(Exception):
    pass


class Broken(Exception):
    pass


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def interpret(program: Any, x: list[int]) -> list[int]:
    """What one thread leaves in its registers, by the plain meaning of the program."""

    def holds(condition: Any) -> bool:
        register, relation, constant, mask = condition
        value = x[register] & mask
        return {
            "lt": value < constant,
            "ge": value >= constant,
            "eq": value == constant,
            "ne": value != constant,
        }[relation]

    def execute(statements: Any, in_loop: bool) -> None:
        for statement in statements:
            kind = statement[0]
            if kind == "set":
                _, target, op, source, constant = statement
                a = x[source]
                x[target] = wrap(
                    {"add": a + constant, "sub": a - constant, "xor": a ^ constant, "and": a & constant}.get(
                        op, a * constant
                    )
                )
            elif kind == "break" and in_loop:
                if holds(statement[1]):
                    raise Broken
            elif kind == "return":
                if holds(statement[1]):
                    raise Returned
            elif kind == "if":
                execute(statement[2] if holds(statement[1]) else statement[3], in_loop)
            elif kind == "loop":
                try:
                    for _ in range(TRIPS):
                        if not holds(statement[1]):
                            break
                        execute(statement[2], True)
                except Broken:
                    pass

    with suppress(Returned):
        execute(program, False)
    return x


@given(programs)
def test_random_programs_equal_the_scalar_interpreter(program: Any) -> None:
    out = np.zeros((BLOCKS * THREADS, REGISTERS), np.int32)
    run(load_ptx(to_ptx(program))["k"], BLOCKS, THREADS, [out])
    for block in range(BLOCKS):
        for thread in range(THREADS):
            number = block * THREADS + thread
            expected = interpret(program, [thread, block, THREADS, number])
            assert out[number].tolist() == expected, f"thread {thread} of block {block}"


def test_a_wrong_merge_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: waiting threads' registers are not kept."""

    program = [("if", (0, "lt", 3, 7), [("set", 1, "add", 1, 5)], [("set", 1, "add", 1, 7)])]
    out = np.zeros((BLOCKS * THREADS, REGISTERS), np.int32)
    expected = [
        interpret(program, [t, b, THREADS, b * THREADS + t]) for b in range(BLOCKS) for t in range(THREADS)
    ]
    run(load_ptx(to_ptx(program))["k"], BLOCKS, THREADS, [out])
    assert out.tolist() == expected
    monkeypatch.setattr(Groups, "read_by_others", lambda self: 0)
    run(load_ptx(to_ptx(program))["k"], BLOCKS, THREADS, [out])
    assert out.tolist() != expected
