"""The text in which the launches of a source file are read.

It is the file's own, as the options for the compiler make it, and behind it the headers that define the
kernels which it launches, and what those include; `#line` names each. Of the other headers of the project it
has the constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from memsim.compile.included_files import included_by, included_files
from memsim.compile.options import macros_of, of_build
from memsim.files import read_bytes
from memsim.source.kernels import kernels
from memsim.source.launches import launches
from memsim.source.values import with_header_constants, with_kernel_heads, with_macros


def launching_text(text: str, folder: Path, options: Sequence[str]) -> str:
    """The text of a source in a folder, with those headers, and with the macros of the options."""
    macros = macros_of(options)
    included = included_files(text, folder, options)
    texts = (text, *included.values())
    text = with_kernel_heads(text, texts)
    headers = dict(_headers(with_macros(text, macros), folder, options, texts))
    others = [said for path, said in included.items() if path not in headers]
    text = with_header_constants(text, others, macros)
    parts = (f'#line 1 "{path.as_posix()}"\n{said}' for path, said in headers.items())
    return with_macros("\n".join([text, *parts]), macros)


def read_launching_text(path: Path, options: Sequence[str]) -> str:
    """As `launching_text`, of a file, with its options in `compile_commands.json`, too.

    Raises:
        MemsimError: it cannot be read.
    """
    text = read_bytes(path).decode("utf-8", "replace")
    path = path.absolute()
    return launching_text(text, path.parent, [*of_build(path)[0], *options])


def _headers(
    text: str, folder: Path, options: Sequence[str], texts: Sequence[str]
) -> Iterator[tuple[Path, str]]:
    """The headers that define kernels which a text launches but does not define, and those they include.

    All that define kernels if the text neither defines nor launches one. texts: where macros may be defined.
    """
    own = {kernel.plain for kernel in kernels(text)}
    launched = {launch.plain for launch in launches(text)}
    if launched <= own and own:
        return
    for path, written in included_files(text, folder, options).items():
        said = with_kernel_heads(written, texts)
        found = {kernel.plain for kernel in kernels(said)}
        if found - own if not launched else found & (launched - own):
            yield path, said
            yield from included_by(written, path.parent, folder, options)
