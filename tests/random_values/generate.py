"""Random CUDA kernels that compute, and what they compute.

A kernel of one block of 64 threads reads three words of 64 bits a thread from `x` and writes variables to
`y`; `z` gets sums of its threads. What it computes is found by going through its statements in the arithmetic
of `scalars`, thread by thread where threads do not meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.random_values.expressions import (
    Expression,
    Expressions,
    Values,
    masked,
    random_bits,
    variable,
)
from tests.random_values.meetings import MEETINGS
from tests.random_values.scalars import BINARY, I32, INTEGERS, LONGS, U64, WORDS, Type, bits_of, wrap

THREADS, INPUTS, SUMS = 64, 3, 4
ANY_TYPES = (*INTEGERS, *WORDS, *LONGS)

#: Runs for all threads together; each has its variables.
Step = Callable[[list[Values]], None]
#: Runs for one thread; True if it leaves the loop.
Own = Callable[[Values], bool]


@dataclass(frozen=True)
class RandomKernel:
    """`text` of a kernel `name(const u64 *x, u64 *y, u64 *z)`, x, and what y and z are afterwards."""

    name: str
    text: str
    x: list[int]
    y: list[int]
    z: list[int]


def random_kernel(seed: int, statements: int = 7) -> RandomKernel:
    """The kernel of a seed; the same on every machine."""
    return Writer(seed).kernel(statements)


class Writer:
    """Writes one kernel, statement by statement, with what each does."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.name = f"k{seed}"
        self.make = Expressions(self.chance)
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.written: list[Expression] = []
        self.names = 0
        self.z = [0] * SUMS

    def kernel(self, statements: int) -> RandomKernel:
        x = [random_bits(self.chance, U64) for _ in range(THREADS * INPUTS)]
        self.make.known = [variable("tid", I32)] + [variable(f"x{i}", U64) for i in range(INPUTS)]
        for _ in range(statements):
            meets = self.chance.random() < 0.4
            maker = self.chance.choice(MEETINGS) if meets else self.chance.choice(ALONE)
            maker(self)
        threads = [{"tid": t, **{f"x{i}": x[t * INPUTS + i] for i in range(INPUTS)}} for t in range(THREADS)]
        for step in self.steps:
            step(threads)
        y = [bits_of(one.value(values), one.kind) for one in self.written for values in threads]
        loads = " ".join(f"u64 x{i} = x[tid * {INPUTS} + {i}];" for i in range(INPUTS))
        body = "\n    ".join(self.lines)
        stores = "\n    ".join(
            f"y[{place * THREADS} + tid] = bits({one.text});" for place, one in enumerate(self.written)
        )
        text = f"""{"".join(self.functions)}
extern "C" __global__ void {self.name}(const u64 *x, u64 *y, u64 *z) {{
    int tid = threadIdx.x;
    {loads}
    {body}
    {stores}
}}
"""
        return RandomKernel(self.name, text, x, y, self.z)

    # --- what makers use --------------------------------------------------------------------------

    def new(self, start: str) -> str:
        """A name that is not used yet, in any kernel."""
        self.names += 1
        return f"{start}{self.names}_{self.name}"

    def type(self) -> Type:
        """An integer's type, those of 32 and 64 bits more often."""
        return self.chance.choice(ANY_TYPES)

    def know(self, name: str, kind: Type) -> None:
        """A variable that is written to y, and that later expressions read."""
        self.make.known.append(variable(name, kind))
        self.written.append(variable(name, kind))

    def does(self, text: str, own: Own) -> None:
        """A statement of each thread for itself."""
        self.lines.append(text)

        def step(threads: list[Values]) -> None:
            for values in threads:
                own(values)

        self.steps.append(step)


def declare(writer: Writer) -> None:
    """A variable."""
    one, name = writer.make.make(), writer.new("v")
    writer.does(f"{one.kind.text} {name} = {one.text};", _assign(name, one))
    writer.know(name, one.kind)


def _assign(name: str, one: Expression) -> Own:
    def own(values: Values) -> bool:
        values[name] = one.value(values)
        return False

    return own


def condition(writer: Writer) -> None:
    """`if` and `else` that assign, one within the other."""
    kind, name, make = writer.type(), writer.new("c"), writer.make
    start, yes, no, nested = (make.make(kind, 2) for _ in range(4))
    test, inner = make.test(1), make.test(1)

    def own(values: Values) -> bool:
        values[name] = start.value(values)
        if test.value(values):
            values[name] = yes.value(values)
            if inner.value(values):
                values[name] = wrap(values[name] + nested.value(values), kind)
        else:
            values[name] = no.value(values)
        return False

    writer.does(
        f"{kind.text} {name} = {start.text}; if ({test.text}) {{ {name} = {yes.text};"
        f" if ({inner.text}) {name} = add<{kind.text}>({name}, {nested.text}); }} else {name} = {no.text};",
        own,
    )
    writer.know(name, kind)


def loop(writer: Writer) -> None:
    """A loop whose trips depend on data, with `continue` and `break`."""
    kind, name, index, make = writer.type(), writer.new("s"), writer.new("i"), writer.make
    start, trips = make.make(kind, 1), masked(make.make(depth=1), 8)
    known = list(make.known)
    make.known += [variable(name, kind), variable(index, I32)]
    skip, stop, next_value = make.test(1), make.test(1), make.make(kind, 2)
    make.known = known

    def own(values: Values) -> bool:
        values[name] = start.value(values)
        for count in range(trips.value(values)):
            values[index] = count
            if skip.value(values):
                continue
            values[name] = next_value.value(values)
            if stop.value(values):
                break
        return False

    writer.does(
        f"{kind.text} {name} = {start.text}; for (int {index} = 0, n = {trips.text}; {index} < n; {index}++)"
        f" {{ if ({skip.text}) continue; {name} = {next_value.text}; if ({stop.text}) break; }}",
        own,
    )
    writer.know(name, kind)


