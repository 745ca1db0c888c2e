"""Makes text that others wrote (source, names, messages of compilers) safe for a terminal, a log or Markdown.

Nothing is left in it that moves a cursor, changes colours, turns the direction of writing, or is a command
for the log of GitHub Actions; and in Markdown nothing that is taken for Markdown or HTML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Unicode 15, 23.2: marks, embeddings, overrides and isolates of the bidirectional algorithm; and line ends
# that are none to a program that counts lines.
TURNS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
SEPARATORS = (0x2028, 0x2029)
KEPT = "\n\t"
PICTURES = 0x2400  # U+2400 is a picture of NUL, and so on
SHOWN = {
    **{code: chr(PICTURES + code) for code in range(0x20) if chr(code) not in KEPT},
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), *TURNS, *SEPARATORS), "\ufffd"),
}
# https://docs.github.com/actions/reference/workflow-commands: a line that begins so, blanks before it or not,
# and an older form anywhere in a line.
COMMAND = re.compile(r"^([^\S\n]*):(?=:)|##(?=\[)", re.M)


def plain(text: str) -> str:
    """The text with a picture or a replacement for each character that nobody is to see take effect."""
    shown = text.translate(SHOWN)
    if os.environ.get("GITHUB_ACTIONS"):
        shown = COMMAND.sub(lambda found: f"{found[0]} ", shown)
    return shown


def plain_line(text: str) -> str:
    """The text as one line: a line break in a name begins no line of its own."""
    return plain(text).replace("\n", chr(PICTURES + ord("\n")))


#: Columns of text that goes to a file or another program.
CONSTANT_WIDTH = 100
_is_constant: ContextVar[bool] = ContextVar("_is_constant", default=False)


def print_constant_text() -> None:
    """From here on, in this context, text is `CONSTANT_WIDTH` columns wide, and has no colours."""
    _is_constant.set(True)


def columns_of(stream: TextIO) -> int | None:
    """How many columns its reader sees, by `COLUMNS` or as a terminal; None: nobody says, as of a file."""
    if _is_constant.get():
        return CONSTANT_WIDTH
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):  # it is closed, or no file
        return None


GAP = re.compile(r"(?<=\S)  +(?=\S)")
A_COMMAND = re.compile(r"\s*(?:hint: )?memsim [a-z]+ .*-")
OPTION = re.compile(r" (?=--?[A-Za-z])(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)")


def wrap_line(text: str, columns: int | None) -> str:
    """A line broken at blanks, what follows indented as it begins; a command where an option begins, with
    what shells join lines by. After a name and a gap, what follows begins where the text did. A line with
    more gaps is a row of a table, and stays as it is.
    """
    gaps = [*GAP.finditer(text)]
    if columns is None or len(text) <= columns or len(gaps) > 1:
        return text
    head = text[: len(text) - len(text.lstrip())]
    if A_COMMAND.match(text):
        parts, end, indent = OPTION.split(text.lstrip()), " \\", f"{head}  "
    else:
        if gaps and gaps[0].end() < columns // 2:
            head = text[: gaps[0].end()]
        parts, end, indent = text[len(head) :].split(), "", " " * len(head)
    lines = [head + parts[0]]
    for number, part in enumerate(parts[1:], 2):
        if len(lines[-1]) + 1 + len(part) + len(end) * (number < len(parts)) <= columns:
            lines[-1] += f" {part}"
        else:
            lines[-1] += end
            lines.append(indent + part)
    return "\n".join(lines)


def may_have_colours(stream: TextIO) -> bool:
    """Whether rich may add colours to what is written there: a terminal, or who asks for them."""
    if _is_constant.get():
        return False
    asked = any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))
    return asked or stream.isatty()


def plain_console(stream: TextIO, **options: Any) -> Console:
    """A console that prints text as it is, cut nowhere, and plain."""
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
    from rich.segment import Segment

    class Plain:
        """What is to be printed, its texts plain; rich adds the colours afterwards."""

        def __init__(self, renderable: ConsoleRenderable) -> None:
            self.renderable = renderable

        def __rich_console__(self, console: Console, settings: ConsoleOptions) -> RenderResult:
            for text, style, control in console.render(self.renderable, settings):
                yield Segment(text if control else plain(text), style, control)

    class Hook(RenderHook):
        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            return [Plain(renderable) for renderable in renderables]

    if _is_constant.get():
        options = {**options, "force_terminal": False, "color_system": None}
    made = Console(file=stream, highlight=False, markup=False, emoji=False, **options)
    made.push_render_hook(Hook())
    return made


LONGEST_CODE = 80


def table(headings: Sequence[str], rows: Iterable[Iterable[str]], align: str) -> str:
    """The rows, whose cells are Markdown, as lines. align: of each column `l`, or `r` for numbers."""
    rule = "|".join("---:" if side == "r" else "---" for side in align)
    lines = [f"| {' | '.join(row)} |" for row in (headings, *rows)]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def code_cell(text: str) -> str:
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
    return max(map(len, re.findall("`+", text)), default=0)


def fenced_block(text: str, language: str) -> str:
    """Lines of text as a block of code, whatever they hold."""
    text = plain(text)
    fence = "`" * max(3, longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def folded(summary: str, text: str) -> str:
    """Markdown that stands behind its summary, HTML, until somebody opens it."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def escape_markdown(text: str) -> str:
    """Text in a cell: nothing in it is Markdown or HTML."""
    text = plain(text)
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
