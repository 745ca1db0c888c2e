"""The captures of docs/questions.md and docs/tutorial.md: each answer is what a command prints now."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from docs.capture import CUT, capture, fenced, paragraphs, printed
from memsim.views.plain import CONSTANT_WIDTH

FIRST = 9  # lines of a table of lanes: the heading, and a quarter of a warp
CODE = "docs/index_math/questions.py"
TRANSPOSE = "memsim sweep docs/index_math/transpose.py:transpose --block 32,32 --jobs 1"
LAYOUTS = "(32,32):(32,1)|(32,32):(33,1)|(32,32):(36,1)|Sw<5,0,5> o (32,32):(32,1)"


def answer(command: str) -> str:
    """The verdict and the tables of an analysis; what follows them is cut."""
    parts = paragraphs(printed(command))
    kept = [part for part in parts if not part.startswith("Launch:")]
    return fenced(command, "\n\n".join(kept) + f"\n{CUT}\n")


def verdict(command: str) -> str:
    """The first line alone."""
    return fenced(command, f"{printed(command).splitlines()[0]}\n{CUT}\n")


def table(command: str, columns: int = CONSTANT_WIDTH) -> str:
    """The first line, and the first table, which takes so many columns."""
    first, second, *_ = paragraphs(printed(command, columns=columns))
    return fenced(command, f"{first.splitlines()[0]}\n\n{second}\n{CUT}\n")


def request(command: str) -> str:
    """One request in words, and its first lanes."""
    parts = paragraphs(printed(command))
    lanes = "\n".join(parts[2].splitlines()[:FIRST])
    return fenced(command, "\n\n".join([*parts[:2], lanes]) + f"\n{CUT}\n")


ANSWERS: dict[str, Callable[[], str]] = {
    "padding": partial(capture, f"{TRANSPOSE} -D 'layout=(32,32):(32,1)|(32,32):(33,1)'"),
    "four wavefronts": partial(answer, f"memsim analyze {CODE}:float4_rows --block 32"),
    "pairs": partial(answer, f"memsim analyze {CODE}:float4_pairs --block 32"),
    "wavefronts and sectors": partial(answer, "memsim analyze transpose_naive"),
    "swizzle": partial(capture, f"{TRANSPOSE} -D 'layout={LAYOUTS}'"),
    "ldmatrix": partial(
        capture,
        f"memsim sweep {CODE}:ldmatrix_narrow --block 32 --jobs 1 "
        "-D 'layout=(16,16):(16,1)|(16,16):(24,1)|Sw<1,3,3> o (16,16):(16,1)'",
    ),
    "copies": partial(capture, f"memsim sweep {CODE}:copies --block 32 --jobs 1 -D 'bypass=0|1'"),
    "broadcast": partial(answer, f"memsim analyze {CODE}:same_word --block 32"),
    "doubles": partial(capture, f"memsim sweep {CODE}:doubles --block 32 --jobs 1 -D 'stride=1|2|4'"),
    "records": partial(answer, f"memsim analyze {CODE}:records --block 32"),
    "columns": partial(verdict, f"memsim analyze {CODE}:columns --block 32"),
    "divisible by 16": partial(verdict, "memsim analyze docs/captured/add/launch.json"),
    "arbitration": partial(table, "memsim validate transpose_padded", columns=120),
    "does it matter": partial(table, "memsim bound kernel_v4_colmajor"),
}
TUTORIAL: dict[str, Callable[[], str]] = {
    "list": partial(answer, "memsim analyze transpose_naive"),
    "explain": partial(request, "memsim explain transpose_naive --line 22"),
    "padded": partial(verdict, "memsim analyze transpose_padded"),
    "compare": partial(capture, "memsim compare transpose_naive transpose_padded"),
}
PARTS: dict[str, Callable[[], str]] = {
    **{f"question: {name}": made for name, made in ANSWERS.items()},
    **{f"tutorial: {name}": made for name, made in TUTORIAL.items()},
}
