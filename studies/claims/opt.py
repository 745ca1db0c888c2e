"""The claims of "SGEMM Optimization": gemm_2 to z-order. The article is in Chinese; quotes are translated."""

from __future__ import annotations

from studies.claims.claim import PART, TRUE, Finding, claim, finding
from studies.counted import LANES, Kernels, counted, shared_request

TITLE = "SGEMM Optimization"


@claim(
    TRUE,
    "Which index of C goes with the thread's x decides: x with x is good, x with y is very bad.",
    "the correspondence of C(x,y) and index(x,y) has a great influence on performance",
)
def x_with_x(kernels: Kernels) -> Finding:
    names, codes = (
        ("opt_2_naive", "opt_2_naive_swapped"),
        ("A[row * K + k]", "B[k * N + col]", "C[row * N + col]"),
    )
    good, bad = ([kernels.cost(name, code) for code in codes] for name in names)
    loads = [kernels.all(name, "global load").sectors for name in names]
    each = [", ".join(f"{cost.sectors_each:g}" for cost in costs) for costs in (good, bad)]
    return finding(
        f"sectors a request of A, B and C: {each[0]} in `opt_2_naive`, {each[1]} in `opt_2_naive_swapped`; "
        f"of all loads {loads[0]:,} and {loads[1]:,}, {loads[1] / loads[0]:.1f} times as many",
        claimed={
            "x with x is coalesced": all(cost.is_coalesced for cost in good),
            "x with y is not": not bad[0].is_coalesced and not bad[2].is_coalesced,
        },
        why="Lanes run along x. With x for columns A is a broadcast, B and C are contiguous. With x for rows each lane "
        "has a sector of its own in A and in C. The article gives no block; these are 32 x 32.",
        facts={"a broadcast": good[0].sectors_each == 1, "a sector a lane": bad[0].sectors_each == 32},
    )


@claim(
    TRUE,
    "A thread of the naive kernel reads global memory 2 * K times and writes it once.",
    "reads 2*K times from global memory and writes to global memory once",
)
def reads_2k_times(kernels: Kernels) -> Finding:
    loads, stores = kernels.all("opt_2_naive", "global load"), kernels.all("opt_2_naive", "global store")
    launch, k = kernels.analysis("opt_2_naive").trace.launch, kernels.sizes("opt_2_naive")["K"]
    warps = launch.warps * launch.blocks
    return finding(
        f"`opt_2_naive`: {loads.requests / warps:,g} load requests and {stores.requests / warps:g} store request for "
        f"each warp, K is {k:,}",
        claimed={"2 * K reads": loads.requests == 2 * k * warps, "one write": stores.requests == warps},
        why="The compiler cannot join reads of global memory that lie rows apart.",
    )


@claim(
    TRUE,
    "Within a block many addresses are accessed again and again, which shared memory can serve.",
    "there are many repeated address accesses",
)
def repeated_addresses(kernels: Kernels) -> Finding:
    naive, tiled = (kernels.all(name, "global load") for name in ("opt_2_naive", "opt_3_shared"))
    return finding(
        f"load requests {naive.requests:,} in `opt_2_naive`, {tiled.requests:,} in `opt_3_shared`; "
        f"sectors {naive.sectors:,} and {tiled.sectors:,}",
        claimed={
            "fewer requests": tiled.requests < naive.requests,
            "fewer sectors": tiled.sectors < naive.sectors,
        },
        why="A tile of 32 x 32 asks 32 times less often. Sectors fall less, since a naive request for A was a "
        "broadcast of one sector.",
        facts={
            "32 times": naive.requests == 32 * tiled.requests,
            "sectors fall less": naive.sectors < 32 * tiled.sectors,
        },
    )


@claim(
    TRUE,
    "A 1-D tile gives each thread more products for its accesses.",
    "let each thread compute TM values in this dimension",
)
def tile_1d(kernels: Kernels) -> Finding:
    before, after = (kernels.all(name, "shared load") for name in ("opt_3_shared", "opt_4_tile1d"))
    return finding(
        f"shared loads: {before.wavefronts:,} wavefronts in `opt_3_shared`, {after.wavefronts:,} in `opt_4_tile1d`; "
        f"{before.conflicts:,} and {after.conflicts:,} conflicts",
        claimed={"fewer wavefronts": after.wavefronts < before.wavefronts},
        why="B is read once for 8 rows of A: 5 wavefronts for 8 products, where it was 12.",
        facts={
            "5 for 12": 12 * after.wavefronts == 5 * before.wavefronts,
            "clean": before.conflicts == after.conflicts == 0,
        },
    )


