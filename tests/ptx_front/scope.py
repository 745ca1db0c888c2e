"""Name lookup in nested `{ }` scopes.

Each name gets a name that is unique in its function (`p` declared in two inline-assembly blocks becomes `p`
and `p#2`).
"""

from __future__ import annotations

from tests.ptx_front.program import Operand, PtxRegister, PtxSymbol


class Scope:
    """The names of one `{ }` block or of the module; `parent` is the enclosing one.

    `taken` holds every unique name of the function.
    """

    def __init__(self, parent: Scope | None = None, taken: set[str] | None = None) -> None:
        self.parent = parent
        self.taken: set[str] = set() if taken is None else taken
        self.names: dict[str, Operand] = {}
        self.labels: dict[str, str] = {}

    def nested(self) -> Scope:
        """A new scope inside this one."""
        return Scope(self, self.taken)

    def function(self) -> Scope:
        """The outermost scope of a function in this module."""
        return Scope(self, set(self.names))

    def unique(self, name: str) -> str:
        """Reserve and return `name`, or `name#2`, `name#3`, ... if the function has it already."""
        unique, number = name, 1
        while unique in self.taken:
            number += 1
            unique = f"{name}#{number}"
        self.taken.add(unique)
        return unique

    def declare_registers(self, names: list[str]) -> list[str]:
        """Declare registers; returns their unique names, none if the scope already has one of the names."""
        if not self.names.keys().isdisjoint(names):
            return []
        unique = names
        if self.taken.isdisjoint(names):
            self.taken.update(names)
        else:
            unique = [self.unique(name) for name in names]
        self.names.update(zip(names, map(PtxRegister, unique)))
        return unique

    def declare_symbol(self, name: str) -> str:
        """Declare a variable or function; returns its unique name, "" if the scope already has it."""
        if name in self.names:
            return ""
        unique = self.unique(name)
        self.names[name] = PtxSymbol(unique)
        return unique

    def find(self, name: str) -> Operand | None:
        """What `name` refers to, in this scope or an enclosing one."""
        if name in self.names or self.parent is None:
            return self.names.get(name)
        return self.parent.find(name)

    def find_label(self, name: str) -> str | None:
        """The unique name of a label, in this scope or an enclosing one."""
        if name in self.labels or self.parent is None:
            return self.labels.get(name)
        return self.parent.find_label(name)