def switch(writer: Writer) -> None:
    """A switch of eight cases, some of which fall through."""
    kind, name, make = writer.type(), writer.new("w"), writer.make
    which, start = masked(make.make(depth=2), 8), make.make(kind, 1)
    cases = [(writer.chance.choice(list(BINARY)), make.make(kind, 1)) for _ in range(7)]
    falls = [writer.chance.random() < 0.3 for _ in cases]

    def own(values: Values) -> bool:
        values[name] = start.value(values)
        for place in range(which.value(values), len(cases)):
            operation, one = cases[place]
            values[name] = wrap(BINARY[operation](kind, values[name], one.value(values)), kind)
            if not falls[place]:
                break
        return False

    bodies = " ".join(
        f"case {place}: {name} = {operation}<{kind.text}>({name}, {one.text});{'' if fall else ' break;'}"
        for place, ((operation, one), fall) in enumerate(zip(cases, falls))
    )
    writer.does(f"{kind.text} {name} = {start.text}; switch ({which.text}) {{ {bodies} }}", own)
    writer.know(name, kind)


def array(writer: Writer) -> None:
    """An array of the thread's own, with indices that depend on data."""
    kind, name, found, make = writer.type(), writer.new("a"), writer.new("v"), writer.make
    fill, value = make.make(kind, 1), make.make(kind, 2)
    to, at = masked(make.make(depth=2), 8), masked(make.make(depth=2), 8)

    def own(values: Values) -> bool:
        content = [wrap(fill.value(values) + i, kind) for i in range(8)]
        content[to.value(values)] = value.value(values)
        values[found] = content[at.value(values)]
        return False

    writer.does(
        f"{kind.text} {name}[8]; for (int i = 0; i < 8; i++) {name}[i] = add<{kind.text}>({fill.text}, i);"
        f" {name}[{to.text}] = {value.text}; {kind.text} {found} = {name}[{at.text}];",
        own,
    )
    writer.know(found, kind)


def call(writer: Writer) -> None:
    """A function that is not inlined, which also writes through a pointer."""
    kinds = [writer.type() for _ in range(3)]
    names = [writer.new("p") for _ in kinds]
    inside = Expressions(writer.chance)
    inside.known = [variable(name, kind) for name, kind in zip(names, kinds)]
    inside.known[2] = Expression(f"(*{names[2]})", kinds[2], inside.known[2].value)
    stored, gives = inside.make(kinds[2], 2), inside.make(None, 2)
    function, result, held = writer.new("f"), writer.new("r"), writer.new("h")
    given = [writer.make.make(kind, 1) for kind in kinds]
    writer.functions.append(
        f"__device__ __noinline__ {gives.kind.text} {function}({kinds[0].text} {names[0]}, {kinds[1].text}"
        f" {names[1]}, {kinds[2].text} *{names[2]}) {{ *{names[2]} = {stored.text}; return {gives.text}; }}\n"
    )

    def own(values: Values) -> bool:
        inner = {name: one.value(values) for name, one in zip(names, given)}
        inner[names[2]] = stored.value(inner)
        values[held], values[result] = inner[names[2]], gives.value(inner)
        return False

    writer.does(
        f"{kinds[2].text} {held} = {given[2].text}; {gives.kind.text} {result} ="
        f" {function}({given[0].text}, {given[1].text}, &{held});",
        own,
    )
    writer.know(held, kinds[2])
    writer.know(result, gives.kind)


def structure(writer: Writer) -> None:
    """Bit fields of a struct that a function takes and returns by value."""
    widths = [(kind, writer.chance.randint(2, kind.bits - 1)) for kind in (*WORDS, *LONGS)]
    name, function, held = writer.new("S"), writer.new("g"), writer.new("t")
    results = [writer.new("b") for _ in widths]
    given = [writer.make.make(kind, 1) for kind, _ in widths]
    fields = " ".join(f"{kind.text} m{i} : {width};" for i, (kind, width) in enumerate(widths))
    writer.functions.append(
        f"struct {name} {{ {fields} }}; __device__ __noinline__ {name} {function}({name} s)"
        " { unsigned old = s.m1; s.m1 = s.m0; s.m0 = old; return s; }\n"
    )

    def narrowed(value: int, place: int) -> int:
        kind, width = widths[place]
        return wrap(value, Type("", width, kind.signed))

    def own(values: Values) -> bool:
        members = [narrowed(one.value(values), i) for i, one in enumerate(given)]
        members[:2] = [narrowed(members[1], 0), narrowed(members[0], 1)]
        values.update(zip(results, members))
        return False

    sets = " ".join(f"{held}.m{i} = {one.text};" for i, one in enumerate(given))
    gets = " ".join(
        f"{kind.text} {to} = {held}.m{i};" for i, ((kind, _), to) in enumerate(zip(widths, results))
    )
    writer.does(f"{name} {held} = {{}}; {sets} {held} = {function}({held}); {gets}", own)
    for to, (kind, _) in zip(results, widths):
        writer.know(to, kind)


ALONE = (declare, declare, declare, condition, loop, switch, array, call, structure)
