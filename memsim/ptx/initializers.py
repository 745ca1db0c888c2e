"""Initial values of variables as bytes, with the positions of symbol addresses in them.

Addresses stay symbolic, because nothing has been placed in memory yet. Sampler settings are not supported.

Rules: PTX ISA, "Initializers". Missing elements of rows and arrays are zero.
"""

from __future__ import annotations

import re
import struct
from math import prod

from memsim.ptx.constant_expressions import constant
from memsim.ptx.lexer import Cursor
from memsim.ptx.operand_parser import resolve
from memsim.ptx.program import PtxSymbol
from memsim.ptx.scope import Scope
from memsim.ptx.types import SIZES

# `{1, 0, 255}`: by far the most common form, often thousands of numbers long.
_FLAT = re.compile(r"\s*\{((?:\s*(?:0|[1-9]\d*)\s*,)*\s*(?:0|[1-9]\d*)\s*)\}")
_FLOATS = {("f", 4): "<f", ("b", 4): "<f", ("f", 8): "<d", ("b", 8): "<d"}
_LOWEST_BYTE = 0xFF
_MOST_BYTES = 1 << 30


class Initializer:
    """Parses one initializer of a variable of `type` and `shape`.

    `shape[0]` is None for `name[] = {...}`; `elements` is then the number found.
    """

    def __init__(self, cursor: Cursor, scope: Scope, type: str, shape: tuple[int | None, ...]) -> None:
        self.cursor = cursor
        self.scope = scope
        self.type = type
        self.size = SIZES[type]
        self.inner = tuple(length or 0 for length in shape[1:])
        self.elements = shape[0] if shape else 1
        size = prod((self.elements or 0, *self.inner)) * self.size
        if size > _MOST_BYTES:
            raise cursor.error(f"initial values for {size} bytes; the limit is {_MOST_BYTES}")
        self.data = bytearray(size)
        self.symbols: list[tuple[int, str, int]] = []
        if shape:
            self._fill(self.elements, self.inner, 0)
        else:
            self._scalar(0)
        if self.elements is None:
            self.elements = len(self.data) // (self.size * prod(self.inner))

    def _fill(self, length: int | None, inner: tuple[int, ...], offset: int) -> None:
        cursor, stride = self.cursor, prod(inner) * self.size
        flat = None if inner else _FLAT.match(cursor.text, cursor.position)
        if flat:
            values = [int(item) for item in flat[1].split(",")]
            self._check_room(len(values), length)
            cursor.position = flat.end()
            mask = (1 << 8 * self.size) - 1
            if self.type[0] != "f":
                self._put(offset, b"".join((value & mask).to_bytes(self.size, "little") for value in values))
                return
            cursor.position = flat.start()
        cursor.expect("{", "around the initial values")
        count = 0
        while not cursor.accept("}"):
            if count:
                cursor.expect(",", "or '}' after the initial value")
            count += 1
            self._check_room(count, length)
            if inner:
                self._fill(inner[0], inner[1:], offset + (count - 1) * stride)
            else:
                self._scalar(offset + (count - 1) * stride)
        self._put(offset + count * stride, b"")

    def _check_room(self, count: int, length: int | None) -> None:
        if length is not None and count > length:
            raise self.cursor.error(f"more initial values than the {length} elements of the array")

    def _put(self, offset: int, value: bytes) -> None:
        missing = offset + len(value) - len(self.data)
        if missing > 0:
            self.data.extend(bytes(missing))
        self.data[offset : offset + len(value)] = value

    def _scalar(self, offset: int) -> None:
        cursor = self.cursor
        if cursor.peek_kind() == "name" and cursor.peek() != "WARP_SZ":
            self.symbols.append((offset, *self._symbol()))
            self._put(offset, bytes(self.size))
            return
        start = cursor.start()
        value = constant(cursor)
        if cursor.accept("("):  # mask(symbol): single bytes of an address, lowest first
            symbol = self._symbol()
            cursor.expect(")", "after the masked address")
            if value == _LOWEST_BYTE:
                self.symbols.append((offset, *symbol))
            self._put(offset, bytes(self.size))
            return
        self._put(offset, self._encode(value, start))

    def _encode(self, value: int | float, start: int) -> bytes:
        if isinstance(value, int) and self.type[0] != "f":
            return (value & ((1 << 8 * self.size) - 1)).to_bytes(self.size, "little")
        form = _FLOATS.get((self.type[0], self.size))
        if form is None or isinstance(value, int):
            raise self.cursor.error(f"this initial value does not fit the type .{self.type}", start)
        return struct.pack(form, value)

    def _symbol(self) -> tuple[str, int]:
        """`symbol`, `symbol+4`, `generic(symbol)` or `generic(symbol)+4`."""
        cursor = self.cursor
        generic = cursor.accept("generic")
        if generic:
            cursor.expect("(")
        start = cursor.start()
        symbol = resolve(cursor, self.scope, "a variable or function")
        if not isinstance(symbol, PtxSymbol):
            raise cursor.error("expected a variable or function", start)
        if generic:
            cursor.expect(")")
        addend = constant(cursor) if cursor.accept("+") else 0
        if isinstance(addend, float):
            raise cursor.error("an offset must be a whole number of bytes", start)
        return symbol.name, addend