@claim(
    TRUE,
    "With k as the outermost loop, registers can save repeated reads of shared memory.",
    "some repeated accesses can be cached in registers, avoiding meaningless accesses",
)
def outer_product(kernels: Kernels) -> Finding:
    loads, size = kernels.all("opt_4_tile2d", "shared load"), kernels.sizes("opt_4_tile2d")
    in_the_text = 2 * size["M"] * size["N"] * size["K"] // 32  # two operands of each product, by warps
    return finding(
        f"`opt_4_tile2d`: {loads.requests:,} shared load requests, where its text has {in_the_text:,}",
        claimed={"fewer reads": loads.requests < in_the_text},
        why="A thread's 64 products of a step take 16 operands. The compiler sees that, and joins those of B.",
    )


@claim(
    PART,
    "Caching As over n and Bs over m in registers by hand avoids reads of shared memory.",
    "then we can cache this part of the data in the loop over TM",
)
def register_cache(kernels: Kernels) -> Finding:
    plain, cached = (kernels.all(name, "shared load") for name in ("opt_4_tile2d", "opt_4_tile2d_register"))
    size = kernels.sizes("opt_4_tile2d")
    in_the_text = 2 * size["M"] * size["N"] * size["K"] // 32
    ways = [kernels.cost("opt_4_tile2d_register", code).ways for code in ("r_a[m] = s_a", "r_b[n] = s_b")]
    return finding(
        f"shared load requests: {in_the_text:,} in the text without it; compiled {plain.requests:,} without "
        f"(`opt_4_tile2d`), {cached.requests:,} with it (`opt_4_tile2d_register`); wavefronts {plain.wavefronts:,} "
        f"and {cached.wavefronts:,}",
        claimed={
            "fewer than in the text": cached.requests < in_the_text,
            "fewer than were executed": cached.requests < plain.requests,
        },
        why="The compiler did it already. Not said: the reads of both tiles conflict 2 ways.",
        facts={"every count is equal": plain == cached, "2 ways in both": ways == [2, 2]},
    )


@claim(
    TRUE,
    "float4 takes fewer access instructions, which lessens the contention for memory.",
    "fewer memory instructions are needed, reducing contention for memory access",
)
def fewer_instructions(kernels: Kernels) -> Finding:
    names = ("opt_4_tile2d", "opt_5_float4")
    single, four = (kernels.all(name, "global load") for name in names)
    loads = [kernels.all(name, "shared load") for name in names]
    return finding(
        f"requests in `opt_4_tile2d` and `opt_5_float4`: {single.requests:,} and {four.requests:,} global loads, for "
        f"{single.sectors:,} and {four.sectors:,} sectors; {loads[0].requests:,} and {loads[1].requests:,} shared "
        f"loads, of {loads[0].wavefronts:,} and {loads[1].wavefronts:,} wavefronts",
        claimed={
            "fewer global loads": four.requests < single.requests,
            "fewer shared loads": loads[1].requests < loads[0].requests,
        },
        why="Global memory has a quarter of the requests for the same sectors. Shared wavefronts fall because A is "
        "transposed; the reads of B cost what they did.",
        facts={
            "a quarter": 4 * four.requests == single.requests,
            "the same sectors": four.sectors == single.sectors,
            "all that falls is A's": loads[0].wavefronts - loads[1].wavefronts
            == kernels.cost("opt_4_tile2d_register", "r_a[m] = s_a").wavefronts
            - kernels.cost("opt_5_float4", "LOAD4(s_a[k]").wavefronts,
        },
    )


