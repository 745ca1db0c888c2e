"""Where the lanes of a warp reconverge after a divergent branch: at post-dominators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx

from tests.ptx_front.basic_blocks import BasicBlock

#: The basic blocks of each loop, by its header.
Loops = dict[int, frozenset[int]]


def reconvergence_points(onward: list[list[int]], loops: Loops) -> tuple[int, ...]:
    """For every basic block, the basic block at which lanes that diverge at its end reconverge.

    The index one past the last block stands for the end of the function: they never reconverge. The point is
    the immediate post-dominator, but for a branch in a loop not one that some lanes reach only in a later
    iteration. Exited lanes are not waited for, so exits other than the main one are ignored. An endless loop
    gets an artificial exit at its last basic block. onward: from `forward_edges`. loops: from
    `BranchesAndLoops`.
    """
    end = len(onward)
    levels: dict[int | None, tuple[int, ...]] = {}

    def candidates(loop: int | None) -> tuple[int, ...]:
        """The post-dominators if the back edges of this loop, and of the loops around it, lead to the end."""
        if loop not in levels:
            around = [first for first, inside in loops.items() if loop in inside]
            edges = [
                [end if one in around and number in loops[one] else one for one in ways]
                for number, ways in enumerate(onward)
            ]
            while lost := set(range(end)) - nx.ancestors(_graph(edges), end):
                edges[max(lost)].append(end)
            levels[loop] = immediate_post_dominators(edges)
        return levels[loop]

    def nearest(number: int) -> int:
        inside = [first for first, members in loops.items() if number in members]
        left: frozenset[int] = (
            frozenset()
        )  # of inner loops, where lanes do not reconverge within an iteration
        for loop in [*sorted(inside, key=lambda first: len(loops[first])), None]:
            found = candidates(loop)[number]
            while found in left:
                found = candidates(loop)[found]
            if loop is None or found in loops[loop]:
                return found
            left = loops[loop]
        return end

    return tuple(map(nearest, range(end)))


def forward_edges(graph: tuple[BasicBlock, ...]) -> list[list[int]]:
    """The successors of each basic block, without exits but the main one, which most of them lead to.

    A branch to a basic block that only exits counts as an exit.
    """
    end = len(graph)
    edges = [[target for target in node.successors if not _only_ends(graph[target])] for node in graph]
    leaving = [n for n, node in enumerate(graph) if node.leaves or len(edges[n]) < len(node.successors)]
    flow = _graph(edges)
    reaching = {number: {number} | nx.ancestors(flow, number) for number in leaving}
    entrances = Counter(target for onward in edges for target in onward)
    main = max(leaving, key=lambda n: (len(reaching[n]), entrances[n], n), default=end)
    kept = reaching.get(main, set())
    for number in range(end):
        if number in kept:
            edges[number] = [target for target in edges[number] if target in kept]
        if number == main or (number not in kept and number in reaching):
            edges[number].append(end)
    return edges


def _only_ends(node: BasicBlock) -> bool:
    return node.leaves and not node.successors and node.end == node.start + 1


def _graph(edges: list[list[int]]) -> nx.DiGraph[Any]:
    """A graph of these successors, and of the end, node `len(edges)`."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(range(len(edges) + 1))
    graph.add_edges_from((number, target) for number, ways in enumerate(edges) for target in ways)
    return graph


def immediate_post_dominators(edges: list[list[int]]) -> tuple[int, ...]:
    """The immediate post-dominator of every node; the end, node `len(edges)`, can be reached from each."""
    end = len(edges)
    found = nx.immediate_dominators(_graph(edges).reverse(copy=False), end)
    return tuple(found[number] for number in range(end))


@dataclass(frozen=True, slots=True)
class Divergence:
    """Lanes that diverge at the end of a basic block reconverge at basic block `point`.

    The convergence barrier is set (BSSY) at the end of `setter` or, if they diverge in a loop and
    reconverge behind it, on entry to the loop's header, `setter`. others: lanes that did not set the barrier
    may reach the point, too.
    """

    setter: int
    enters: bool
    point: int
    others: bool


@dataclass(frozen=True, slots=True)
class BranchesAndLoops:
    """The divergent branches of a function, and its loops."""

    divergences: tuple[Divergence, ...]
    loops: Loops


def flow_of(graph: tuple[BasicBlock, ...]) -> BranchesAndLoops:
    """Where lanes diverge and reconverge.

    A branch whose lanes reconverge at the same point as those of a dominating branch needs no barrier of its
    own.
    """
    end = len(graph)
    dominators = _dominators(graph)
    loops = _loops(graph, dominators)
    onward = forward_edges(graph)
    found: list[Divergence] = []
    kept: dict[int, list[int]] = {}
    for number, point in enumerate(reconvergence_points(onward, loops)):
        if len(onward[number]) < 2 or point == end:
            continue
        around = [
            (len(inside), first)
            for first, inside in loops.items()
            if number in inside and point not in inside
        ]
        setter = max(around)[1] if around else number
        if any(_covers(one, setter, point, dominators, loops) for one in kept.get(point, ())):
            continue
        kept.setdefault(point, []).append(setter)
        found.append(Divergence(setter, bool(around), point, setter not in dominators[point]))
    return BranchesAndLoops(tuple(found), loops)


def _covers(one: int, setter: int, point: int, dominators: list[set[int]], loops: Loops) -> bool:
    """Does the barrier set at `one` still hold for lanes that reach `setter`, as they have not passed the
    point since?
    """
    if one not in dominators[setter]:
        return False
    return not any(setter in inside and point in inside and one not in inside for inside in loops.values())


def _dominators(graph: tuple[BasicBlock, ...]) -> list[set[int]]:
    """Of each basic block, itself included; what nothing leads to is entered from outside."""
    end = len(graph)
    flow = _graph([[*node.successors] for node in graph])
    flow.add_edges_from((end, number) for number in range(end) if not number or not flow.in_degree(number))
    flow.add_edges_from([(end, number) for number in set(flow) - nx.descendants(flow, end) - {end}])
    immediate: dict[int, int] = nx.immediate_dominators(flow, end)

    def upwards(number: int) -> Iterator[int]:
        while number != end:
            yield number
            number = immediate[number]

    return [set(upwards(number)) for number in range(end)]


def _loops(graph: tuple[BasicBlock, ...], dominators: list[set[int]]) -> Loops:
    """Natural loops: a header dominates the branches back to it."""
    found: dict[int, set[int]] = {}
    flow = _graph([[*node.successors] for node in graph])
    for number, node in enumerate(graph):
        for first in node.successors:
            if first in dominators[number]:
                within = flow.subgraph(flow.nodes - {first})
                inside = nx.ancestors(within, number) if number != first else set()
                found.setdefault(first, {first}).update(inside, {number})
    return {first: frozenset(inside) for first, inside in found.items()}
