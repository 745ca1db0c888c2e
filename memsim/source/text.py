"""CUDA source as text: without comments, split at commas, up to a bracket, and its conditional groups.

A group, `#if` to `#endif`, may cut a declaration or a block:

    #if __CUDA_ARCH__ < 700
    __global__ __launch_bounds__(256, 2)
    #else
    __global__ __launch_bounds__(512, 1)
    #endif
    void kernel(float *out) {

Both branches one after the other are no C++; any one of them is. The first branch then stands for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

#: The bytes of a directive, and its name.
Directive = tuple[int, int, bytes]

_OPENS = (b"if", b"ifdef", b"ifndef")
_TURNS = (b"elif", b"elifdef", b"elifndef", b"else")
_CLOSE = {b"}": b"{", b")": b"(", b"]": b"["}
_BRACKET = re.compile(rb"[][{}()]")
_ENDS = (b";", b"{", b"}", b":", b",", b"")


@dataclass(frozen=True, slots=True)
class Cut:
    """A group that cuts something: the bytes [start, end) of it, and those to hide from a parser."""

    start: int
    end: int
    hidden: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Group:
    """The directives of one group so far, and the cuts inside of it."""

    directives: list[Directive]
    inside: list[Cut] = field(default_factory=list)


def cuts(code: bytes, directives: Iterable[Directive]) -> list[Cut]:
    """The groups that cut something. Hidden are their directives and all branches but the first.

    code: the source with its directives, comments and strings blanked.
    """
    open_groups = [_Group([])]
    for directive in directives:
        name = directive[2]
        if name in _OPENS:
            open_groups.append(_Group([directive]))
        elif len(open_groups) > 1 and name in _TURNS:
            open_groups[-1].directives.append(directive)
        elif len(open_groups) > 1 and name == b"endif":
            group = open_groups.pop()
            group.directives.append(directive)
            open_groups[-1].inside += _cuts_of(code, group)
    return [cut for group in open_groups for cut in group.inside]


def _cuts_of(code: bytes, group: _Group) -> list[Cut]:
    """The cuts of a group that is complete: itself with what it has inside, or what it has inside."""
    first, second, last = group.directives[0], group.directives[1], group.directives[-1]
    branches = [(left[1], right[0]) for left, right in pairwise(group.directives)]
    inside = [place for cut in group.inside for place in cut.hidden]
    if _is_between(code, first[0]) and all(_is_whole(_left(code, branch, inside)) for branch in branches):
        return group.inside
    hidden = [place for place in inside if place[1] <= second[0]]
    return [Cut(first[0], last[1], (first[:2], *hidden, (second[0], last[1])))]


def _is_between(code: bytes, place: int) -> bool:
    """Whether a statement, or an item of a list in braces, may begin at a place."""
    since = max(code.rfind(mark, 0, place) for mark in (b";", b"{", b"}")) + 1
    before = code[since:place]
    return before.count(b"(") <= before.count(b")") and before.rstrip()[-1:] in _ENDS


def _is_whole(code: bytes) -> bool:
    """Whether it closes what it opens, and ends where a statement or an item of a list may."""
    waiting = []
    for found in _BRACKET.finditer(code):
        bracket = found[0]
        if bracket not in _CLOSE:
            waiting.append(bracket)
        elif not waiting or waiting.pop() != _CLOSE[bracket]:
            return False
    return not waiting and code.rstrip()[-1:] in _ENDS


def _left(code: bytes, branch: tuple[int, int], hidden: Iterable[tuple[int, int]]) -> bytes:
    """The code of a branch without what is hidden in it."""
    start, end = branch
    left = bytearray(code[start:end])
    for first, last in hidden:
        if start <= first and last <= end:
            left[first - start : last - start] = b" " * (last - first)
    return bytes(left)


_QUOTED = (
    r'\bR"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|\b\d\w*(?:'\w+)+"  # the marks in 1'000'000 quote nothing
    r"|'(?:\\.|[^'\\\n])*'"
)
_COMMENT = r"//(?:\\\r?\n|[^\n])*|/\*.*?\*/"
_COMMENT_OR_QUOTED = re.compile(rf"(?P<comment>{_COMMENT})|{_QUOTED}", re.DOTALL)
#: What is not code in bytes of a source: comments, strings and directives.
NO_CODE = re.compile(rf"{_COMMENT}|{_QUOTED}|^[ \t]*#(?:\\\r?\n|[^\n])*".encode(), re.DOTALL | re.MULTILINE)
CONDITION = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[ \t]*(.*)")
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def without_comments(text: str) -> str:
    """The text with comments replaced by blanks, so that positions stay valid."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0]) if found["comment"] else found[0]

    return _COMMENT_OR_QUOTED.sub(blank, text)


