"""The generated parts of docs/first-change.md: the code of its examples, as it is in the tree."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def excerpt(file: str, *names: str) -> str:
    """A file's definitions of these functions, classes and variables, with decorators, in its order.

    Raises:
        KeyError: it does not define one.
    """
    text = (ROOT / file).read_text("utf-8")
    lines, found = text.splitlines(), {}
    for node in ast.parse(text).body:
        defined = [target for target in getattr(node, "targets", [node]) if isinstance(target, ast.Name)]
        name = defined[0].id if defined else getattr(node, "name", "")
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if name in names:
            found[name] = "\n".join(lines[first - 1 : node.end_lineno])
    if lacks := {*names} - found.keys():
        raise KeyError(f"{file} does not define {', '.join(sorted(lacks))}")
    return f"```python\n# {file}\n" + "\n\n\n".join(found.values()) + "\n```\n"


ARGUMENT_TEST = "tests/test_made_up_argument.py"
PARTS: dict[str, Callable[[], str]] = {
    "first change: opcode": partial(excerpt, "memsim/isa/convert.py", "pack_halves"),
    "first change: test of the opcode": partial(excerpt, "tests/isa/test_convert.py", "test_packing"),
    "first change: chip": partial(excerpt, "memsim/arch/sm_121.py", "SM_121"),
    "first change: argument": partial(excerpt, ARGUMENT_TEST, "StridedArgument", "Strided"),
    "first change: test of the argument": partial(excerpt, ARGUMENT_TEST, "test_it_is_analyzed"),
}
