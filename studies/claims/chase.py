"""The claims of "The Chase for cuBLAS-like SGEMM Performance (WIP)": the ladder V1 to V5 and the permuted write."""

from __future__ import annotations

from studies.claims.claim import FALSE, PART, TRUE, Finding, claim, finding
from studies.counted import LANES, Kernels, global_request, refusal, shared_request

TITLE = "The Chase for cuBLAS-like SGEMM Performance (WIP)"

TX, TY = LANES % 16, LANES // 16  # a warp of a block of 16 x 16 threads: two rows of 16


@claim(
    TRUE,
    "In the naive kernel threads of a warp each access a different row of A, which takes many transactions.",
    "Non-coalesced accesses occur because consecutive threads do not access consecutive memory locations.",
)
def v1_is_not_coalesced(kernels: Kernels) -> Finding:
    a = kernels.cost("kernel_v1", "A[row * K + k]")
    b = kernels.cost("kernel_v1", "B[k * N + col]")
    c = kernels.cost("kernel_v1", "C[row * N + col]")
    return finding(
        f"`kernel_v1`, reads of A: {a}; of B: {b}; stores of C: {c}",
        claimed={"each lane has a sector of its own in A": a.sectors_each == 32},
        why="Lanes run down the rows, so A and C are scattered. Not B: it is one address for the whole warp.",
        facts={
            "C is scattered": not c.is_coalesced,
            "B is a broadcast": b.sectors_each == 1 and b.is_coalesced,
        },
    )


@claim(
    TRUE,
    "Each thread of the naive kernel reads 2K floats, 8K bytes.",
    "2*K * sizeof(float) = 8*K bytes of data read from global memory per thread",
)
def v1_reads_8k_bytes(kernels: Kernels) -> Finding:
    loads, k = kernels.all("kernel_v1", "global load"), kernels.sizes("kernel_v1")["K"]
    launch = kernels.analysis("kernel_v1").trace.launch
    bytes_each = loads.requests * 32 * loads.width // (launch.threads * launch.blocks)
    moved = loads.sectors * 32 // (launch.threads * launch.blocks)
    return finding(
        f"`kernel_v1`: {loads.requests:,} load requests, {bytes_each:,} bytes asked for by each thread; "
        f"{moved:,} bytes of sectors are moved for it",
        claimed={"8K bytes are asked for": bytes_each == 8 * k},
        why="What is asked for is not what is moved: a lane's 4 bytes of A move a sector of 32.",
        facts={"more is moved": moved > bytes_each},
    )


@claim(
    TRUE,
    "Threads of the naive kernel load the same elements again and again.",
    "multiple threads read the same elements from global memory",
)
def v1_is_redundant(kernels: Kernels) -> Finding:
    loads, size = kernels.all("kernel_v1", "global load"), kernels.sizes("kernel_v1")
    held = (size["M"] + size["N"]) * size["K"] * 4 // 32
    return finding(
        f"`kernel_v1` asks for {loads.sectors:,} sectors; A and B together have {held:,}",
        claimed={"sectors are asked for more than once": loads.sectors > held},
        why=f"Each sector is asked for {loads.sectors / held:,.0f} times on average.",
    )


@claim(
    TRUE,
    "Tiles in shared memory reduce the accesses to global memory.",
    "the same data is reused multiple times by different threads within a block",
)
def v2_asks_less_often(kernels: Kernels) -> Finding:
    naive, tiled = kernels.all("kernel_v1", "global load"), kernels.all("kernel_v2", "global load")
    return finding(
        f"load requests {naive.requests:,} in `kernel_v1`, {tiled.requests:,} in `kernel_v2`; "
        f"sectors {naive.sectors:,} and {tiled.sectors:,}",
        claimed={
            "fewer requests": tiled.requests < naive.requests,
            "fewer sectors": tiled.sectors < naive.sectors,
        },
        why="Each element of a tile is used by 16 threads, and four come with a request.",
    )


