"""Saves a trace in one file: a versioned `.npz` with the columns and a JSON header.

It is written atomically and contains no pickles, so files from anywhere can be loaded safely.
"""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from memsim.arch.units import WARP
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.files import open_replacement, read_bytes
from memsim.launch import Launch, Natural, Positive
from memsim.npy import read_header
from memsim.trace.footprint import Footprint
from memsim.trace.trace_data import AccessSite, ArrayLayout, Origin, Resources, SeenRace, TraceData

FORMAT = "memsim trace"
SCHEMA = 4

# Limits: headers are checked before anything is unpacked, and a trace takes less than a gigabyte.
MOST_ROWS = 1 << 19
MOST_HEADER = 1 << 26
MOST_INSTRUCTIONS = 1 << 20
MOST_SHARED = 1 << 20  # bytes; more than a block can have
FIRST_BYTES = 1 << 14  # before a column
MOST_TIMES = 1 << 55  # requests of a launch; times the wavefronts of each this fits in 64 bits
MOST_ADDRESS = 1 << 62

# Columns, with one entry (or one row of 32) for each distinct request.
COLUMNS: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
    "site": (np.int32, ()),
    "count": (np.int64, ()),
    "addresses": (np.int64, (WARP,)),
    "active": (np.bool_, (WARP,)),
    "partner": (np.int64, (WARP,)),
    "block": (np.int64, ()),
    "warp": (np.int32, ()),
}


class LaunchHeader(msgspec.Struct):
    """The launch in a header."""

    grid: tuple[Positive, Positive, Positive]
    block: tuple[Positive, Positive, Positive]
    shared_bytes: Natural
    cluster: Any = None  # written; what was replayed does not depend on it any more


class Packed(msgspec.Struct):
    """A listing with unique file names: (address, text, index in `files`, line)."""

    files: list[str]
    rows: list[tuple[int, str, Natural, Natural]]


class Header(msgspec.Struct):
    """The JSON header: all of a trace but its columns."""

    schema: int
    kernel: str
    launch: LaunchHeader
    blocks_replayed: Positive
    sites: tuple[AccessSite, ...]
    arrays: tuple[tuple[str, str, int, Natural], ...]
    sources: dict[str, str]
    notes: tuple[str, ...]
    uncounted: dict[str, Positive]
    uncertain: tuple[str, ...]
    origin: Origin | None
    listing: Packed
    apart: bool
    resources: Resources | None
    blocks_alike: bool
    footprint: Footprint | None
    layouts: dict[str, tuple[str, Positive]]
    races: tuple[SeenRace, ...] = ()


#: Fields of a header that are those of a trace.
SAME = tuple(
    name for name in Header.__struct_fields__ if name not in ("schema", "launch", "listing", "layouts")
)


def save(trace: TraceData, path: str | Path) -> None:
    """Write `trace` to `path`, replacing an existing file.

    Raises:
        MemsimError: the file cannot be written.
    """
    with open_replacement(Path(path), "the trace") as file:
        write(trace, file)


def write(trace: TraceData, file: BinaryIO) -> None:
    """Writes `trace` into an open file."""
    header = np.frombuffer(json.dumps(_header(trace)).encode("ascii"), np.uint8)
    columns = {name: getattr(trace, name).astype(dtype) for name, (dtype, _) in COLUMNS.items()}
    columns |= {"header": header, "writers": trace.writers.astype(np.int32)}
    columns["executed"] = trace.executed.astype(np.int64)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:  # quick
        for name, column in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, column, allow_pickle=False)


def load(path: str | Path) -> TraceData:
    """Reads a trace that `save` wrote.

    Raises:
        MemsimError: no such file, not a trace, cut short or damaged, or of an unknown version.
    """
    return read_trace(read_bytes(Path(path)), str(path))


