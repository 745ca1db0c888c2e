"""The parts of a shared array that pointers divide it into: each is known by its pointer, its root."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartOfArray:
    """Where a part of an array begins, in bytes, and the pointer to the array's beginning before it."""

    first: int
    carving: str


class Parts:
    """The parts of an array, by root; roots that cannot be told apart are joined."""

    def __init__(self) -> None:
        self.by_root: dict[str, PartOfArray] = {}
        self.joined: dict[str, str] = {}  # roots that a function is given both of
        self.begin()

    def begin(self) -> None:
        """Before the source is read from its beginning, again."""
        self.latest = self.carving = ""  # the root that was declared last, and the last at the beginning

    def root_of(self, name: str) -> str:
        """The root that stands for a root and all that are joined to it."""
        while name in self.joined:
            name = self.joined[name]
        return name

    def join(self, one: str, other: str) -> None:
        """Makes two roots one."""
        one, other = self.root_of(one), self.root_of(other)
        if one != other:
            self.joined[max(one, other)] = min(one, other)  # "" is the array

    def join_interleaved(self) -> None:
        """Joins the parts of a carving where those of a root have others between them."""
        for carving in {part.carving for part in self.by_root.values()}:
            parts = {root: part for root, part in self.by_root.items() if part.carving == carving}
            order = [self.root_of(root) for root, _ in sorted(parts.items(), key=lambda each: each[1].first)]
            runs = [root for number, root in enumerate(order) if number == 0 or order[number - 1] != root]
            if len(set(runs)) < len(runs):
                for root in parts:
                    self.join(root, carving)

    @property
    def places(self) -> dict[str, PartOfArray]:
        """Where the parts are, by the roots that stand for them."""
        found: dict[str, PartOfArray] = {}
        for root, part in sorted(self.by_root.items(), key=lambda each: each[1].first):
            found.setdefault(self.root_of(root), part)
        return found

    def placed(self, name: str, root: str, ahead: int | None, at_beginning: bool) -> tuple[str, str]:
        """The root of what is before a pointer in the array, and its own.

        root: of what it is ahead of, by so many bytes, None if they are not known.
        """
        if at_beginning:
            self.latest = self.carving = name
            self.by_root[name] = PartOfArray(0, name)
            return name, name
        before_it, part = root or self.latest, self.by_root.get(root or self.carving)
        if not before_it or part is None or ahead is None:
            return before_it, before_it
        self.by_root[name] = PartOfArray(part.first + ahead, part.carving)
        if not root and self.latest != self.carving:  # a sum of the parts ahead, which are not told apart
            for each in (name, self.latest):
                self.join(each, self.carving)
        self.latest = name
        return before_it, name
