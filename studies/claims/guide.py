"""The claims of "CUDA GEMM Optimization Guide": v2 to v12."""

from __future__ import annotations

from studies.claims.claim import Finding
from studies.counted import LANES, Kernels, counted, refusal, shared_request

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


def v6_double_width(kernels: Kernels) -> Finding:
    memory = [kernels.shared_bytes(name) for name in ("guide_v4", "guide_v6")]
    v4, v6 = (
        [kernels.all(name, f"shared {op}") for op in ("load", "store")] for name in ("guide_v4", "guide_v6")
    )
    return Finding(
        f"shared memory {memory[0]:,} bytes in `guide_v4`, {memory[1]:,} in `guide_v6`; in both {v6[0].wavefronts:,} "
        f"wavefronts of loads and {v6[1].wavefronts:,} of stores",
        claimed={"twice as much": memory[1] == 2 * memory[0]},
        why="No wavefront is saved by it. It is called double buffering, but both halves are brought before a barrier, "
        "and nothing is brought while the block multiplies.",
        facts={"no wavefront is saved": v4 == v6},
    )


def full_width(kernels: Kernels) -> Finding:
    reads = kernels.words("guide_v10", "LDS128(&r_b[0]")[0]
    cost = kernels.cost("guide_v10", "LDS128(&r_b[0]")
    useful = 16 * len(set(reads.tolist())) / cost.wavefronts_each
    float4, single = shared_request(4 * LANES, 16), shared_request(LANES)
    return Finding(
        f"different bytes in each wavefront: {512 / float4.wavefronts:g} of a float4 for each lane, "
        f"{128 / single.wavefronts:g} of a float for each lane, {useful:g} of the reads of B in `guide_v10`",
        claimed={"a vector load can": 512 / float4.wavefronts == 128, "those of v10 do": useful == 128},
        why="A wavefront moves up to 128 bytes either way, and 32 floats fill it too. What a vector load saves is "
        "instructions. In v10 two rows of 16 lanes read the same 16 float4, each row for itself.",
        facts={"a float is as good": 128 / single.wavefronts == 128},
    )


def nc_bypasses_l1(kernels: Kernels) -> Finding:
    loads, total = kernels.all("guide_v10", "global load"), kernels.analysis("guide_v10").totals[REQUESTS]
    return Finding(
        f"`guide_v10`: {loads.requests:,} requests by `.nc`; `{REQUESTS}`: {total:,}",
        claimed={"they do not count in L1": total == 0},
        why="They are requests to L1TEX like any other load, and move the same sectors: `.nc` is the read-only way "
        "through L1. What it keeps in the cache is not counted.",
        facts={"they count": loads.requests == total},
    )


def one_element_of_padding(kernels: Kernels) -> Finding:
    words = kernels.words("guide_v11", "STS128(&a[0], ")[0]
    apart = int(words[1] - words[0])
    k, m = LANES % 8, LANES // 8 * 4
    said = refusal(lambda: shared_request(k * 129 + m, 16, "store"))
    ways = {pad: shared_request(k * (128 + pad) + m, 16, "store").ways for pad in (4, 8)}
    return Finding(
        f"lines of `s_a` in `guide_v11` are {apart} floats apart, {apart - 128} more than `BM`; with one more: “{said}”",
        claimed={"one element": apart - 128 == 1},
        why="It is four floats, one float4. One float would leave the 16-byte stores misaligned, and eight would "
        f"leave {counted(ways[8], 'way')}.",
        facts={"misaligned": "misaligned" in said, "four cure it": ways[4] == 1, "eight do not": ways[8] > 1},
    )


def consecutive_threads(kernels: Kernels) -> Finding:
    stores = kernels.words("guide_v11", "STS128(&a[0], ")
    loads = kernels.words("guide_v11", "LDS128(&r_a[0]")
    groups = stores.reshape(-1, 8, 1) + range(4)  # 8 lanes are served together, four words each
    banks = {len(set(group)) for group in (groups.reshape(-1, 32) % 32).tolist()}
    together = {len(set(row)) for row in (loads[:, :16] % 32).tolist()}
    return Finding(
        f"`guide_v11`: 8 lanes in a row store to {min(banks)} banks; 16 lanes in a row load from "
        f"{min(together)} address",
        claimed={"for stores": banks == {32}, "for loads": together != {1}},
        why="Loads of A are a broadcast, the same banks for 16 threads in a row. That is meant, and no conflict.",
        facts={"no conflict": kernels.cost("guide_v11", "LDS128(&r_a[0]").conflicts == 0},
    )


def sixteen_kb(kernels: Kernels) -> Finding:
    a, b = (kernels.shared_bytes("guide_v12", array) for array in ("s_a", "s_b"))
    product = 8 * 128 * 4 * 2
    return Finding(
        f"`guide_v12`: `s_a` has {a:,} bytes, `s_b` {b:,}; the product is {product:,}",
        claimed={"16 KB": a == 16 * 1024, "which is the product": a == product},
        why="The product is right for bshare. Lines of 132 floats do not fit into 4 KiB, and an XOR needs a power of "
        "two between the buffers: 8 KiB each.",
        facts={"right for bshare": b == product, "they do not fit": 8 * 132 * 4 > 4096},
    )
