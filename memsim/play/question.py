"""One state of the playground and its answer: what an access costs, and which layouts would cost less.

A state comes by a link, so nothing of it is executed: index math as a text, `y * 32 + (x ^ y)`, is parsed,
and only integer arithmetic on known names is worked out, as arrays over all threads. C and Python write it
alike, with the same precedence; `/` is C's.
"""

from __future__ import annotations

import ast
import linecache
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct, structs
from numpy.typing import NDArray

from memsim.captured.analyze_any import analyze
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.launch import dim3
from memsim.layout import Layout
from memsim.shown import ShownAnalysis
from memsim.sketch import GlobalArray, SharedArray, Thread

Line = Annotated[str, Meta(max_length=200)]
EXTENTS = re.compile(r"\d{1,8}(,\d{1,8})*|\(\d{1,8}(,\d{1,8})*\)", re.ASCII)
LARGEST = 1 << 20  # elements of the array: a page answers at once


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of the page: an array with its layout, a block, and the index of a store and of a load.

    An empty index makes no access. vector: adjacent elements that each thread moves.
    """

    layout: Line = "(32,32):(32,1)"
    element: Annotated[str, Meta(max_length=20)] = "f32"
    memory: Literal["shared", "global"] = "shared"
    block: Line = "32x32"
    store: Line = "y, x"
    load: Line = "x, y"
    vector: Literal[1, 2, 4, 8, 16] = 1


class Cure(Struct, frozen=True):
    """Another layout, counted: what it does, in CuTe's notation, and the wavefronts of both accesses."""

    layout: str
    kind: str
    wavefronts: int


class Answer(Struct, frozen=True):
    """What the page shows. page: HTML of the verdict, the rows and the heatmap."""

    verdict: str
    page: str
    wavefronts: int | None
    sectors: int | None
    cures: tuple[Cure, ...]


#: What reports call the two lines, and the code that stands there: a fixed text, so that each access has a
#: line of its own without any text of the page being executed. What the page says is shown in its place.
FILE = "index math"
LINES = compile("store(t)\nload(t)", FILE, "exec")


def answer(question: Question) -> Answer:
    """What the accesses cost, and the layouts that cost less.

    Raises:
        MemsimError: a field cannot be read, or a thread's index lies outside of the array.
    """
    analysis = _analysis(question)
    cures = tuple(_cures(question, analysis)) if analysis.conflicts else ()
    return Answer(analysis.verdict, analysis._repr_html_(), analysis.wavefronts, analysis.sectors, cures)


def _analysis(question: Question) -> ShownAnalysis:
    layout = _layout(question.layout)
    if layout.size > LARGEST:
        raise MemsimError(f"the array has {layout.size:,} elements, more than {LARGEST:,}")
    if not (question.store or question.load):
        raise MemsimError("neither index is given", hint="write one, as y, x")
    make = SharedArray if question.memory == "shared" else GlobalArray
    array = make("tile", layout, question.element)
    vector = {"vector": question.vector} if question.vector > 1 else {}
    indices = {"store": question.store, "load": question.load}
    with_vector = ", ".join(f"{name}={value}" for name, value in vector.items())
    texts = [f"tile[{index}].{name}({with_vector})\n" if index else "\n" for name, index in indices.items()]
    linecache.cache[FILE] = (len("".join(texts)), None, texts, FILE)

    def access(t: Thread, name: str) -> None:
        if indices[name]:
            getattr(array[coordinates(indices[name], t)], name)(**vector)

    def tile(t: Thread) -> None:
        exec(LINES, {"t": t, "store": lambda t: access(t, "store"), "load": lambda t: access(t, "load")})

    return analyze(tile, block=_block(question.block))


def _layout(text: str) -> Layout:
    """As `Layout.parse`, or extents alone, as `(32,33)`: row-major."""
    if EXTENTS.fullmatch(text.strip()):
        return Layout.row_major(*map(int, re.findall(r"\d+", text)))
    return Layout.parse(text)


def _block(text: str) -> tuple[int, ...]:
    """`32x8` or `32,8` as extents."""
    parts = text.replace("x", ",").split(",")
    if not all(part.strip().isdecimal() and len(part) <= 5 for part in parts):
        raise MemsimError(f"a block is one to three extents, as 32x8, not {text!r}")
    return dim3([int(part) for part in parts], "block")


def _cures(question: Question, analysis: ShownAnalysis) -> Iterator[Cure]:
    """Proposals of `suggest` that a layout of the same shape says, each counted anew; the best first."""
    layout = _layout(question.layout)
    size = SharedArray("tile", layout, question.element).itemsize
    found = []
    for array in analysis.suggest().to_dict()["arrays"]:
        for proposal in array["proposals"]:
            cured = _changed(layout, proposal["change"], size)
            if cured is None:
                continue
            again = _analysis(structs.replace(question, layout=str(cured)))
            if again.wavefronts is not None and again.wavefronts == proposal["wavefronts"]:
                found.append(Cure(str(cured), proposal["change"]["kind"], again.wavefronts))
    yield from sorted(found, key=lambda cure: cure.wavefronts)


def _changed(layout: Layout, change: JsonObject, size: int) -> Layout | None:
    """The layout after a change in bytes; None where it is not one of whole rows of elements."""
    if layout.swizzle is not None or layout.offset or len(layout.extents) != 2:
        return None
    if change["kind"] == "swizzle" and (1 << change["base"]) >= size:
        base = change["base"] - (size.bit_length() - 1)
        shift = (change["every"] // size).bit_length() - 1 - base
        return layout.swizzled(change["bits"], base, shift) if shift >= change["bits"] else None
    strides = layout.stride
    if change["kind"] == "padding" and isinstance(strides, tuple) and change["by"] % size == 0:
        slow = max((step for step in strides if isinstance(step, int)), default=0)
        if slow * size == change["every"]:
            padded = tuple(step + change["by"] // size if step == slow else step for step in strides)
            return replace(layout, stride=padded)
    return None


Numbers = NDArray[np.int64]
LONGEST = 200  # characters
OPERATORS: Mapping[type[ast.operator], Callable[[np.ndarray, np.ndarray], object]] = {
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
SIGNS: Mapping[type[ast.unaryop], Callable[[np.ndarray], object]] = {
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