@claim(
    TRUE,
    "As has to be transposed for a column of it to be read by float4.",
    "if it is not transposed, it cannot be read with float4",
)
def transposed_for_float4(kernels: Kernels) -> Finding:
    row_major = kernels.cost("opt_4_tile2d_register", "r_a[m] = s_a")
    transposed = kernels.cost("opt_5_float4", "LOAD4(s_a[k]")
    return finding(
        f"reads of As: {row_major.requests:,} requests of {row_major.width} bytes a lane in `opt_4_tile2d_register`, "
        f"{row_major}; {transposed.requests:,} of {transposed.width} in `opt_5_float4`, {transposed}",
        claimed={
            "row-major, by floats": row_major.width == 4,
            "transposed, by float4": transposed.width == 16,
        },
        why="Row-major, the elements of a column are 8 floats apart. Transposed, the conflict of the reads goes too.",
        facts={"the conflict goes": row_major.conflicts > 0 and transposed.conflicts == 0},
    )


@claim(
    TRUE,
    "Once As is transposed it is stored float by float, a column of four for each thread.",
    "after the transpose float4 stores are not possible ... the floats of As are stored one by one",
)
def stored_one_by_one(kernels: Kernels) -> Finding:
    stores, loads = kernels.cost("opt_5_float4", "s_a[a_k + "), kernels.cost("opt_5_float4", "LOAD4(A[")
    return finding(
        f"`opt_5_float4`: {stores.requests:,} stores of {stores.width} bytes a lane to As, for {loads.requests:,} "
        f"loads of {loads.width} from A",
        claimed={"four for each": stores.requests == 4 * loads.requests and stores.width == 4},
        why="The four floats of a load belong to four lines of the transposed tile.",
    )


@claim(
    TRUE,
    "Stores to As by odd and even threads conflict, since BK = 8 and BM = 128 is a multiple of 32.",
    "adjacent threads write to the same bank",
)
def odd_and_even(kernels: Kernels) -> Finding:
    cost, words = kernels.cost("opt_5_float4", "s_a[a_k + "), kernels.words("opt_5_float4", "s_a[a_k + ")
    apart = words[:, 1::2] - words[:, 0::2]
    return finding(
        f"`opt_5_float4`: {cost}; lanes next to each other are {abs(apart[0, 0])} words apart",
        claimed={"the same bank": bool((apart % 32 == 0).all()), "a conflict": cost.ways == 2},
        why="Two threads bring a row of 8 floats; their lines are four apart, which is 4 * 128 words.",
        facts={"4 * 128": bool((apart == 4 * 128).all())},
    )


@claim(
    TRUE,
    "With BM + 4 the two threads are 4 * 4 banks apart, and the conflict is gone.",
    "the bank offset of two adjacent threads is 4 * 4",
)
def bm_plus_4(kernels: Kernels) -> Finding:
    cost = kernels.cost("opt_7_no_bank_conflict", "[a_k + ")
    banks = kernels.words("opt_7_no_bank_conflict", "[a_k + ") % 32
    apart = (banks[:, 1::2] - banks[:, 0::2]) % 32
    return finding(
        f"`opt_7_no_bank_conflict`: {cost}; lanes next to each other are {apart[0, 0]} banks apart",
        claimed={"16 banks apart": bool((apart == 16).all()), "no conflict": cost.conflicts == 0},
        why="Four lines of 132 words: four times four floats of padding.",
    )


@claim(
    TRUE,
    "The banks within a warp are then 0-16-1-17-...-15-31.",
    "0-16-1-17-...-15-31",
)
def bank_order(kernels: Kernels) -> Finding:
    banks = (kernels.words("opt_7_no_bank_conflict", "[a_k + 0]") % 32).tolist()
    told = [bank for j in range(16) for bank in (j, j + 16)]
    found = [row for row in banks if row == told]
    return finding(
        f"`opt_7_no_bank_conflict`, the first store of A: {'-'.join(map(str, found[0] if found else banks[0]))}, in "
        f"{len(found)} of {len(banks)} kinds of warps",
        claimed={"this order": bool(found)},
        why="It is the order of the first warp. Others begin elsewhere; each goes to every bank once.",
        facts={"every bank once": all(sorted(row) == list(range(32)) for row in banks)},
    )


