"""The shape of a function's flow: dominators, post-dominators, loops.

In: basic blocks. Out: `Shape`. Left out: what lanes make of it (`memsim.ptx.reconvergence`).
"""

from __future__ import annotations

from collections import defaultdict

from memsim.ptx.blocks import Block


class Shape:
    """Dominators and loops of the blocks that can be executed; blocks are named by number.

    `dominator`: for each block the last other one on every way to it, `len(graph)` for the first block and
    for those that are never executed. `forward`: those before each block, but for the ways back of loops.
    `loops`: the blocks of each loop, by the block where lanes enter it.
    """

    def __init__(self, graph: tuple[Block, ...]) -> None:
        self.end = len(graph)
        executed = _executed(graph)
        before: dict[int, list[int]] = defaultdict(list)
        for number in sorted(executed):
            for target in graph[number].successors:
                before[target].append(number)
        # Dominators are the post-dominators of the graph turned round.
        turned = [
            before[number] if number and number in executed else [self.end] for number in range(self.end)
        ]
        self.dominator = immediate_post_dominators(turned)
        self.forward: dict[int, list[int]] = {}
        self.loops: dict[int, set[int]] = {}
        for target, numbers in before.items():
            self.forward[target] = [number for number in numbers if not self.dominates(target, number)]
            ways_back = [number for number in numbers if self.dominates(target, number)]
            if ways_back:
                self.loops[target] = _ancestors(target, ways_back, before)

    def dominates(self, block: int, other: int) -> bool:
        """Whether every way to `other` goes through `block` (itself included)."""
        while other not in (block, self.end):
            other = self.dominator[other]
        return other == block

    def ways(self, start: int, end: int) -> set[int]:
        """Blocks on forward ways from `start`, which is one of them, to `end`, if `start` dominates them."""
        found = _ancestors(start, self.forward.get(end, []), self.forward)
        return {block for block in found if self.dominates(start, block)}

    def leads(self, start: int, end: int) -> bool:
        """Whether there is a forward way from `start` to `end`."""
        return start == end or start in _ancestors(end, self.forward.get(end, []), self.forward)

    def innermost_loop(self, block: int) -> set[int]:
        """The blocks of the smallest loop with `block` in it; none if it is in no loop."""
        return min((inside for inside in self.loops.values() if block in inside), key=len, default=set())


def _executed(graph: tuple[Block, ...]) -> set[int]:
    found: set[int] = set()
    waiting = [0] if graph else []
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting.extend(graph[block].successors)
    return found


def _ancestors(stop: int, blocks: list[int], before: dict[int, list[int]]) -> set[int]:
    """`stop`, `blocks`, and all before them up to `stop`."""
    found = {stop}
    waiting = list(blocks)
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting.extend(before.get(block, ()))
    return found


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
