"""The claims of "CUDA GEMM Optimization Guide": v2 to v12."""

from __future__ import annotations

from studies.claims.claim import FALSE, PART, TRUE, Finding, claim, finding
from studies.counted import LANES, Kernels, counted, global_request, refusal, shared_request

TITLE = "CUDA GEMM Optimization Guide"

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


@claim(
    TRUE,
    "Tiles in shared memory, of which each thread loads one element, take the load off global memory.",
    "Each thread loads one element ... Compute using shared memory",
)
def tiles_take_the_load(kernels: Kernels) -> Finding:
    naive, tiled = (kernels.all(name, "global load") for name in ("guide_v2", "guide_v3"))
    stores = kernels.all("guide_v3", "shared store")
    return finding(
        f"load requests {naive.requests:,} in `guide_v2`, {tiled.requests:,} in `guide_v3`; sectors "
        f"{naive.sectors:,} and {tiled.sectors:,}; filling the tiles: {stores}",
        claimed={
            "fewer requests": tiled.requests < naive.requests,
            "fewer sectors": tiled.sectors < naive.sectors,
        },
        why="A tile of 16 x 16 serves 16 threads for each of its elements. A thread for each element fills it cleanly.",
        facts={
            "a sixteenth": 16 * tiled.requests == naive.requests,
            "clean": stores.wavefronts == stores.ideal_wavefronts,
            "coalesced": tiled.is_coalesced,
        },
    )


@claim(
    TRUE,
    "More work for each thread takes less shared memory traffic for each product.",
    "sum[i][j] += ashare[ty*STRIDE + i][k] * bshare[k][tx*STRIDE + j] ... More work per thread",
)
def patches_read_less(kernels: Kernels) -> Finding:
    v3, v4, v5 = (kernels.all(name, "shared load") for name in ("guide_v3", "guide_v4", "guide_v5"))
    filling = [kernels.all(name, "shared store") for name in ("guide_v4", "guide_v5")]
    return finding(
        f"shared load wavefronts {v3.wavefronts:,} in `guide_v3`, {v4.wavefronts:,} in `guide_v4`, "
        f"{v5.wavefronts:,} in `guide_v5`; conflicts of the loads {v4.conflicts:,} and {v5.conflicts:,}; "
        f"filling the tiles: {counted(filling[0].ways, 'way')} and {counted(filling[1].ways, 'way')}",
        claimed={"less with each": v5.wavefronts < v4.wavefronts < v3.wavefronts},
        why="The loads that multiply are given, and are clean. How the tiles are filled is not: by the same patches it "
        "conflicts, and leaves half or three quarters of each sector unused.",
        facts={
            "loads are clean": v4.conflicts == v5.conflicts == 0,
            "filling conflicts": [cost.ways for cost in filling] == [2, 4],
            "sectors": [kernels.all(name, "global load").sectors_each for name in ("guide_v4", "guide_v5")]
            == [8, 16],
        },
    )


@claim(
    TRUE,
    "v6 brings tiles of double width at once.",
    "Load 2x STEP at once ... Double width",
)
def v6_double_width(kernels: Kernels) -> Finding:
    memory = [kernels.shared_bytes(name) for name in ("guide_v4", "guide_v6")]
    v4, v6 = (
        [kernels.all(name, f"shared {op}") for op in ("load", "store")] for name in ("guide_v4", "guide_v6")
    )
    return finding(
        f"shared memory {memory[0]:,} bytes in `guide_v4`, {memory[1]:,} in `guide_v6`; in both {v6[0].wavefronts:,} "
        f"wavefronts of loads and {v6[1].wavefronts:,} of stores",
        claimed={"twice as much": memory[1] == 2 * memory[0]},
        why="No wavefront is saved by it. It is called double buffering, but both halves are brought before a barrier, "
        "and nothing is brought while the block multiplies.",
        facts={"no wavefront is saved": v4 == v6},
    )


