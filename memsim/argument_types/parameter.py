"""A kernel's parameter, and numbers as the bytes that it takes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: Formats of `struct` by the type of a parameter.
_FORMATS = {
    **{f"{kind}8": "b" for kind in "sb"},
    **{f"{kind}16": "h" for kind in "sb"},
    **{f"{kind}32": "i" for kind in "sb"},
    **{f"{kind}64": "q" for kind in "sb"},
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "f16": "e",
    "f32": "f",
    "f64": "d",
}
POINTER_BYTES = 8
_POINTERS = ("u64", "b64", "s64")
_UNTYPED = ("b16", "b32", "b64")  # of a cubin, which only has sizes


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel or function parameter. `offset` and `size` in bytes within the parameter space.

    `pointer` is the state space named by `.ptr` (`"global"`), "" for a bare `.ptr`, else None.
    """

    name: str
    type: str
    align: int
    size: int
    offset: int
    pointer: str | None = None

    @property
    def is_struct(self) -> bool:
        """Is it passed as bytes rather than as a number?"""
        return struct.calcsize(_FORMATS.get(self.type, "0s")) != self.size

    @property
    def is_pointer(self) -> bool:
        """May it be a pointer?"""
        return self.type in _POINTERS and not self.is_struct

    def takes(self, number: object) -> bool:
        """Whether a Python number can be passed for it."""
        if self.is_struct or not isinstance(number, (int, float)):
            return False
        if self.type.startswith("f") or (isinstance(number, float) and self.type in _UNTYPED):
            return True
        bits = self.size * 8
        return isinstance(number, int) and -(1 << (bits - 1)) <= number < 1 << bits

    def encoded(self, number: int | float) -> bytes:
        """The bytes of a number that it takes."""
        is_float = isinstance(number, float) and self.type in _UNTYPED
        code = _FORMATS[f"f{self.type[1:]}" if is_float else self.type]
        if code in "efd":
            return struct.pack(f"<{code}", float(number))
        return (int(number) & ((1 << self.size * 8) - 1)).to_bytes(self.size, "little")

    def in_words(self) -> str:
        """What it takes."""
        if self.type in _POINTERS:
            return "an array (pointer), None (a null pointer) or a 64-bit integer"
        if self.type.startswith("f"):
            return f"a float ({self.type})"
        if self.is_struct:
            return f"a struct of {self.size} bytes (bytes, a numpy scalar of that size, or a list of parts)"
        return f"an integer ({self.type})"
