"""Files of the laboratory's recordings: records as JSON, and records with arrays as `.npz`.

A recording is a dataclass, and its file has its fields. In an `.npz` they are the JSON `head`, in which an
array is a pair: the file's array that stacks all of its type and shape, and the row there. An `.npz` of
schema 1, from before that, is read as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from memsim.errors import MemsimError
from memsim.files import read_json
from memsim.validate.device import Device, check_record, now, write_record

#: Schemas of records without arrays and with them.
JSON_SCHEMA, ARRAYS_SCHEMA = 1, 2
ARRAYS = ".npz"
R = TypeVar("R")
#: Makes a recording of the head and the arrays of an `.npz` of schema 1, and the name of its source.
Earlier = Callable[[dict[str, Any], dict[str, Any], str], R]


def write_recording(recording: Any, path: Path, replaces: bool = False) -> None:
    """Write a new file. replaces: it may be there, with what the run had so far; an `.npz` may not.

    Raises:
        MemsimError: it exists, or cannot be written.
    """
    alike: dict[str, list[np.ndarray]] = {}

    def to_place(value: object) -> object:
        if not isinstance(value, np.ndarray):
            raise NotImplementedError(f"no field of a recording: {value!r}")
        name = "_".join(map(str, (value.dtype, *value.shape)))
        alike.setdefault(name, []).append(value)
        return name, len(alike[name]) - 1

    fields = msgspec.to_builtins(recording, enc_hook=to_place)
    if path.suffix != ARRAYS:
        write_record({"schema": JSON_SCHEMA, **fields}, path, replaces)
        return
    arrays: dict[str, Any] = {name: np.stack(rows) for name, rows in alike.items()}
    head = msgspec.json.encode({"schema": ARRAYS_SCHEMA, **fields})
    arrays["head"] = np.frombuffer(head, np.uint8)  # as text, it would have four bytes a character
    _write_npz(arrays, path)


def write_arrays(arrays: Mapping[str, Any], path: Path, device: Device, **about: Any) -> None:
    """Write a new `.npz` of arrays by name, and of a `head`: GPU, driver, date, and `about` what they are.

    Raises:
        MemsimError: it exists, or cannot be written.
    """
    if path.exists():
        raise MemsimError("a recording is never overwritten", file=str(path))
    head = {"schema": 1, "gpu": device.gpu, "driver": device.driver, "date": now(), **about}
    _write_npz({"head": np.array(json.dumps(head)), **arrays}, path)


def _write_npz(arrays: dict[str, Any], path: Path) -> None:
    draft = path.with_suffix(f".{os.getpid()}.tmp{ARRAYS}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(draft, **arrays)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise MemsimError(f"cannot write the recording: {error.strerror}", file=str(path)) from None


def read_recording(path: Path, kind: type[R], what: str, earlier: Earlier[R] | None = None) -> R:
    """The recording of that type in a file. what: what is recorded, for errors.

    Raises:
        MemsimError: no such file, another schema, or not such a recording.
    """
    if path.suffix != ARRAYS:
        return check_record(read_json(path, "the recording"), JSON_SCHEMA, kind, str(path))
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        head = arrays["head"]
        head = msgspec.json.decode(head.tobytes() if head.dtype == np.uint8 else str(head))
        schema = head.pop("schema")
        if schema == ARRAYS_SCHEMA:
            return msgspec.convert(head, kind, dec_hook=lambda _, place: arrays[place[0]][place[1]])
        if schema == 1 and earlier is not None:
            return earlier(head, arrays, path.name.partition(".")[0])
    except OSError as error:
        raise MemsimError(f"cannot read the recording: {error.strerror or error}", file=str(path)) from None
    except (
        *(ValueError, KeyError, IndexError, TypeError, EOFError),
        *(zipfile.BadZipFile, msgspec.MsgspecError),
    ) as error:
        raise MemsimError(f"not a recording {what}: {error}", file=str(path)) from None
    raise MemsimError(
        f"a recording of schema {schema!r}; this memsim reads schema {ARRAYS_SCHEMA}", file=str(path)
    )
