"""Paths in compiler options: resolves them, or maps them to a checkout of another revision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

#: Options of NVRTC and nvcc for a folder of headers. A path follows directly, after "=", or as the next one.
SHORT = "-I"
INCLUDE = (SHORT, "--include-path", "-include-path")
#: Those for other folders and files.
OTHERS = ("-isystem", "--system-include", "-idirafter", "-iquote", "-include", "--pre-include")


def split(options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """(`-I`, path) or (`--pre-include`, path) for each option with a path, (option, None) for any other."""
    words = iter(options)
    for option in words:
        name, equals, value = option.partition("=")
        if option in (*INCLUDE, *OTHERS):
            yield option, next(words, None)
        elif equals and name in (*INCLUDE, *OTHERS):
            yield name, value
        elif option.startswith(SHORT):
            yield SHORT, option.removeprefix(SHORT)
        else:
            yield option, None


def include_folders(options: Sequence[str]) -> list[Path]:
    """The folders of headers in the options."""
    return [Path(path).absolute() for name, path in split(options) if name in INCLUDE and path is not None]


def resolved(options: Sequence[str], folder: Path) -> list[str]:
    """The options with all paths relative to `folder` made absolute."""
    return _with_paths(options, lambda path: folder / path)


def moved(options: Sequence[str], folder: Path, repository: Path, tree: Path) -> list[str]:
    """The options of a target in `folder` with paths inside `repository` moved to `tree`.

    Files outside of the repository have no revisions and stay where they are.
    """
    root = repository.resolve()

    def move(path: str) -> Path:
        present = (folder / path).resolve()
        return tree / present.relative_to(root) if present.is_relative_to(root) else present

    return _with_paths(options, move)


def _with_paths(options: Sequence[str], change: Callable[[str], Path]) -> list[str]:
    return [
        name if path is None else f"{name}{'' if name == SHORT else '='}{change(path)}"
        for name, path in split(options)
    ]
