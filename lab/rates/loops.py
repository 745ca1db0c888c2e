"""CUDA source of loops of one instruction (`LOOPS`).

Each warp executes one instruction repeatedly on `CHAINS` independent registers, so that its unit never waits
for a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CHAINS = 8
REPEATS = 4  # of all chains in the loop body
ROUNDS = 64
BLOCK = 1024
BLOCKS_ON_EACH = 2  # for the maximum of resident warps

#: CUDA type -> constraint of inline assembly, and numpy's name for the type.
TYPES = {
    "unsigned": ("r", "uint32"),
    "float": ("f", "float32"),
    "double": ("d", "float64"),
    "unsigned long long": ("l", "uint64"),
}


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop. ptx: $0 is the chain's register, $1 and $2 are others of the type.

    unit: the name in `memsim.bound` of the unit that it keeps busy. For `matrix`, $0 to $3 are accumulators,
    $4 the others. For an access, $1 is the lane's address, `stride` bytes from its neighbour's. `space`
    "group": a warpgroup product, on `accumulators`; "uniform": arithmetic that all lanes share. `block`,
    `resident`: threads per block, and blocks per multiprocessor. `arch`: the chip to compile for.
    """

    name: str
    type: str
    ptx: str
    unit: str
    space: str = ""
    stride: int = 0
    accumulators: int = 0
    block: int = BLOCK
    resident: int = BLOCKS_ON_EACH
    arch: str = "sm_90"

    @property
    def chains(self) -> int:
        """How many independent chains of registers there are in a round."""
        return CHAINS // 2 if self.accumulators else CHAINS

    def on_registers(self, held: Sequence[str], x: str, y: str) -> str:
        """The instruction of arithmetic on registers of these names: a chain's own, and two others."""
        text = self.ptx.replace("$x", x)
        if not self.accumulators:
            text = text.replace("$1", x).replace("$2", y)
        for number in reversed(range(len(held))):
            text = text.replace(f"${number}", held[number])
        return text


ISSUE, ALU, FMA, FP64, XU = "instruction issue", "ALU pipe", "FMA pipe", "FP64 pipe", "XU pipe"
TENSOR, DATA, TAGS, UNIFORM = "tensor pipe", "L1 data stage", "L1 tag stage", "uniform pipe"


def _arithmetic(unit: str, kind: str = "unsigned", **ptx: str) -> list[Loop]:
    return [Loop(name, kind, text, unit) for name, text in ptx.items()]


def _matrix(name: str, kind: str, count: int, form: str, a: int, b: int) -> Loop:
    held = ",".join(f"${i}" for i in range(count))
    factors = "{" + ",".join(["$x"] * a) + "},{" + ",".join(["$x"] * b) + "}"
    ptx = f"mma.sync.aligned.{form} {{{held}}},{factors},{{{held}}};"
    return Loop(name, kind, ptx, TENSOR, accumulators=count)


def _group(form: str, shape: str, registers: int, kind: str = "float", more: str = ",1,1,0,0") -> Loop:
    """A warpgroup product with both factors in shared memory."""
    held = ",".join(f"${i}" for i in range(registers))
    ptx = f"wgmma.mma_async.sync.aligned.{shape}.{form} {{{held}}},$d,$d,1{more};"
    name = f"gmma_{shape}_{form.replace('.', '_')}"
    return Loop(
        name, kind, ptx, TENSOR, "group", accumulators=registers, block=128, resident=4, arch="sm_90a"
    )