@claim(
    TRUE,
    "A block moves (BM * K + K * BN) * 4 bytes, so there are 1 / (2 * (1/BM + 1/BN)) operations for each byte.",
    "(BM∗K + K∗BN)∗4 bytes",
)
def v2_memory_ratio(kernels: Kernels) -> Finding:
    loads, size = kernels.all("kernel_v2", "global load"), kernels.sizes("kernel_v2")
    blocks = kernels.analysis("kernel_v2").trace.launch.blocks
    bm = bn = 16
    moved = loads.sectors * 32
    ratio = 2 * size["M"] * size["N"] * size["K"] / moved
    return finding(
        f"`kernel_v2`: {moved // blocks:,} bytes of sectors for each block, {ratio:g} operations for each byte",
        claimed={
            "so many bytes": moved == blocks * (bm + bn) * size["K"] * 4,
            "so many operations": ratio == 1 / (2 * (1 / bm + 1 / bn)),
        },
        why="The loads are coalesced, so what is moved is what is asked for. With scattered loads it would be more.",
        facts={"coalesced": loads.is_coalesced},
    )


@claim(
    TRUE,
    "When threads of a warp access consecutive locations, their requests are combined into fewer transactions.",
    "combining multiple memory requests from threads in a warp into fewer transactions",
)
def coalescing_combines(kernels: Kernels) -> Finding:
    side_by_side, scattered = global_request(LANES), global_request(1024 * LANES)
    return finding(
        f"a float for each lane, side by side: {side_by_side}; rows apart: {scattered}",
        claimed={"fewer sectors": side_by_side.sectors < scattered.sectors},
        why="A sector is 32 bytes and comes once for all lanes that want some of it.",
    )


@claim(
    FALSE,
    "Reading by float4 improves coalescing.",
    "significantly enhance performance by improving memory coalescing",
)
def float4_improves_coalescing(kernels: Kernels) -> Finding:
    single, four = (kernels.all(name, "global load") for name in ("opt_4_tile2d", "opt_5_float4"))
    return finding(
        f"the same tiles by floats (`opt_4_tile2d`): {single.sectors:,} sectors, by float4 (`opt_5_float4`): "
        f"{four.sectors:,}; the ideal is {single.ideal_sectors:,} and {four.ideal_sectors:,}",
        claimed={"fewer sectors": four.sectors < single.sectors},
        why="Neighbouring floats are coalesced as they are. What a float4 saves is requests.",
        facts={"both are ideal": single.is_coalesced and four.is_coalesced},
    )


@claim(
    TRUE,
    "A float4 takes one request where single floats take four.",
    "instead of issuing multiple memory requests for individual floats, a single request fetches four floats",
)
def float4_saves_requests(kernels: Kernels) -> Finding:
    single, four = (kernels.all(name, "global load") for name in ("opt_4_tile2d", "opt_5_float4"))
    return finding(
        f"load requests for the same tiles: {single.requests:,} by floats (`opt_4_tile2d`), {four.requests:,} by "
        f"float4 (`opt_5_float4`)",
        claimed={"a quarter of the requests": 4 * four.requests == single.requests},
        why="Each request moves four times as much.",
    )


@claim(
    PART,
    "V2 reads its tiles by float4, coalesced.",
    "used here to read four consecutive floats from global memory into shared memory, ensuring memory coalescing",
)
def v2_float4_as_printed(kernels: Kernels) -> Finding:
    said = refusal(lambda: global_request(TX + 1024 * TY, width=16))
    a, b = kernels.cost("kernel_v2", "LOAD4(A["), kernels.cost("kernel_v2", "LOAD4(B[")
    return finding(
        f"as printed: “{said}”; as meant (`kernel_v2`), A: {a}; B: {b}",
        claimed={"as meant": a.is_coalesced and b.is_coalesced, "as printed": not said},
        why="The snippet has a float4 start at every float, where three of four are misaligned. A thread for every "
        "fourth float is right.",
    )


