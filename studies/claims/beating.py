"""The claims of "Beating cuBLAS in Single-Precision General Matrix Multiplication"."""

from __future__ import annotations

from studies.claims.claim import Finding
from studies.counted import LANES, Kernels, counted, shared_request

SMALL, LARGE = "sgemm_128x128x8", "sgemm_128x256x8"
LOAD_A, LOAD_B, LOAD_C = "LDG_IF(a[i], from_a", "LDG_IF(b[i], from_b", "LDG_IF(c[1], to"
STORE_A, STORE_B, STORE_C = "STS4(shared_a + sts_a", "STS1(shared_b + sts_b", "STG_IF(to, c[0]"
COPY_A = "CP_ASYNC_IF(shared_a"
STAGE, FROM_STAGE = "STS4(stage + ", "LDS1(c[0], stage + "
FRAGMENT_A, FRAGMENT_B = "LDS4(r_a[", "LDS4(r_b["

ROW, COLUMN = LANES // 16 * 2 + LANES % 2, LANES // 2 % 8  # where a lane stands among the 4 x 8 of its warp


def b_is_loaded_in_rows(kernels: Kernels) -> Finding:
    cost, words = kernels.cost(SMALL, LOAD_B), kernels.words(SMALL, LOAD_B)
    return Finding(
        f"`{SMALL}`, loads of B: {cost}, in {counted(cost.lines_each, 'line')} of 128 bytes",
        claimed={
            "consecutive": bool((words[:, 1:] - words[:, :-1] == 1).all()),
            "coalesced": cost.is_coalesced,
        },
        why="128 bytes in one line.",
    )


def padding_avoids_them(kernels: Kernels) -> Finding:
    cost, words = kernels.cost(SMALL, STORE_A), kernels.words(SMALL, STORE_A)
    return Finding(
        f"`{SMALL}`, stores of A: {cost}; lines are {int(words[0, 1] - words[0, 0])} floats apart",
        claimed={
            "132 floats": bool((words[:, 1] - words[:, 0] == 132).all()),
            "none is left": cost.conflicts == 0,
        },
        why="Each line begins four banks further on, so that 8 lanes of 4 floats use all 32.",
    )


def b_needs_no_padding(kernels: Kernels) -> Finding:
    cost, words = kernels.cost(SMALL, STORE_B), kernels.words(SMALL, STORE_B)
    banks = {len(set(row)) for row in (words % 32).tolist()}
    return Finding(
        f"`{SMALL}`, stores of B: {counted(cost.conflicts, 'conflict')}; each request goes to {min(banks)} banks",
        claimed={"32 banks": banks == {32}, "no conflict": cost.conflicts == 0},
        why="Stored in rows as it is loaded, a lane's words are side by side.",
    )


