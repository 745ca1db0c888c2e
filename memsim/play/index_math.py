"""Index math as a text: `y * 32 + (x ^ y)`, of a thread's coordinates, as arrays over all threads.

A state of the playground comes by a link, so nothing of it is executed: the text is parsed, and only integer
arithmetic on known names is worked out. C and Python write it alike, with the same precedence; `/` is C's.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsim.errors import MemsimError
from memsim.sketch.thread import Thread

Numbers = NDArray[np.int64]
LONGEST = 200  # characters
OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.floor_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.LShift: np.left_shift,
    ast.RShift: np.right_shift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
SIGNS: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
NAMES = ("x", "y", "z", "lane", "warp", "rank")
CUDA_NAMES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


def coordinates(text: str, thread: Thread) -> tuple[Numbers, ...]:
    """The coordinates that `text` gives for each thread, by commas: int64 arrays of shape (1, threads).

    Raises:
        MemsimError: it is no integer arithmetic on `NAMES`, or divides by zero.
    """
    if len(text) > LONGEST:
        raise MemsimError(f"an index has at most {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        column = error.offset if isinstance(error, SyntaxError) else None
        raise _error("an index is integer arithmetic, as in y, x ^ y", text, column or 1) from None
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return tuple(_value(part, text.strip(), thread) for part in parts)


def _value(node: ast.expr, text: str, thread: Thread) -> Numbers:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 2**31:
        return np.full_like(thread.rank, node.value)
    if isinstance(node, ast.Name) and node.id in NAMES:
        return np.asarray(getattr(thread, node.id), np.int64)
    if isinstance(node, ast.Attribute) and ast.unparse(node) in CUDA_NAMES:
        return np.asarray(getattr(thread, node.attr), np.int64)
    if isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
        return np.asarray(SIGNS[type(node.op)](_value(node.operand, text, thread)))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = _value(node.left, text, thread), _value(node.right, text, thread)
        column = node.right.col_offset + 1
        if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) and not right.all():
            raise _error("some thread divides by zero", text, column)
        if isinstance(node.op, (ast.LShift, ast.RShift)) and ((right < 0) | (right > 31)).any():
            raise _error("a shift is by 0 to 31 bits", text, column)
        return np.asarray(OPERATORS[type(node.op)](left, right))
    known = ", ".join(NAMES)
    raise _error(f"not integer arithmetic on {known}, threadIdx.x", text, node.col_offset + 1)


def _error(message: str, text: str, column: int) -> MemsimError:
    return MemsimError(message, source=text, column=column)
