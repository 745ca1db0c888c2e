"""CUDA source as text: without comments, split at commas, up to a bracket, without what is not compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_QUOTED = (
    r'\bR"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
)
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_COMMENT_OR_QUOTED = re.compile(rf"(?P<comment>{_COMMENT})|{_QUOTED}", re.DOTALL)
#: What is not code in bytes of a source: comments, strings and directives.
NO_CODE = re.compile(rf"{_COMMENT}|{_QUOTED}|^[ \t]*#(?:\\\r?\n|[^\n])*".encode(), re.DOTALL | re.MULTILINE)
CONDITION = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[ \t]*(.*)")
_CLOSING = {"(": ")", "{": "}"}


def without_comments(text: str) -> str:
    """The text with comments replaced by blanks, so that positions stay valid."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0]) if found["comment"] else found[0]

    return _COMMENT_OR_QUOTED.sub(blank, text)


def closing(text: str, start: int, opened: str = "(") -> int:
    """Index after the parenthesis, or other bracket, that closes the one before `start`; 0 if none does."""
    depth = 1
    for found in re.compile(rf"[{opened}{_CLOSING[opened]}]").finditer(text, start):
        depth += 1 if found[0] == opened else -1
        if depth == 0:
            return found.end()
    return 0


def split(text: str, opening: str = "(<[{", ending: str = ")>]}") -> list[str]:
    """Split at commas outside of any of these brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in opening) - (character in ending)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def lines_by_condition(
    text: str, decide: Callable[[str, str, int], bool | None]
) -> Iterator[tuple[str, bool, tuple[bool | None, ...]]]:
    """(line, whether it is a directive of a group that is decided, its groups) of each line of a text.

    Of each group of branches around the line, from the outside, whether this branch is compiled; None if that
    is unknown.

    decide: whether `#if`, `#ifdef` or `#ifndef` holds, by directive, condition, and the line's number from 0.
    """
    groups: list[tuple[bool | None, bool | None]] = []  # whether its first branch is compiled, and this one
    for number, line in enumerate(text.split("\n")):
        found = CONDITION.match(line)
        directive = found[1] if found else ""
        if found and directive.startswith("if"):
            groups.append((decide(directive, found[2].strip(), number),) * 2)
        elif directive in ("elif", "else") and groups:
            first, branch = groups[-1]
            # Nobody decides whether an `#elif` holds, nor then an `#else` behind it.
            is_open = first is None or branch is None or directive == "elif"
            groups[-1] = first, False if first else None if is_open else True
        is_ours = bool(found and groups and groups[-1][0] is not None)
        if directive == "endif":
            del groups[-1:]
        yield line, is_ours, tuple(branch for _, branch in groups)