def broadcast_limit(kernels: Kernels) -> Finding:
    alone = {
        lanes: shared_request(0 * LANES, 16, active=lanes > LANES).wavefronts for lanes in (4, 8, 16, 32)
    }
    orders = {
        "4": (LANES // 4 % 4, LANES % 4 + LANES // 16 * 4),
        "8": (LANES // 8, LANES % 8),
        "1": (ROW, COLUMN),
    }
    costs = {
        run: [shared_request(4 * row, 16).wavefronts, shared_request(4 * column, 16).wavefronts]
        for run, (row, column) in orders.items()
    }
    return Finding(
        f"wavefronts of one float4 for 4, 8, 16 and 32 lanes: {', '.join(map(str, alone.values()))}; of the fragments of A "
        f"and B with runs of 4 lanes at the same address of A: {costs['4'][0]} and {costs['4'][1]}, of 8: {costs['8'][0]} "
        f"and {costs['8'][1]}, of 1: {costs['1'][0]} and {costs['1'][1]}",
        claimed={"8 cost more than 4": alone[8] > alone[4] or sum(costs["8"]) > sum(costs["4"])},
        why="On this chip a broadcast reaches half a warp. What costs is the other fragment: its half-warps are served "
        "whole only if lanes want the same in pairs, which runs of 4 do not give, and an order by pairs does.",
        facts={
            "half a warp": alone[4] == alone[8] == alone[16] == 1 and alone[32] == 2,
            "pairs are cheaper": sum(costs["1"]) < sum(costs["4"]) == sum(costs["8"]),
        },
    )


def the_stage_is_cheap(kernels: Kernels) -> Finding:
    shares = []
    for depth in (1024, 8):
        at = kernels.at((1024, 1024, depth))
        stage = at.cost(SMALL, STAGE).wavefronts + at.cost(SMALL, FROM_STAGE).wavefronts
        every = sum(at.all(SMALL, f"shared {op}").wavefronts for op in ("load", "store"))
        shares.append(stage / every)
    stores = kernels.cost(SMALL, STAGE)
    return Finding(
        f"`{SMALL}`, share of the shared wavefronts: {shares[0]:.1%} at K = 1024, {shares[1]:.1%} at K = 8; stores to the "
        f"stage: {stores}",
        claimed={"for large K": shares[0] < 0.05, "for small K": shares[1] < 0.05},
        why="It is paid once for each block, whatever K is. And it has conflicts: rows of 32 floats, with an order of "
        "lanes that is best for the fragments.",
        facts={"conflicts": stores.conflicts > 0},
    )


def c_is_read_coalesced(kernels: Kernels) -> Finding:
    cost = kernels.at((1024, 1024, 64), beta=0.5).cost(SMALL, LOAD_C)
    none = [site for site in kernels.at((1024, 1024, 64)).analysis(SMALL).sites if LOAD_C in site.source]
    return Finding(
        f"`{SMALL}`, loads of C with beta = 0.5: {cost}; with 0 {'some' if none else 'none'}",
        claimed={"coalesced": cost.is_coalesced and cost.requests > 0, "only then": not none},
        why="They are the addresses of the stores.",
        facts={"those of the stores": cost.sectors == kernels.cost(SMALL, STORE_C).sectors},
    )


def unused_memory(kernels: Kernels) -> Finding:
    memory = kernels.shared_bytes(SMALL, "blocks_a")
    words = kernels.words(SMALL, STORE_A)
    line = int(words[0, 1] - words[0, 0])
    unused, said = memory - 2 * 8 * line * 4, 2 * 8 * 128 * 4
    return Finding(
        f"`{SMALL}`: `blocks_a` has {memory:,} bytes, of which {unused:,} are unused; the product is {said:,}",
        claimed={"some is unused": unused > 0, "so much": unused == said},
        why="The product forgets the padding: lines have 132 floats. The XOR moves all of a request by a multiple of "
        "all banks, so no count changes.",
        facts={"a multiple of all banks": 8192 % 128 == 4096 % 128 == 0},
    )


def plain_replacement(kernels: Kernels) -> Finding:
    stores = kernels.cost(SMALL, STORE_A)
    copies = shared_request(132 * (LANES % 8) + 4 * (LANES // 8), op="cp_async")
    ours = kernels.cost(LARGE, COPY_A, "shared cp_async")
    words = kernels.words(LARGE, COPY_A, "shared cp_async")
    written = [shared_request(row, op="cp_async").ways for row in words]
    return Finding(
        f"A by the threads of `{SMALL}`: {stores.wavefronts_each:g} wavefronts for a float4 of each lane by stores; by four "
        f"copies of a float, {copies.wavefronts} each, {counted(copies.ways, 'way')} where they write; `{LARGE}`: {ours}, "
        f"{counted(max(written), 'way')} where they write",
        claimed={
            "it costs more": 4 * copies.wavefronts > stores.wavefronts_each,
            "with no cause in memory": copies.ways == 1,
        },
        why="A copy cannot put four floats of a column into one place. Replaced as it is, it brings conflicts that the "
        "stores did not have. With the rows of a thread four apart it writes clean; but a copy meets others where it reads, "
        "too, and four rows of A, 4,096 bytes apart, lie in the same banks of the cache.",
        facts={
            "clean where it writes": set(written) == {1},
            "4 ways where it reads": ours.ways == 4,
            "4,096 bytes apart": 4 * kernels.sizes(LARGE)["K"] == 4096,
        },
    )
