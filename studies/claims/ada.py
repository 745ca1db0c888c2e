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
