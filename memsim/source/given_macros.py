"""Macros that are defined for the compiler (`-DTILE=32`), in a text that is only read, not preprocessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from memsim.source.text import lines_by_condition

_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)

# `#define LIB_KERNEL(BOUND) __global__ void __launch_bounds__(BOUND)`: what is in front of a kernel's name.
_HEAD = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?(?=[ \t])([^{};<#\n]*__global__[^{};<#\n]*)$",
    re.MULTILINE,
)


def with_kernel_heads(text: str, texts: Iterable[str]) -> str:
    """The text with `__global__` in place of macros that these texts define as what a kernel begins with."""
    heads = {
        name: "__global__ void" if "void" in body.split() else "__global__"
        for one in texts
        for name, body in _HEAD.findall(one)
    }
    if not heads:
        return text
    used = re.compile(
        rf"^(?![ \t]*#)(.*?)\b({'|'.join(heads)})\b(?:[ \t]*\([^()\n]*\))?(?=\s+\w)", re.MULTILINE
    )
    return used.sub(lambda found: f"{found[1]}{heads[found[2]]}", text)


def with_macros(text: str, macros: Mapping[str, str]) -> str:
    """The text as the compiler reads it when these macros are defined, by name.

    Of `#ifdef` and `#ifndef` of one of them, what is not compiled is blank; a macro that the text then does
    not define itself is defined behind it. Lines keep their places.
    """
    if not macros:
        return text

    def decide(directive: str, condition: str, number: int) -> bool | None:
        is_known = directive != "if" and condition.partition(" ")[0] in macros
        return directive == "ifdef" if is_known else None

    lines = lines_by_condition(text, decide)
    left = "\n".join("" if is_ours or False in groups else line for line, is_ours, groups in lines)
    there = set(_DEFINED.findall(left))
    return left + "".join(f"\n#define {name} {value}" for name, value in macros.items() if name not in there)
