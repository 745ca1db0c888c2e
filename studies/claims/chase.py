"""The claims of "The Chase for cuBLAS-like SGEMM Performance (WIP)": the ladder V1 to V5 and the permuted write."""

from __future__ import annotations

from memsim.model import global_access
from studies.claims.claim import Finding
from studies.counted import LANES, Kernels, refusal, shared_request

TX, TY = LANES % 16, LANES // 16  # a warp of a block of 16 x 16 threads: two rows of 16


def v2_memory_ratio(kernels: Kernels) -> Finding:
    loads, size = kernels.all("kernel_v2", "global load"), kernels.sizes("kernel_v2")
    blocks = kernels.analysis("kernel_v2").trace.launch.blocks
    bm = bn = 16
    moved = loads.sectors * 32
    ratio = 2 * size["M"] * size["N"] * size["K"] / moved
    return Finding(
        f"`kernel_v2`: {moved // blocks:,} bytes of sectors for each block, {ratio:g} operations for each byte",
        claimed={
            "so many bytes": moved == blocks * (bm + bn) * size["K"] * 4,
            "so many operations": ratio == 1 / (2 * (1 / bm + 1 / bn)),
        },
        why="The loads are coalesced, so what is moved is what is asked for. With scattered loads it would be more.",
        facts={"coalesced": loads.is_coalesced},
    )


def v2_float4_as_printed(kernels: Kernels) -> Finding:
    said = refusal(lambda: global_access(4 * (TX + 1024 * TY), 16))
    a, b = kernels.cost("kernel_v2", "LOAD4(A["), kernels.cost("kernel_v2", "LOAD4(B[")
    return Finding(
        f"as printed: “{said}”; as meant (`kernel_v2`), A: {a}; B: {b}",
        claimed={"as meant": a.is_coalesced and b.is_coalesced, "as printed": not said},
        why="The snippet has a float4 start at every float, where three of four are misaligned. A thread for every "
        "fourth float is right.",
    )


def v3_reads_of_a_conflict(kernels: Kernels) -> Finding:
    code = "s_a[ty * TM + i][k]"
    cost, words = kernels.cost("kernel_v3", code), kernels.words("kernel_v3", code, "shared load")
    apart = words[:, 16:] - words[:, :16]
    return Finding(
        f"`kernel_v3`: {cost}; the rows of a warp are {4 * apart[0, 0]} bytes apart",
        claimed={
            "256 bytes apart": bool((4 * apart == 256).all()),
            "the same bank": bool((apart % 32 == 0).all()),
            "a conflict": cost.ways == 2,
        },
        why="64 words are twice all banks. Threads next to each other in x read the same word, which is no conflict.",
        facts={"the same word in a row": bool((words == words[:, 16 * TY]).all())},
    )


def v4_column_major(kernels: Kernels) -> Finding:
    reads = kernels.cost("kernel_v4_colmajor", "LOAD4(s_a[k]")
    words = kernels.words("kernel_v4_colmajor", "LOAD4(s_a[k]")
    apart = words[:, 16:] - words[:, :16]
    return Finding(
        f"`kernel_v4_colmajor`, reads of `s_a`: {reads}; the rows of a warp are {4 * apart[0, 0]} bytes apart",
        claimed={"32 bytes apart": bool((4 * apart == 32).all()), "no conflicts": reads.conflicts == 0},
        why="Each read is two addresses, each for 16 lanes.",
        facts={"two addresses": all(len(set(row)) == 2 for row in words.tolist())},
    )