LOOPS = (
    *_arithmetic(
        ISSUE,
        "float",
        ffma="fma.rn.f32 $0,$0,$1,$1;",
        fadd="add.rn.f32 $0,$0,$1;",
        fmul="mul.rn.f32 $0,$0,$1;",
    ),
    *_arithmetic(
        FMA,
        imad="mad.lo.u32 $0,$0,$1,$1;",
        imad_hi="mad.hi.u32 $0,$0,$1,$1;",
        dp4a="dp4a.u32.u32 $0,$0,$1,$1;",
    ),
    Loop(
        "imad_wide", "unsigned long long", "{.reg .u32 a,b; mov.b64 {a,b},$0; mad.wide.u32 $0,a,b,$1;}", FMA
    ),
    *_arithmetic(
        ISSUE,
        hfma2="fma.rn.f16x2 $0,$0,$1,$1;",
        hadd2="add.rn.f16x2 $0,$0,$1;",
        hmul2="mul.rn.f16x2 $0,$0,$1;",
    ),
    *_arithmetic(ALU, "float", fmnmx="min.f32 $0,$0,$1;"),
    *_arithmetic(
        ALU,
        iadd3="add.u32 $0,$0,$1;",
        lop3="lop3.b32 $0,$0,$1,$2,0x96;",
        shf="shf.l.wrap.b32 $0,$0,$1,$2;",
        sel="{.reg .pred p; setp.ne.u32 p,$1,0; selp.u32 $0,$0,$2,p;}",
        imnmx="min.u32 $0,$0,$1;",
        prmt="prmt.b32 $0,$0,$1,0x3201;",
        i2fp="{.reg .f32 f; cvt.rn.f32.u32 f,$0; mov.b32 $0,f;}",
        f2fp="{.reg .f32 f; mov.b32 f,$0; cvt.rn.f16x2.f32 $0,f,f;}",
        vabsdiff="sad.u32 $0,$0,$1,$2;",
        hmnmx2="min.f16x2 $0,$0,$1;",
        vote="{.reg .pred p; setp.ne.u32 p,$0,$1; vote.sync.ballot.b32 $0,p,-1;}",
    ),
    *_arithmetic(
        XU,
        popc="popc.b32 $0,$0;",
        flo="bfind.u32 $0,$0;",
        brev="brev.b32 $0,$0;",
        f2i="{.reg .f32 f; mov.b32 f,$0; cvt.rni.s32.f32 $0,f;}",
    ),
    *_arithmetic(
        XU,
        "float",
        ex2="ex2.approx.ftz.f32 $0,$0;",
        rsq="rsqrt.approx.ftz.f32 $0,$0;",
        frnd="cvt.rni.f32.f32 $0,$0;",
    ),
    *_arithmetic(
        FP64,
        "double",
        dfma="fma.rn.f64 $0,$0,$1,$1;",
        dadd="add.rn.f64 $0,$0,$1;",
        dmul="mul.rn.f64 $0,$0,$1;",
    ),
    _matrix("hmma_16816_f32", "float", 4, "m16n8k16.row.col.f32.f16.f16.f32", 4, 2),
    _matrix("hmma_16816_f16", "unsigned", 2, "m16n8k16.row.col.f16.f16.f16.f16", 4, 2),
    _matrix("hmma_1688_f32", "float", 4, "m16n8k8.row.col.f32.f16.f16.f32", 2, 1),
    _matrix("hmma_1688_tf32", "float", 4, "m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2),
    _matrix("imma_16832", "unsigned", 4, "m16n8k32.row.col.s32.s8.s8.s32", 4, 2),
    _matrix("imma_16816", "unsigned", 4, "m16n8k16.row.col.s32.s8.s8.s32", 2, 1),
    _matrix("dmma_884", "double", 2, "m8n8k4.row.col.f64.f64.f64.f64", 1, 1),
    Loop("shfl", "unsigned", "shfl.sync.down.b32 $0,$0,3,31,-1;", DATA),
    Loop("lds_32", "unsigned", "ld.shared.u32 $t,[$1];", DATA, "shared", 4),
    Loop("lds_conflict", "unsigned", "ld.shared.u32 $t,[$1];", DATA, "shared", 8),
    Loop("sts_32", "unsigned", "st.shared.u32 [$1],$0;", DATA, "shared", 4),
    Loop("sts_128", "unsigned", "st.shared.v4.u32 [$1],{$0,$0,$0,$0};", DATA, "shared", 16),
    Loop("ldg_32", "unsigned", "ld.global.ca.u32 $t,[$1];", DATA, "global", 4),
    Loop(
        "ldg_64",
        "unsigned",
        "{.reg .u32 u; ld.global.ca.v2.u32 {$t,u},[$1]; xor.b32 $t,$t,u;}",
        DATA,
        "global",
        8,
    ),
    Loop("ldg_lines", "unsigned", "ld.global.ca.u32 $t,[$1];", TAGS, "global", 132),
    _group("f32.f16.f16", "m64n64k16", 32),
    _group("f32.f16.f16", "m64n128k16", 64),
    _group("f16.f16.f16", "m64n128k16", 32, "unsigned"),
    _group("f32.bf16.bf16", "m64n128k16", 64),
    _group("f32.tf32.tf32", "m64n128k8", 64, more=",1,1"),
    _group("f32.e4m3.e4m3", "m64n128k32", 64, more=",1,1"),
    _group("s32.s8.s8", "m64n128k32", 64, "unsigned", more=""),
    Loop("uniform", "unsigned", "", UNIFORM, "uniform"),
)


def source(arch: str) -> str:
    """A CUDA file with a kernel for each loop for that chip: `loop_NAME(memory, rounds, 0)`."""
    return "\n".join(_kernel(loop) for loop in LOOPS if loop.arch == arch)


def _kernel(loop: Loop) -> str:
    bodies = {"group": _group_body, "uniform": _uniform_body, "": _plain_body}
    body = _matrix_body if loop.accumulators and not loop.space else bodies.get(loop.space, _access_body)
    head = f'extern "C" __global__ void __launch_bounds__({loop.block})'
    return f"{head} loop_{loop.name}({loop.type} *memory, int rounds, int zero) {{\n{body(loop)}}}\n"


def _plain_body(loop: Loop) -> str:
    letter, _ = TYPES[loop.type]
    text = loop.on_registers(["%0"], "%1", "%2")
    steps = [
        f'asm volatile("{text}" : "+{letter}"(a{i}) : "{letter}"(x), "{letter}"(y));'
        for _ in range(REPEATS)
        for i in range(CHAINS)
    ]
    start = [f"{loop.type} x = memory[0], y = memory[1];"]
    start += [f"{loop.type} a{i} = memory[{i + 2}] + ({loop.type})threadIdx.x;" for i in range(CHAINS)]
    return _around(start, steps, [f"a{i}" for i in range(CHAINS)])


def _matrix_body(loop: Loop) -> str:
    letter, _ = TYPES[loop.type]
    other = "d" if loop.type == "double" else "r"
    chains, count = loop.chains, loop.accumulators
    text = loop.on_registers([f"%{i}" for i in range(count)], f"%{count}", "")
    steps = []
    for _ in range(REPEATS):
        for i in range(chains):
            held = ", ".join(f'"+{letter}"(a{i}_{j})' for j in range(count))
            steps.append(f'asm volatile("{text}" : {held} : "{other}"(x));')
    names = [f"a{i}_{j}" for i in range(chains) for j in range(count)]
    kind = "double" if other == "d" else "unsigned"
    start = [
        f"{kind} x = ({kind})memory[0];",
        *(f"{loop.type} {name} = memory[{n}];" for n, name in enumerate(names)),
    ]
    return _around(start, steps, names)


def _access_body(loop: Loop) -> str:
    """Addresses grow by `zero`, which is unknown to the compiler, so that no access is eliminated."""
    shared, stores = loop.space == "shared", loop.ptx.startswith("st")
    lanes = min(512, 16_384 // loop.stride)
    offset = f"threadIdx.x % {lanes} * {loop.stride}"
    start = [*(f"unsigned a{i} = memory[{i}];" for i in range(CHAINS))]
    if shared:
        start += [
            "__shared__ __align__(128) unsigned tile[8192];",
            f"for (int i = threadIdx.x; i < 8192; i += {BLOCK}) tile[i] = 0;",
            "__syncthreads();",
            f"unsigned at = (unsigned)__cvta_generic_to_shared(tile) + {offset};",
        ]
    else:
        start.append(f"const char *at = (const char *)memory + {offset};")
    letter = "r" if shared else "l"
    steps = ["at += zero;"]
    for number in range(REPEATS * CHAINS):
        text = loop.ptx.replace("[$1]", f"[%1+{512 * number}]").replace("$0", "%0")
        if stores:
            steps.append(f'asm volatile("{text}" :: "r"(a{number % CHAINS}), "{letter}"(at) : "memory");')
        else:
            text = f"{{{{.reg .u32 t; {text.replace('$t', 't')} xor.b32 %0,%0,t;}}}}"
            steps.append(
                f'asm volatile("{text[1:-1]}" : "+r"(a{number % CHAINS}) : "{letter}"(at) : "memory");'
            )
    used = [f"a{i}" for i in range(CHAINS)]
    return _around(start, steps, [*used, "tile[threadIdx.x]"] if shared else used)


def _group_body(loop: Loop) -> str:
    """Products on the same accumulators; the tiles are consecutive groups of eight 16-byte rows."""
    letter, _ = TYPES[loop.type]
    count = loop.accumulators
    names = [f"a{i}" for i in range(count)]
    held = ", ".join(f'"+{letter}"({name})' for name in names)
    text = loop.ptx.replace("$d", f"%{count}").replace("$", "%")
    start = [
        "__shared__ __align__(1024) unsigned tile[4096];",
        f"for (int i = threadIdx.x; i < 4096; i += {loop.block}) tile[i] = 0;",
        "__syncthreads();",
        "unsigned long long place = (unsigned)__cvta_generic_to_shared(tile);",
        "unsigned long long d = (place & 0x3FFFF) >> 4 | 8ull << 16 | 16ull << 32;",
        *(f"{loop.type} {name} = memory[{n}];" for n, name in enumerate(names)),
    ]
    product = f'asm volatile("{text}" : {held} : "l"(d));'
    steps = [
        'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        *[product] * REPEATS,
        'asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");',
    ]
    return _around(start, steps, names)


def _uniform_body(loop: Loop) -> str:
    """What depends on nothing but the number of the round is in uniform registers."""
    steps = []
    for i in range(4):
        steps.append(f"unsigned u{i} = round * {2 * i + 7} + {i};")
        steps += [
            f"u{i} = (u{i} ^ {256 * k + 1280 + 16 + i}) + {256 * k + 256 + 16 * i + 1};" for k in range(12)
        ]
    steps.append("sum = (sum ^ u0) + (u1 ^ u2 ^ u3);")
    return _around(["unsigned sum = threadIdx.x;"], steps, ["sum"])


def _around(start: list[str], steps: list[str], results: list[str]) -> str:
    """The loop with its prologue, and a use of the results that never executes."""
    return "\n".join(
        [
            *start,
            "for (int round = 0; round < rounds; round++) {",
            *steps,
            "}",
            f"if (rounds < 0) memory[threadIdx.x] = {' + '.join(results)};",
            "",
        ]
    )
