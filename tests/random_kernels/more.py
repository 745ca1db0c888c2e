"""Random CUDA kernels with what those of `generate` lack.

Pointers that are to shared memory in some lanes and to global memory in others, values that come from other
lanes and decide addresses, packed arithmetic, copies that some lanes make, matrices stored, dynamic shared
memory, named barriers, atomics whose results are used, and returns out of nested control flow.
"""

from __future__ import annotations

from tests.random_kernels.generate import GLOBAL_BYTES, SHARED_BYTES, RandomKernel, Writer

#: Of dynamic shared memory.
DYNAMIC_BYTES = 2048

HEAD = """#include <cuda_fp16.h>
__constant__ int fixed[64] = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43};
"""
#: Once for each block: what lanes read as an index must not depend on the order of warps.
START = f"""
    extern __shared__ __align__(16) char dynamic[];
    __shared__ int own_word[512], steady[64];
    int threads = blockDim.x * blockDim.y * blockDim.z;
    for (int i = id; i < {DYNAMIC_BYTES} / 4; i += threads) ((int *)dynamic)[i] = i * 3 & 63;
    for (int i = id; i < 64; i += threads) steady[i] = i * i & 63;
    own_word[id] = id * 7 & 63;
"""


def more_random_kernel(seed: int) -> RandomKernel:
    """The kernel of a seed; the same on every machine."""
    return MoreWriter(seed).kernel()


