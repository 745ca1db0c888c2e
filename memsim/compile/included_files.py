"""Reads a `.cu` file and the files that it includes, or that lie beside a compiled file of the user's.

There is no preprocessing: an `#include` counts whether or not it is compiled, and one of a macro is not seen.
`literal_includes` reads the lines so that none escapes (what a compiler opens, it may also print): there,
lines in comments that begin as directives do count. Digests of a compiled file and the sources beside it are
kept in baselines, because a compiled file does not tell what its source was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from memsim.compile.options import include_folders
from memsim.errors import MemsimError
from memsim.files import file_exists, read_bytes
from memsim.reads import note_stamp

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
    content = read_bytes(path)
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


# A backslash, or the trigraph of one, at the end of a line joins the next one to it.
_SPLICE = re.compile(r"(?:\\|\?\?/)[^\S\n]*\n")
# Only blanks and comments may stand before a directive; one that ends there may have begun anywhere. Behind
# the `#`, a comment may hide any directive.
_DIRECTIVE = re.compile(
    r"^(?:[^\n]*\*/)?[^\S\n]*(?:\#|%:|\?\?=)[^\S\n]*(?:/\*|(?:include|import|embed)[^\n]*)", re.M
)
_LITERAL = re.compile(r'[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)[^\n]*')


def literal_includes(text: str) -> list[str] | None:
    """The names of the files that a text includes; None if one of them is not written out.

    That is so of a macro's, and of a line that is written to look like another one.
    """
    text = text.replace("\r", "\n")
    joined, written = _DIRECTIVE.findall(_SPLICE.sub("", text)), {*_DIRECTIVE.findall(text)}
    found = [_LITERAL.fullmatch(line) if line in written else None for line in joined]
    return [name[1] or name[2] for name in found if name is not None] if all(found) else None


SOURCES = (".cu", ".cuh", ".cpp", ".cc")
DIGITS = 16  # of a digest: enough to see that a file has changed


@dataclass(frozen=True, slots=True)
class Given:
    """files: digests by name, relative to its folder, its own first. newer: sources modified after it.

    named: the source names in the code, whether they exist or not.
    """

    files: tuple[tuple[str, str], ...]
    newer: tuple[str, ...]
    named: tuple[str, ...] = ()


def look_at(compiled: Path, named: Iterable[Path]) -> Given:
    """The file, the sources that it names, and `k.cu` beside `k.ptx` with its headers."""
    beside = [path for suffix in SOURCES if file_exists(path := compiled.with_suffix(suffix))]
    headers = [header for path in beside for header in included_files(_text(path), path.parent, ())]
    sources = {path.resolve(): path for path in (*named, *beside, *headers)}
    for file in (compiled, *sources.values()):
        note_stamp(file)
    made = compiled.stat().st_mtime_ns
    digests = {_name(path, compiled): _digest(path) for path in (compiled, *sources.values())}
    newer = (path for path in sources.values() if path.stat().st_mtime_ns > made)
    return Given(tuple(digests.items()), tuple(_name(path, compiled) for path in newer))


def _name(path: Path, compiled: Path) -> str:
    try:
        return Path(os.path.relpath(path, compiled.parent)).as_posix()
    except ValueError:  # another drive of Windows
        return path.as_posix()


def _text(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "replace")


def _digest(path: Path) -> str:
    return sha256(read_bytes(path)).hexdigest()[:DIGITS]
