"""Parser for declarations: registers, variables and parameters.

Where variables lie in memory is decided later.

Forms: PTX ISA, "State Spaces, Types, and Variables" and "Kernel Function Parameters".
"""

from __future__ import annotations

from math import prod

from memsim.isa.program import Pointer
from tests.ptx_front.initializers import initial_value
from tests.ptx_front.lexer import Cursor
from tests.ptx_front.program import Parameter, PtxVariable
from tests.ptx_front.scope import Scope
from tests.ptx_front.types import OPAQUE, SIZES, take_type

_MOST_NAMES = 1_000_000  # more than any kernel has; a mistyped count must not exhaust memory
SPACES = {".shared", ".global", ".const", ".local", ".param", ".tex"}


def registers(cursor: Cursor, scope: Scope) -> dict[str, str]:
    """`.reg .b32 %r<8>, %x;` after the `.reg`: types by unique name."""
    type = take_type(cursor)
    declared: dict[str, str] = {}
    while True:
        start = cursor.start()
        group = names(cursor)
        unique = scope.declare_registers(group)
        if len(unique) < len(group):
            raise _twice(cursor, next(name for name in group if name in scope.names), start)
        declared.update(dict.fromkeys(unique, type))
        if not cursor.accept(","):
            break
    cursor.expect(";", "after the registers")
    return declared


def variables(cursor: Cursor, scope: Scope) -> dict[str, PtxVariable]:
    """`.shared .align 4 .b8 tile[4096];` and other variables, by unique name."""
    space = cursor.take()[1:]
    align = _attributes(cursor)
    type = take_type(cursor)
    declared: dict[str, PtxVariable] = {}
    while True:
        start = cursor.start()
        for name in names(cursor):
            shape = _shape(cursor)
            unique = scope.declare_symbol(name)
            if not unique:
                raise _twice(cursor, name, start)
            data: bytes | None = None
            pointers: tuple[Pointer, ...] = ()
            if cursor.accept("="):
                if type in OPAQUE:
                    cursor.skip_group("{", "}")
                else:
                    data, pointers = initial_value(cursor, scope, type, shape)
            width = SIZES[type]
            size = prod(length or 0 for length in shape) * width
            declared[unique] = PtxVariable(unique, size, align or width, data, pointers, space)
        if not cursor.accept(","):
            break
    cursor.expect(";", "after the variable")
    return declared


def parameters(cursor: Cursor, scope: Scope) -> tuple[tuple[Parameter, ...], dict[str, str]]:
    """`(.param .u64 a, .param .align 8 .b8 s[16])`, and those that are registers (`.reg .b32 x`).

    Offsets follow the alignments, as the ABI lays out parameters.
    """
    cursor.expect("(")
    found: list[Parameter] = []
    as_registers: dict[str, str] = {}
    end = 0
    while not cursor.accept(")"):
        if found:
            cursor.expect(",", "or ')' after the parameter")
        kind = cursor.peek()
        if kind not in (".param", ".reg"):
            raise cursor.expected("'.param'")
        cursor.take()
        align = _attributes(cursor)
        type = take_type(cursor)
        pointer = _pointer(cursor)
        start = cursor.start()
        name = cursor.take_kind("name", "a parameter name")
        shape = _shape(cursor)
        size = SIZES[type] * prod(length or 0 for length in shape)
        align = align or SIZES[type]
        offset = -(-end // align) * align
        end = offset + size
        if name == "_":
            unique = name
        elif kind == ".reg":
            unique = "".join(scope.declare_registers([name]))
            as_registers[unique] = type
        else:
            unique = scope.declare_symbol(name)
        if not unique:
            raise _twice(cursor, name, start)
        found.append(Parameter(unique, type, align, size, offset, pointer))
    return tuple(found), as_registers


def _attributes(cursor: Cursor) -> int:
    """`.align 8` and `.attribute(...)` in any order; returns the alignment, 0 if not specified."""
    align = 0
    while True:
        if cursor.accept(".align"):
            align = cursor.take_integer("an alignment in bytes")
        elif cursor.accept(".attribute"):
            cursor.skip_group("(", ")")
        else:
            return align


def _pointer(cursor: Cursor) -> str | None:
    """`.ptr .global .align 16` of a kernel parameter: the state space it points to."""
    if not cursor.accept(".ptr"):
        return None
    space = cursor.take()[1:] if cursor.peek() in SPACES else ""
    if cursor.accept(".align"):
        cursor.take_integer("an alignment in bytes")
    return space


def names(cursor: Cursor) -> list[str]:
    """A name, or the range `%r<3>` = `%r0 %r1 %r2`."""
    name = cursor.take_kind("name", "a name")
    if not cursor.accept("<"):
        return [name]
    start = cursor.start()
    count = cursor.take_integer("a count")
    if count > _MOST_NAMES:
        raise cursor.error(f"more than {_MOST_NAMES} names in one declaration", start)
    cursor.expect(">", "after the count")
    return [f"{name}{number}" for number in range(count)]


def _shape(cursor: Cursor) -> tuple[int | None, ...]:
    """`[4][8]` of an array; None for `[]`."""
    shape: list[int | None] = []
    while cursor.accept("["):
        if cursor.accept("]"):
            shape.append(None)
            continue
        start = cursor.start()
        length = cursor.take_constant("a length")
        if not isinstance(length, int) or length < 0:
            raise cursor.error("an array's length must be a positive integer", start)
        shape.append(length)
        cursor.expect("]", "after the length")
    return tuple(shape)


def _twice(cursor: Cursor, name: str, start: int) -> Exception:
    return cursor.error(f"'{name}' is declared twice in this scope", start)
