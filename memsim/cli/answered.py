"""Answers that were given before: the same words, and nothing that they came from has changed since.

A verb says of an answer that it may be given again. Then what it printed is kept with what was read for it
(`memsim.targets.kept_answers`), and the same command line prints it at once: neither the verb nor numpy is
imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TextIO, cast

from memsim.reads import watch_reads
from memsim.store import Store, cache_folder
from memsim.targets import kept_answers

#: Environment variables that decide how an answer looks, or what is trusted.
ENVIRONMENT = (
    *("COLUMNS", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "GITHUB_ACTIONS"),
    *("PYTHONIOENCODING", "PYTHONUTF8", "LANG", "LC_ALL", "LC_CTYPE", "MEMSIM_UNTRUSTED"),
)


class _Answer:
    """What is said. may_be_kept: its verb has said so. remarks: on standard error, without progress bars."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.remarks: list[str] = []
        self.may_be_kept = False


_given: ContextVar[_Answer | None] = ContextVar("answer", default=None)


def may_be_given_again() -> None:
    """Says that this answer writes no file, and that memsim itself reads all that decides it."""
    if answer := _given.get():
        answer.may_be_kept = True


def remark(text: str) -> None:
    """Hears lines that are said on standard error."""
    if answer := _given.get():
        answer.remarks.append(text)


class _Heard:
    """A stream, and what is written on it. buffer: there is none to be written without being heard."""

    buffer = None

    def __init__(self, stream: TextIO, said: list[str]) -> None:
        self._stream, self._said = stream, said

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        self._said.append(text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def answer_with_cache(arguments: Sequence[str], work_out: Callable[[], int]) -> int:
    """The exit code of a command line, whose answer is given again, or worked out and perhaps kept."""
    if any("native" in word for word in arguments):  # of the GPU that is here
        return work_out()
    store = Store(cache_folder())
    asked = kept_answers.question(store, "answer", *arguments, *_how_it_looks())
    kept = kept_answers.answer_to(store, asked)
    if kept is not None:
        said, remarks = json.loads(kept)
        sys.stderr.write(remarks)
        sys.stdout.write(said)
        sys.stdout.flush()
        return 0
    answer, stream = _Answer(), sys.stdout
    token = _given.set(answer)
    sys.stdout = cast(TextIO, _Heard(stream, answer.said))
    try:
        with watch_reads() as reads:
            exit_code = work_out()
    finally:
        sys.stdout = stream
        _given.reset(token)
    if exit_code == 0 and answer.may_be_kept:
        remarks = "".join(f"{line}\n" for line in answer.remarks)
        kept_answers.keep(store, asked, json.dumps(["".join(answer.said), remarks]), reads)
    return exit_code


def _how_it_looks() -> list[object]:
    """What the streams and the environment say of how text is to be printed."""
    found: list[object] = [os.environ.get(name) for name in ENVIRONMENT]
    for stream in (sys.stdout, sys.stderr):
        found += [stream.isatty(), getattr(stream, "encoding", None)]
        try:
            found.append(os.get_terminal_size(stream.fileno()).columns)
        except (OSError, ValueError):
            found.append(None)
    return found