def bracket_end(text: str, start: int, opened: str = "(") -> int:
    """Index after the parenthesis, or other bracket, that closes the one before `start`; 0 if none does."""
    depth = 1
    for found in re.compile(f"[{re.escape(opened + _CLOSING[opened])}]").finditer(text, start):
        depth += 1 if found[0] == opened else -1
        if depth == 0:
            return found.end()
    return 0


def expression_end(code: str, place: int) -> int:
    """Where the expression ends that a place is in: at a comma, semicolon, or bracket that closes another."""
    depth = 0
    for mark in re.compile(r"[][(){},;]").finditer(code, place):
        if depth == 0 and mark[0] not in "[(":
            return mark.start()
        depth += (mark[0] in "[(") - (mark[0] in "])")
    return len(code)


def open_parenthesis(code: str, place: int) -> tuple[int, int]:
    """The parenthesis that is open at a place, and how many commas follow it; -1 if there is none."""
    depth = commas = 0
    for at in range(place - 1, -1, -1):
        letter = code[at]
        if letter in ";{}":
            break
        depth += (letter in ")]") - (letter in "([")
        if depth < 0:
            return (at, commas) if letter == "(" else (-1, 0)
        commas += letter == "," and depth == 0
    return -1, 0


def brackets_at(code: str, place: int) -> Iterator[tuple[int, int]]:
    """The contents of the consecutive brackets at `place`."""
    opening = re.compile(r"\s*\[")
    while match := opening.match(code, place):
        place = bracket_end(code, match.end(), "[") or len(code)
        yield match.end(), place - 1


def split_at_commas(text: str, opening: str = "(<[{", ending: str = ")>]}") -> list[str]:
    """Split at commas outside of any of these brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in opening) - (character in ending)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def substitute_names(text: str, values: Mapping[str, str]) -> str:
    """A text with the values of names in their place."""
    return re.sub(r"\b[A-Za-z_]\w*", lambda word: values.get(word[0], word[0]), text)


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


_NUMBERED = re.compile(r"^[ \t]*#[ \t]*if[ \t]+[01]\b", re.MULTILINE)


def without_dead_branches(text: str) -> str:
    """The text without what `#if 0`, and `#else` of `#if 1`, leave out; its lines are blank."""
    if not _NUMBERED.search(text):
        return text

    def decide(directive: str, condition: str, number: int) -> bool | None:
        return {"0": False, "1": True}.get(condition) if directive == "if" else None

    decided = lines_by_condition(without_comments(text), decide)
    lines = zip(text.split("\n"), decided)
    return "\n".join("" if is_ours or False in groups else line for line, (_, is_ours, groups) in lines)


_ASM = re.compile(r"\b(?:asm|__asm|__asm__)\b[\s\w]*\(")
_STARTED = re.compile(r'"[^"]*\b[a-z]\w*\.')  # an instruction in a string: "ld.shared"
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?P<string>(?:[^"\\]|\\.)*)"|(?P<end>[:)])', re.DOTALL)
_MEMORY = re.compile(r"(?:@\S+\s+)?(?:ld|ldu|ldmatrix|st|stmatrix|cp|atom|red|multimem|mbarrier|tex|tld4)\.")


def code_line(text: str, line: int) -> str:
    """A line of a source, 1-based; "" if there is none.

    `asm volatile(` alone says nothing, so it is shown with what follows on later lines:
    `asm "ld.shared.f32 %0, [%1]"`, of several instructions the first that accesses memory.
    """
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    code = lines[line - 1].strip()
    opened = _ASM.search(code)
    if opened is None or _STARTED.search(code, opened.end()):
        return code
    instructions = _instructions("\n".join([code[opened.end() :], *lines[line:]]))
    if not instructions:
        return code
    shown = next(filter(_MEMORY.match, instructions), instructions[0])
    return f'{code[: opened.start()]}asm "{shown}"'


def _instructions(rest: str) -> list[str]:
    """The instructions of an asm statement, whose parenthesis has been opened."""
    strings = []
    for token in _TOKEN.finditer(rest):
        if token["end"]:
            break
        strings.append(token["string"] or "")
    written = re.sub(r"\\[nt]|\s", " ", " ".join(strings))
    parts = (" ".join(part.split()).lstrip("{} ") for part in written.split(";"))
    return [part for part in parts if part and not part.startswith(".")]
