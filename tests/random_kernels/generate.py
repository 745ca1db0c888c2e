"""Random CUDA kernels: accesses of every space and width, with indices of every kind, in random control flow.

A kernel's addresses and branches depend on its arguments alone, never on the order of warps. It reads `table`
(64 integers below 64) and `x`, and writes `y`; every index is masked to its array.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

#: Bytes of `x` and of `y`, of each array in shared memory, and of a thread's own.
GLOBAL_BYTES, SHARED_BYTES, OWN_BYTES = 1 << 16, 1 << 12, 64
TYPES = {
    "unsigned char": 1,
    "short": 2,
    "int": 4,
    "float": 4,
    "float2": 8,
    "double": 8,
    "float4": 16,
}
#: How a value of a type becomes an int, and how an int becomes a value.
TO_INT = {"float2": "int({}.x)", "float4": "int({0}.x + {0}.w)"}
FROM_INT = {"float2": "make_float2({0}, {0})", "float4": "make_float4({0}, {0}, 0, {0})"}
BLOCKS = [
    (32, 1, 1),
    (64, 1, 1),
    (128, 1, 1),
    (256, 1, 1),
    (33, 1, 1),
    (100, 1, 1),
    (8, 8, 1),
    (16, 16, 1),
    (5, 7, 3),
    (20, 6, 1),
]

CALLED = f"""
__device__ __noinline__ int called(char *s, const char *x, int a, int b) {{
    int found = ((const int *)x)[(a * 3 + b) & {GLOBAL_BYTES // 4 - 1}];
    for (int i = 0; i < (b & 3); i++) found += ((short *)s)[(a + i * b) & {SHARED_BYTES // 2 - 1}];
    if (a & 4) ((int *)s)[(a ^ b) & {SHARED_BYTES // 4 - 1}] = found;
    return found;
}}
"""

FILL = (
    f"for (int i = id; i < {SHARED_BYTES} / 4; i += blockDim.x * blockDim.y * blockDim.z)"
    " ((int *)s)[i] = i * 5 & 63;"
)


@dataclass(frozen=True, slots=True)
class RandomKernel:
    """Source text of a kernel `name(const int *table, const char *x, char *y, int n)`, and its launch.

    dynamic: bytes of dynamic shared memory.
    """

    name: str
    text: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    n: int
    dynamic: int = 0


def random_kernel(seed: int) -> RandomKernel:
    """The kernel of a seed; the same on every machine."""
    return Writer(seed).kernel()


class Writer:
    """Writes one kernel, statement by statement."""

    #: Before the kernel, and at its start.
    head = start = ""
    dynamic = 0

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.lines: list[str] = []
        self.depth = 1
        self.values = ["int(threadIdx.x)", "lane", "int(blockIdx.x)", "n", "id"]
        self.names = 0
        self.whole_warps = True
        self.calls = False

    def kernel(self) -> RandomKernel:
        chance = self.chance
        block, grid = chance.choice(BLOCKS), (chance.randint(1, 5), chance.choice([1, 1, 2]), 1)
        self.whole_warps = block[0] * block[1] * block[2] % 32 == 0
        for _ in range(chance.randint(4, 9)):
            self.statement(chance.randint(1, 3))
        name = f"random_{self.seed}"
        body = "\n".join(self.lines)
        text = f"""{self.head}{CALLED if self.calls else ""}
extern "C" __global__ void {name}(const int *table, const char *x, char *y, int n) {{
    __shared__ __align__(128) char s[{SHARED_BYTES}];
    __shared__ int sums[64];
    int id = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z), lane = id & 31, sum = 0;
    {FILL}
    if (id < 64) sums[id] = 0;{self.start}
    __syncthreads();
{body}
    ((int *)y)[(blockIdx.x * 512 + id * 2 + 1) & {GLOBAL_BYTES // 4 - 1}] = sum;
}}
"""
        return RandomKernel(name, text, grid, block, chance.randint(1, 60), self.dynamic)

    # --- statements -------------------------------------------------------------------------------

    def statement(self, budget: int) -> None:
        """One statement, with at most `budget` levels of control flow in it."""
        flat = [self.global_load, self.global_store, self.shared_load, self.shared_store, self.value]
        some = [
            self.shared_atomic,
            self.global_atomic,
            self.own_array,
            self.from_table,
            self.from_x,
            self.call,
        ]
        nested = [self.condition, self.loop, self.while_loop, self.switch] if budget > 0 else []
        makers = [*flat, *flat, *some, *nested, *nested]
        if self.depth == 1:
            makers += [self.barrier, self.shuffle, self.vote, self.copy, self.matrix, self.leave]
        self.chance.choice(makers)(budget - 1)

    def value(self, budget: int) -> None:
        self.define(self.index())

    def from_table(self, budget: int) -> None:
        self.define(f"table[({self.index()}) & 63]")

    def from_x(self, budget: int) -> None:
        self.define(f"__ldg((const int *)x + (({self.index()}) & {GLOBAL_BYTES // 4 - 1}))")

    def global_load(self, budget: int) -> None:
        kind, size = self.type()
        self.add(kind, f"((const {kind} *)x)[{self.place(GLOBAL_BYTES // size)}]")

    def global_store(self, budget: int) -> None:
        kind, size = self.type()
        self.line(f"(({kind} *)y)[{self.place(GLOBAL_BYTES // size)}] = {self.made(kind)};")

    def shared_load(self, budget: int) -> None:
        kind, size = self.type()
        self.add(kind, f"(({kind} *)s)[{self.place(SHARED_BYTES // size)}]")

    def shared_store(self, budget: int) -> None:
        kind, size = self.type()
        self.line(f"(({kind} *)s)[{self.place(SHARED_BYTES // size)}] = {self.made(kind)};")

    def shared_atomic(self, budget: int) -> None:
        call = self.chance.choice(["atomicAdd(&{}, 3)", "atomicMax(&{}, sum)", "atomicAnd(&{}, lane)"])
        used = self.chance.choice(["", "sum += "])
        self.line(f"{used}{call.format(f'sums[{self.place(64)}]')};")

    def global_atomic(self, budget: int) -> None:
        call = self.chance.choice(["atomicAdd((int *)y + {}, 3)", "atomicMax((int *)y + {}, sum)"])
        self.line(f"{call.format(f'({self.place(GLOBAL_BYTES // 4)})')};")

    def own_array(self, budget: int) -> None:
        name, size = self.name("own"), OWN_BYTES // 4
        self.line(f"int {name}[{size}];")
        self.line(f"for (int i = 0; i < {size}; i++) {name}[(i + table[i]) & {size - 1}] = sum + i;")
        self.line(f"sum += {name}[{self.place(size)}];")

    def call(self, budget: int) -> None:
        """Of a function that is not inlined, with control flow and accesses of its own."""
        self.calls = True
        self.line(f"sum += called(s, x, {self.index()}, {self.index()});")

    def matrix(self, budget: int) -> None:
        """ldmatrix: each lane gives the address of a row of 16 bytes."""
        if self.whole_warps:
            count, name = self.chance.choice([1, 2, 4]), self.name("m")
            results = ", ".join(f"%{i}" for i in range(count))
            outputs = ", ".join(f'"=r"({name}[{i}])' for i in range(count))
            row = f"(unsigned)__cvta_generic_to_shared(s + 16 * ({self.place(SHARED_BYTES // 16)}))"
            self.line(f"unsigned {name}[{count}];")
            shape = f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16"
            self.line(f'asm volatile("{shape} {{{results}}}, [%{count}];" : {outputs} : "r"({row}));')
            self.line(f"sum += {name}[{count - 1}];")

    def leave(self, budget: int) -> None:
        """Some lanes end; no warp is whole afterwards."""
        self.whole_warps = False
        self.line(f"if ({self.test()}) return;")

    def barrier(self, budget: int) -> None:
        self.line("__syncthreads();")

    def shuffle(self, budget: int) -> None:
        how = self.chance.choice(
            ["__shfl_xor_sync(~0u, {}, {})", "__shfl_down_sync(~0u, {}, {})", "__shfl_sync(~0u, {}, {})"]
        )
        if self.whole_warps:
            self.define(how.format(self.index(), self.chance.randint(1, 17)))

    def vote(self, budget: int) -> None:
        if self.whole_warps:
            self.define(f"__popc(__ballot_sync(~0u, {self.test()}))")

    def copy(self, budget: int) -> None:
        size = self.chance.choice([4, 8, 16])
        to, source = self.place(SHARED_BYTES // size), self.place(GLOBAL_BYTES // size)
        kind = "cg" if size == 16 and self.chance.random() < 0.5 else "ca"
        self.line(
            f'asm volatile("cp.async.{kind}.shared.global [%0], [%1], {size};" :: '
            f'"r"((unsigned)__cvta_generic_to_shared(s + {size} * ({to}))), "l"(x + {size} * ({source})));'
        )
        self.line('asm volatile("cp.async.wait_all;" ::: "memory");')

    # --- control flow -----------------------------------------------------------------------------

    def condition(self, budget: int) -> None:
        self.block(f"if ({self.test()})", budget)
        if self.chance.random() < 0.5:
            self.block("else", budget)

    def loop(self, budget: int) -> None:
        name = self.name("i")
        bound = self.chance.choice(["4", "n & 7", "(lane & 3) + 1", f"({self.index()}) & 7"])
        self.block(f"for (int {name} = 0; {name} < ({bound}); {name}++)", budget, name, leave=True)

    def while_loop(self, budget: int) -> None:
        name = self.name("w")
        self.line(f"int {name} = ({self.index()}) & 31;")
        self.block(
            f"while ({name} > 0)", budget, name, before=f"{name} = {name} * 2 / 3 - ({name} & 1);", leave=True
        )

    def switch(self, budget: int) -> None:
        self.line(f"switch (({self.index()}) & 3) {{")
        for case in ("case 0:", "case 2:", "default:"):
            self.block(case, budget)
            if self.chance.random() < 0.8:
                self.line("break;")
        self.line("}")

    def block(self, head: str, budget: int, name: str = "", before: str = "", leave: bool = False) -> None:
        known = list(self.values)
        self.line(f"{head} {{")
        self.depth += 1
        if name:
            self.values.append(name)
        if before:
            self.line(before)
        for _ in range(self.chance.randint(1, 3)):
            self.statement(budget)
            if leave and self.chance.random() < 0.2:
                self.line(f"if ({self.test()}) {self.chance.choice(['break', 'continue'])};")
        self.depth -= 1
        self.line("}")
        self.values = known

    # --- expressions ------------------------------------------------------------------------------

    def index(self) -> str:
        """An integer of known values."""
        chance = self.chance
        first, second = chance.choice(self.values), chance.choice(self.values)
        return chance.choice(
            [
                first,
                f"{first} * {chance.choice([2, 3, 4, 5, 8, 17, 32, 33, 64])}",
                f"{first} * {chance.choice([1, 2, 4, 9, 32])} + {second}",
                f"({first} ^ {second} >> {chance.randint(1, 3)})",
                f"({first} / {chance.choice([2, 4, 8, 7])} + {second} % {chance.choice([3, 4, 16])})",
                f"({first} << {chance.randint(1, 5)} | {second} & 7)",
                f"({first} - {second})",
            ]
        )

    def test(self) -> str:
        limit = self.chance.choice(["5", "16", "n", "3"])
        relation = self.chance.choice(["<", ">=", "==", "&"])
        return f"(({self.index()}) & 31) {relation} {limit}"

    def place(self, count: int) -> str:
        return f"({self.index()}) & {count - 1}"

    def type(self) -> tuple[str, int]:
        return self.chance.choice(list(TYPES.items()))

    def made(self, kind: str) -> str:
        value = self.chance.choice(["sum", self.chance.choice(self.values)])
        return FROM_INT.get(kind, f"({kind})({{}})").format(value)

    # --- text -------------------------------------------------------------------------------------

    def add(self, kind: str, text: str) -> None:
        name = self.name("v")
        self.line(f"{kind} {name} = {text};")
        self.line(f"sum += {TO_INT.get(kind, 'int({})').format(name)};")

    def define(self, text: str) -> None:
        name = self.name("k")
        self.line(f"int {name} = {text};")
        self.values.append(name)

    def name(self, start: str) -> str:
        self.names += 1
        return f"{start}{self.names}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)
