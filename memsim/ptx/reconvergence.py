"""Where the lanes of a warp are together again after a branch that parted them.

In: basic blocks. Out: for each, the block where they meet, and those where some of them meet earlier.
Left out: the lanes themselves.
Source: where ptxas 13.0 puts BSSY, BREAK and BSYNC, and `%activemask` recorded on an H100.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memsim.ptx.blocks import Block
from memsim.ptx.shape import Shape, immediate_post_dominators


@dataclass(frozen=True, slots=True)
class Gathering:
    """A block where lanes meet that come to it by different ways, though others never come.

    In `if (a && b) x; else y;` the lanes that fail `a` and those that fail `b` run `y` together. Lanes are on
    their way to it from block `opens` on until they leave the blocks `region`, or come to `opens` again.
    `contested`: it shares blocks with another, and ptxas may give a barrier to only one of them.
    """

    block: int
    opens: int
    region: frozenset[int]
    contested: bool = False


def meeting_points(graph: tuple[Block, ...]) -> tuple[int, ...]:
    """For every block, the block where lanes that part at its end are together again.

    `len(graph)` stands for the end of the function: they never are. This is the immediate
    post-dominator, with one difference. Lanes that leave (`@p ret`, or a branch to a `ret`)
    wait for nobody and nobody waits for them, so ways out do not count, all but the one that
    most blocks lead to (of two, the one that is entered from more blocks). An endless loop is
    given a way out at its last block.
    """
    edges = [[target for target in block.successors if not _is_exit(graph, target)] for block in graph]
    leaving = [block.leaves or len(onward) < len(block.successors) for block, onward in zip(graph, edges)]
    exits = _reachable(edges, leaving)
    counts = [sum(reached >> number & 1 for reached in exits) for number in range(len(graph))]
    entrances = [sum(number in onward for onward in edges) for number in range(len(graph))]
    main = max(range(len(graph)), key=lambda n: (counts[n], entrances[n], n), default=0)
    for number, reached in enumerate(exits):
        if reached >> main & 1:
            edges[number] = [target for target in edges[number] if exits[target] >> main & 1]
            leaving[number] = number == main
    while 0 in (ways_out := _reachable(edges, leaving)):
        leaving[max(number for number, reached in enumerate(ways_out) if not reached)] = True
    end = len(graph)
    meetings = immediate_post_dominators(
        [[*onward, end] if leaves else onward for onward, leaves in zip(edges, leaving)]
    )
    shape = Shape(graph)
    return tuple(_in_this_turn(shape, meetings, number, edges[number]) for number in range(end))


def _in_this_turn(shape: Shape, meetings: tuple[int, ...], block: int, onward: list[int]) -> int:
    """The meeting point of a branch, but none that some lanes only come to in the next turn of the loop."""
    inside = shape.innermost_loop(block)
    meeting = meetings[block]
    while meeting in inside and not all(shape.leads(target, meeting) for target in onward):
        meeting = meetings[meeting]
    return meeting


def gatherings(graph: tuple[Block, ...], meetings: tuple[int, ...]) -> tuple[Gathering, ...]:
    """The gatherings beside `meetings` (of `meeting_points`), each before those inside it.

    A gathering is where forward ways from a branch come together whose own meeting point lies beyond.
    """
    shape = Shape(graph)
    found = []
    for block in sorted(shape.forward):
        if len(shape.forward[block]) < 2:
            continue
        region = shape.ways(shape.dominator[block], block)
        known = region | {block}
        if any(len(graph[number].successors) > 1 and meetings[number] not in known for number in region):
            found.append(Gathering(block, shape.dominator[block], frozenset(region)))
    found.sort(key=lambda one: -len(one.region))
    return tuple(
        replace(one, contested=any(other is not one and other.region & one.region for other in found))
        for one in found
    )


def _reachable(edges: list[list[int]], wanted: list[bool]) -> list[int]:
    """For every block, the bit set of the wanted blocks that it can get to (itself included)."""
    own = [1 << number if is_wanted else 0 for number, is_wanted in enumerate(wanted)]
    reached = [0] * len(edges)
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(edges))):
            found = own[number]
            for target in edges[number]:
                found |= reached[target]
            if found != reached[number]:
                reached[number] = found
                changed = True
    return reached


def _is_exit(graph: tuple[Block, ...], number: int) -> bool:
    """Whether the block does nothing but end."""
    block = graph[number]
    return block.leaves and not block.successors and block.end == block.start + 1
