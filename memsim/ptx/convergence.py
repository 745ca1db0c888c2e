"""Where the lanes of a warp are together again after a branch that parted them: post-dominators.

In: basic blocks. Out: the blocks at whose ends lanes part, and those where they meet. Left out: the lanes
themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memsim.ptx.basic_blocks import Block


def meeting_points(onward: list[list[int]], loops: dict[int, int]) -> tuple[int, ...]:
    """For every block, the block where lanes that part at its end are together again.

    The number behind the last block stands for the end of the function: they never are. This is the
    immediate post-dominator, but in a loop none that some lanes only come to in the next turn. Lanes that
    leave wait for nobody and nobody waits for them, so ways out do not count, all but one. An endless loop
    is given a way out at its last block. onward: of `ways_on`. loops: of `Flow`.
    """
    end = len(onward)
    levels: dict[int | None, tuple[int, ...]] = {}

    def meetings(loop: int | None) -> tuple[int, ...]:
        """The post-dominators if lanes end that go round this loop, or one around it."""
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

    def meeting(number: int) -> int:
        inside = [first for first, members in loops.items() if members >> number & 1]
        left = 0  # blocks of loops in which lanes do not meet in the same turn
        for loop in [*sorted(inside, key=lambda first: loops[first].bit_count()), None]:
            found = meetings(loop)[number]
            while found < end and left >> found & 1:
                found = meetings(loop)[found]
            if loop is None or (found < end and loops[loop] >> found & 1):
                return found
            left = loops[loop]
        return end

    return tuple(map(meeting, range(end)))


def ways_on(graph: tuple[Block, ...]) -> list[list[int]]:
    """Where lanes go from each block that do not leave, or leave by the way out that most blocks lead to.

    A branch to a block that does nothing but end is a way out.
    """
    end = len(graph)
    edges = [[target for target in block.successors if not _only_ends(graph[target])] for block in graph]
    leaving = [n for n, block in enumerate(graph) if block.leaves or len(edges[n]) < len(block.successors)]
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


def _only_ends(block: Block) -> bool:
    return block.leaves and not block.successors and block.end == block.start + 1


def _reaching(edges: list[list[int]], target: int) -> set[int]:
    """The blocks from which there is a way to one, itself included."""
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
    """For every node, the nodes that every way to the end goes through, itself included, as bit sets.

    `edges[n]` are the successors of n; the end is node `len(edges)`, and every node must get to it. order:
    of the nodes, those near the end first, which is faster.
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
    """For every node, the first other node that every way to the end goes through."""
    members = post_dominators(edges, range(len(edges))[::-1])
    # Without the node itself, its set is the set of its immediate post-dominator.
    owner = {one: number for number, one in enumerate(members)}
    return tuple(owner[members[number] & ~(1 << number)] for number in range(len(edges)))


@dataclass(frozen=True, slots=True)
class Parting:
    """Lanes that part at the end of a block meet at block `place`.

    They are to be told of it at the end of block `told`, or, where they part in a loop and meet behind it,
    when they enter the loop at its first block, `told`. others: lanes may come to the place that were not
    told.
    """

    told: int
    enters: bool
    place: int
    others: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """The partings of a function, and the blocks of each loop by its first one, as bit sets."""

    partings: tuple[Parting, ...]
    loops: dict[int, int]


def flow_of(graph: tuple[Block, ...]) -> Flow:
    """Where lanes part and meet.

    Of partings with one place, those are left out that lanes come to only behind another.
    """
    end = len(graph)
    dominators, before = _dominators(graph)
    loops = _loops(graph, dominators, before)
    onward = ways_on(graph)
    meetings = meeting_points(onward, loops)
    found: list[Parting] = []
    kept: dict[int, list[int]] = {}
    for number, place in enumerate(meetings):
        if len(onward[number]) < 2 or place == end:
            continue
        around = [
            (inside.bit_count(), first)
            for first, inside in loops.items()
            if inside >> number & 1 and not inside >> place & 1
        ]
        told = max(around)[1] if around else number
        if any(_covers(one, told, place, dominators, loops) for one in kept.get(place, ())):
            continue
        kept.setdefault(place, []).append(told)
        others = not dominators[place] >> told & 1
        found.append(Parting(told, bool(around), place, others))
    return Flow(tuple(found), loops)


def _covers(one: int, told: int, place: int, dominators: list[int], loops: dict[int, int]) -> bool:
    """Were lanes that come to `told` told at `one`, since they were last at the place?"""
    if not dominators[told] >> one & 1:
        return False
    return not any(
        inside >> told & 1 and inside >> place & 1 and not inside >> one & 1 for inside in loops.values()
    )


def _dominators(graph: tuple[Block, ...]) -> tuple[list[int], list[list[int]]]:
    """(blocks that every way to a block goes through, as bit sets; blocks before each)."""
    end = len(graph)
    before: list[list[int]] = [[] for _ in graph]
    for number, block in enumerate(graph):
        for target in block.successors:
            before[target].append(number)
    # They are the post-dominators of the graph turned round.
    turned = [[end, *ways] if not number or not ways else ways for number, ways in enumerate(before)]
    for number in set(range(end)) - _reaching(turned, end):  # loops that nothing leads to
        turned[number] = [end]
    return post_dominators(turned, range(end)), before


def _loops(graph: tuple[Block, ...], dominators: list[int], before: list[list[int]]) -> dict[int, int]:
    """The blocks of each loop by the block where lanes enter it, as bit sets."""
    found: dict[int, int] = {}
    for number, block in enumerate(graph):
        for first in block.successors:
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