@claim(
    PART,
    "V2's shared memory has bank conflicts to optimize.",
    "further optimizing shared memory by addressing bank conflicts",
)
def v2_conflicts(kernels: Kernels) -> Finding:
    by_word = shared_request(64 * TY)
    compiled = kernels.cost("kernel_v2", "s_a[ty][k]")
    others = [kernels.cost("kernel_v2", "s_b[k][tx]"), kernels.all("kernel_v2", "shared store")]
    return finding(
        f"`s_a[ty][k]` float by float: {by_word}; as compiled (`kernel_v2`, {compiled.width} bytes a lane): {compiled}",
        claimed={"float by float": by_word.conflicts > 0, "as compiled": compiled.conflicts > 0},
        why="The two rows of a warp are 64 words apart, in one bank. The compiler joins four k to one read, and each "
        "half of the warp is then served by itself.",
        facts={"all else is clean": not any(other.conflicts for other in others)},
    )


@claim(
    TRUE,
    "Operands kept in registers reduce the accesses to shared memory.",
    "this implementation reduces the number of accesses to shared memory",
)
def v3_reads_less_often(kernels: Kernels) -> Finding:
    v2, v3 = kernels.all("kernel_v2", "shared load"), kernels.all("kernel_v3", "shared load")
    return finding(
        f"shared loads: {v2.requests:,} requests and {v2.wavefronts:,} wavefronts in `kernel_v2`, "
        f"{v3.requests:,} and {v3.wavefronts:,} in `kernel_v3`",
        claimed={
            "fewer requests": v3.requests < v2.requests,
            "fewer wavefronts": v3.wavefronts < v2.wavefronts,
        },
        why=f"A value is used for 8 products. It would be fewer still without conflicts, {v3.conflicts:,} in V3.",
        facts={"V3 has conflicts": v3.conflicts > 0},
    )


@claim(
    TRUE,
    "Reads of s_a by threads next to each other in y are 256 bytes apart, in the same bank: a conflict.",
    "This ensures they fall into the same bank, causing conflicts.",
)
def v3_reads_of_a_conflict(kernels: Kernels) -> Finding:
    code = "s_a[ty * TM + i][k]"
    cost, words = kernels.cost("kernel_v3", code), kernels.words("kernel_v3", code, "shared load")
    apart = words[:, 16:] - words[:, :16]
    return finding(
        f"`kernel_v3`: {cost}; the rows of a warp are {4 * apart[0, 0]} bytes apart",
        claimed={
            "256 bytes apart": bool((4 * apart == 256).all()),
            "the same bank": bool((apart % 32 == 0).all()),
            "a conflict": cost.ways == 2,
        },
        why="64 words are twice all banks. Threads next to each other in x read the same word, which is no conflict.",
        facts={"the same word in a row": bool((words == words[:, 16 * TY]).all())},
    )


@claim(
    TRUE,
    "With s_a column-major they are 32 bytes apart, and bank conflicts are gone.",
    "threads in the same warp differ by at most 1 in the y-direction, eliminating bank conflicts",
)
def v4_column_major(kernels: Kernels) -> Finding:
    reads = kernels.cost("kernel_v4_colmajor", "LOAD4(s_a[k]")
    words = kernels.words("kernel_v4_colmajor", "LOAD4(s_a[k]")
    apart = words[:, 16:] - words[:, :16]
    return finding(
        f"`kernel_v4_colmajor`, reads of `s_a`: {reads}; the rows of a warp are {4 * apart[0, 0]} bytes apart",
        claimed={"32 bytes apart": bool((4 * apart == 32).all()), "no conflicts": reads.conflicts == 0},
        why="Each read is two addresses, each for 16 lanes.",
        facts={"two addresses": all(len(set(row)) == 2 for row in words.tolist())},
    )