def v4_permuted(kernels: Kernels) -> Finding:
    padded, permuted = (kernels.cost(name, "s_a[a_k + ") for name in ("kernel_v4_padded", "kernel_v4"))
    loads = [kernels.all(name, "shared load").wavefronts for name in ("kernel_v4_padded", "kernel_v4")]
    memory = [kernels.shared_bytes(name) for name in ("kernel_v4_padded", "kernel_v4")]
    return Finding(
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


def a_permutation_can(kernels: Kernels) -> Finding:
    cost = kernels.cost("permuted_write_fixed", "s_a[tx][ty ^ tx]", "shared store")
    words = kernels.words("permuted_write_fixed", "s_a[tx][ty ^ tx]", "shared store")
    banks = {len(set(row)) for row in (words % 32).tolist()}
    return Finding(
        f"`permuted_write_fixed`: {cost}; each request goes to {min(banks)} banks",
        claimed={"different banks": banks == {32}, "no conflict": cost.conflicts == 0},
        why="It permutes the column, by the number of the line: the column is what chooses the bank.",
    )


def the_published_xor(kernels: Kernels) -> Finding:
    code = "s_a[permuted_tx][ty]"
    cost = kernels.cost("permuted_write", code, "shared store")
    banks = {len(set(row)) for row in (kernels.words("permuted_write", code, "shared store") % 32).tolist()}
    without = shared_request(32 * LANES, op="store")
    return Finding(
        f"without the XOR: {without.wavefronts} wavefronts, {without.ways} ways; with it (`permuted_write`): "
        f"{cost.wavefronts_each:g} wavefronts a request, {cost.ways} ways; each request goes to {max(banks)} bank",
        claimed={
            "fewer conflicts": cost.conflicts < without.conflicts * cost.requests,
            "different banks": max(banks) > 1,
        },
        why="It permutes the line, and lines are all banks apart. Besides, `ty` is the same in a whole warp: for half "
        "of the warps it changes nothing at all.",
    )


def b_every_fourth_thread(kernels: Kernels) -> Finding:
    words = kernels.words("kernel_v3", "s_b[k][tx * TN]")
    apart = words[:, 1:16] - words[:, :15]
    bank = words % 32
    return Finding(
        f"`kernel_v3`, reads of `s_b`: neighbours are {4 * apart[0, 0]} bytes apart; the banks of the first "
        f"lanes are {', '.join(map(str, bank[0, :6] - bank[0, 0]))}",
        claimed={
            "32 bytes apart": bool((4 * apart == 32).all()),
            "every fourth one meets": bool((bank[:, 4:16] == bank[:, :12]).all()),
        },
        why="V4's reads of `s_b`, before they are split, are those of V3.",
    )


def b_by_transactions(kernels: Kernels) -> Finding:
    words = kernels.words("kernel_v3", "s_b[k][tx * TN]")[0]
    request, transaction = (
        len({word for word in lanes.tolist() if word % 32 == words[0] % 32}) for lanes in (words, words[:8])
    )
    ways = kernels.cost("kernel_v3", "s_b[k][tx * TN]").ways
    return Finding(
        f"`kernel_v3`, words that the lanes want of the first lane's bank: {request} in the whole request, "
        f"{transaction} in the first 8 lanes; {ways} ways",
        claimed={"ways are those of a transaction": ways == transaction < request},
        why="A float4 is served to 8 lanes at a time, 128 bytes. Words that are served apart do not collide.",
    )


def b_idle_banks(kernels: Kernels) -> Finding:
    unsplit = kernels.words("kernel_v3", "s_b[k][tx * TN]")[0, :8]
    split = kernels.words("kernel_v4_colmajor", "s_b[k][tx * 4]")[0, :8]
    used = [len({(word + i) % 32 for word in words.tolist() for i in range(4)}) for words in (unsplit, split)]
    return Finding(
        f"banks that the first 8 lanes read: {used[0]} in `kernel_v3`, {used[1]} in `kernel_v4_colmajor`",
        claimed={"some are idle": used[0] < 32},
        why="Half of the banks serve two lanes each, the other half none. Split reads use all of them once.",
        facts={"split reads use all": used[1] == 32},
    )


def v5_two_buffers(kernels: Kernels) -> Finding:
    memory = [kernels.shared_bytes(name) for name in ("kernel_v4", "kernel_v5")]
    single, double = (
        [kernels.all(name, f"shared {op}") for op in ("load", "store")] for name in ("kernel_v4", "kernel_v5")
    )
    return Finding(
        f"shared memory {memory[0]:,} bytes in `kernel_v4`, {memory[1]:,} in `kernel_v5`; in both "
        f"{double[0].wavefronts:,} wavefronts of loads and {double[1].wavefronts:,} of stores",
        claimed={"twice the memory": memory[1] == 2 * memory[0]},
        why="It changes when things are read and not where, so every count stays. The time it hides is not counted.",
        facts={"every count stays": single == double},
    )
