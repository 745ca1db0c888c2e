"""Integer constants in a source, and expressions of them.

There is no preprocessing, except for branches on macros that are known to be undefined.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$", re.MULTILINE)
_DECLARED = re.compile(
    r"\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+|const\s+)?"
    r"(?:int|unsigned|size_t|auto|bool|short|long|char|u?int\d+_t)\s([^;]*?);"
)
_VARIABLE = re.compile(
    r"(?<!\w)(?:unsigned\s+|long\s+)*(?:int|unsigned|size_t|auto|long|short|u?int\d+_t)\s+(\w[^;{}]*);"
)
_INITIALIZED = re.compile(r"\s*(\w+)\s*(?:=|(?=\{))(.*)", re.DOTALL)
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_BRANCH = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[ \t]*(\w*)[ \t]*")

#: Bytes of the element types of shared arrays.
ELEMENT_BYTES = {
    **dict.fromkeys(("char", "bool", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("half", "__half", "short", "int16_t", "uint16_t", "__nv_bfloat16"), 2),
    **dict.fromkeys(("half2", "__half2", "int", "unsigned", "uint", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("double", "float2", "int2", "size_t", "int64_t", "uint64_t"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}
_SIZEOF = re.compile(r"\bsizeof\s*\(\s*(\w+)\s*\)")

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv},
    **{ast.Mod: operator.mod, ast.LShift: operator.lshift, ast.RShift: operator.rshift},
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
}


def constants(code: str, known: Mapping[str, int] | None = None, *, last: bool = False) -> dict[str, int]:
    """Integer constants of a source by name, as far as they are known.

    known: others that they may refer to. last: take the last value of a name that is defined twice; else it
    is unknown.
    """
    pairs = [(name, value) for name, value in _DEFINE.findall(code)]
    for declared in _DECLARED.findall(code):
        parts = (_INITIALIZED.fullmatch(part) for part in split(declared))
        pairs += [(part[1], part[2].strip().removeprefix("{").removesuffix("}")) for part in parts if part]
    if last:
        pairs = list(dict(pairs).items())
    names = [name for name, _ in pairs]
    found: dict[str, int] = {}
    for _ in pairs:  # a macro may use constants that come later
        before = len(found)
        for name, expression in pairs:
            value = value_of(expression, {**(known or {}), **found})
            if value is not None and names.count(name) == 1:
                found[name] = value
        if len(found) == before:
            break
    return found


def variables(code: str, known: Mapping[str, int]) -> dict[str, int]:
    """Integer variables of a function that keep the constant that they are initialized with.

    A variable that is declared twice, assigned again, incremented, or whose address or reference may be taken
    is left out.
    """
    found: dict[str, int] = {}
    for declared in _VARIABLE.findall(code):
        for part in split(declared):
            name, _, expression = (word.strip() for word in part.partition("="))
            if re.fullmatch(r"\w+", name) and len(_changes(name).findall(code)) == 1:
                value = value_of(expression, {**known, **found})
                found.update({} if value is None else {name: value})
    return found


def _changes(name: str) -> re.Pattern[str]:
    """Where a variable gets a value, or may get one: its initialization is the first."""
    assigned = r"(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))"
    return re.compile(rf"\b{name}\s*{assigned}|(?:\+\+|--|&|>>)\s*{name}\b")


def compiled(code: str, defined: Mapping[str, object]) -> str:
    """The code with branches of `#ifdef` and `#ifndef` that `defined` excludes replaced by blanks."""
    lines: list[str] = []
    taken: list[bool | None] = []  # None: both branches of an #if
    for line in code.split("\n"):
        branch = _BRANCH.match(line)
        if branch is None:
            lines.append("" if False in taken else line)
            continue
        kind, name = branch[1], branch[2]
        if kind in ("ifdef", "ifndef"):
            taken.append((name in defined) == (kind == "ifdef"))
        elif kind == "if":
            taken.append(None)
        elif kind == "else" and taken and taken[-1] is not None:
            taken[-1] = not taken[-1]
        elif kind == "endif" and taken:
            taken.pop()
        lines.append("")
    return "\n".join(lines)


def value_of(expression: str, known: Mapping[str, int]) -> int | None:
    """The value of a C integer expression; None if it is not one."""
    try:
        return _of(ast.parse(_as_python(expression.strip()), mode="eval").body, known)
    except (KeyError, SyntaxError, ValueError, ZeroDivisionError, OverflowError, MemoryError, RecursionError):
        return None


def _of(node: ast.expr, known: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATIONS[type(node.op)](_of(node.left, known), _of(node.right, known))
    if isinstance(node, ast.IfExp):
        return _of(node.body if _of(node.test, known) else node.orelse, known)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return int(_COMPARISONS[type(node.ops[0])](_of(node.left, known), _of(node.comparators[0], known)))
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    raise KeyError(node)


def _as_python(expression: str) -> str:
    """`a < 2U ? b : c` in Python's syntax."""
    expression = _SIZEOF.sub(lambda found: str(ELEMENT_BYTES.get(found[1], found[0])), expression)
    expression = " ".join(_SUFFIX.sub(r"\1", expression).split())
    while "?" in expression:
        start, end = _around(expression, expression.index("?"))
        inside = expression[start:end]
        at = inside.index("?")
        colon = _colon(inside, at + 1)
        parts = inside[:at], inside[at + 1 : colon], inside[colon + 1 :]
        condition, yes, no = (_as_python(part.strip()) for part in parts)
        expression = f"{expression[:start]}(({yes}) if ({condition}) else ({no})){expression[end:]}"
    return expression


def _around(text: str, place: int) -> tuple[int, int]:
    """The span inside the parentheses that contain `place`."""
    start, end = place, place
    for step, mark, other in ((-1, "(", ")"), (1, ")", "(")):
        depth, at = 0, place
        while 0 <= at < len(text):
            depth += text[at] == other
            if text[at] == mark:
                if depth == 0:
                    break
                depth -= 1
            at += step
        start, end = (at + 1, end) if step < 0 else (start, at)
    return start, end


def _colon(text: str, start: int) -> int:
    """The colon of a conditional expression, past those of nested ones."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "(?") - (text[place] == ")")
        if text[place] == ":":
            if depth == 0:
                return place
            depth -= 1
    raise ValueError(text)


def split(text: str) -> list[str]:
    """Split at commas outside of any bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
