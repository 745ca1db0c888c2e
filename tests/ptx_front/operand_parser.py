"""Parser for the operands of an instruction.

Which operands an opcode takes is not checked here.

Forms: PTX ISA, chapter "Instruction Operands".
"""

from __future__ import annotations

import re

from tests.ptx_front.lexer import Cursor
from tests.ptx_front.program import (
    CallTarget,
    Negated,
    Operand,
    PtxAddress,
    PtxImmediate,
    PtxPair,
    PtxRegister,
    PtxSpecial,
    PtxSymbol,
    Selected,
    TextureAddress,
    Vector,
)
from tests.ptx_front.scope import Scope

SINK = PtxRegister("_")

#: Of video instructions: bytes of two words, the highest first, or halves.
_SELECTOR = re.compile(r"\.(?:b[0-7]{1,4}|h[0-3]{1,2})")

# PTX ISA, chapter "Special Registers".
_SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster|cluster_ctarank|cluster_nctarank"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg(?:[12]?\d|3[01])"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_\w+|(?:total|aggr|dynamic)_smem_size"
    r"|current_graph_exec)(?![\w$])"
)


def operands(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    """All operands up to and including the `;`."""
    found = [operand(cursor, scope)]
    while not cursor.accept(";"):
        if not cursor.accept(","):
            raise cursor.expected("',' or ';' after the operand")
        found.append(operand(cursor, scope))
    return tuple(found)


def operand(cursor: Cursor, scope: Scope) -> Operand:
    """One operand of any form, except `call`'s lists."""
    token = cursor.peek()
    if token == "{":
        return _pair(cursor, scope, _vector(cursor, scope))
    if token == "[":
        return _address(cursor, scope)
    if token == "!":
        return _negated(cursor, scope)
    if cursor.peek_kind() == "name" and token != "WARP_SZ":
        return _named(cursor, scope)
    return PtxImmediate(cursor.take_constant())


def resolve(cursor: Cursor, scope: Scope, expected: str = "a name") -> Operand:
    """Consume a name and return what it refers to: a register, special register or symbol.

    Raises:
        MemsimError: the name is not declared.
    """
    name = cursor.take_kind("name", expected)
    if name == "_":
        return SINK
    known = scope.find(name)
    if known is not None:
        return known
    start = cursor.position - len(name)
    special = _SPECIAL.match(cursor.text, start)
    if special:
        cursor.position = special.end()
        return PtxSpecial(special[0])
    what = "register" if name.startswith("%") else "name"
    raise cursor.error(f"{what} '{name}' is not declared", start)


def register(cursor: Cursor, scope: Scope) -> PtxRegister:
    """Consume the name of a register."""
    start = cursor.start()
    found = resolve(cursor, scope, "a register")
    if not isinstance(found, PtxRegister):
        raise cursor.error("expected a register", start)
    return found


def call_target(cursor: Cursor, scope: Scope) -> CallTarget:
    """`(returns), target, (arguments), prototype;` of a `call`, `;` included."""
    returns = _list(cursor, scope)
    if returns:
        cursor.expect(",", "after the returned values")
    start = cursor.start()
    target = resolve(cursor, scope, "the function to call")
    if not isinstance(target, (PtxRegister, PtxSymbol)):
        raise cursor.error("expected a function or a register that holds its address", start)
    arguments: tuple[Operand, ...] = ()
    prototype = None
    if cursor.accept(","):
        if cursor.peek() == "(":
            arguments = _list(cursor, scope)
            if cursor.accept(","):
                prototype = cursor.take_kind("name", "a prototype")
        else:
            prototype = cursor.take_kind("name", "'(' or a prototype")
    cursor.expect(";", "after the call")
    return CallTarget(returns, target, arguments, prototype)


def _list(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    if not cursor.accept("("):
        return ()
    if cursor.accept(")"):
        return ()
    items = [operand(cursor, scope)]
    while cursor.accept(","):
        items.append(operand(cursor, scope))
    cursor.expect(")", "after the list")
    return tuple(items)


def _vector(cursor: Cursor, scope: Scope) -> Vector:
    cursor.expect("{")
    items = [operand(cursor, scope)]
    while cursor.accept(","):
        items.append(operand(cursor, scope))
    cursor.expect("}", "after the vector")
    return Vector(tuple(items))


def _address(cursor: Cursor, scope: Scope) -> Operand:
    cursor.expect("[")
    base: PtxRegister | PtxSymbol | PtxImmediate
    if cursor.peek_kind() == "name":
        start = cursor.start()
        named = resolve(cursor, scope)
        if not isinstance(named, (PtxRegister, PtxSymbol)):
            raise cursor.error("an address must start with a register, a variable or a number", start)
        base = named
    else:
        base = PtxImmediate(cursor.take_constant())
    address = PtxAddress(base, _offset(cursor))
    if cursor.accept("]"):
        return address
    items: list[Operand] = [address if address.offset else base]
    while cursor.accept(","):
        items.append(operand(cursor, scope))
    cursor.expect("]", "after the address" if len(items) > 1 else "or '+' after the address")
    return TextureAddress(tuple(items[:-1]), items[-1])


def _offset(cursor: Cursor) -> int:
    return cursor.take_offset() if cursor.accept("+") else 0


def _negated(cursor: Cursor, scope: Scope) -> Operand:
    cursor.expect("!")
    return Negated(register(cursor, scope))


def _named(cursor: Cursor, scope: Scope) -> Operand:
    found = resolve(cursor, scope)
    if isinstance(found, PtxSymbol):
        offset = _offset(cursor)
        return PtxSymbol(found.name, offset) if offset else found
    if not isinstance(found, PtxRegister):
        return found
    return (
        Selected(found, cursor.take()[1:])
        if _SELECTOR.fullmatch(cursor.peek())
        else _pair(cursor, scope, found)
    )


def _pair(cursor: Cursor, scope: Scope, first: PtxRegister | Vector) -> Operand:
    if not cursor.accept("|"):
        return first
    return PtxPair(first, register(cursor, scope))
