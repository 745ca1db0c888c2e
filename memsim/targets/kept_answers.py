"""Cache of answers: if nothing has changed since, a verb says what it said, without any computation.

An answer is stored with everything that was read (`memsim.reads`): the configuration, the baseline, sources
and headers, compiled kernels, argument files, and the tools by size and time. The key has everything else:
memsim's own code, the working folder and options, and tool search paths. Nothing is cached if a target is
read by something that memsim cannot observe, such as nvcc.
"""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from pathlib import Path

from memsim.boundary import confinement
from memsim.compile.toolkit import wheel_folders
from memsim.data import data_folder
from memsim.reads import CONTENT, Reads, digest, stamp
from memsim.store import Store

#: Environment variables that locate tools, libraries and headers.
PLACES = ("PATH", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")


def question(store: Store, *words: object) -> str:
    """The key of what is asked in these words, in the current folder."""
    wheels = [(str(folder), stamp(folder)) for folder in wheel_folders("nvidia")]
    places = [os.environ.get(name) for name in PLACES]
    asked = [str(Path.cwd()), *map(str, words), confinement() is not None]
    return json.dumps(["passed", own_code(store), sys.prefix, sys.version, wheels, places, asked])


def own_code(store: Store | None = None) -> str:
    """A digest of memsim's code and of the catalogue's file.

    With a store, files of unchanged size and time are not read again, as Python does for its bytecode.
    """
    root = Path(__file__).parents[1]
    folders = os.walk(root)  # a fifth of the time that `rglob` takes, at every start
    code = (os.path.join(folder, name) for folder, _, names in folders for name in names)  # noqa: PTH118
    files = sorted(file for file in code if file.endswith(".py"))
    files.append(str(data_folder("kernels") / "catalog.toml"))
    key = json.dumps(["own code", [(file, stamp(file)) for file in files]])
    known = store.get(key) if store is not None else None
    if known is None:
        all_of_it = sha256()
        for file in files:
            path = Path(file)
            all_of_it.update(path.name.encode() + b"\0" + sha256(path.read_bytes()).digest())
        known = all_of_it.hexdigest().encode()
        if store is not None:
            store.put(key, known)
    return known.decode()


def answer_to(store: Store, asked: str) -> str | None:
    """The cached answer if it is still valid, else None."""
    kept = store.get(asked)
    if kept is None:
        return None
    answer, seen = json.loads(kept)
    return answer if Reads({(kind, path): found for kind, path, found in seen}).hold else None


def keep(store: Store, asked: str, answer: str, reads: Reads) -> None:
    """Cache an answer, unless something changed meanwhile."""
    import numpy as np  # it generates random arrays

    version = Path(np.__file__).with_name("version.py")
    reads.note(CONTENT, version, digest(version.read_bytes()))
    if reads.hold:
        seen = [[kind, path, found] for (kind, path), found in reads.seen.items()]
        store.put(asked, json.dumps([answer, seen]).encode())