@claim(
    TRUE,
    "Stores to Bs have no conflict, only 4 wavefronts: 8 lanes of 4 floats are all banks.",
    "the stores to Bs have no bank conflict, it is just 4 wavefronts",
)
def only_4_wavefronts(kernels: Kernels) -> Finding:
    cost = kernels.cost("opt_5_float4", "STORE4(s_b[")
    groups = kernels.words("opt_5_float4", "STORE4(s_b[").reshape(-1, 8, 1) + range(4)
    banks = {len(set(group)) for group in (groups.reshape(-1, 32) % 32).tolist()}
    return finding(
        f"`opt_5_float4`: {cost}; 8 lanes in a row write to {min(banks)} banks",
        claimed={
            "no conflict": cost.conflicts == 0,
            "4 wavefronts": cost.wavefronts_each == 4,
            "8 lanes are all banks": banks == {32},
        },
        why="A warp stores 512 bytes, and a wavefront moves 128. The article calls it LDS.128; a store is STS.128.",
        facts={"the ideal": cost.wavefronts == cost.ideal_wavefronts},
    )


@claim(
    TRUE,
    "gemm_7 with BM + 4 only removes the conflicts of the stores.",
    "it can only eliminate the bank conflicts of stores",
)
def only_store_conflicts(kernels: Kernels) -> Finding:
    names = ("opt_6_double_buffer", "opt_7_no_bank_conflict")
    stores, loads = ([kernels.all(name, f"shared {op}") for name in names] for op in ("store", "load"))
    left = kernels.cost("opt_7_no_bank_conflict", "LOAD4(s_b[")
    split = kernels.all("guide_v11", "shared load")
    return finding(
        f"conflicts in `opt_6_double_buffer` and `opt_7_no_bank_conflict`: stores {stores[0].conflicts:,} and "
        f"{stores[1].conflicts:,}, loads {loads[0].conflicts:,} and {loads[1].conflicts:,}",
        claimed={
            "those of stores go": stores[0].conflicts > 0 == stores[1].conflicts,
            "those of loads stay": loads[0].conflicts == loads[1].conflicts > 0,
        },
        why="The author does not see why the others stay: they are all in the reads of Bs, 8 floats apart, where of "
        "each 8 lanes two meet. Padding As cannot reach them. Splitting a thread's columns does (`guide_v11`: "
        f"{counted(split.conflicts, 'conflict')}, {split.wavefronts:,} load wavefronts instead of "
        f"{loads[1].wavefronts:,}).",
        facts={"all in Bs": left.conflicts == loads[1].conflicts, "split, none": split.conflicts == 0},
    )


@claim(
    TRUE,
    "In z-order a half-warp has the same address in Bs at distance 2 and in As at distance 1, so reads are merged "
    "and do not conflict.",
    "in a half warp the address in Bs is the same at an interval of 2 and in As at an interval of 1, so they can all "
    "be merged, and there is no bank conflict",
)
def z_order_merges(kernels: Kernels) -> Finding:
    a, b = (kernels.cost("opt_7_zorder", f"LOAD4({tile}[") for tile in ("s_a", "s_b"))
    words = {tile: kernels.words("opt_7_zorder", f"LOAD4({tile}[") for tile in ("s_a", "s_b")}
    rows = kernels.cost("opt_7_no_bank_conflict", "LOAD4(s_b[")
    return finding(
        f"`opt_7_zorder`, reads of As: {a}; of Bs: {b} (in rows of 16 lanes, `opt_7_no_bank_conflict`: {rows})",
        claimed={
            "Bs at distance 2": bool((words["s_b"] == words["s_b"][:, LANES ^ 2]).all()),
            "As at distance 1": bool((words["s_a"] == words["s_a"][:, LANES ^ 1]).all()),
            "merged": a.wavefronts_each == b.wavefronts_each == 2,
            "no conflict": a.conflicts == b.conflicts == 0,
        },
        why="It is the hardware's pair rule: where each lane's neighbour at distance 1, or each one's at distance 2, "
        "has the same address, 16 lanes are served at a time and not 8. A half-warp has 4 different float4.",
        facts={
            "4 float4": all(len(set(half)) == 4 for tile in words.values() for half in tile[:, :16].tolist())
        },
    )


