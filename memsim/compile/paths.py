"""Paths in compiler options: resolves them, or maps them to a checkout of another revision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

# The spellings of NVRTC and nvcc. A path follows directly, after "=", or as the next option.
SHORT = ("-I",)
LONG = (
    "--include-path",
    "-isystem",
    "--system-include",
    "-idirafter",
    "-iquote",
    "-include",
    "--pre-include",
)


def resolved(options: Sequence[str], folder: Path) -> list[str]:
    """The options with all paths relative to `folder` made absolute."""
    return list(_with_paths(options, lambda path: folder / path))


def moved(options: Sequence[str], folder: Path, repository: Path, tree: Path) -> list[str]:
    """The options of a target in `folder` with paths inside `repository` moved to `tree`.

    Files outside of the repository have no revisions and stay where they are.
    """
    root = repository.resolve()

    def move(path: str) -> Path:
        present = (folder / path).resolve()
        return tree / present.relative_to(root) if present.is_relative_to(root) else present

    return list(_with_paths(options, move))


def _with_paths(options: Sequence[str], change: Callable[[str], Path]) -> Iterator[str]:
    is_path = False
    for option in options:
        name, equals, value = option.partition("=")
        if is_path:
            yield str(change(option))
            is_path = False
        elif option in (*SHORT, *LONG):
            yield option
            is_path = True
        elif equals and name in (*SHORT, *LONG):
            yield f"{name}={change(value)}"
        elif option.startswith(SHORT):
            yield f"{option[:2]}{change(option[2:])}"
        else:
            yield option
