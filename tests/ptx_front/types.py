"""Fundamental types of PTX and their sizes in bytes.

Source: PTX ISA, "Fundamental Types", "Restricted Use of Sub-Word Sizes", "Opaque Variables".
"""

from __future__ import annotations

from tests.ptx_front.lexer import Cursor

SIZES = {f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)} | {
    "pred": 1,
    "b128": 16,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "tf32": 4,
    "f64": 8,
    "f16x2": 4,
    "bf16x2": 4,
    "u16x2": 4,
    "s16x2": 4,
    "e4m3": 1,
    "e5m2": 1,
    "e4m3x2": 2,
    "e5m2x2": 2,
    # Opaque types: a kernel gets a 64-bit handle.
    "texref": 8,
    "samplerref": 8,
    "surfref": 8,
}
OPAQUE = {"texref", "samplerref", "surfref"}


def take_type(cursor: Cursor) -> str:
    """Consume `.f32` and the like; the name without the dot."""
    token = cursor.peek()
    if token[:1] != "." or token[1:] not in SIZES:
        raise cursor.expected("a type such as .b32")
    cursor.take()
    return token[1:]
