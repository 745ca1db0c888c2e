"""A source line as tables show it. Inline assembly that begins on a line is shown by its instruction."""

from __future__ import annotations

import re

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