@claim(
    TRUE,
    "With s_a column-major it can be read by float4 instead of in a loop.",
    "each thread reads consecutive addresses in shared memory, which allows the use of float4 for reading",
)
def v4_reads_by_float4(kernels: Kernels) -> Finding:
    loop = kernels.cost("kernel_v3", "s_a[ty * TM + i][k]")
    float4 = kernels.cost("kernel_v4_colmajor", "LOAD4(s_a[k]")
    return finding(
        f"reads of `s_a`: {loop.requests:,} requests of {loop.width} bytes a lane in `kernel_v3`, "
        f"{float4.requests:,} of {float4.width} in `kernel_v4_colmajor`",
        claimed={"a quarter of the requests": 4 * float4.requests == loop.requests and float4.width == 16},
        why="A thread's 8 elements of a column are neighbours now, and take two requests instead of eight.",
    )


@claim(
    TRUE,
    "The column-major s_a brings a bank conflict on the stores to it.",
    "we have introduced a bank conflict when writing to s_a",
)
def v4_stores_conflict(kernels: Kernels) -> Finding:
    before = kernels.cost("kernel_v3", "STORE4(s_a[", "shared store")
    after = kernels.cost("kernel_v4_colmajor", "s_a[a_k + ")
    return finding(
        f"stores to `s_a` in `kernel_v3`: {before}; in `kernel_v4_colmajor`: {after}",
        claimed={"no conflict before": before.conflicts == 0, "a conflict after": after.conflicts > 0},
        why="Lanes 2j and 2j+1 write row j four lines apart, and four lines of 128 words are a multiple of all banks.",
        facts={"2 ways": after.ways == 2},
    )