@claim(
    TRUE,
    "256 threads in one dimension are better than 16 x 16.",
    "1D thread layout (256 threads)",
)
def v7_one_dimension(kernels: Kernels) -> Finding:
    v5, v7 = (kernels.all(name, "shared store") for name in ("guide_v5", "guide_v7"))
    v5_loads, v7_loads = (kernels.all(name, "global load") for name in ("guide_v5", "guide_v7"))
    return finding(
        f"filling the tiles in `guide_v5`: {v5}, global loads {v5_loads}; in `guide_v7`: {v7}, global loads {v7_loads}",
        claimed={
            "fewer wavefronts": v7.wavefronts < v5.wavefronts,
            "fewer sectors": v7_loads.sectors < v5_loads.sectors,
        },
        why="A thread can stand in one place while it brings and in another while it multiplies. The loads that "
        "multiply stay as they are.",
        facts={
            "loads stay": kernels.all("guide_v5", "shared load") == kernels.all("guide_v7", "shared load")
        },
    )


@claim(
    PART,
    "Vector loads use the full width of the memory bus.",
    "Vector loads use full memory bus width",
)
def full_width(kernels: Kernels) -> Finding:
    reads = kernels.words("guide_v10", "LDS128(&r_b[0]")[0]
    cost = kernels.cost("guide_v10", "LDS128(&r_b[0]")
    useful = 16 * len(set(reads.tolist())) / cost.wavefronts_each
    float4, single = shared_request(4 * LANES, 16), shared_request(LANES)
    return finding(
        f"different bytes in each wavefront: {512 / float4.wavefronts:g} of a float4 for each lane, "
        f"{128 / single.wavefronts:g} of a float for each lane, {useful:g} of the reads of B in `guide_v10`",
        claimed={"a vector load can": 512 / float4.wavefronts == 128, "those of v10 do": useful == 128},
        why="A wavefront moves up to 128 bytes either way, and 32 floats fill it too. What a vector load saves is "
        "instructions. In v10 two rows of 16 lanes read the same 16 float4, each row for itself.",
        facts={"a float is as good": 128 / single.wavefronts == 128},
    )


@claim(
    FALSE,
    "`.nc` loads bypass L1.",
    ".nc = non-coherent, bypasses L1 for streaming data",
)
def nc_bypasses_l1(kernels: Kernels) -> Finding:
    loads, total = kernels.all("guide_v10", "global load"), kernels.analysis("guide_v10").totals[REQUESTS]
    return finding(
        f"`guide_v10`: {loads.requests:,} requests by `.nc`; `{REQUESTS}`: {total:,}",
        claimed={"they do not count in L1": total == 0},
        why="They are requests to L1TEX like any other load, and move the same sectors: `.nc` is the read-only way "
        "through L1. What it keeps in the cache is not counted.",
        facts={"they count": loads.requests == total},
    )


@claim(
    FALSE,
    "`L2::128B` is for sectors of 128 bytes.",
    "L2::128B = L2 cache hint for 128-byte sector",
)
def sector_of_128_bytes(kernels: Kernels) -> Finding:
    line = global_request(LANES)
    loads = kernels.all("guide_v10", "global load")
    return finding(
        f"32 floats side by side: {counted(line.sectors, 'sector')}, {counted(line.lines, 'line')}; "
        f"loads of `guide_v10`: {loads}",
        claimed={"128 bytes are a sector": line.sectors == 1},
        why="A sector has 32 bytes, a line 128. The hint asks L2 to fetch the line; what is requested stays the same.",
        facts={"a line": line.lines == 1, "four sectors": line.sectors == 4},
    )


@claim(
    TRUE,
    "A leading dimension of 132, and not 128, avoids bank conflicts.",
    "#define SMEM_LDA (132) // NOT 128!",
)
def ld_132(kernels: Kernels) -> Finding:
    code = "STS128(&a[0], "
    v10, v11, v12 = (kernels.cost(name, code) for name in ("guide_v10", "guide_v11", "guide_v12"))
    loads = [kernels.all(name, "shared load") for name in ("guide_v10", "guide_v11", "guide_v12")]
    return finding(
        f"stores to `s_a` in `guide_v10`: {v10}; in `guide_v11` and `guide_v12`: {v11}",
        claimed={"conflicts before": v10.conflicts > 0, "none after": v11.conflicts == v12.conflicts == 0},
        why="8 lanes that are served together write to 8 lines: 128 words apart they meet in 4 banks, 132 apart each "
        "is 4 banks further on. The loads had no conflict, and do not change.",
        facts={
            "8 ways": v10.ways == 8,
            "loads are clean": not any(load.conflicts for load in loads),
            "loads do not change": loads[0].wavefronts == loads[1].wavefronts == loads[2].wavefronts,
        },
    )