def read_trace(content: bytes, name: str) -> TraceData:
    """The trace in the bytes of a file; `name` is its name in errors.

    Raises:
        MemsimError: as `load`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            header = json.loads(_array(file, "header", np.uint8, (), MOST_HEADER).tobytes())
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise ValueError("no memsim header")
            if header.get("schema") != SCHEMA:
                raise MemsimError(
                    f"the trace has schema {header.get('schema')!r}; this memsim reads schema {SCHEMA}",
                    file=name,
                    hint="write it again with this version of memsim",
                )
            columns = {
                column: _array(file, column, dtype, shape, MOST_ROWS)
                for column, (dtype, shape) in COLUMNS.items()
            }
            writers = _array(file, "writers", np.int32, (), MOST_SHARED // 4)
            executed = _array(file, "executed", np.int64, (), MOST_INSTRUCTIONS)
    # zipfile and zlib raise many kinds on a file that is not theirs
    except (KeyError, TypeError, ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error,
            NotImplementedError, RecursionError, struct.error) as error:  # fmt: skip
        raise MemsimError(
            f"this is not a complete memsim trace: {error}", file=name, hint="`--save-trace FILE` writes one"
        ) from None
    try:
        return _trace(msgspec.convert(header, Header, strict=True), columns, writers, executed)
    except (msgspec.ValidationError, ValueError, MemsimError) as error:
        raise MemsimError(f"the trace is damaged: {error}", file=name) from None


def _array(
    file: zipfile.ZipFile, name: str, dtype: type[np.generic], shape: tuple[int, ...], most: int
) -> np.ndarray:
    """A column of limited size; its own header is checked before anything is unpacked."""
    entry = file.getinfo(f"{name}.npy")
    if entry.file_size > FIRST_BYTES + most * int(np.prod(shape)) * np.dtype(dtype).itemsize:
        raise ValueError(f"{name} has {entry.file_size:,} bytes")
    with file.open(entry) as packed:
        found, in_columns, kind = read_header(packed)
        if in_columns or kind != dtype or found[1:] != shape or len(found) != 1 + len(shape):
            raise ValueError(f"column {name} is {kind} {found}")
        if found[0] > most:
            raise ValueError(f"{name} has {found[0]:,} rows")
        content = packed.read()  # of the declared size, which was checked
    if len(content) != int(np.prod(found)) * np.dtype(dtype).itemsize:
        raise ValueError(f"{name} is truncated")
    if dtype is np.bool_ and content.translate(None, b"\0\1"):
        raise ValueError(f"{name} is not true or false")
    return np.frombuffer(content, dtype).reshape(found)


def _header(trace: TraceData) -> JsonObject:
    header = Header(
        schema=SCHEMA,
        launch=LaunchHeader(**dataclasses.asdict(trace.launch)),
        listing=_packed(trace.listing),
        layouts={name: (str(each.layout), each.element) for name, each in trace.layouts.items()},
        **{name: getattr(trace, name) for name in SAME},
    )
    return {"format": FORMAT, **msgspec.to_builtins(header, enc_hook=int)}


def _packed(listing: tuple[tuple[int, str, str, int], ...]) -> Packed:
    """A listing with unique file names: a row's third entry is an index in `files`."""
    files = {file: number for number, file in enumerate(dict.fromkeys(file for _, _, file, _ in listing))}
    rows = [(address, text, files[file], line) for address, text, file, line in listing]
    return Packed(list(files), rows)


def _unpacked(packed: Packed) -> tuple[tuple[int, str, str, int], ...]:
    if any(file >= len(packed.files) for _, _, file, _ in packed.rows):
        raise ValueError("the listing refers to a missing file")
    return tuple((address, text, packed.files[file], line) for address, text, file, line in packed.rows)


def _trace(
    header: Header, columns: dict[str, np.ndarray], writers: np.ndarray, executed: np.ndarray
) -> TraceData:
    """The trace, after checking that header and columns are consistent."""
    rows = len(columns["site"])
    launch = Launch(header.launch.grid, header.launch.block, header.launch.shared_bytes)
    _check(all(len(column) == rows for column in columns.values()), "its columns differ in length")
    for column, least, most in (
        ("site", 0, len(header.sites)),
        ("count", 0, MOST_TIMES),
        ("partner", -1, MOST_ADDRESS),
        ("block", 0, launch.blocks),
        ("warp", 0, launch.warps),
    ):
        _check(_inside(columns[column], least, most), f"{column} is out of range")
    _check(_inside(columns["addresses"][columns["active"]], 0, MOST_ADDRESS), "addresses is out of range")
    _check(float(columns["count"].sum(dtype=float)) < MOST_TIMES, "count is out of range")
    _check(_inside(writers, -1, launch.threads), "writers is out of range")
    _check(header.blocks_replayed <= launch.blocks, "more blocks were replayed than there are")
    for _, space, first, size in header.arrays:
        _check(space != "shared" or 0 <= first <= first + size <= MOST_SHARED, "a shared array is too large")
    _check(all(map(str.isprintable, header.uncounted)), "a name is not a line of text")
    listing = _unpacked(header.listing)
    _check(len(executed) in (0, len(listing)), "executions are not one for each instruction")
    _check(_inside(executed, 0, MOST_TIMES), "executed is out of range")
    layouts = {name: _layout(*said) for name, said in header.layouts.items()}
    same: JsonObject = {name: getattr(header, name) for name in SAME}
    return TraceData(
        launch=launch,
        writers=writers,
        listing=listing,
        executed=executed,
        layouts=layouts,
        **{**same, **columns},
    )


def _layout(text: str, element: int) -> ArrayLayout:
    from memsim.layout import Layout

    return ArrayLayout(Layout.parse(text), element)


def _inside(column: np.ndarray, least: int, most: int) -> bool:
    """Whether all values are in [least, most)."""
    return not column.size or bool(least <= column.min() and column.max() < most)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
