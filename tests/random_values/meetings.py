"""Statements in which threads meet: shared memory, atomics, shuffles, votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.random_values.expressions import Values, cast, masked
from tests.random_values.scalars import FLOATS, LONGS, U32, U64, WORDS, wrap

if TYPE_CHECKING:
    from tests.random_values.generate import Writer

WARP = 32


def shared(writer: Writer) -> None:
    """Each thread writes a value, and reads another's."""
    one, name, found = writer.make.make(depth=2), writer.new("sh"), writer.new("v")
    at = masked(writer.make.make(depth=2), 64)

    def step(threads: list[Values]) -> None:
        content = [one.value(values) for values in threads]
        for values in threads:
            values[found] = content[at.value(values)]

    writer.lines.append(
        f"__shared__ {one.kind.text} {name}[64]; {name}[tid] = {one.text}; __syncthreads();"
        f" {one.kind.text} {found} = {name}[{at.text}];"
    )
    writer.steps.append(step)
    writer.know(found, one.kind)


SUMS = {
    "Add": lambda a, b: a + b,
    "Min": min,
    "Max": max,
    "And": lambda a, b: a & b,
    "Or": lambda a, b: a | b,
    "Xor": lambda a, b: a ^ b,
}


def sums(writer: Writer) -> None:
    """Atomics of many threads on few words of shared memory, whose order does not matter."""
    kind, operation = writer.chance.choice([*WORDS, U64]), writer.chance.choice(list(SUMS))
    one, where = writer.make.make(kind, 2), masked(writer.make.make(depth=1), 4)
    name, found, unite = writer.new("at"), writer.new("v"), SUMS[operation]

    def step(threads: list[Values]) -> None:
        content = [5 * i for i in range(4)]
        for values in threads:
            place = where.value(values)
            content[place] = wrap(unite(content[place], one.value(values)), kind)
        for values in threads:
            values[found] = content[values["tid"] & 3]

    writer.lines.append(
        f"__shared__ {kind.text} {name}[4]; if (tid < 4) {name}[tid] = 5 * tid; __syncthreads();"
        f" atomic{operation}(&{name}[{where.text}], {one.text}); __syncthreads();"
        f" {kind.text} {found} = {name}[tid & 3];"
    )
    writer.steps.append(step)
    writer.know(found, kind)


def whole_sums(writer: Writer) -> None:
    """Sums in global memory, which are read at the end only."""
    one, where = writer.make.make(U64, 2), masked(writer.make.make(depth=1), 4)

    def step(threads: list[Values]) -> None:
        for values in threads:
            writer.z[where.value(values)] = wrap(writer.z[where.value(values)] + one.value(values), U64)

    writer.lines.append(f"atomicAdd(&z[{where.text}], {one.text});")
    writer.steps.append(step)


OLD = {
    "Exch": lambda a, b: b,
    "Sub": lambda a, b: a - b,
    "Inc": lambda a, b: 0 if a >= b else a + 1,
    "Dec": lambda a, b: b if a == 0 or a > b else a - 1,
    **SUMS,
}


def returned(writer: Writer) -> None:
    """Atomics that return the old value, each thread on a word of its own."""
    operation = writer.chance.choice([*OLD, "CAS"])
    one, start = writer.make.make(U32, 2), writer.make.make(U32, 1)
    name, found, after = writer.new("o"), writer.new("v"), writer.new("v")

    def step(threads: list[Values]) -> None:
        content = [start.value(values) for values in threads]
        for values in threads:
            place, value = values["tid"] * 5 + 3 & 63, one.value(values)
            values[found] = old = content[place]
            if operation == "CAS":
                content[place] = value if old == values["tid"] else old
            else:
                content[place] = wrap(OLD[operation](old, value), U32)
        for values in threads:
            values[after] = content[values["tid"]]

    compared = "tid, " if operation == "CAS" else ""
    writer.lines.append(
        f"__shared__ unsigned {name}[64]; {name}[tid] = {start.text}; __syncthreads(); unsigned {found} ="
        f" atomic{operation}(&{name}[tid * 5 + 3 & 63], {compared}{one.text}); __syncthreads();"
        f" unsigned {after} = {name}[tid];"
    )
    writer.steps.append(step)
    writer.know(found, U32)
    writer.know(after, U32)


def shuffle(writer: Writer) -> None:
    """A value of another lane, within parts of a warp."""
    kind = writer.chance.choice([*WORDS, *LONGS, *FLOATS])
    one, by, found = writer.make.make(kind, 2), masked(writer.make.make(depth=1), 32), writer.new("v")
    width = writer.chance.choice([32, 32, 16, 8, 4])
    how = writer.chance.choice(["", "_up", "_down", "_xor"])

    def source(lane: int, delta: int) -> int:
        first = lane // width * width
        to = {"": first + delta % width, "_up": lane - delta, "_down": lane + delta, "_xor": lane ^ delta}[
            how
        ]
        if how == "_xor":  # an earlier part of the warp can be read, a later one cannot
            return to if to < first + width else lane
        return to if first <= to < first + width else lane

    def step(threads: list[Values]) -> None:
        content = [one.value(values) for values in threads]
        for values in threads:
            warp, lane = divmod(values["tid"], WARP)
            values[found] = content[warp * WARP + source(lane, by.value(values))]

    call = f"__shfl{how}_sync(~0u, {one.text}, {by.text}, {width})"
    writer.lines.append(f"{kind.text} {found} = {call};")
    writer.steps.append(step)
    writer.know(found, kind)