@claim(
    FALSE,
    "132 is 32 banks and one element of padding.",
    "132 = 128 + 4 = 32 banks + 1 element padding",
)
def one_element_of_padding(kernels: Kernels) -> Finding:
    words = kernels.words("guide_v11", "STS128(&a[0], ")[0]
    apart = int(words[1] - words[0])
    k, m = LANES % 8, LANES // 8 * 4
    said = refusal(lambda: shared_request(k * 129 + m, 16, "store"))
    ways = {pad: shared_request(k * (128 + pad) + m, 16, "store").ways for pad in (4, 8)}
    return finding(
        f"lines of `s_a` in `guide_v11` are {apart} floats apart, {apart - 128} more than `BM`; with one more: “{said}”",
        claimed={"one element": apart - 128 == 1},
        why="It is four floats, one float4. One float would leave the 16-byte stores misaligned, and eight would "
        f"leave {counted(ways[8], 'way')}.",
        facts={"misaligned": "misaligned" in said, "four cure it": ways[4] == 1, "eight do not": ways[8] > 1},
    )


@claim(
    PART,
    "With 132 consecutive threads hit different banks.",
    "This ensures consecutive threads hit different banks",
)
def consecutive_threads(kernels: Kernels) -> Finding:
    stores = kernels.words("guide_v11", "STS128(&a[0], ")
    loads = kernels.words("guide_v11", "LDS128(&r_a[0]")
    groups = stores.reshape(-1, 8, 1) + range(4)  # 8 lanes are served together, four words each
    banks = {len(set(group)) for group in (groups.reshape(-1, 32) % 32).tolist()}
    together = {len(set(row)) for row in (loads[:, :16] % 32).tolist()}
    return finding(
        f"`guide_v11`: 8 lanes in a row store to {min(banks)} banks; 16 lanes in a row load from "
        f"{min(together)} address",
        claimed={"for stores": banks == {32}, "for loads": together != {1}},
        why="Loads of A are a broadcast, the same banks for 16 threads in a row. That is meant, and no conflict.",
        facts={"no conflict": kernels.cost("guide_v11", "LDS128(&r_a[0]").conflicts == 0},
    )


@claim(
    PART,
    "Threads that access the same bank are serialized.",
    "If threads access same bank = serialized.",
)
def same_bank(kernels: Kernels) -> Finding:
    different, same = shared_request(32 * LANES), shared_request(0 * LANES)
    apart = shared_request(4 * LANES, 16)
    return finding(
        f"32 lanes at different words of a bank: {different}; at the same word: {same}; "
        f"at float4 side by side, where four lanes want each bank: {apart}",
        claimed={
            "different words": different.ways == 32,
            "the same word": same.ways > 1,
            "words of lanes that are served apart": apart.conflicts > 0,
        },
        why="Only different words of a bank collide, and only if they are wanted by lanes that are served together: 32, "
        "16 or 8 for 4, 8 or 16 bytes a lane.",
    )


@claim(
    TRUE,
    "Shared memory has 32 banks.",
    "SMEM has 32 banks",
)
def banks_32(kernels: Kernels) -> Finding:
    ways = {stride: shared_request(stride * LANES).ways for stride in range(1, 65)}
    worst = min(stride for stride in ways if ways[stride] == 32)
    return finding(
        f"lanes one word apart: {counted(ways[1], 'way')}; the least distance at which all 32 lanes meet is {worst} words",
        claimed={"32 banks": worst == 32},
        why="A bank is a 4-byte word wide: word w lies in bank w mod 32.",
        facts={"side by side is clean": ways[1] == 1},
    )


@claim(
    PART,
    "ashare has 16 KB, which is 8 rows of 128 columns of floats, twice.",
    "ashare: 16KB (8 rows × 128 cols × sizeof(float) × 2 buffers)",
)
def sixteen_kb(kernels: Kernels) -> Finding:
    a, b = (kernels.shared_bytes("guide_v12", array) for array in ("s_a", "s_b"))
    product = 8 * 128 * 4 * 2
    return finding(
        f"`guide_v12`: `s_a` has {a:,} bytes, `s_b` {b:,}; the product is {product:,}",
        claimed={"16 KB": a == 16 * 1024, "which is the product": a == product},
        why="The product is right for bshare. Lines of 132 floats do not fit into 4 KiB, and an XOR needs a power of "
        "two between the buffers: 8 KiB each.",
        facts={"right for bshare": b == product, "they do not fit": 8 * 132 * 4 > 4096},
    )
