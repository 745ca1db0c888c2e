"""Blocks, meeting points, definitions and uses; against networkx and brute force where random."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ptx_front.basic_blocks import BRANCHES, BasicBlock, basic_blocks
from tests.ptx_front.post_dominators import (
    flow_of,
    forward_edges,
    immediate_post_dominators,
    reconvergence_points,
)
from tests.ptx_front.snippets import kernel, only
from tests.ptx_front.used_registers import defs, uses

# --- blocks -------------------------------------------------------------------------------


def shape(body: str) -> list[tuple[int, int, tuple[int, ...], bool]]:
    return [(b.start, b.end, b.successors, b.leaves) for b in basic_blocks(kernel(body))]


def test_blocks() -> None:
    assert shape("") == []
    assert shape("add.s32 %r1, %r1, 1; ret;") == [(0, 2, (), True)]
    assert shape("add.s32 %r1, %r1, 1;") == [(0, 1, (), True)]
    assert shape("@%p1 ret; ret;") == [(0, 1, (1,), True), (1, 2, (), True)]
    assert shape("@%p1 bra L; exit; L: trap;") == [(0, 1, (2, 1), False), (1, 2, (), True), (2, 3, (), True)]
    assert shape("L: @%p1 bra L;") == [(0, 1, (0,), True)]
    assert shape("@%p1 bra L; L:") == [(0, 1, (), True)]
    assert shape("L: bra.uni L;") == [(0, 1, (0,), False)]
    assert shape("bra L; add.s32 %r1, %r1, 1; L: M: ret;") == [
        (0, 1, (2,), False),
        (1, 2, (2,), False),
        (2, 3, (), True),
    ]
    assert shape("t: .branchtargets A, B, A; @%p1 brx.idx %r1, t; A: bar.sync 0; B: ret;") == [
        (0, 1, (1, 2), False),
        (1, 2, (2,), False),
        (2, 3, (), True),
    ]


# --- where lanes meet ---------------------------------------------------------------------


def meeting(graph: tuple[BasicBlock, ...]) -> tuple[int, ...]:
    return reconvergence_points(forward_edges(graph), flow_of(graph).loops)


def meets(body: str) -> dict[int, int | None]:
    """For each branch that may part lanes the instruction where they are together again."""
    function = kernel(body)
    graph = basic_blocks(function)
    starts = [*(block.start for block in graph), None]
    return {
        block.end - 1: starts[place]
        for block, place in zip(graph, meeting(graph))
        if function.instructions[block.end - 1].opcode in BRANCHES and len(block.successors) > 1
    }


NOP = "add.s32 %r1, %r1, 1;"


def test_if_and_else() -> None:
    assert meets(f"@%p1 bra L; {NOP} L: {NOP} ret;") == {0: 2}
    assert meets(f"@%p1 bra E; {NOP} bra F; E: {NOP} F: {NOP} ret;") == {0: 4}


def test_loops() -> None:
    assert meets(f"L: {NOP} @%p1 bra L; {NOP} ret;") == {1: 2}
    nested = f"O: {NOP} I: @%p1 bra I; @%p2 bra O; {NOP} ret;"
    assert meets(nested) == {1: 2, 2: 3}
    assert meets(f"L: @%p1 bra B; {NOP} @%p2 bra L; B: {NOP} ret;") == {0: 3, 2: 3}
    # All that continue come to instruction 1 some time, but not in this turn of the loop.
    assert meets(f"L: @%p2 bra C; @%p1 bra B; {NOP} C: {NOP} bra L; B: {NOP} ret;") == {0: 5, 1: 5}


def test_lanes_that_leave_are_not_waited_for() -> None:
    assert meets(f"@%p1 bra END; {NOP} END: ret;") == {0: 1}
    # The branch at 0 meets at 4 although lanes between leave: by `ret` ...
    assert meets(f"@%p1 bra R; {NOP} @%p2 ret; {NOP} R: {NOP} ret;") == {0: 4}
    # ... by a branch to the last `ret` of the kernel ...
    assert meets(f"@%p1 bra R; {NOP} @%p2 bra END; {NOP} R: {NOP} END: ret;") == {0: 4, 2: 3}
    # ... or after some work of their own.
    assert meets(f"@%p1 bra R; @%p2 bra S; {NOP} bra END; S: {NOP} R: {NOP} END: ret;") == {0: 5, 1: 4}


def test_lanes_that_work_before_they_leave_may_stand_last_in_the_text() -> None:
    body = f"@%p1 bra R; @%p2 bra S; {NOP} R: {NOP} bra END; S: {NOP} {NOP} END: ret;"
    assert meets(body) == {0: 3, 1: 2}


def test_loop_left_by_returning() -> None:
    assert meets(f"L: {NOP} @%p1 bra END; bra L; END: ret;") == {1: None}
    assert meets(f"L: {NOP} @%p1 ret; @%p2 bra M; {NOP} M: bra L;") == {2: 4}


def test_endless_loops() -> None:
    assert meets("L: bra L;") == {}
    assert meets(f"L: @%p1 bra M; {NOP} bra N; M: {NOP} N: bra L;") == {0: 4}
    assert meets(f"@%p1 bra E; {NOP} ret; E: bra E;") == {0: 1}


def test_jump_table() -> None:
    body = (
        f"t: .branchtargets A, B, C; brx.idx %r1, t; A: {NOP} bra D; B: {NOP} bra D; C: {NOP} D: {NOP} ret;"
    )
    assert meets(body) == {0: 6}


def test_no_blocks() -> None:
    assert meeting(()) == ()
    assert meets("") == {}


@st.composite
def graphs(draw: st.DrawFn, ending: bool) -> list[list[int]]:
    """Edges of up to 9 nodes and the end; with `ending`, every node has a way there."""
    count = draw(st.integers(1, 9))
    edges = [draw(st.lists(st.integers(0, count), unique=True, max_size=3, min_size=1)) for _ in range(count)]
    if ending:
        graph = nx.DiGraph([(a, b) for a, targets in enumerate(edges) for b in targets])
        graph.add_nodes_from(range(count + 1))
        for node in range(count):
            if not nx.has_path(graph, node, count):
                edges[node].append(count)
    return edges


@given(graphs(ending=True))
def test_post_dominators_equal_those_of_networkx(edges: list[list[int]]) -> None:
    end = len(edges)
    backwards = nx.DiGraph([(b, a) for a, targets in enumerate(edges) for b in targets])
    expected = nx.immediate_dominators(backwards, end)
    assert immediate_post_dominators(edges) == tuple(expected[node] for node in range(end))


@given(graphs(ending=False))
def test_reconvergence_points_exist_in_any_graph(edges: list[list[int]]) -> None:
    end = len(edges)
    graph = tuple(
        BasicBlock(2 * n, 2 * n + 2, tuple(t for t in targets if t != end), end in targets)
        for n, targets in enumerate(edges)
    )
    found = meeting(graph)
    assert len(found) == end
    assert all(0 <= place <= end for place in found)
    assert all(place != node for node, place in enumerate(found))


@given(graphs(ending=True))
def test_reconvergence_points_are_post_dominators_where_nobody_leaves_early(edges: list[list[int]]) -> None:
    """With one way out, a block that every other leads to; in a loop it may be a later one."""
    end = len(edges)
    joined = [[*targets] for targets in edges] + [[]]
    graph = tuple(BasicBlock(2 * n, 2 * n + 2, tuple(targets), n == end) for n, targets in enumerate(joined))
    expected = immediate_post_dominators([*joined[:-1], [end + 1]])
    loops = nx.DiGraph([(a, b) for a, targets in enumerate(joined) for b in targets])
    together = {node: members for members in nx.strongly_connected_components(loops) for node in members}
    for block, place in enumerate(meeting(graph)):
        first = after = expected[block]
        while after != place:
            after = expected[after]  # an IndexError at the end: no post-dominator at all
        assert place == first or first in together[block]


# --- definitions and uses -----------------------------------------------------------------

ACCESS = [
    ("add.s32 %r1, %r2, %r3;", "%r1", "%r2 %r3"),
    ("@!%p1 add.s32 %r1, %r1, 3;", "%r1", "%r1 %p1"),
    ("mov.u32 %r1, %tid.x;", "%r1", ""),
    ("mov.b64 {%r1, %r2}, %rd1;", "%r1 %r2", "%rd1"),
    ("mov.b64 %rd1, {%r1, %r2};", "%rd1", "%r1 %r2"),
    ("mov.b64 {%r1, _}, %rd1;", "%r1", "%rd1"),
    ("setp.eq.and.s32 %p1|%p2, %r1, 3, !%p3;", "%p1 %p2", "%r1 %p3"),
    ("setp.eq.s32 %p1|_, %r1, 3;", "%p1", "%r1"),
    ("shfl.sync.bfly.b32 %r1|%p1, %r2, %r3, 31, -1;", "%r1 %p1", "%r2 %r3"),
    ("vote.sync.ballot.b32 %r1, %p1, %r2;", "%r1", "%p1 %r2"),
    ("ld.global.v2.u32 {%r1, %r2}, [%rd1+8];", "%r1 %r2", "%rd1"),
    ("ld.param.u64 %rd1, [a];", "%rd1", ""),
    ("st.global.v2.u32 [%rd1], {%r1, %r2};", "", "%rd1 %r1 %r2"),
    ("st.param.b32 [a], %r1;", "", "%r1"),
    ("atom.global.add.u32 %r1, [%rd1], %r2;", "%r1", "%rd1 %r2"),
    ("atom.global.add.u32 _, [%rd1], %r2;", "", "%rd1 %r2"),
    ("red.global.add.u32 [%rd1], %r2;", "", "%rd1 %r2"),
    ("prefetch.global.L2 [%rd1];", "", "%rd1"),
    ("bar.sync %r1, %r2;", "", "%r1 %r2"),
    ("barrier.arrive %r1, 64;", "", "%r1"),
    ("bar.warp.sync %r1;", "", "%r1"),
    ("bar.red.popc.u32 %r1, %r2, %p1;", "%r1", "%r2 %p1"),
    ("barrier.red.and.pred %p1, 0, %p2;", "%p1", "%p2"),
    ("nanosleep.u32 %r1;", "", "%r1"),
    ("ret;", "", ""),
    ("membar.gl;", "", ""),
    ("cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;", "", "%r1 %rd1 %r2"),
    ("cp.async.wait_group 1;", "", ""),
    ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];", "%r1 %r2", "%r3"),
    ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], {%r1, %r2};", "", "%r3 %r1 %r2"),
    ("mma.sync {%f1, %f2}, {%r1}, {%r2}, {%f1, %f2};", "%f1 %f2", "%r1 %r2 %f1 %f2"),
    ("wmma.store.d.sync.global.f32 [%rd1], {%f1, %f2}, %r1;", "", "%rd1 %f1 %f2 %r1"),
    ("wgmma.mma_async.sync {%f1, %f2}, %rd1, %rd2, %p1;", "%f1 %f2", "%f1 %f2 %rd1 %rd2 %p1"),
    ("tex.2d.v4.f32.f32 {%f3, _, _, %f4}|%p1, [%rd1, {%f1, %f2}];", "%f3 %f4 %p1", "%rd1 %f1 %f2"),
    ("sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};", "", "%rd1 %r1 %r2"),
    ("mbarrier.init.shared.b64 [%r1], %r2;", "", "%r1 %r2"),
    ("mbarrier.arrive.shared.b64 %rd1, [%r1];", "%rd1", "%r1"),
    ("mbarrier.try_wait.parity.b64 %p1, [%r1], %r2;", "%p1", "%r1 %r2"),
    ("vmad.s32.s32.s32 %r1, %r2.b0, %r3.h1, %r4;", "%r1", "%r2 %r3 %r4"),
    ("stackrestore.u64 %rd1;", "", "%rd1"),
    ("tcgen05.ld.sync.b32 {%r1}, [%r2];", "%r1", "%r2"),
    ("tcgen05.dealloc.sync.b32 %r1, 64;", "", "%r1"),
    ("call (%r1), %rd1, (%r2, 3, a), proto;", "%r1", "%rd1 %r2"),
    ("frobnicate %r1, [%rd1], {%r2, %f1};", "%r1", "%rd1 %r2 %f1"),
    ("frobnicate [%rd1], %r1;", "", "%rd1 %r1"),
]


@pytest.mark.parametrize(("statement", "written", "read"), ACCESS, ids=[a for a, _, _ in ACCESS])
def test_definitions_and_uses(statement: str, written: str, read: str) -> None:
    instruction = only(statement)
    assert sorted(defs(instruction)) == sorted(written.split())
    assert sorted(uses(instruction)) == sorted(read.split())


def test_branches_use_their_guard_and_index() -> None:
    function = kernel("t: .branchtargets L; L: @%p1 bra L; brx.idx %r1, t;")
    assert [uses(i) for i in function.instructions] == [("%p1",), ("%r1",)]
    assert [defs(i) for i in function.instructions] == [(), ()]
