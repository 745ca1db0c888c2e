"""Composition of layouts as shapes with strides, without swizzles and offsets.

Source of the rule: CUTLASS, media/docs/cpp/cute/02_layout_algebra.md.
"""

from __future__ import annotations

from typing import TypeAlias

from memsim.layout.nested import Nested, leaves

#: A shape and its strides.
Strided: TypeAlias = tuple[Nested, Nested]
Mode = tuple[int, int]


def compose(outer: Strided, inner: Strided) -> Strided | None:
    """The modes of `inner`, each walking through `outer`; None if they do not divide its shape."""
    modes = _coalesced(*outer)

    def walk(shape: Nested, stride: Nested) -> Strided | None:
        if isinstance(shape, int) or isinstance(stride, int):
            assert isinstance(shape, int)
            assert isinstance(stride, int)
            found = _steps(modes, shape, stride)
            if found is None:
                return None
            if len(found) == 1:
                return found[0]
            return tuple(extent for extent, _ in found), tuple(step for _, step in found)
        pairs = [walk(*each) for each in zip(shape, stride, strict=True)]
        known = [pair for pair in pairs if pair is not None]
        if len(known) < len(pairs):
            return None
        return tuple(pair[0] for pair in known), tuple(pair[1] for pair in known)

    return walk(*inner)


def _coalesced(shape: Nested, stride: Nested) -> list[Mode]:
    """Shape and strides as a function of one number, with as few modes as possible."""
    modes: list[Mode] = []
    for extent, step in zip(leaves(shape), leaves(stride)):
        if extent == 1:
            continue
        if modes and modes[-1][0] * modes[-1][1] == step:
            modes[-1] = modes[-1][0] * extent, modes[-1][1]
        else:
            modes.append((extent, step))
    return modes or [(1, 0)]


def _steps(modes: list[Mode], count: int, step: int) -> list[Mode] | None:
    """The modes that `count` numbers with stride `step` walk through; None if the modes are not divisible."""
    if step == 0 or count == 1:
        return [(count, 0)]
    found: list[Mode] = []
    for number, (extent, stride) in enumerate(modes):
        last = number == len(modes) - 1
        if not last and step % extent == 0:  # this mode is skipped as a whole
            step //= extent
            continue
        if not last and extent % step:
            return None
        room = count if last else min(extent // step, count)
        if count % room:
            return None
        if room > 1:
            found.append((room, stride * step))
        count //= room
        if count == 1:
            break
        step = 1
    return found or [(1, 0)]
