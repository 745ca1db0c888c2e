"""The claims of "Optimized SGEMM on Ada Lovelace: A Study on Decoupled Access/Compute Architecture"."""

from __future__ import annotations

from studies.claims.claim import Finding
from studies.counted import Kernels, counted

LOAD_A, LOAD_B = "LOAD4(A[a_row * K + a_col])", "LOAD4(B[b_row * N + b_col])"


def b_is_coalesced(kernels: Kernels) -> Finding:
    cost, words = kernels.cost("ada_decoupled", LOAD_B), kernels.words("ada_decoupled", LOAD_B)
    return Finding(
        f"`ada_decoupled`, reads of B: {cost}, {counted(cost.lines_each, 'line')} of 128 bytes",
        claimed={
            "a row": bool((words[:, 1:] - words[:, :-1] == 4).all()),
            "no sector in vain": cost.is_coalesced,
        },
        why="32 float4 on end: 512 bytes.",
    )


def b_is_one_request(kernels: Kernels) -> Finding:
    cost, words = kernels.cost("ada_decoupled", LOAD_B), kernels.words("ada_decoupled", LOAD_B)
    return Finding(
        f"`ada_decoupled`, reads of B: {counted(cost.sectors_each, 'sector')} in {counted(cost.lines_each, 'line')} "
        f"of 128 bytes for each request",
        claimed={
            "contiguous": bool((words[:, 1:] - words[:, :-1] == 4).all()),
            "a single line": cost.lines_each == 1,
        },
        why="16 bytes a lane are more than a line; each line is looked up by itself.",
    )


def a_is_adjacent(kernels: Kernels) -> Finding:
    a, b = kernels.cost("ada_decoupled", LOAD_A), kernels.cost("ada_decoupled", LOAD_B)
    apart = kernels.words("ada_decoupled", LOAD_A)
    apart = apart[:, 1:] - apart[:, :-1]
    return Finding(
        f"`ada_decoupled`, reads of A: {a}, {counted(a.lines_each, 'line')} of 128 bytes, where B has {b.lines_each:g}",
        claimed={"in pairs": bool((apart[:, 0::2] == 4).all()), "all of them": bool((apart == 4).all())},
        why="Two threads share a row, 32 bytes, which is a sector: nothing is read in vain. The next two are a whole "
        "row of A further on.",
        facts={"nothing in vain": a.is_coalesced, "a line for each pair": a.lines_each == 16},
    )


def two_loads_a_thread(kernels: Kernels) -> Finding:
    loads, size = kernels.all("ada_decoupled", "global load"), kernels.sizes("ada_decoupled")
    launch = kernels.analysis("ada_decoupled").trace.launch
    each = loads.requests / (launch.blocks * launch.warps * (size["K"] // 8))
    return Finding(
        f"`ada_decoupled`: {loads.requests:,} load requests of {loads.width} bytes a lane, {each:g} for a warp and step",
        claimed={"two": each == 2, "float4": loads.width == 16},
        why="128 x 8 and 8 x 128 floats are 512 float4.",
    )


def minimizes_conflicts(kernels: Kernels) -> Finding:
    a = kernels.cost("ada_decoupled", "r_a[i] = s_a[")
    b = kernels.cost("ada_decoupled", "LOAD4(s_b[k]")
    loads, clean = kernels.all("ada_decoupled", "shared load"), kernels.all("kernel_v4", "shared load")
    return Finding(
        f"`ada_decoupled`, reads of A_s: {a}; of B_s: {b}; {loads.wavefronts:,} load wavefronts, where `kernel_v4` has "
        f"{clean.wavefronts:,} for the same tile",
        claimed={"of A_s": a.conflicts == 0, "of B_s": b.conflicts == 0},
        why=f"Both reads conflict: {loads.conflicts / loads.wavefronts:.0%} of the load wavefronts are conflicts. They "
        "are the reads of `kernel_v3`.",
        facts={
            "2 ways": (a.ways, b.ways) == (2, 2),
            "none are needed": clean.conflicts == 0,
            "those of kernel_v3": loads == kernels.all("kernel_v3", "shared load"),
        },
    )


def transposed_implicitly(kernels: Kernels) -> Finding:
    stores = kernels.cost("ada_decoupled", "STORE4(s_a[", "shared store")
    words = kernels.words("ada_decoupled", "STORE4(s_a[", "shared store")
    apart = words[:, 1:] - words[:, :-1]
    return Finding(
        f"`ada_decoupled`, stores to A_s: {stores}; each lane's float4 is {counted(int(apart[0, 0]), 'word')} after "
        f"that of the lane before",
        claimed={"transposed": not (apart == 4).all()},
        why="What is loaded along k is stored along k, 16 bytes after 16 bytes. That is clean, and transposes nothing.",
        facts={"clean": stores.conflicts == 0},
    )
