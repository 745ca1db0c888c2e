"""Reads and writes files; writes are atomic.

Failures are `MemsimError`s that name the purpose of the file. Devices and pipes are written in place; only
regular files are read.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from memsim.boundary import check_inside
from memsim.errors import MemsimError, NoSuchFile
from memsim.reads import note_content, note_presence

TomlError = tomllib.TOMLDecodeError


def parse_toml(text: str) -> dict[str, Any]:
    """The values in a text of TOML, which may begin with a byte order mark, as editors on Windows write it.

    Raises:
        TomlError: it is no TOML.
    """
    return tomllib.loads(text.removeprefix("\ufeff"))


def write_text(path: Path, text: str, what: str) -> None:
    """Write text as UTF-8 with its own line ends; `what` is its name in errors.

    Raises:
        MemsimError: the file cannot be written.
    """
    with open_replacement(path, what) as file:
        file.write(text.encode("utf-8", "backslashreplace"))  # it may contain a name that is not UTF-8


@contextmanager
def open_replacement(path: Path, what: str) -> Iterator[BinaryIO]:
    """A file to write to, which replaces the old one when it is complete.

    Raises:
        MemsimError: the file cannot be written.
    """
    try:
        with _in_place(path) if _is_special(path) else _beside(Path(os.path.realpath(path))) as file:
            yield file
    except OSError as error:
        raise MemsimError(f"cannot write {what}: {error.strerror or error}", file=str(path)) from None
    except ValueError as error:  # a name with a NUL in it
        if "null" not in str(error):
            raise
        raise MemsimError(f"cannot write {what}: {error}", file=repr(str(path))) from None


def read_bytes(path: Path, what: str = "it") -> bytes:
    """The contents of a file.

    Raises:
        NoSuchFile: there is none.
        MemsimError: it cannot be read, is not a regular file (a pipe may block forever), or is not to be
            trusted: see `memsim.boundary.check_inside`.
    """
    check_inside(path)
    return read_own(path, what)


def read_own(path: Path, what: str = "it") -> bytes:
    """As `read_bytes`, a file that memsim itself keeps, wherever that is."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise MemsimError(f"cannot read {what}: not a regular file", file=str(path))
        content = path.read_bytes()
        note_content(path, content)
        return content
    except FileNotFoundError:
        note_content(path, None)
        raise NoSuchFile(str(path)) from None
    except OSError as error:
        raise MemsimError(f"cannot read {what}: {error.strerror}", file=str(path)) from None
    except ValueError as error:  # a name with a NUL in it
        raise MemsimError(f"cannot read {what}: {error}", file=repr(str(path))) from None


def read_text(path: Path, what: str = "it") -> str:
    """The contents of a UTF-8 text file; as `read_bytes`, and an error if it is not UTF-8."""
    try:
        return read_bytes(path, what).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise MemsimError(f"cannot read {what}: it is not UTF-8 text", file=str(path)) from None


def read_json(path: Path, what: str = "it") -> Any:
    """The contents of a JSON file; as `read_bytes`, and an error if it is not JSON.

    Lone surrogates, which Python's own reader accepts but cannot write, are rejected.
    """
    import msgspec

    content = read_bytes(path, what)
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:  # DecodeError and UnicodeDecodeError are ValueErrors
        raise MemsimError(f"cannot read {what}: it is not valid JSON: {error}", file=str(path)) from None


# `Path.is_file` and `Path.is_dir` raise if a name is too long.


def file_exists(path: Path) -> bool:
    """Whether there is a file of that name; False for an invalid name."""
    is_there = os.path.isfile(path)  # noqa: PTH113
    note_presence(path, is_there)
    return is_there


def folder_exists(path: Path) -> bool:
    """Whether there is a folder of that name."""
    return os.path.isdir(path)  # noqa: PTH112


def _is_special(path: Path) -> bool:
    """Is it a device or a pipe? (Writing to a folder fails by itself.)"""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def _in_place(path: Path) -> Iterator[BinaryIO]:
    # Non-blocking: a pipe without a reader is an error.
    with os.fdopen(os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)), "wb") as file:
        os.set_blocking(file.fileno(), True)
        yield file


@contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
    draft = path.with_name(f".memsim-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
        with suppress(FileNotFoundError):
            draft.chmod(stat.S_IMODE(path.stat().st_mode))
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
