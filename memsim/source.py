"""What is read from the CUDA source itself: the names of a kernel's parameters.

PTX numbers them; people know them as `A`, `B` and `C`.
"""

from __future__ import annotations

import re


def parameter_names(text: str, kernel: str) -> tuple[str, ...]:
    """Names of the parameters of `kernel` (plain or mangled) in its definition; () if not found."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    for match in re.finditer(r"__global__\b[^;{}]*?\b(\w+)\s*\(", code):
        name, start = match.group(1), match.end()
        if name == "__launch_bounds__":
            behind = re.compile(r"\b(\w+)\s*\(").search(code, _closing(code, start))
            if behind is None:
                continue
            name, start = behind.group(1), behind.end()
        if name == kernel or f"{len(name)}{name}" in kernel:
            inside = code[start : _closing(code, start) - 1]
            return tuple(_last_name(part) for part in _split(inside) if part.strip())
    return ()


def _closing(text: str, start: int) -> int:
    """Index behind the parenthesis that closes the one before `start`."""
    depth = 1
    for index in range(start, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index + 1
    return len(text)


def _split(text: str) -> list[str]:
    """Split at commas outside of any bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _last_name(declaration: str) -> str:
    """`const float *__restrict__ A` -> `A`."""
    names = re.findall(r"\w+", declaration.split("=")[0].split("[")[0])
    return names[-1] if names else ""
