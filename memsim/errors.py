"""The one error that memsim raises for users' mistakes, with the command line's exit code (1: a check failed,
2: bad input or a missing part).
"""

from __future__ import annotations

from functools import partial

LINE_BREAK = "\u240a"  # a picture of one


class MemsimError(Exception):
    """What is wrong, where it is, and what to do.

    Args:
        message: what is wrong, in one sentence, without a full stop.
        file: the file at fault, if there is one.
        line: 1-based line in `file`.
        column: 1-based column in `line`.
        source: the text of that line, shown with a caret under `column`.
        hint: what to do about it.
        exit_code: 1 if a check failed, 2 if the input is bad or a part is missing.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
        hint: str | None = None,
        exit_code: int = 2,
    ) -> None:
        super().__init__(message)
        self.message, self.hint, self.exit_code = message, hint, exit_code
        self.file, self.line, self.column, self.source = file, line, column, source

    def __reduce__(self) -> tuple[object, ...]:
        """As another process gets it: what is said, and no more, of whatever kind it is."""
        said = ("file", "line", "column", "source", "hint", "exit_code")
        return partial(MemsimError, **{name: getattr(self, name) for name in said}), (self.message,)

    @property
    def location(self) -> str:
        """`file:line:column` as far as known; empty if nothing is. A column without a line is of `source`."""
        parts = (self.file, self.line, self.column if self.line is not None else None)
        return ":".join(str(part) for part in parts if part is not None)

    def __str__(self) -> str:
        # A name in it may have a line break, which is to begin no line.
        said = f"{self.location}: {self.message}" if self.location else self.message
        lines = [said.replace("\n", LINE_BREAK)]
        if self.source is not None:
            text = self.source.rstrip().expandtabs(1)
            lines.append(f"    {text}")
            if self.column is not None:
                lines.append("    " + " " * (self.column - 1) + "^")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class NoSuchFile(MemsimError, FileNotFoundError):
    """A file is missing; who can do without it catches this."""

    def __init__(self, file: str, hint: str | None = None) -> None:
        super().__init__("there is no such file", file=file, hint=hint)


def short_repr(value: object) -> str:
    """A value for a message, shortened if long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or recursive lists
        return f"this {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
