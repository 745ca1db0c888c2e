"""Cache of compiled forms.

The key is the contents of all files that the compiler reads, the options, and the tools themselves. Nothing
is cached if these are not known before the compiler runs: an `#include` of a macro, `__has_include`, options
that read other files, `nvcc` with the system's headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from memsim.boundary import confinement
from memsim.compile.assemble import assemble_ptx
from memsim.compile.cuda_source import SET_ASIDE, compile_cubin
from memsim.compile.included_files import included_files, literal_includes
from memsim.compile.libraries import NVRTC
from memsim.compile.options import INCLUDE, OTHERS, of_build, split_options
from memsim.compile.prepare import Compiled, Names, check_options
from memsim.compile.toolkit import find_tool, header_folders, identity
from memsim.files import read_bytes
from memsim.store import current

VERSION = 2  # of the cache format and of what determines its contents
OTHER_FILES = ("@", "-optf", "--options-file", *OTHERS)

_SPLICE = re.compile(r"\\[ \t]*\r?\n|/\*.*?\*/", re.S)
_QUESTION = re.compile(r"__has_(?:include|embed)")


def compiled_source(
    source: str | Path,
    options: Sequence[str],
    arch: str,
    name: str | None,
    compiler: str | None,
    instances: Sequence[str] = (),
) -> Compiled:
    """As `memsim.compile.cuda_source.compile_cubin`; only files are cached, not texts."""

    def make() -> Compiled:
        return compile_cubin(source, options, arch, name, compiler, instances)

    if not isinstance(source, Path) or compiler == "nvcc":
        return make()
    called = name or source.as_posix()
    read = what_is_read(source, options, called)
    if read is None:
        return make()
    # What was compiled by trust is looked at anew where there is none.
    how = [compiler, list(instances), confinement() is not None]
    return _kept(["source", called, arch, how, read], make, _by_nvrtc)


def assemble_cached(ptx: str, arch: str, name: str) -> Compiled:
    """As `memsim.compile.assemble.assemble_ptx`."""
    tool = find_tool("ptxas", wheels_first=False)
    if tool is None:
        return assemble_ptx(ptx, arch, name)
    read = [sha256(ptx.encode()).hexdigest(), identity(tool)]
    return _kept(["ptx", name, arch, read], lambda: assemble_ptx(ptx, arch, name), lambda _: True)


def _by_nvrtc(compiled: Compiled) -> bool:
    """Host code removal looks up headers in other folders, too."""
    return compiled.compiler.startswith("NVRTC") and SET_ASIDE not in compiled.compiler


def what_is_read(path: Path, options: Sequence[str], name: str) -> list[object] | None:
    """Everything but the chip that determines NVRTC's output for a source; None if unknown before it runs.

    The digests of the source and of its headers by name, the options, those of a build system first, except
    include folders, the library, and the folders of its own headers.

    Raises:
        MemsimError: an option that asks for more than is trusted.
    """
    if confinement() is not None:
        check_options(options)
    library, (told, commands) = NVRTC.path(), of_build(path.absolute())
    options = [*told, *options]
    if library is None or any(option.startswith(OTHER_FILES) for option in options):
        return None
    try:
        text = read_bytes(path).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    true_name = path.absolute()
    names = Names(((true_name.as_posix(), name),))
    headers = included_files(text, true_name.parent, [f"-I{true_name.parent}", *options])
    texts = {name: text, **{names.name_of(found.as_posix()): header for found, header in headers.items()}}
    if not all(map(_is_plain, texts.values())):
        return None
    digests = {
        called: sha256(content.encode("utf-8", "surrogateescape")).hexdigest()
        for called, content in texts.items()
    }
    own = [identity(folder / "cuda_fp16.h") for folder in header_folders()]
    # Of folders of headers only the headers matter that are read.
    kept = [name for name, _ in split_options(options) if name not in INCLUDE]
    return [digests, kept, str(commands), identity(library), own]


def _is_plain(text: str) -> bool:
    """Whether all included headers are named literally, so that they can be found."""
    return _QUESTION.search(_SPLICE.sub(" ", text)) is None and literal_includes(text) is not None


def _kept(
    parts: list[object], make: Callable[[], Compiled], may_be_kept: Callable[[Compiled], bool]
) -> Compiled:
    store = current()
    if store is None:
        return make()
    key = json.dumps([VERSION, *parts], sort_keys=True)
    value = store.get(key)
    if value is not None:
        try:
            return msgspec.msgpack.decode(value, type=Compiled)
        except msgspec.DecodeError:  # of another version of memsim
            pass
    made = make()
    if may_be_kept(made):
        with suppress(UnicodeEncodeError):  # a name or comment that is not UTF-8
            store.put(key, msgspec.msgpack.encode(made))
    return made
