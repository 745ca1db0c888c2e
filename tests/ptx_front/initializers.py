"""Initial values of variables as bytes, with the positions of symbol addresses in them.

Addresses stay symbolic, because nothing has been placed in memory yet. Values are scalars or flat arrays, as
compilers write them; missing elements are zero (PTX ISA, "Initializers").
"""

from __future__ import annotations

import re
import struct
from math import prod

from memsim.isa.program import Pointer
from tests.ptx_front.lexer import Cursor
from tests.ptx_front.operand_parser import resolve
from tests.ptx_front.program import PtxSymbol
from tests.ptx_front.scope import Scope
from tests.ptx_front.types import SIZES

# `{1, 0, 255}`: by far the most common form, often thousands of numbers long.
_FLAT = re.compile(r"\s*\{((?:\s*(?:0|[1-9]\d*)\s*,)*\s*(?:0|[1-9]\d*)\s*)\}")
_FLOATS = {("f", 4): "<f", ("b", 4): "<f", ("f", 8): "<d", ("b", 8): "<d"}
_LOWEST_BYTE = 0xFF
_MOST_BYTES = 1 << 30


def initial_value(
    cursor: Cursor, scope: Scope, type: str, shape: tuple[int | None, ...]
) -> tuple[bytes, tuple[Pointer, ...]]:
    """The bytes of a variable with this initial value, and the addresses in them.

    Raises:
        MemsimError: more values than elements, or one that does not fit the type.
    """
    length, size = prod(extent or 0 for extent in shape), SIZES[type]
    if length * size > _MOST_BYTES:
        raise cursor.error(f"initial values for {length * size} bytes; the limit is {_MOST_BYTES}")
    flat = _FLAT.match(cursor.text, cursor.position) if shape and type[0] != "f" else None
    if flat:
        numbers = flat[1].split(",")
        _check_room(cursor, len(numbers), length)
        cursor.position = flat.end()
        return b"".join(_whole(int(number), size) for number in numbers).ljust(length * size, b"\0"), ()
    data, pointers = bytearray(), list[Pointer]()
    if not shape:
        _element(cursor, scope, type, data, pointers)
        return bytes(data), tuple(pointers)
    cursor.expect("{", "around the initial values")
    count = 0
    while not cursor.accept("}"):
        if count:
            cursor.expect(",", "or '}' after the initial value")
        count += 1
        _check_room(cursor, count, length)
        _element(cursor, scope, type, data, pointers)
    return bytes(data.ljust(length * size, b"\0")), tuple(pointers)


def _check_room(cursor: Cursor, count: int, length: int) -> None:
    if count > length:
        raise cursor.error(f"more initial values than the {length} elements of the array")


def _element(cursor: Cursor, scope: Scope, type: str, data: bytearray, pointers: list[Pointer]) -> None:
    """One value: a number, an address, or `mask(symbol)`, a single byte of an address, lowest first."""
    offset = len(data)
    if cursor.peek_kind() == "name" and cursor.peek() != "WARP_SZ":
        pointers.append(Pointer(offset, *_symbol(cursor, scope)))
        data += bytes(SIZES[type])
        return
    start = cursor.start()
    value = cursor.take_constant("an initial value")
    if not cursor.accept("("):
        data += _encoded(cursor, type, value, start)
        return
    symbol = _symbol(cursor, scope)
    cursor.expect(")", "after the masked address")
    if value == _LOWEST_BYTE:
        pointers.append(Pointer(offset, *symbol))
    data += bytes(SIZES[type])


def _encoded(cursor: Cursor, type: str, value: int | float, start: int) -> bytes:
    if isinstance(value, int) and type[0] != "f":
        return _whole(value, SIZES[type])
    form = _FLOATS.get((type[0], SIZES[type]))
    if form is None or isinstance(value, int):
        raise cursor.error(f"this initial value does not fit the type .{type}", start)
    return struct.pack(form, value)


def _whole(value: int, size: int) -> bytes:
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _symbol(cursor: Cursor, scope: Scope) -> tuple[str, int]:
    """`symbol`, `symbol+4`, `generic(symbol)` or `generic(symbol)+4`."""
    generic = cursor.accept("generic")
    if generic:
        cursor.expect("(")
    start = cursor.start()
    symbol = resolve(cursor, scope, "a variable or function")
    if not isinstance(symbol, PtxSymbol):
        raise cursor.error("expected a variable or function", start)
    if generic:
        cursor.expect(")")
    return symbol.name, cursor.take_offset() if cursor.accept("+") else 0
