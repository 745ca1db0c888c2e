"""Determines what is compiled and with which options: defaults, `compile_commands.json` and the user's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.compile.build import CompilerInput
from memsim.compile.included_files import default_standard, read_source
from memsim.compile.options import of_build


def prepare(
    source: str | Path, options: Sequence[str], name: str | None
) -> tuple[CompilerInput, list[str], tuple[str, ...]]:
    """(the source; its options: -lineinfo, those of `compile_commands.json`, the user's; notes).

    Raises:
        MemsimError: no such file, or not a text file.
    """
    path, text = read_source(source)
    name = name or (Path(source).as_posix() if path else "kernel.cu")
    folder = path.parent if path else Path.cwd()
    told, commands = of_build(path) if path else ([], None)
    notes = (f"options of {commands}: {' '.join(told)}",) if commands is not None and told else ()
    given = [*told, *options]
    return (
        CompilerInput(text, path, folder, name),
        ["-lineinfo", *default_standard(given), f"-I{folder}", *given],
        notes,
    )
