"""What orders accesses to shared memory besides barriers of the whole block: waits for copies, mbarriers,
named barriers, and those of a cluster. Each kernel has a twin without that order: its counts are uncertain.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.running import trace
from memsim.errors import MemsimError
from tests.simt.cuda import kernels_of

HEAD = Path(__file__).with_name("data").joinpath("shared_sync.cuh").read_text()
#: Kernels: (without the order, with it). Loads decide addresses.
BLOCKS = {
    "cp_own": (
        "__pipeline_memcpy_async(a + id, in + me, 4); __pipeline_commit(); out[v[id]] = 1; "
        "__pipeline_wait_prior(0);",
        "__pipeline_memcpy_async(a + id, in + me, 4); __pipeline_commit(); "
        "__pipeline_wait_prior(0); out[v[id]] = 1;",
    ),
    "cp_nowait": (
        "__pipeline_memcpy_async(a + id, in + me, 4); __pipeline_commit(); __syncthreads(); "
        "out[v[id ^ 1]] = 1; __pipeline_wait_prior(0);",
        "__pipeline_memcpy_async(a + id, in + me, 4); __pipeline_commit(); "
        "__pipeline_wait_prior(0); __syncthreads(); out[v[127 - id]] = 1;",
    ),
    "cp_stage": (
        "for (int i = 0; i < 2; i++) { __pipeline_memcpy_async(a + 128 * i + id, in + me + i, 4); "
        "__pipeline_commit(); } for (int i = 0; i < 4; i++) { __pipeline_wait_prior(2); "
        "__syncthreads(); out[v[128 * (i & 1) + 127 - id]] = 1; __syncthreads(); "
        "__pipeline_memcpy_async(a + 128 * (i & 1) + id, in + me + i + 2, 4); "
        "__pipeline_commit(); } __pipeline_wait_prior(0);",
        "for (int i = 0; i < 2; i++) { __pipeline_memcpy_async(a + 128 * i + id, in + me + i, 4); "
        "__pipeline_commit(); } for (int i = 0; i < 4; i++) { __pipeline_wait_prior(1); "
        "__syncthreads(); out[v[128 * (i & 1) + 127 - id]] = 1; __syncthreads(); "
        "__pipeline_memcpy_async(a + 128 * (i & 1) + id, in + me + i + 2, 4); "
        "__pipeline_commit(); } __pipeline_wait_prior(0);",
    ),
    "cp_old": (
        "a[id] = in[id]; __syncthreads(); __pipeline_memcpy_async(a + id, in + me, 4); "
        "__pipeline_commit(); out[v[id]] = 1; __pipeline_wait_prior(0);",
        "a[id] = in[id]; __syncthreads(); out[v[127 - id]] = 1; __syncthreads(); "
        "__pipeline_memcpy_async(a + id, in + me, 4); __pipeline_commit(); "
        "__pipeline_wait_prior(0); __syncthreads(); out[v[127 - id]] = 1;",
    ),
    "cp_mbar": (
        "if (id == 0) init(at(bars), 128); __syncthreads(); __pipeline_memcpy_async(a + id, in + "
        'me, 4); asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at(bars)) '
        ': "memory"); out[v[id]] = 1; wait(at(bars), 0);',
        "if (id == 0) init(at(bars), 128); __syncthreads(); __pipeline_memcpy_async(a + id, in + "
        'me, 4); asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at(bars)) '
        ': "memory"); wait(at(bars), 0); out[v[127 - id]] = 1;',
    ),
    "tma": (
        "if (id == 0) init(at(bars), 1); __syncthreads(); if (id == 0) { expect(at(bars), 512); "
        "bulk(at(a), in, 512, at(bars)); } __syncthreads(); out[v[id]] = 1; wait(at(bars), 0);",
        "if (id == 0) init(at(bars), 1); __syncthreads(); if (id == 0) { expect(at(bars), 512); "
        "bulk(at(a), in, 512, at(bars)); } __syncthreads(); wait(at(bars), 0); out[v[id]] = 1;",
    ),
    "tma_other": (
        "if (id == 0) { init(at(bars), 1); init(at(bars + 1), 1); } __syncthreads(); if (id == 0) "
        "{ expect(at(bars), 256); bulk(at(a), in, 256, at(bars)); expect(at(bars + 1), 256); "
        "bulk(at(a + 64), in, 256, at(bars + 1)); } wait(at(bars), 0); out[v[id]] = 1; "
        "wait(at(bars + 1), 0);",
        "if (id == 0) { init(at(bars), 1); init(at(bars + 1), 1); } __syncthreads(); if (id == 0) "
        "{ expect(at(bars), 256); bulk(at(a), in, 256, at(bars)); expect(at(bars + 1), 256); "
        "bulk(at(a + 64), in, 256, at(bars + 1)); } wait(at(bars), 0); out[v[id & 63]] = 1; "
        "wait(at(bars + 1), 0); out[v[id]] = 2;",
    ),
    "tma_one_waits": (
        "if (id == 0) init(at(bars), 1); __syncthreads(); if (id == 0) { expect(at(bars), 512); "
        "bulk(at(a), in, 512, at(bars)); } if (id < 32) wait(at(bars), 0); out[v[id]] = 1;",
        "if (id == 0) init(at(bars), 1); __syncthreads(); if (id == 0) { expect(at(bars), 512); "
        "bulk(at(a), in, 512, at(bars)); } if (id < 32) wait(at(bars), 0); __syncthreads(); "
        "out[v[id]] = 1;",
    ),
    "tma_ring": (
        "if (id == 0) { for (int i = 0; i < 2; i++) { init(at(bars + i), 1); init(at(bars + 4 + "
        "i), 3); } } __syncthreads(); if (id < 32) { if (id == 0) for (int i = 0; i < 6; i++) { "
        "int s = i & 1; expect(at(bars + s), 384); bulk(at(a + 96 * s), in + 96 * i, 384, at(bars "
        "+ s)); if (i & 1) wait(at(bars + s), i >> 1 & 1); } } else { int t = id - 32; for (int i "
        "= 0; i < 6; i++) { int s = i & 1; wait(at(bars + s), i >> 1 & 1); out[v[96 * s + 95 - "
        "t]] = 1; __syncwarp(); if (lane == 0) arrive(at(bars + 4 + s)); } }",
        "if (id == 0) { for (int i = 0; i < 2; i++) { init(at(bars + i), 1); init(at(bars + 4 + "
        "i), 3); } } __syncthreads(); if (id < 32) { if (id == 0) for (int i = 0; i < 6; i++) { "
        "int s = i & 1; if (i > 1) wait(at(bars + 4 + s), ((i >> 1) & 1) ^ 1); expect(at(bars + "
        "s), 384); bulk(at(a + 96 * s), in + 96 * i, 384, at(bars + s)); } } else { int t = id - "
        "32; for (int i = 0; i < 6; i++) { int s = i & 1; wait(at(bars + s), i >> 1 & 1); "
        "out[v[96 * s + 95 - t]] = 1; __syncwarp(); if (lane == 0) arrive(at(bars + 4 + s)); } }",
    ),
    "named_half": (
        'a[id] = in[me]; if (id < 64) asm volatile("bar.sync 1, 64;" ::: "memory"); out[v[127 - id]] = 1;',
        'a[id] = in[me]; asm volatile("bar.sync %0, 64;" :: "r"(1 + id / 64) : "memory"); '
        "out[v[id ^ 63]] = 1;",
    ),
    "named_wrong": (
        'a[id] = in[me]; asm volatile("bar.sync %0, 64;" :: "r"(1 + id / 64) : "memory"); '
        "out[v[127 - id]] = 1;",
        'if (id < 64) { a[id] = in[me]; asm volatile("bar.arrive 1, 128;" ::: "memory"); } else { '
        'asm volatile("bar.sync 1, 128;" ::: "memory"); out[a[127 - id]] = 1; }',
    ),
    "pc": (
        "if (id < 64) { for (int i = 0; i < 4; i++) { a[id] = in[me + i]; asm "
        'volatile("bar.arrive 1, 128;" ::: "memory"); if (i == 0) asm volatile("bar.sync 2, 128;" '
        '::: "memory"); } } else for (int i = 0; i < 4; i++) { asm volatile("bar.sync 1, 128;" '
        '::: "memory"); out[v[127 - id]] = 1; if (i == 0) asm volatile("bar.arrive 2, 128;" ::: '
        '"memory"); }',
        'if (id < 64) { for (int i = 0; i < 4; i++) { if (i) asm volatile("bar.sync 2, 128;" ::: '
        '"memory"); a[id] = in[me + i]; asm volatile("bar.arrive 1, 128;" ::: "memory"); } } else '
        'for (int i = 0; i < 4; i++) { asm volatile("bar.sync 1, 128;" ::: "memory"); out[v[127 - '
        'id]] = 1; if (i < 3) asm volatile("bar.arrive 2, 128;" ::: "memory"); }',
    ),
    "mbar_pc": (
        "if (id == 0) { init(at(bars), 64); init(at(bars + 1), 64); } __syncthreads(); if (id < "
        "64) for (int i = 0; i < 4; i++) { a[id] = in[me + i]; arrive(at(bars)); } else for (int "
        "i = 0; i < 4; i++) { wait(at(bars), i & 1); out[v[127 - id]] = 1; arrive(at(bars + 1)); "
        "}",
        "if (id == 0) { init(at(bars), 64); init(at(bars + 1), 64); } __syncthreads(); if (id < "
        "64) for (int i = 0; i < 4; i++) { wait(at(bars + 1), (i & 1) ^ 1); a[id] = in[me + i]; "
        "arrive(at(bars)); } else for (int i = 0; i < 4; i++) { wait(at(bars), i & 1); out[v[127 "
        "- id]] = 1; arrive(at(bars + 1)); }",
    ),
    "mbar_half": (
        "if (id == 0) init(at(bars), 64); __syncthreads(); a[id] = in[me]; if (id < 64) "
        "arrive(at(bars)); wait(at(bars), 0); out[v[id ^ 64]] = 1;",
        "if (id == 0) init(at(bars), 128); __syncthreads(); a[id] = in[me]; arrive(at(bars)); "
        "wait(at(bars), 0); out[v[id ^ 64]] = 1;",
    ),
    "war": (
        "if (id == 0) for (int i = 0; i < 4; i++) init(at(bars + i), 64); __syncthreads(); if (id "
        "< 64) for (int i = 0; i < 4; i++) { a[id] = in[me + i]; arrive(at(bars + i)); } else for "
        "(int i = 0; i < 4; i++) { wait(at(bars + i), 0); out[v[127 - id]] = 1; }",
        "if (id == 0) for (int i = 0; i < 4; i++) init(at(bars + i), 64); __syncthreads(); if (id "
        "< 64) for (int i = 0; i < 4; i++) { a[64 * (i & 1) + id] = in[me + i]; arrive(at(bars + "
        'i)); if (i) asm volatile("bar.sync 1, 128;"); } else for (int i = 0; i < 4; i++) { '
        "wait(at(bars + i), 0); out[v[64 * (i & 1) + 127 - id]] = 1; if (i < 3) asm "
        'volatile("bar.sync 1, 128;"); }',
    ),
    "war_tma": (
        "if (id == 0) for (int i = 0; i < 4; i++) init(at(bars + i), 1); __syncthreads(); for "
        "(int i = 0; i < 4; i++) { if (id == 0) { expect(at(bars + i), 512); bulk(at(a), in + 128 "
        "* i, 512, at(bars + i)); } wait(at(bars + i), 0); out[v[id]] = 1; }",
        "if (id == 0) for (int i = 0; i < 4; i++) init(at(bars + i), 1); __syncthreads(); for "
        "(int i = 0; i < 4; i++) { if (id == 0) { expect(at(bars + i), 512); bulk(at(a), in + 128 "
        "* i, 512, at(bars + i)); } wait(at(bars + i), 0); out[v[id]] = 1; __syncthreads(); }",
    ),
    "hist": (
        'b[id] = 0; __syncthreads(); atomicAdd(&b[in[me] & 63], 1); asm volatile("bar.sync %0, '
        '64;" :: "r"(1 + id / 64) : "memory"); out[b[id & 63]] = 1;',
        "b[id] = 0; __syncthreads(); atomicAdd(&b[id / 64 * 64 + (in[me] & 15)], 1); asm "
        'volatile("bar.sync %0, 64;" :: "r"(1 + id / 64) : "memory"); out[b[id]] = 1;',
    ),
}
#: The same in a cluster of two blocks.
CLUSTERS = {
    "ds_store": (
        "meet(); put(of(at(a + id), rank() ^ 1), in[me]); __syncthreads(); out[v[id]] = 1; meet();",
        "meet(); put(of(at(a + id), rank() ^ 1), in[me]); meet(); out[v[id]] = 1; meet();",
    ),
    "ds_load": (
        "a[id] = in[me]; __syncthreads(); out[get(of(at(a + id), rank() ^ 1))] = 1; meet();",
        "a[id] = in[me]; meet(); out[get(of(at(a + id), rank() ^ 1))] = 1; meet();",
    ),
    "ds_early": (
        "a[id] = in[me]; meet(); out[get(of(at(a + id), rank() ^ 1))] = 1; __syncthreads(); a[id] "
        "= in[id]; meet(); out[v[id]] = 1;",
        "a[id] = in[me]; meet(); out[get(of(at(a + id), rank() ^ 1))] = 1; meet(); a[id] = "
        "in[id]; __syncthreads(); out[v[127 - id]] = 1;",
    ),
    "ds_mbar": (
        "if (id == 0) init(at(bars), 128); meet(); put(of(at(a + id), rank() ^ 1), in[me]); if "
        '(id < 32) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at(bars)) : '
        '"memory"); __syncthreads(); out[v[id]] = 1; meet();',
        "if (id == 0) init(at(bars), 128); meet(); put(of(at(a + id), rank() ^ 1), in[me]); asm "
        'volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: '
        '"r"(of(at(bars), rank() ^ 1)) : "memory"); wait(at(bars), 0); out[v[127 - id]] = 1; '
        "meet();",
    ),
    "ds_one": (
        "if (id == 0) init(at(bars), 1); meet(); put(of(at(a + id), rank() ^ 1), in[me]); "
        'if (id == 0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: '
        '"r"(of(at(bars), rank() ^ 1)) : "memory"); wait(at(bars), 0); out[v[127 - id]] = 1; meet();',
        "if (id == 0) init(at(bars), 1); meet(); put(of(at(a + id), rank() ^ 1), in[me]); __syncthreads(); "
        'if (id == 0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: '
        '"r"(of(at(bars), rank() ^ 1)) : "memory"); wait(at(bars), 0); out[v[127 - id]] = 1; meet();',
    ),
    "ds_async": (
        "if (id == 0) { init(at(bars), 1); expect(at(bars), 512); } meet(); asm "
        'volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: '
        '"r"(of(at(a + id), rank() ^ 1)), "r"(in[me]), "r"(of(at(bars), rank() ^ 1)) : "memory"); '
        "__syncthreads(); out[v[id]] = 1; wait(at(bars), 0); meet();",
        "if (id == 0) { init(at(bars), 1); expect(at(bars), 512); } meet(); asm "
        'volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: '
        '"r"(of(at(a + id), rank() ^ 1)), "r"(in[me]), "r"(of(at(bars), rank() ^ 1)) : "memory"); '
        "wait(at(bars), 0); out[v[id]] = 1; meet();",
    ),
    "ds_hist": (
        "a[id] = 0; meet(); remote_add(of(at(a + (in[me] & 31)), in[me] >> 5 & 1), 1); "
        "__syncthreads(); out[v[id]] = 1; meet();",
        "a[id] = 0; meet(); remote_add(of(at(a + (in[me] & 31)), in[me] >> 5 & 1), 1); meet(); "
        "out[v[id]] = 1; meet();",
    ),
    "ds_cg": (
        "auto c = cg::this_cluster(); a[id] = in[me]; __syncthreads(); int *r = "
        "c.map_shared_rank(a, c.block_rank() ^ 1); out[r[127 - id]] = 1; c.sync();",
        "auto c = cg::this_cluster(); for (int i = 0; i < 3; i++) { a[id] = in[me + i]; c.sync(); "
        "int *r = c.map_shared_rank(a, c.block_rank() ^ 1); out[r[127 - id]] = 1; c.sync(); }",
    ),
    "ds_ring": (
        "if (id == 0) { init(at(bars), 128); init(at(bars + 1), 128); } meet(); for (int i = 0; i "
        "< 4; i++) { put(of(at(a + id), rank() ^ 1), in[me + i]); asm "
        'volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: '
        '"r"(of(at(bars), rank() ^ 1)) : "memory"); wait(at(bars), i & 1); out[v[127 - id]] = 1; '
        "} meet();",
        "if (id == 0) { init(at(bars), 128); init(at(bars + 1), 128); } meet(); for (int i = 0; i "
        "< 4; i++) { if (i) wait(at(bars + 1), (i & 1) ^ 1); put(of(at(a + id), rank() ^ 1), "
        'in[me + i]); asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" '
        ':: "r"(of(at(bars), rank() ^ 1)) : "memory"); wait(at(bars), i & 1); out[v[127 - id]] = '
        '1; asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: '
        '"r"(of(at(bars + 1), rank() ^ 1)) : "memory"); } meet();',
    ),
}
#: Those that hang without the order, as an emulator may tell.
HANG = ("tma_ring", "pc", "mbar_pc")
NUMBERS = np.random.default_rng(0).permutation(1 << 10).astype(np.int32)


def _reasons(name: str, blocks: int) -> tuple[str, ...]:
    kinds = (("KERNEL", BLOCKS), ("CLUSTER", CLUSTERS))
    texts = (
        f"{kind}({one}_{at}, {body})"
        for kind, bodies in kinds
        for one, twins in bodies.items()
        for at, body in enumerate(twins)
    )
    kernel = kernels_of(HEAD + "\n".join(texts), "sass")[name]
    return trace(kernel, blocks, 128, [np.zeros(1 << 17, np.int32), NUMBERS]).uncertain


@pytest.mark.some(4)
@pytest.mark.parametrize("blocks", [2, 6])
@pytest.mark.parametrize("name", [*BLOCKS, *CLUSTERS])
def test_counts_are_certain_if_what_they_depend_on_is_ordered(name: str, blocks: int) -> None:
    assert not _reasons(f"{name}_1", blocks)


@pytest.mark.some(14)
@pytest.mark.parametrize("blocks", [2, 6])
@pytest.mark.parametrize("name", [name for name in (*BLOCKS, *CLUSTERS) if name not in HANG])
def test_counts_are_uncertain_if_it_is_not(name: str, blocks: int) -> None:
    reasons = _reasons(f"{name}_0", blocks)
    assert reasons
    assert all("decides the" in reason for reason in reasons)


@pytest.mark.parametrize("name", HANG)
def test_kernels_that_hang_without_the_order(name: str) -> None:
    with pytest.raises(MemsimError, match="never"):
        _reasons(f"{name}_0", 2)
