"""A progress bar on stderr, only where a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from memsim.views.plain import plain_line

Report: TypeAlias = Callable[[float], None] | None


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """Gives a function that takes the share done, 0 to 1, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(plain_line(title)), total=1.0)
        yield lambda done: bar.update(task, completed=done)