class MoreWriter(Writer):
    """Writes one kernel, with statements of its own and those of `generate`."""

    head, start, dynamic = HEAD, START, DYNAMIC_BYTES

    def statement(self, budget: int) -> None:
        makers = [
            self.either_space,
            self.either_store,
            self.of_steady,
            self.of_own_word,
            self.of_fixed,
            self.packed,
            self.halves,
            self.wide,
            self.own_index,
            self.dynamic_load,
            self.dynamic_store,
            self.cached,
            self.wide_atomic,
            self.float_atomic,
            self.guarded_copy,
        ]
        if self.depth == 1:
            makers += [
                self.lanes,
                self.lanes,
                self.lanes,
                self.store_matrix,
                self.of_matrix,
                self.named_barrier,
            ]
            makers += [self.counted_barrier]
        if budget > 0:
            makers += [self.nested_return, self.early, self.early]
        if self.chance.random() < 0.5:
            super().statement(budget)
        else:
            self.chance.choice(makers)(budget - 1)

    # --- pointers -----------------------------------------------------------------------------------

    def pointer(self) -> str:
        """To shared memory in some lanes, to `y` in others."""
        name = self.name("p")
        shared, other = self.chance.choice(["s", "dynamic"]), self.chance.choice(["y", "y", "y + 64"])
        self.line(f"int *{name} = {self.test()} ? (int *){shared} : (int *)({other});")
        return name

    def either_space(self, budget: int) -> None:
        name = self.pointer()
        self.add("int", f"{name}[{self.place(DYNAMIC_BYTES // 4)}]")

    def either_store(self, budget: int) -> None:
        name = self.pointer()
        self.line(f"{name}[{self.place(DYNAMIC_BYTES // 4)}] = sum;")

    # --- values that decide addresses ---------------------------------------------------------------

    def of_steady(self, budget: int) -> None:
        self.define(f"steady[{self.place(64)}]")

    def of_own_word(self, budget: int) -> None:
        """The result of an atomic on a word of the thread's own."""
        call = self.chance.choice(
            ["atomicAdd({}, {})", "atomicExch({}, {})", "atomicMax({}, {})", "atomicCAS({}, id & 3, {})"]
        )
        self.define(call.format("&own_word[id]", f"({self.index()}) & 15") + " & 63")

    def of_fixed(self, budget: int) -> None:
        self.define(f"fixed[{self.place(64)}]")

    def packed(self, budget: int) -> None:
        first, second, third = self.index(), self.index(), self.index()
        call = self.chance.choice(
            [
                f"__dp4a({first}, {second}, {third})",
                f"__byte_perm({first}, {second}, {third})",
                f"__funnelshift_l({first}, {second}, {third})",
                f"__funnelshift_rc({first}, {second}, {third})",
                f"__vabsdiffu4({first}, {second})",
                f"__vminu4({first}, {second})",
                f"__vmaxs2({first}, {second})",
                f"__vcmpgtu4({first}, {second})",
                f"__viaddmax_s32({first}, {second}, {third})",
                f"__vimax3_s32({first}, {second}, {third})",
                f"__brev({first})",
                f"__popc({first})",
                f"__clz({first})",
                f"__mulhi({first} << 12, {second} << 12)",
            ]
        )
        self.define(f"int({call}) & 1023")

    def halves(self, budget: int) -> None:
        name = self.name("h")
        self.line(
            f"__half2 {name} = __hfma2(__floats2half2_rn(({self.index()}) & 63, lane),"
            f" __float2half2_rn(0.5f), __floats2half2_rn(1.f, ({self.index()}) & 31));"
        )
        self.define(f"int(__low2float({name})) + int(__high2float({name}))")

    def wide(self, budget: int) -> None:
        """An index of 64 bits, and what is left of a division of such."""
        name, by = self.name("w"), self.chance.choice(["3", "7", "64", "n", "(lane + 1)"])
        self.line(f"long long {name} = (long long)({self.index()}) * 0x1234567ll + ({self.index()});")
        self.define(f"int({name} {self.chance.choice(['/', '%'])} {by} & 4095)")

    def own_index(self, budget: int) -> None:
        name, size = self.name("o"), self.chance.choice([4, 8, 32])
        self.line(f"int {name}[{size}];")
        self.line(f"for (int i = 0; i < {size}; i++) {name}[i] = (i * lane + n) & 63;")
        self.line(f"{name}[{self.place(size)}] = ({self.index()}) & 63;")
        self.define(f"{name}[{self.place(size)}]")

    def lanes(self, budget: int) -> None:
        """Of other lanes, by a lane that data decide."""
        if not self.whole_warps:
            return
        value, by = self.index(), self.index()
        self.define(
            self.chance.choice(
                [
                    f"__shfl_sync(~0u, {value}, {by}, {self.chance.choice([32, 16, 8])})",
                    f"__shfl_up_sync(~0u, {value}, ({by}) & 7)",
                    f"__popc(__match_any_sync(~0u, ({value}) & 7))",
                    f"__ffs(__match_any_sync(~0u, ({value}) & 3))",
                    f"__reduce_add_sync(~0u, ({value}) & 3)",
                    f"__reduce_max_sync(~0u, ({value}) & 63)",
                    f"int(__reduce_xor_sync(~0u, unsigned({value})) & 1023)",
                    f"__ffs(__ballot_sync(~0u, {self.test()}))",
                    f"__any_sync(~0u, {self.test()})",
                ]
            )
        )

    # --- accesses -----------------------------------------------------------------------------------

    def dynamic_load(self, budget: int) -> None:
        kind, size = self.type()
        self.add(kind, f"(({kind} *)dynamic)[{self.place(DYNAMIC_BYTES // size)}]")

    def dynamic_store(self, budget: int) -> None:
        kind, size = self.type()
        self.line(f"(({kind} *)dynamic)[{self.place(DYNAMIC_BYTES // size)}] = {self.made(kind)};")

    def cached(self, budget: int) -> None:
        """Loads and stores with other cache operators."""
        kind = self.chance.choice(["int", "int2", "int4"])
        size = {"int": 4, "int2": 8, "int4": 16}[kind]
        place, last = self.place(GLOBAL_BYTES // size), "" if kind == "int" else ".y"
        if self.chance.random() < 0.7:
            load = self.chance.choice(["__ldcs", "__ldcg", "__ldca", "__ldg", "__ldlu"])
            self.line(f"sum += {load}((const {kind} *)x + ({place})){last};")
        else:
            made = {"int": "sum", "int2": "make_int2(sum, n)", "int4": "make_int4(sum, n, id, 1)"}[kind]
            store = self.chance.choice(["__stcs", "__stcg", "__stwt", "__stwb"])
            self.line(f"{store}(({kind} *)y + ({place}), {made});")

    def wide_atomic(self, budget: int) -> None:
        """Of 8 bytes: in shared memory only those that are no loop."""
        calls = ["atomicExch({}, 7ull)", "atomicCAS({}, 3ull, 4ull)"]
        if self.chance.random() < 0.5:
            to = f"(unsigned long long *)dynamic + ({self.place(DYNAMIC_BYTES // 8)})"
        else:
            to = f"(unsigned long long *)y + ({self.place(GLOBAL_BYTES // 8)})"
            calls += ["atomicAdd({}, 5ull)", "atomicMax({}, 9ull)"]
        self.line(f"{self.chance.choice(calls).format(to)};")

    def float_atomic(self, budget: int) -> None:
        self.line(f"atomicAdd((float *)y + ({self.place(GLOBAL_BYTES // 4)}), 1.5f);")

    def guarded_copy(self, budget: int) -> None:
        """cp.async by some lanes, of fewer bytes than it writes, or both."""
        size = self.chance.choice([4, 8, 16])
        name = self.name("c")
        bytes_read = self.chance.choice(
            [str(size), f"({self.index()}) & 1 ? {size} : 0", f"({self.index()}) & {size - 1}"]
        )
        self.line(f"int {name} = {bytes_read};")
        to = f"(unsigned)__cvta_generic_to_shared(s + {size} * ({self.place(SHARED_BYTES // size)}))"
        copy = f"cp.async.ca.shared.global [%0], [%1], {size}, %2;"
        source = f'"l"(x + {size} * ({self.place(GLOBAL_BYTES // size)}))'
        guard = self.chance.choice(["", f"if ({self.test()}) "])
        self.line(f'{guard}asm volatile("{copy}" :: "r"({to}), {source}, "r"({name}));')
        self.line('asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");')

    def store_matrix(self, budget: int) -> None:
        if self.whole_warps:
            count = self.chance.choice([1, 2, 4])
            row = f"(unsigned)__cvta_generic_to_shared(s + 16 * ({self.place(SHARED_BYTES // 16)}))"
            registers = ", ".join(f"%{i + 1}" for i in range(count))
            values = ", ".join('"r"(sum)' for _ in range(count))
            trans = self.chance.choice(["", ".trans"])
            shape = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            self.line(f'asm volatile("{shape} [%0], {{{registers}}};" :: "r"({row}), {values} : "memory");')

    def of_matrix(self, budget: int) -> None:
        """ldmatrix of what no thread has written since, deciding an address."""
        if self.whole_warps:
            name, trans = self.name("m"), self.chance.choice(["", ".trans"])
            row = f"(unsigned)__cvta_generic_to_shared((char *)steady + 16 * ({self.place(16)}))"
            self.line(f"unsigned {name};")
            shape = f"ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16"
            self.line(f'asm volatile("{shape} {{%0}}, [%1];" : "=r"({name}) : "r"({row}));')
            self.define(f"int({name} & 63)")

    # --- barriers and control flow ------------------------------------------------------------------

    def named_barrier(self, budget: int) -> None:
        if self.whole_warps:
            self.line('asm volatile("bar.sync 3;" ::: "memory");')

    def counted_barrier(self, budget: int) -> None:
        how = self.chance.choice(["count", "or", "and"])
        self.define(f"__syncthreads_{how}({self.test()})")

    def nested_return(self, budget: int) -> None:
        """Some lanes end within an `if`; no warp is whole afterwards."""
        self.whole_warps = False
        self.block(f"if ({self.test()})", budget)
        store = f"((int *)y)[{self.place(GLOBAL_BYTES // 4)}] = sum;"
        self.line(f"if ({self.test()}) {{ {store} if ({self.test()}) return; }}")

    def early(self, budget: int) -> None:
        """Loops in loops, which lanes leave by break, continue and return."""
        outer, inner = self.name("i"), self.name("j")
        known = list(self.values)
        self.values += [outer]
        ends = [self.chance.choice(["break", "continue", "break", "continue", "return"]) for _ in range(3)]
        if "return" in ends:
            self.whole_warps = False
        self.line(f"for (int {outer} = 0; {outer} < ({self.index()} & 3) + 1; {outer}++) {{")
        self.depth += 1
        self.values += [inner]
        self.line(f"for (int {inner} = {outer}; {inner} < 4; {inner}++) {{")
        self.depth += 1
        self.shared_load(0)
        self.line(f"if ({self.test()}) {ends[0]};")
        self.chance.choice([self.global_store, self.shared_store, self.global_load])(0)
        self.line(f"if ({self.test()}) {ends[1]};")
        self.depth -= 1
        self.line("}")
        self.values.remove(inner)
        self.line(f"if ({self.test()}) {ends[2]};")
        self.chance.choice([self.global_store, self.shared_store])(0)
        self.depth -= 1
        self.line("}")
        self.values = known
