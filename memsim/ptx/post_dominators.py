"""Where the lanes of a warp reconverge after a divergent branch: at post-dominators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memsim.ptx.basic_blocks import BasicBlock


def reconvergence_points(onward: list[list[int]], loops: dict[int, int]) -> tuple[int, ...]:
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
            around = [first for first, inside in loops.items() if loop is not None and inside >> loop & 1]
            edges = [
                [end if one in around and loops[one] >> number & 1 else one for one in ways]
                for number, ways in enumerate(onward)
            ]
            while lost := set(range(end)) - _reaching(edges, end):
                edges[max(lost)].append(end)
            levels[loop] = immediate_post_dominators(edges)
        return levels[loop]

    def nearest(number: int) -> int:
        inside = [first for first, members in loops.items() if members >> number & 1]
        left = 0  # basic blocks of inner loops, in which lanes do not reconverge within an iteration
        for loop in [*sorted(inside, key=lambda first: loops[first].bit_count()), None]:
            found = candidates(loop)[number]
            while found < end and left >> found & 1:
                found = candidates(loop)[found]
            if loop is None or (found < end and loops[loop] >> found & 1):
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
    reaching = {number: _reaching(edges, number) for number in leaving}
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


def _reaching(edges: list[list[int]], target: int) -> set[int]:
    """The basic blocks from which `target` can be reached, itself included."""
    before: dict[int, list[int]] = {}
    for number, onward in enumerate(edges):
        for one in onward:
            before.setdefault(one, []).append(number)
    found, waiting = {target}, [target]
    while waiting:
        for one in before.get(waiting.pop(), ()):
            if one not in found:
                found.add(one)
                waiting.append(one)
    return found


def post_dominators(edges: list[list[int]], order: Sequence[int]) -> list[int]:
    """For every node its post-dominators, itself included, as bit sets.

    `edges[n]` are the successors of n; the end is node `len(edges)` and must be reachable from every node.
    order: the order of iteration; nodes near the end first converge fastest.
    """
    end = len(edges)
    everything = (1 << end + 1) - 1
    found = [everything] * end + [1 << end]
    changed = True
    while changed:
        changed = False
        for number in order:
            common = everything
            for target in edges[number]:
                common &= found[target]
            common |= 1 << number
            if common != found[number]:
                found[number] = common
                changed = True
    return found


def immediate_post_dominators(edges: list[list[int]]) -> tuple[int, ...]:
    """The immediate post-dominator of every node."""
    members = post_dominators(edges, range(len(edges))[::-1])
    # A node's set without the node itself is the set of its immediate post-dominator.
    owner = {one: number for number, one in enumerate(members)}
    return tuple(owner[members[number] & ~(1 << number)] for number in range(len(edges)))


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
    """The divergent branches of a function, and the basic blocks of each loop, as bit sets, by its header."""

    divergences: tuple[Divergence, ...]
    loops: dict[int, int]


def flow_of(graph: tuple[BasicBlock, ...]) -> BranchesAndLoops:
    """Where lanes diverge and reconverge.

    A branch whose lanes reconverge at the same point as those of a dominating branch needs no barrier of its
    own.
    """
    end = len(graph)
    dominators, before = _dominators(graph)
    loops = _loops(graph, dominators, before)
    onward = forward_edges(graph)
    points = reconvergence_points(onward, loops)
    found: list[Divergence] = []
    kept: dict[int, list[int]] = {}
    for number, point in enumerate(points):
        if len(onward[number]) < 2 or point == end:
            continue
        around = [
            (inside.bit_count(), first)
            for first, inside in loops.items()
            if inside >> number & 1 and not inside >> point & 1
        ]
        setter = max(around)[1] if around else number
        if any(_covers(one, setter, point, dominators, loops) for one in kept.get(point, ())):
            continue
        kept.setdefault(point, []).append(setter)
        others = not dominators[point] >> setter & 1
        found.append(Divergence(setter, bool(around), point, others))
    return BranchesAndLoops(tuple(found), loops)


def _covers(one: int, setter: int, point: int, dominators: list[int], loops: dict[int, int]) -> bool:
    """Does the barrier set at `one` still hold for lanes that reach `setter`, as they have not passed the
    point since?
    """
    if not dominators[setter] >> one & 1:
        return False
    return not any(
        inside >> setter & 1 and inside >> point & 1 and not inside >> one & 1 for inside in loops.values()
    )


def _dominators(graph: tuple[BasicBlock, ...]) -> tuple[list[int], list[list[int]]]:
    """(dominators of each basic block as bit sets, predecessors of each)."""
    end = len(graph)
    before: list[list[int]] = [[] for _ in graph]
    for number, node in enumerate(graph):
        for target in node.successors:
            before[target].append(number)
    # They are the post-dominators of the reversed graph.
    reversed_edges = [[end, *ways] if not number or not ways else ways for number, ways in enumerate(before)]
    for number in set(range(end)) - _reaching(reversed_edges, end):  # unreachable loops
        reversed_edges[number] = [end]
    return post_dominators(reversed_edges, range(end)), before


def _loops(graph: tuple[BasicBlock, ...], dominators: list[int], before: list[list[int]]) -> dict[int, int]:
    """The basic blocks of each natural loop, as bit sets, by its header."""
    found: dict[int, int] = {}
    for number, node in enumerate(graph):
        for first in node.successors:
            if not dominators[number] >> first & 1:
                continue
            inside = found.get(first, 1 << first)
            waiting = [number]
            while waiting:
                one = waiting.pop()
                if not inside >> one & 1:
                    inside |= 1 << one
                    waiting.extend(before[one])
            found[first] = inside
    return found
