"""Executes the notebook docs/layouts.ipynb without Jupyter, and stores the outputs of its cells.

A cell is Python, and its last expression is shown as text.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
from pathlib import Path
from typing import Any

NOTEBOOK = "docs/layouts.ipynb"


def executed(text: str) -> str:
    """The notebook with the outputs that its cells have when they are executed in order.

    Raises:
        Exception: whatever a cell raises.
    """
    notebook = json.loads(text)
    names: dict[str, Any] = {"__name__": "notebook"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = list(_outputs("".join(cell["source"]), count, names))
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(code: str, count: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    file = f"In[{count}]"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    tree = ast.parse(code, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(tree, file, "exec"), names)
        value = eval(compile(ast.Expression(last.value), file, "eval"), names) if last else None
    outputs: list[dict[str, Any]] = []
    if stream.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(stream.getvalue())})
    if value is not None:
        shown = {"text/plain": _lines(repr(value))}
        outputs.append(
            {"data": shown, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def _lines(text: str) -> list[str]:
    """Without spaces at the ends of lines, which depend on nothing that matters."""
    kept = "\n".join(line.rstrip() for line in text.splitlines())
    return kept.splitlines(keepends=True)


def is_stale(root: Path) -> bool:
    """Whether its outputs are not those of now."""
    text = (root / NOTEBOOK).read_text("utf-8")
    return text != executed(text)


def write(root: Path) -> None:
    """Executes it and keeps the outputs."""
    path = root / NOTEBOOK
    path.write_text(executed(path.read_text("utf-8")), "utf-8")
