"""Files of recordings, never overwritten: JSON validated by types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from msgspec import Meta

from memsim.errors import MemsimError
from memsim.files import read_json, write_text

# Types of the fields of recordings, by which `check_record` validates files.
Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Chip = Annotated[str, Meta(pattern=r"^sm_\d+[a-z]?$")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="UTC")]
Dim3 = tuple[Positive, Positive, Positive]

T = TypeVar("T")


def now() -> str:
    """The date of a recording: UTC, ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_record(path: Path) -> Any:
    """The contents of a file, unvalidated.

    Raises:
        MemsimError: no such file, or not JSON.
    """
    try:
        return read_json(path, "the recording")
    except FileNotFoundError as error:
        raise MemsimError(f"cannot read the recording: {error.strerror}", file=str(path)) from None


def check_record(record: Any, version: int, document: type[T], file: str | None = None) -> T:
    """A record of schema `version`, validated as type `document`.

    Raises:
        MemsimError: it is invalid.
    """
    _check_schema(record.get("schema") if isinstance(record, dict) else None, version, file)
    try:
        found = msgspec.convert(record, document)
    except (msgspec.ValidationError, ValueError) as error:
        raise MemsimError(f"not a recording: {error}", file=file) from None
    unknown = _unknown(record, {"schema": version, **msgspec.to_builtins(found)})
    if unknown is not None:
        raise MemsimError(f"not a recording: unknown field `{unknown}`", file=file)
    return found


def _unknown(record: Any, known: Any) -> str | None:
    """A field that is in `record`, or in objects inside it, and not in `known`; None if there is none."""
    found: Iterable[str | None] = ()
    if isinstance(record, dict):
        found = (key if key not in known else _unknown(value, known[key]) for key, value in record.items())
    elif isinstance(record, list) and record and isinstance(record[0], dict):
        found = map(_unknown, record, known)
    return next(filter(None, found), None)


def write_record(record: dict[str, Any], path: Path, replaces: bool = False) -> None:
    """Write a new file atomically. replaces: it may be there, with what the same run had so far.

    Raises:
        MemsimError: the file exists, or cannot be written.
    """
    if path.exists() and not replaces:
        raise MemsimError("a recording is never overwritten", file=str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MemsimError(f"cannot write the recording: {error.strerror}", file=str(path)) from None
    write_text(path, _text(record) + "\n", "the recording")


def _check_schema(found: object, version: int, file: str | None) -> None:
    if found != version:
        raise MemsimError(f"a recording of schema {found!r}; this memsim reads schema {version}", file=file)


class Dated(Protocol):
    """A recording with its date."""

    @property
    def date(self) -> str: ...


D = TypeVar("D", bound=Dated)


def newest(
    folder: Path, paths: Iterable[Path], load: Callable[[Path], D], gpu: str | None, what: str, command: str
) -> D:
    """The newest recording of `paths`; arguments and errors as of `on_gpu`."""
    return max(map(load, on_gpu(folder, paths, gpu, what, command)), key=lambda recording: recording.date)


def on_gpu(folder: Path, paths: Iterable[Path], gpu: str | None, what: str, command: str) -> list[Path]:
    """The files below `folder` of the GPU with that folder name, or of any; sorted.

    what, command: what is recorded, and what records it, for the error.

    Raises:
        MemsimError: there is none; the hint lists the GPUs with recordings.
    """
    found = {path: path.relative_to(folder).parts[0] for path in sorted(paths)}
    fitting = [path for path, name in found.items() if gpu in (None, name)]
    if not fitting:
        there = ", ".join(sorted(set(found.values())))
        raise MemsimError(
            f"there is no recording {what}" + (f" on {gpu}" if gpu else ""),
            hint=f"there are: {there}" if there else f"{command} makes one, on a machine with a GPU",
        )
    return fitting


def free_path(home: Path, stem: str, suffix: str = ".json") -> Path:
    """`STEM.json` in the folder `home`, or the first unused of `STEM.run2.json` and so on."""
    names = (stem + (f".run{run}" if run > 1 else "") + suffix for run in count(1))
    return next(home / name for name in names if not (home / name).exists())


def _text(value: Any, indent: str = "") -> str:
    """JSON with one line per item, and lists of plain values on one line, readable and easy to diff."""
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}" if items else "{}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (list, tuple, dict)) for item in value):
        return "[\n" + ",\n".join(inner + _text(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value)
