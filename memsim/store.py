"""A persistent cache of values by key, in a folder of the user's.

An entry holds its key and a digest of its value, and is valid only if both match; a file that is damaged,
unreadable or unwritable counts as missing. Old entries are not evicted; the folder may be deleted at any
time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

from memsim.errors import MemsimError
from memsim.files import open_replacement, read_own
from memsim.reads import watch_reads

FOLDER_VARIABLE = "MEMSIM_CACHE_DIR"
MAGIC = b"memsim 2\n"
DIGEST = 32  # bytes of SHA-256


def cache_folder() -> Path:
    """This user's cache folder; `MEMSIM_CACHE_DIR` overrides it."""
    if os.environ.get(FOLDER_VARIABLE):
        return Path(os.environ[FOLDER_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("memsim", appauthor=False)


class Store:
    """A folder of entries: magic, the key's length in 8 bytes, the key, SHA-256 of the value, the value."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """The entry's file."""
        return self.folder / f"{sha256(key.encode()).hexdigest()}.kept"

    def get(self, key: str) -> bytes | None:
        """The value, None if it is missing."""
        try:
            with watch_reads():  # the cache itself is not an input of a result
                entry = read_own(self.path(key))
        except (OSError, MemsimError):
            return None
        head = _head(key)
        digest, value = entry[len(head) : len(head) + DIGEST], entry[len(head) + DIGEST :]
        return value if entry.startswith(head) and sha256(value).digest() == digest else None

    def has(self, key: str) -> bool:
        """Whether there is an entry; only `get` validates it."""
        return self.path(key).is_file()

    def put(self, key: str, value: bytes) -> None:
        """Store the value atomically."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open_replacement(self.path(key), "it") as file:
                file.write(_head(key) + sha256(value).digest() + value)
        except (OSError, MemsimError):
            return


def _head(key: str) -> bytes:
    text = key.encode()
    return MAGIC + len(text).to_bytes(8, "little") + text


_current: ContextVar[Store | None] = ContextVar("store", default=None)


def current() -> Store | None:
    """The store in use; None: there is none."""
    return _current.get()


@contextmanager
def kept_in(folder: Path | None) -> Iterator[Store | None]:
    """Uses the store in `folder` inside the context; None: none."""
    store = None if folder is None else Store(folder)
    token = _current.set(store)
    try:
        yield store
    finally:
        _current.reset(token)
