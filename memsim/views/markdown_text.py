"""Tables in Markdown, and text of which nothing is taken for Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memsim.views.plain import plain

LONGEST_CODE = 80


def table(headings: Sequence[str], rows: Iterable[Iterable[str]], align: str) -> str:
    """The rows, whose cells are Markdown, as lines. align: of each column `l`, or `r` for numbers."""
    rule = "|".join("---:" if side == "r" else "---" for side in align)
    lines = [f"| {' | '.join(row)} |" for row in (headings, *rows)]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def code(text: str) -> str:
    """Source in a cell, cut where it is long."""
    text = plain(" ".join(text.split()))
    if not text:
        return ""
    cut = text if len(text) <= LONGEST_CODE else text[: LONGEST_CODE - 3] + "..."
    fence = "`" * (longest_run(cut) + 1)
    pad = " " if cut.startswith("`") or cut.endswith("`") else ""
    return f"{fence}{pad}{cut}{pad}{fence}".replace("|", "\\|")


def longest_run(text: str) -> int:
    """How many backticks stand side by side at most."""
    most = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        most = max(most, run)
    return most


def escaped(text: str) -> str:
    """Text in a cell: nothing in it is Markdown or HTML."""
    text = plain(text)
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