def vote(writer: Writer) -> None:
    """What holds in which lanes."""
    test, found = writer.make.test(2), writer.new("v")
    how = writer.chance.choice(["ballot", "any", "all"])

    def step(threads: list[Values]) -> None:
        for first in range(0, len(threads), WARP):
            part = threads[first : first + WARP]
            holds = [test.value(values) for values in part]
            ballot = sum(bit << lane for lane, bit in enumerate(holds))
            value = {"ballot": ballot, "any": int(any(holds)), "all": int(all(holds))}[how]
            for values in part:
                values[found] = value

    writer.lines.append(f"unsigned {found} = __{how}_sync(~0u, {test.text});")
    writer.steps.append(step)
    writer.know(found, U32)


def match(writer: Writer) -> None:
    """The lanes with the same value."""
    kind, found = writer.chance.choice([*WORDS, *LONGS, *FLOATS]), writer.new("v")
    one = cast(masked(writer.make.make(depth=2), 8), kind)

    def step(threads: list[Values]) -> None:
        content = [one.value(values) for values in threads]
        for values in threads:
            first = values["tid"] // WARP * WARP
            own = content[first : first + WARP]
            values[found] = sum(1 << i for i, value in enumerate(own) if value == content[values["tid"]])

    writer.lines.append(f"unsigned {found} = __match_any_sync(~0u, {one.text});")
    writer.steps.append(step)
    writer.know(found, U32)


def reduction(writer: Writer) -> None:
    """The sum of a warp's lanes, from sm_80 on by one instruction."""
    operation = writer.chance.choice(["add", "min", "max", "and", "or", "xor"])
    kind = writer.chance.choice(WORDS) if operation in ("add", "min", "max") else U32
    one, found, other = writer.make.make(kind, 2), writer.new("v"), writer.new("v")
    unite = SUMS[operation.title()]
    before = {"add": "add", "min": "least", "max": "most", "and": "conj", "or": "disj", "xor": "exor"}[
        operation
    ]

    def step(threads: list[Values]) -> None:
        for first in range(0, len(threads), WARP):
            part = threads[first : first + WARP]
            content = [one.value(values) for values in part]
            total = content[0]
            for value in content[1:]:
                total = wrap(unite(total, value), kind)
            for values in part:
                values[found] = total

    lines = (
        f"{kind.text} {other} = {one.text};",
        "#if __CUDA_ARCH__ >= 800",
        f"{kind.text} {found} = __reduce_{operation}_sync(~0u, {other});",
        "#else",
        f"{kind.text} {found} = {other}; for (int i = 1; i < 32; i *= 2)"
        f" {found} = {before}<{kind.text}>({found}, __shfl_xor_sync(~0u, {found}, i));",
        "#endif",
    )
    writer.lines.append("\n".join(lines))
    writer.steps.append(step)
    writer.know(found, kind)


def either_space(writer: Writer) -> None:
    """A word through a pointer that is to shared memory in some threads, and to global memory in others."""
    one, test = writer.make.make(U64, 2), writer.make.test(1)
    at, name, found = masked(writer.make.make(depth=1), 64), writer.new("sh"), writer.new("v")

    def step(threads: list[Values]) -> None:
        content = [one.value(values) for values in threads]
        for values in threads:
            place = at.value(values)
            values[found] = content[place] if test.value(values) else threads[place]["x0"]

    writer.lines.append(
        f"__shared__ u64 {name}[64]; {name}[tid] = {one.text}; __syncthreads();"
        f" const u64 *p_{name} = {test.text} ? {name} + {at.text} : x + {at.text} * 3;"
        f" u64 {found} = *p_{name};"
    )
    writer.steps.append(step)
    writer.know(found, U64)


def copied(writer: Writer) -> None:
    """cp.async of eight bytes, of which fewer may be read, by some threads; from sm_80 on."""
    test, size = writer.make.test(1), masked(writer.make.make(depth=1), 8)
    at, name, found = masked(writer.make.make(depth=1), 64), writer.new("cp"), writer.new("v")

    def step(threads: list[Values]) -> None:
        content = [
            threads[at.value(values)]["x1"] & (1 << 8 * size.value(values)) - 1 if test.value(values) else 7
            for values in threads
        ]
        for values in threads:
            values[found] = content[values["tid"] ^ 5]

    copy = "cp.async.ca.shared.global [%0], [%1], 8, %2; cp.async.wait_all;"
    lines = (
        f"__shared__ u64 {name}[64]; {name}[tid] = 7; const u64 *p_{name} = x + {at.text} * 3 + 1;"
        f" int n_{name} = {size.text};",
        f"if ({test.text}) {{",
        "#if __CUDA_ARCH__ >= 800",
        f'asm volatile("{copy}" :: "r"((unsigned)__cvta_generic_to_shared({name} + tid)), "l"(p_{name}),'
        f' "r"(n_{name}) : "memory");',
        "#else",
        f"{name}[tid] = *p_{name} & (1ull << 8 * n_{name}) - 1;",
        "#endif",
        f"}} __syncthreads(); u64 {found} = {name}[tid ^ 5];",
    )
    writer.lines.append("\n".join(lines))
    writer.steps.append(step)
    writer.know(found, U64)


MEETINGS = (
    shared,
    shared,
    sums,
    whole_sums,
    returned,
    shuffle,
    shuffle,
    vote,
    match,
    reduction,
    either_space,
    copied,
)
