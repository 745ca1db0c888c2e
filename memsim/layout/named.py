"""Layouts in other words than CuTe's: extents with a padding or an XOR, and Triton's shared layouts.

    32x32                                                    row-major
    32x32 pad 1                                              unused elements after each row
    32x32 xor 4                                              chunks of 4 elements, permuted by the row
    64x64 #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
    64x64 SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])
    64x64 #ttg.padded_shared<[32:+4] {order = [1, 0]}>
    64x64 NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16)

Triton's rules are those of the linear layouts that it makes of them (`to_linear_layout` of Gluon's builder).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memsim.errors import MemsimError
from memsim.layout.notation import Nested
from memsim.layout.swizzle import Swizzle

EXTENTS = re.compile(r"\s*(\d{1,8}(?:x\d{1,8})*)(?:\s+([A-Za-z#].*))?\s*", re.ASCII | re.DOTALL)
TRITON = re.compile(r"#?(?:ttg\.|triton_gpu\.)?([A-Za-z_]*[Ss]hared\w*)")
VALUE = re.compile(r"(\w+)\s*=\s*(\[[^]]*\]|\w+)")
PADDING = re.compile(r"\[?(\d{1,8})\s*(?::\s*\+|,)\s*(\d{1,8})\]?")
EXAMPLE = (
    "such as 32x32 pad 1, 32x32 xor 4, 64x64 #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8}>"
)

#: Shape, strides, swizzle, as `notation.parse` has them.
Parts = tuple[Nested, Nested, "Swizzle | None"]


def read_named(text: str) -> Parts | None:
    """A layout in these words; None if it does not begin with extents alone.

    Raises:
        MemsimError: what follows the extents is no layout, or not one of that shape.
    """
    found = EXTENTS.fullmatch(text)
    if found is None:
        return None
    extents = [int(extent) for extent in found[1].split("x")]
    how, inwards = found[2] or "", [*range(len(extents))][::-1]
    if 0 in extents:
        raise MemsimError("an extent must be positive", hint=EXAMPLE)
    if TRITON.match(how):
        return _of_triton(extents, how)
    word = re.fullmatch(r"(pad|xor)\s*(\d{1,8})?", how)
    number = int(word[2] or 1) if word else 1
    if not how:
        return _strided(extents, inwards, {})
    if word and word[1] == "pad":
        return _strided(extents, inwards, {extents[-1]: number})
    if word and len(extents) > 1 and 0 < number < extents[-1]:
        return _swizzled(extents, inwards, number, 1, extents[-1] // number)
    raise _refusal(text)


def _refusal(text: str) -> MemsimError:
    return MemsimError(f"{text.strip()!r} is not a layout", hint=EXAMPLE)


def _of_triton(extents: list[int], text: str) -> Parts:
    values = {name.replace("_", "").lower(): value for name, value in VALUE.findall(text)}
    kind = TRITON.match(text)
    assert kind is not None
    name = kind[1].replace("_", "").lower()
    order = [int(axis) for axis in re.findall(r"\d{1,8}", values.get("order", ""))]
    if values.get("transposed") in ("true", "True"):
        order = [*range(len(extents))]
    order = order or [*range(len(extents))][::-1]
    if sorted(order) != [*range(len(extents))]:
        raise MemsimError(f"order = {order} does not name the {len(extents)} axes of the shape")
    if name.startswith("nvmma"):
        return _of_copy_engine(extents, order, values)
    if name.startswith("padded"):
        intervals = values.get("intervalpaddingpairs") or re.sub(r"\{.*", "", text, flags=re.DOTALL)
        paddings = {int(every): int(by) for every, by in PADDING.findall(intervals)}
        if paddings and min(paddings) > 0:
            return _strided(extents, order, paddings)
    elif name.removesuffix("layout") in ("swizzledshared", "shared"):
        each = [_number(values, key) for key in ("vec", "perphase", "maxphase")]
        return _swizzled(extents, order, *each)
    raise _refusal(text)


def _number(values: Mapping[str, str], key: str) -> int:
    try:
        return int(values[key])
    except (KeyError, ValueError):
        raise MemsimError(f"the layout says no number {key}", hint=EXAMPLE) from None


def _bits(number: int, what: str) -> int:
    if number < 1 or number & (number - 1):
        raise MemsimError(f"{what} is a power of two, not {number}")
    return number.bit_length() - 1


def _swizzled(extents: list[int], order: list[int], chunk: int, rows: int, phases: int) -> Parts:
    """Chunks of elements permuted by the row, which the XOR does not leave."""
    row = _bits(extents[order[0]], "a row of a swizzled layout")
    low, up = _bits(chunk, "vec"), _bits(rows, "perPhase")
    bits = min(_bits(phases, "maxPhase"), max(row - low, 0))
    shape, stride, _ = _strided(extents, order, {})
    return shape, stride, Swizzle(bits, low, row - low + up) if bits else None


def _of_copy_engine(extents: list[int], order: list[int], values: Mapping[str, str]) -> Parts:
    """Columns of rows as wide as the swizzle of TMA and wgmma, one after the other."""
    names = ("swizzlingbytewidth", "swizzlebytewidth")
    width = _number(values, next((name for name in names if name in values), names[0]))
    size = _number(values, "elementbitwidth") // 8
    if width not in (0, 32, 64, 128) or size not in (1, 2, 4) or len(extents) != 2:
        raise MemsimError(
            "swizzles of 0, 32, 64 or 128 bytes of 8, 16 or 32-bit elements in two axes are read"
        )
    inner, rows = extents[order[0]], extents[order[1]]
    held = min(width // size or inner, inner)
    if inner % held:
        raise MemsimError(f"rows of {inner} elements are not divided by a swizzle of {width} bytes")
    shape: list[Nested] = [rows, rows]
    stride: list[Nested] = [held, held]
    shape[order[0]] = inner if inner == held else (held, inner // held)
    stride[order[0]] = 1 if inner == held else (1, rows * held)
    base = 4 - _bits(size, "an element")
    return tuple(shape), tuple(stride), Swizzle(_bits(width // 16, "width"), base, 3) if width > 16 else None


def _strided(extents: list[int], order: list[int], paddings: Mapping[int, int]) -> Parts:
    """The axes one after the other, the first of `order` contiguous. paddings: elements that are left free
    after each so many.
    """
    shape: list[Nested] = [*extents]
    stride: list[Nested] = [0] * len(extents)
    done = 1
    for axis in order:
        pieces, steps, left, at = [], [], extents[axis], done
        for cut in sorted(every for every in paddings if done < every < done * extents[axis]):
            if cut % at or left % (cut // at):
                raise MemsimError(f"an interval of {cut} elements does not divide the shape")
            pieces.append(cut // at)
            steps.append(at)
            left, at = left // (cut // at), cut
        free = [step + sum(step // every * by for every, by in paddings.items()) for step in [*steps, at]]
        shape[axis] = (*pieces, left) if pieces else left
        stride[axis] = tuple(free) if pieces else free[0]
        done *= extents[axis]
    return tuple(shape), tuple(stride), None
