"""Where the lanes of a warp are together again after a branch that parted them.

In: basic blocks. Out: for each, the block where they meet. Left out: the lanes themselves.
"""

from __future__ import annotations

from memsim.ptx.blocks import Block


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
    return immediate_post_dominators(
        [[*onward, end] if leaves else onward for onward, leaves in zip(edges, leaving)]
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


def immediate_post_dominators(edges: list[list[int]]) -> tuple[int, ...]:
    """For every node, the first other node that every way to the end goes through.

    `edges[n]` are the successors of n; the end is node `len(edges)`, and every node must get to it.
    """
    end = len(edges)
    everything = (1 << end + 1) - 1
    dominators = [everything] * end + [1 << end]  # bit sets: the node itself and all its post-dominators
    changed = True
    while changed:
        changed = False
        for number in reversed(range(end)):
            common = everything
            for target in edges[number]:
                common &= dominators[target]
            common |= 1 << number
            if common != dominators[number]:
                dominators[number] = common
                changed = True
    # Without the node itself, its set is the set of its immediate post-dominator.
    owner = {members: number for number, members in enumerate(dominators)}
    return tuple(owner[dominators[number] & ~(1 << number)] for number in range(end))


def _is_exit(graph: tuple[Block, ...], number: int) -> bool:
    """Whether the block does nothing but end."""
    block = graph[number]
    return block.leaves and not block.successors and block.end == block.start + 1