@claim(
    TRUE,
    "With 8 x 8 elements to a thread Bs and As take two instructions each, even by float4.",
    "even with float4 instructions, Bs and As need two instructions each",
)
def two_instructions(kernels: Kernels) -> Finding:
    size = kernels.sizes("opt_7_zorder")
    steps = size["M"] * size["N"] * size["K"] // (64 * 32)  # of a warp: an outer product each
    a, b = (kernels.cost("opt_7_zorder", f"LOAD4({tile}[").requests / steps for tile in ("s_a", "s_b"))
    return finding(
        f"`opt_7_zorder`, load requests of a warp for each k: {a:g} of As, {b:g} of Bs",
        claimed={"two each": a == b == 2},
        why="8 floats are two float4.",
    )


@claim(
    PART,
    "The z-order completely removes load and store conflicts.",
    "this one can completely eliminate the bank conflicts of loads and stores",
)
def z_order_removes_all(kernels: Kernels) -> Finding:
    loads, stores = (kernels.all("opt_7_zorder", f"shared {op}") for op in ("load", "store"))
    before = kernels.all("opt_7_no_bank_conflict", "shared load")
    rows = kernels.all("guide_v11", "shared load")
    unpadded = shared_request(LANES % 2 * 4 * 128 + LANES // 2, op="store")
    same_stores = kernels.cost("opt_7_zorder", "[a_k + ") == kernels.cost("opt_7_no_bank_conflict", "[a_k + ")
    return finding(
        f"`opt_7_zorder`: {loads.conflicts:,} conflicts of {loads.wavefronts:,} load wavefronts, {stores.conflicts:,} "
        f"of {stores.wavefronts:,} store wavefronts; its stores to As without padding: {counted(unpadded.ways, 'way')}",
        claimed={
            "no conflict is left": loads.conflicts == stores.conflicts == 0,
            "the order cures the loads": before.conflicts > 0,
            "the order cures the stores": unpadded.conflicts == 0,
        },
        why="The kernel has none; but the stores are clean by the padding, and are those of `opt_7_no_bank_conflict`. "
        f"Split reads in rows of 16 lanes have no conflict either (`guide_v11`, {rows.wavefronts:,} wavefronts): "
        "against them the order saves wavefronts and no conflicts.",
        facts={
            "the same stores": same_stores,
            "rows have none": rows.conflicts == 0,
            "it saves wavefronts": loads.wavefronts < rows.wavefronts,
        },
    )


@claim(
    TRUE,
    "With twice the As and Bs two iterations do not depend on each other.",
    "we open up twice the space for As and Bs",
)
def twice_the_space(kernels: Kernels) -> Finding:
    names = ("opt_5_float4", "opt_6_double_buffer")
    memory = [kernels.shared_bytes(name) for name in names]
    loads, stores = ([kernels.all(name, f"shared {op}") for name in names] for op in ("load", "store"))
    return finding(
        f"shared memory {memory[0]:,} bytes in `opt_5_float4`, {memory[1]:,} in `opt_6_double_buffer`; in both "
        f"{loads[1].wavefronts:,} load and {stores[1].wavefronts:,} store wavefronts",
        claimed={"twice the space": memory[1] == 2 * memory[0]},
        why="A barrier goes. No address changes its bank, so every count stays, conflicts too.",
        facts={"every count stays": loads[0] == loads[1] and stores[0] == stores[1]},
    )


@claim(
    TRUE,
    "float4 wants a number of elements that is a multiple of 4; others can be had by care at the edges, at a cost.",
    "in fact it can still be supported, but the boundary conditions need more careful checks",
)
def multiples_of_4(kernels: Kernels) -> Finding:
    even, odd = (kernels.at((size, size, size)).all("opt_5_float4", "global load") for size in (256, 255))
    return finding(
        f"`opt_5_float4`, global loads: {even.requests:,} requests and {even.sectors:,} sectors at 256 cubed, "
        f"{odd.requests:,} and {odd.sectors:,} at 255 cubed",
        claimed={"it can be had": odd.requests > 0, "at a cost": odd.requests > even.requests},
        why="Where rows do not begin at multiples of 16 bytes, it reads float by float.",
        facts={"float by float": (even.width, odd.width) == (16, 4)},
    )
