"""Reads a `.cu` file and the files that it includes.

There is no preprocessing: an `#include` counts whether or not it is compiled, and one of a macro is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from memsim.compile.paths import include_folders
from memsim.errors import MemsimError
from memsim.files import file_exists, read_bytes

BOM = b"\xef\xbb\xbf"  # of editors on Windows; NVRTC does not skip it
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)


def read_source(source: str | Path) -> tuple[Path | None, str]:
    """(the absolute path, None for text; the text).

    Raises:
        MemsimError: no such file, or not a text file. Bytes that are not UTF-8, as in a comment, are
            preserved.
    """
    if isinstance(source, str) and "\n" in source:
        return None, source
    path = Path(source).absolute()
    try:
        content = read_bytes(path)
    except OSError as error:
        raise MemsimError(f"cannot read {source}: {error.strerror}") from None
    if b"\0" in content:
        raise MemsimError(f"cannot read {source}: not a text file")
    content = content.removeprefix(BOM)
    try:
        return path, content.decode("utf-8")
    except UnicodeDecodeError:
        return path, content.decode("latin-1")  # comments in another encoding


def included_files(text: str, folder: Path, options: Sequence[str]) -> dict[Path, str]:
    """The files that `text`, in `folder`, includes directly or indirectly, with their texts.

    They are looked up in the folder of the including file and in those of `-I`, as the compiler does; the
    compiler's own headers are not included.
    """
    found: dict[Path, str] = {}
    waiting = [(text, folder)]
    while waiting:
        text, here = waiting.pop()
        for path, content in included_by(text, here, folder, options, found):
            found[path] = content
            waiting.append((content, path.parent))
    return found


def included_by(
    text: str, here: Path, folder: Path, options: Sequence[str], known: Container[Path] = ()
) -> Iterator[tuple[Path, str]]:
    """The files, but for known ones, that a text in `here` includes itself, for a source in `folder`."""
    folders = [folder, *include_folders(options)]
    for quoted, system in _INCLUDE.findall(text):
        places = folders if system else [here, *folders]
        path = next(filter(file_exists, (place / (quoted or system) for place in places)), None)
        if path is None or path in known:
            continue
        with suppress(OSError, MemsimError):
            yield path, read_bytes(path).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