@claim(
    PART,
    "Padding takes the store conflict away in part.",
    "This can be partially mitigated by using padding",
)
def v4_padding(kernels: Kernels) -> Finding:
    plain = kernels.cost("kernel_v4_colmajor", "s_a[a_k + ")
    padded = kernels.cost("kernel_v4_padded", "s_a[a_k + ")
    ways = {
        pad: shared_request(LANES % 2 * 4 * (128 + pad) + LANES // 2, op="store").ways for pad in range(1, 5)
    }
    return finding(
        f"stores to `s_a` in `kernel_v4_colmajor`: {plain}; in `kernel_v4_padded`: {padded}; "
        f"ways with lines longer by one, two, three and four floats: {', '.join(map(str, ways.values()))}",
        claimed={
            "padding helps": padded.conflicts < plain.conflicts,
            "some of the conflict stays": padded.conflicts > 0,
        },
        why="Four lines of 132 words are 16 banks, so even and odd lanes write to different halves of the banks. How "
        "much padding is not said: with one to three floats nothing is gained.",
        facts={
            "less padding does not help": [ways[pad] for pad in range(1, 5)] == [2, 2, 2, 1],
            "four floats take all of it away": padded.conflicts == 0,
        },
    )


@claim(
    PART,
    "Permuting the indices is a better cure for the store conflict than padding.",
    "a better solution for write conflicts can be achieved using a permuted approach",
)
def v4_permuted(kernels: Kernels) -> Finding:
    padded, permuted = (kernels.cost(name, "s_a[a_k + ") for name in ("kernel_v4_padded", "kernel_v4"))
    loads = [kernels.all(name, "shared load").wavefronts for name in ("kernel_v4_padded", "kernel_v4")]
    memory = [kernels.shared_bytes(name) for name in ("kernel_v4_padded", "kernel_v4")]
    return finding(
        f"stores to `s_a` in `kernel_v4_padded`: {padded}; in `kernel_v4`: {permuted}; "
        f"shared memory {memory[0]:,} and {memory[1]:,} bytes",
        claimed={
            "no conflict": permuted.conflicts == 0,
            "less memory": memory[1] < memory[0],
            "fewer wavefronts": permuted.wavefronts < padded.wavefronts,
        },
        why="An XOR of the column with 16 in half of the lines does what four floats of padding do. Loads cost the "
        "same.",
        facts={
            "it does what padding does": permuted.wavefronts == padded.wavefronts and padded.conflicts == 0,
            "loads cost the same": loads[0] == loads[1],
        },
    )


@claim(
    TRUE,
    "A permutation that makes consecutive threads write to different banks removes the conflict.",
    "rearranging the indices used to access shared memory in such a way that consecutive threads write to "
    "different memory banks",
)
def a_permutation_can(kernels: Kernels) -> Finding:
    cost = kernels.cost("permuted_write_fixed", "s_a[tx][ty ^ tx]", "shared store")
    words = kernels.words("permuted_write_fixed", "s_a[tx][ty ^ tx]", "shared store")
    banks = {len(set(row)) for row in (words % 32).tolist()}
    return finding(
        f"`permuted_write_fixed`: {cost}; each request goes to {min(banks)} banks",
        claimed={"different banks": banks == {32}, "no conflict": cost.conflicts == 0},
        why="It permutes the column, by the number of the line: the column is what chooses the bank.",
    )


@claim(
    FALSE,
    "The XOR with `ty & 1` significantly reduces write conflicts, since consecutive threads access different banks.",
    "significantly reduces write-time bank conflicts by ensuring that consecutive threads access different banks",
)
def the_published_xor(kernels: Kernels) -> Finding:
    code = "s_a[permuted_tx][ty]"
    cost = kernels.cost("permuted_write", code, "shared store")
    banks = {len(set(row)) for row in (kernels.words("permuted_write", code, "shared store") % 32).tolist()}
    without = shared_request(32 * LANES, op="store")
    return finding(
        f"without the XOR: {without.wavefronts} wavefronts, {without.ways} ways; with it (`permuted_write`): "
        f"{cost.wavefronts_each:g} wavefronts a request, {cost.ways} ways; each request goes to {max(banks)} bank",
        claimed={
            "fewer conflicts": cost.conflicts < without.conflicts * cost.requests,
            "different banks": max(banks) > 1,
        },
        why="It permutes the line, and lines are all banks apart. Besides, `ty` is the same in a whole warp: for half "
        "of the warps it changes nothing at all.",
    )


@claim(
    TRUE,
    "Reads of s_b by neighbours in x are 32 bytes apart, 8 banks, so that every fourth thread meets the first.",
    "differs by TN * sizeof(float) = 32 bytes, i.e., 8 banks ... every 32/8 = 4 threads will cause a bank conflict",
)
def b_every_fourth_thread(kernels: Kernels) -> Finding:
    words = kernels.words("kernel_v3", "s_b[k][tx * TN]")
    apart = words[:, 1:16] - words[:, :15]
    bank = words % 32
    return finding(
        f"`kernel_v3`, reads of `s_b`: neighbours are {4 * apart[0, 0]} bytes apart; the banks of the first "
        f"lanes are {', '.join(map(str, bank[0, :6] - bank[0, 0]))}",
        claimed={
            "32 bytes apart": bool((4 * apart == 32).all()),
            "every fourth one meets": bool((bank[:, 4:16] == bank[:, :12]).all()),
        },
        why="V4's reads of `s_b`, before they are split, are those of V3.",
    )


@claim(
    TRUE,
    "That is a 4-way conflict by floats, and in fact a 2-way one with float4.",
    "up to 4-way bank conflicts. Since we are using float4 to read from s_b, this actually results in 2-way",
)
def b_four_ways_or_two(kernels: Kernels) -> Finding:
    by_word = shared_request(8 * TX)
    float4 = kernels.cost("kernel_v3", "s_b[k][tx * TN]")
    return finding(
        f"by floats: {by_word}; by float4 (`kernel_v3`): {float4}",
        claimed={"4 ways by floats": by_word.ways == 4, "2 ways by float4": float4.ways == 2},
        why="By floats 16 different words lie in four banks. By float4 8 lanes are served at a time, and two of them "
        "meet in each of 16 banks. As wavefronts for each request it would look like 8 ways.",
        facts={"8 wavefronts": float4.wavefronts_each == 8},
    )


@claim(
    TRUE,
    "It is 2-way because conflicts are counted by transactions.",
    "the number of conflicts is calculated based on transactions",
)
def b_by_transactions(kernels: Kernels) -> Finding:
    words = kernels.words("kernel_v3", "s_b[k][tx * TN]")[0]
    request, transaction = (
        len({word for word in lanes.tolist() if word % 32 == words[0] % 32}) for lanes in (words, words[:8])
    )
    ways = kernels.cost("kernel_v3", "s_b[k][tx * TN]").ways
    return finding(
        f"`kernel_v3`, words that the lanes want of the first lane's bank: {request} in the whole request, "
        f"{transaction} in the first 8 lanes; {ways} ways",
        claimed={"ways are those of a transaction": ways == transaction < request},
        why="A float4 is served to 8 lanes at a time, 128 bytes. Words that are served apart do not collide.",
    )


@claim(
    TRUE,
    "Neighbours read float4 that are one float4 apart, which leaves some banks underutilized.",
    "one float4 apart. This means some banks are underutilized",
)
def b_idle_banks(kernels: Kernels) -> Finding:
    unsplit = kernels.words("kernel_v3", "s_b[k][tx * TN]")[0, :8]
    split = kernels.words("kernel_v4_colmajor", "s_b[k][tx * 4]")[0, :8]
    used = [len({(word + i) % 32 for word in words.tolist() for i in range(4)}) for words in (unsplit, split)]
    return finding(
        f"banks that the first 8 lanes read: {used[0]} in `kernel_v3`, {used[1]} in `kernel_v4_colmajor`",
        claimed={"some are idle": used[0] < 32},
        why="Half of the banks serve two lanes each, the other half none. Split reads use all of them once.",
        facts={"split reads use all": used[1] == 32},
    )


@claim(
    TRUE,
    "Splitting the reads of s_b, so that neighbours read adjacent float4, uses all banks and minimizes conflicts.",
    "adjacent threads read adjacent data, fully utilizing all banks and minimizing bank conflicts",
)
def b_split(kernels: Kernels) -> Finding:
    unsplit = kernels.cost("kernel_v3", "LOAD4(s_b[k]")
    split = kernels.cost("kernel_v4_colmajor", "LOAD4(s_b[k]")
    return finding(
        f"reads of `s_b` in `kernel_v3`: {unsplit}; in `kernel_v4_colmajor`: {split}",
        claimed={"no conflict is left": unsplit.conflicts > 0 and split.conflicts == 0},
        why="Both rows of the warp read the same, in different halves, so half of the wavefronts are still too many. "
        "Those are not conflicts: another order of the lanes saves them (`opt_7_zorder`).",
        facts={"twice the ideal": split.wavefronts == 2 * split.ideal_wavefronts},
    )


@claim(
    TRUE,
    "Double buffering puts the data that is loaded and the data that is used in two separate buffers.",
    "the data being loaded and the data used for computation are placed in two separate buffers",
)
def v5_two_buffers(kernels: Kernels) -> Finding:
    memory = [kernels.shared_bytes(name) for name in ("kernel_v4", "kernel_v5")]
    single, double = (
        [kernels.all(name, f"shared {op}") for op in ("load", "store")] for name in ("kernel_v4", "kernel_v5")
    )
    return finding(
        f"shared memory {memory[0]:,} bytes in `kernel_v4`, {memory[1]:,} in `kernel_v5`; in both "
        f"{double[0].wavefronts:,} wavefronts of loads and {double[1].wavefronts:,} of stores",
        claimed={"twice the memory": memory[1] == 2 * memory[0]},
        why="It changes when things are read and not where, so every count stays. The time it hides is not counted.",
        facts={"every count stays": single == double},
    )
