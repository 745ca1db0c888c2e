"""CUDA source of kernels that move data between multiprocessors, the L2 cache and DRAM (`STREAMS`).

Threads ask for no sector twice in a pass, and past the L1 cache. Arrays many times as large as the L2 cache
come from DRAM; small ones that are passed over many times stay in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from memsim.arch import SM_90
from memsim.bound import DRAM, L2

BLOCK = 1024
ARCH = "sm_90"
EVERYWHERE = 2 * SM_90.multiprocessors


@dataclass(frozen=True, slots=True)
class Stream:
    """One kernel. unit: the one that it keeps busy; "" if it does not attain a rate. step: what it does.

    turns: how often a thread advances in a pass. rounds: passes. blocks: of 1,024 threads. in_flight:
    accesses of a thread at a time.
    """

    name: str
    unit: str
    step: str
    turns: int = 1
    rounds: int = 1
    blocks: int = EVERYWHERE
    in_flight: int = 2

    @property
    def accesses(self) -> int:
        """Of all threads in a pass."""
        return self.turns * self.in_flight * self.blocks * BLOCK


STREAMS = (
    Stream("dram_read", DRAM, "read", turns=48),
    Stream("dram_copy", "", "copy", turns=16),
    Stream("l2_read", L2, "read", rounds=64),
    Stream("l2_read_part", "", "read_part", rounds=64),
    Stream("l2_write", L2, "write", turns=32),
    Stream("l2_write_again", "", "write", rounds=64),
    Stream("l2_write_part", "", "write_part", turns=16),
    Stream("l2_add", "", "add", turns=32),
    Stream("l2_copy", "", "copy", rounds=64),
    Stream("l2_read_one", L2, "read", turns=8, rounds=16, blocks=1, in_flight=8),
    Stream("l2_read_part_one", "", "read_part", turns=8, rounds=16, blocks=1, in_flight=8),
    Stream("l2_write_one", L2, "write", turns=32, rounds=16, blocks=1),
    Stream("l2_write_part_one", "", "write_part", turns=32, rounds=16, blocks=1),
    Stream("l2_add_one", "", "add", turns=32, rounds=16, blocks=1),
    Stream("l2_copy_one", "", "copy", turns=32, rounds=16, blocks=1),
)
_READ = "uint4 held{k} = __ldcg(from + i + {k} * apart);"
_USE = "sum ^= held{k}.x ^ held{k}.y ^ held{k}.z ^ held{k}.w;"
_WRITE = "__stcg(to + i + {k} * apart, {what});"
#: What a thread does; a part is 4 bytes of a sector.
_STEPS = {
    "read": (_READ, _USE),
    "write": (_WRITE.replace("{what}", "make_uint4(round, {k}, 0, 0)"),),
    "copy": (_READ, _WRITE.replace("{what}", "held{k}")),
    "read_part": (
        "unsigned held{k} = __ldcg((const unsigned *)(from + 2 * (i + {k} * apart)));",
        "sum ^= held{k};",
    ),
    "write_part": ("__stcg((unsigned *)(to + 2 * (i + {k} * apart)), round);",),
    "add": ("atomicAdd((unsigned *)to + i + {k} * apart, 1u);",),
}
#: 4-byte words of the array for each access.
_WORDS = {"read_part": 8, "write_part": 8, "add": 1}
READING, WRITING = ("read", "copy", "read_part"), ("write", "copy", "write_part", "add")


def kernel_name(stream: Stream) -> str:
    """The kernel of a stream in `streams_source`."""
    return f"stream_{stream.step}_{stream.in_flight}"


def words(stream: Stream) -> tuple[int, int]:
    """4-byte words of the array that is read, and of the one that is written; few if it is unused."""
    held = stream.accesses * _WORDS.get(stream.step, 4)
    return (held if stream.step in READING else 4), (held if stream.step in WRITING else 4)


def streams_source() -> str:
    """A CUDA file with the kernels, `KERNEL(from, to, accesses, rounds)`."""
    kernels = {kernel_name(stream): _kernel(stream) for stream in STREAMS}
    return "\n".join(kernels.values())


def _kernel(stream: Stream) -> str:
    texts = [text.format(k=k) for text in _STEPS[stream.step] for k in range(stream.in_flight)]
    body = "\n".join(" " * 12 + text for text in texts)
    return f"""\
extern "C" __global__ void __launch_bounds__({BLOCK})
{kernel_name(stream)}(const uint4 *__restrict__ from, uint4 *__restrict__ to, int accesses, int rounds) {{
    int apart = gridDim.x * {BLOCK};
    unsigned sum = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = blockIdx.x * {BLOCK} + threadIdx.x; i < accesses; i += {stream.in_flight} * apart) {{
{body}
        }}
    if (rounds < 0) to[threadIdx.x].x = sum;
}}
"""
