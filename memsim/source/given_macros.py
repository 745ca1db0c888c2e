"""Macros that are defined for the compiler (`-DTILE=32`), in a text that is only read, not preprocessed."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*(\w*)")


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
