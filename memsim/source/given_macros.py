"""Macros that are defined for the compiler (`-DTILE=32`), in a text that is only read, not preprocessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*(\w*)")

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
    lines: list[str] = []
    groups: list[tuple[bool, bool] | None] = []  # (shown, one was before); None: not about these macros
    for line in text.split("\n"):
        found = _CONDITION.match(line)
        directive, name = (found[1], found[2]) if found else ("", "")
        if directive.startswith("if"):
            is_shown = directive == "ifdef"
            groups.append((is_shown, is_shown) if name in macros and directive != "if" else None)
        is_ours = bool(found and groups and groups[-1] is not None)
        if directive in ("elif", "else") and groups and groups[-1] is not None:
            groups[-1] = (not groups[-1][1], groups[-1][1])
        is_hidden = any(group is not None and not group[0] for group in groups)
        if directive == "endif" and groups:
            groups.pop()
        lines.append("" if is_ours or is_hidden else line)
    left = "\n".join(lines)
    there = set(_DEFINED.findall(left))
    return left + "".join(f"\n#define {name} {value}" for name, value in macros.items() if name not in there)
