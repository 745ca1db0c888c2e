"""Checks that passed, of which nothing has changed since: they pass again, and nothing is worked out.

Kept is the verdict with all that was read on the way to it (`memsim.reads`): the configuration, the baseline,
sources and headers, compiled kernels, files of arguments, and the tools by size and time. What decides beside
these is in the key: memsim's own code, where and how it was asked, and where tools are looked for. Where a
target is read by something that memsim does not see, such as nvcc, nothing is kept.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from memsim.compile.toolkit import wheel_folders
from memsim.data import data_folder
from memsim.reads import CONTENT, Reads, digest, stamp
from memsim.store import Store

#: Variables that say where tools, libraries and headers are.
PLACES = ("PATH", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")


def question(store: Store, config: Path | None, patterns: Sequence[str]) -> str:
    """The key of a check of the targets that the patterns name, in the folder of the moment."""
    wheels = [(str(folder), stamp(folder)) for folder in wheel_folders("nvidia")]
    places = [os.environ.get(name) for name in PLACES]
    asked = [str(Path.cwd()), str(config), list(patterns)]
    return json.dumps(["passed", own_code(store), sys.prefix, sys.version, wheels, places, asked])


def own_code(store: Store) -> str:
    """A digest of memsim's code and of the catalogue's file.

    Files of the same size and time as before are not read again: Python trusts these, too, for its bytecode.
    """
    root = Path(__file__).parents[1]
    files = [*sorted(root.rglob("*.py")), data_folder("kernels") / "catalog.toml"]
    key = json.dumps(["own code", [(str(file), stamp(file)) for file in files]])
    known = store.get(key)
    if known is None:
        all_of_it = sha256()
        for file in files:
            all_of_it.update(file.name.encode() + b"\0" + sha256(file.read_bytes()).digest())
        known = all_of_it.hexdigest().encode()
        store.put(key, known)
    return known.decode()


def verdict_of(store: Store, asked: str) -> str | None:
    """The verdict of a check that passed, if it still does; None if that has to be worked out."""
    kept = store.get(asked)
    if kept is None:
        return None
    verdict, seen = json.loads(kept)
    return verdict if Reads({(kind, path): found for kind, path, found in seen}).hold else None


def keep(store: Store, asked: str, verdict: str, reads: Reads) -> None:
    """Keeps the verdict of a check that passed, unless something changed meanwhile."""
    import numpy as np  # it fills random arrays

    version = Path(np.__file__).with_name("version.py")
    reads.note(CONTENT, version, digest(version.read_bytes()))
    if reads.hold:
        seen = [[kind, path, found] for (kind, path), found in reads.seen.items()]
        store.put(asked, json.dumps([verdict, seen]).encode())
