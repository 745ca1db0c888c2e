"""The claims of "SGEMM Optimization": gemm_2 to z-order. The article is in Chinese; quotes are translated."""

from __future__ import annotations

from studies.claims.claim import Finding
from studies.counted import LANES, Kernels


def odd_and_even(kernels: Kernels) -> Finding:
    cost, words = kernels.cost("opt_5_float4", "s_a[a_k + "), kernels.words("opt_5_float4", "s_a[a_k + ")
    apart = words[:, 1::2] - words[:, 0::2]
    return Finding(
        f"`opt_5_float4`: {cost}; lanes next to each other are {abs(apart[0, 0])} words apart",
        claimed={"the same bank": bool((apart % 32 == 0).all()), "a conflict": cost.ways == 2},
        why="Two threads bring a row of 8 floats; their lines are four apart, which is 4 * 128 words.",
        facts={"4 * 128": bool((apart == 4 * 128).all())},
    )


def bm_plus_4(kernels: Kernels) -> Finding:
    cost = kernels.cost("opt_7_no_bank_conflict", "[a_k + ")
    banks = kernels.words("opt_7_no_bank_conflict", "[a_k + ") % 32
    apart = (banks[:, 1::2] - banks[:, 0::2]) % 32
    return Finding(
        f"`opt_7_no_bank_conflict`: {cost}; lanes next to each other are {apart[0, 0]} banks apart",
        claimed={"16 banks apart": bool((apart == 16).all()), "no conflict": cost.conflicts == 0},
        why="Four lines of 132 words: four times four floats of padding.",
    )


def bank_order(kernels: Kernels) -> Finding:
    banks = (kernels.words("opt_7_no_bank_conflict", "[a_k + 0]") % 32).tolist()
    told = [bank for j in range(16) for bank in (j, j + 16)]
    found = [row for row in banks if row == told]
    return Finding(
        f"`opt_7_no_bank_conflict`, the first store of A: {'-'.join(map(str, found[0] if found else banks[0]))}, in "
        f"{len(found)} of {len(banks)} kinds of warps",
        claimed={"this order": bool(found)},
        why="It is the order of the first warp. Others begin elsewhere; each goes to every bank once.",
        facts={"every bank once": all(sorted(row) == list(range(32)) for row in banks)},
    )


def only_4_wavefronts(kernels: Kernels) -> Finding:
    cost = kernels.cost("opt_5_float4", "STORE4(s_b[")
    groups = kernels.words("opt_5_float4", "STORE4(s_b[").reshape(-1, 8, 1) + range(4)
    banks = {len(set(group)) for group in (groups.reshape(-1, 32) % 32).tolist()}
    return Finding(
        f"`opt_5_float4`: {cost}; 8 lanes in a row write to {min(banks)} banks",
        claimed={
            "no conflict": cost.conflicts == 0,
            "4 wavefronts": cost.wavefronts_each == 4,
            "8 lanes are all banks": banks == {32},
        },
        why="A warp stores 512 bytes, and a wavefront moves 128. The article calls it LDS.128; a store is STS.128.",
        facts={"the ideal": cost.wavefronts == cost.ideal_wavefronts},
    )


def z_order_merges(kernels: Kernels) -> Finding:
    a, b = (kernels.cost("opt_7_zorder", f"LOAD4({tile}[") for tile in ("s_a", "s_b"))
    words = {tile: kernels.words("opt_7_zorder", f"LOAD4({tile}[") for tile in ("s_a", "s_b")}
    rows = kernels.cost("opt_7_no_bank_conflict", "LOAD4(s_b[")
    return Finding(
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


def twice_the_space(kernels: Kernels) -> Finding:
    names = ("opt_5_float4", "opt_6_double_buffer")
    memory = [kernels.shared_bytes(name) for name in names]
    loads, stores = ([kernels.all(name, f"shared {op}") for name in names] for op in ("load", "store"))
    return Finding(
        f"shared memory {memory[0]:,} bytes in `opt_5_float4`, {memory[1]:,} in `opt_6_double_buffer`; in both "
        f"{loads[1].wavefronts:,} load and {stores[1].wavefronts:,} store wavefronts",
        claimed={"twice the space": memory[1] == 2 * memory[0]},
        why="A barrier goes. No address changes its bank, so every count stays, conflicts too.",
        facts={"every count stays": loads[0] == loads[1] and stores[0] == stores[1]},
    )


def multiples_of_4(kernels: Kernels) -> Finding:
    even, odd = (kernels.at((size, size, size)).all("opt_5_float4", "global load") for size in (256, 255))
    return Finding(
        f"`opt_5_float4`, global loads: {even.requests:,} requests and {even.sectors:,} sectors at 256 cubed, "
        f"{odd.requests:,} and {odd.sectors:,} at 255 cubed",
        claimed={"it can be had": odd.requests > 0, "at a cost": odd.requests > even.requests},
        why="Where rows do not begin at multiples of 16 bytes, it reads float by float.",
        facts={"float by float": (even.width, odd.width) == (16, 4)},
    )
