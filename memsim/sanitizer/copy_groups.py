"""The groups of copies in bulk that warps have begun and not waited for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, TypeVar

#: A block's index in the chunk, and a warp of it.
Place = tuple[int, int]
Copy = TypeVar("Copy")


class CopyGroups(Generic[Copy]):
    """Of the running blocks; what is known of a copy is the caller's."""

    def __init__(self) -> None:
        self._begun: defaultdict[Place, list[Copy]] = defaultdict(list)
        self._groups: dict[Place, list[list[Copy]]] = {}

    @property
    def are_begun(self) -> bool:
        """Whether there is something to commit or to wait for."""
        return bool(self._begun or self._groups)

    def begin(self, place: Place, copy: Copy) -> None:
        """A warp begins a copy."""
        self._begun[place].append(copy)

    def commit(self, place: Place) -> None:
        """What a warp has begun is a group."""
        begun = self._begun.pop(place, [])
        if begun or place in self._groups:
            self._groups.setdefault(place, []).append(begun)

    def wait(self, place: Place, left: int) -> list[Copy]:
        """The copies that are done when at most so many of a warp's groups are in flight."""
        groups = self._groups.get(place, [])
        done = max(0, len(groups) - left)
        self._groups[place] = groups[done:]
        return [copy for group in groups[:done] for copy in group]

    def left(self) -> Iterator[tuple[Place, Copy]]:
        """All that is not waited for."""
        for place, begun in self._begun.items():
            yield from ((place, copy) for copy in begun)
        for place, groups in self._groups.items():
            yield from ((place, copy) for group in groups for copy in group)
