"""A trace in one file: a versioned `.npz` with the columns and a JSON header.

In: a `Trace` and a path, or a path alone. Out: a file, or the same `Trace` again. The file
appears whole or not at all. Left out on purpose: pickles, so a file can be loaded from anybody.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.files import writing
from memsim.launch import WARP, Launch
from memsim.trace.trace import AccessSite, Origin, Trace

FORMAT = "memsim trace"
SCHEMA = 2

# What a row holds; every column has one entry (or one row of 32) for each distinct request.
COLUMNS: dict[str, tuple[type[np.generic], tuple[int, ...]]] = {
    "site": (np.int32, ()),
    "count": (np.int64, ()),
    "addresses": (np.int64, (WARP,)),
    "active": (np.bool_, (WARP,)),
    "partner": (np.int64, (WARP,)),
    "block": (np.int64, ()),
    "warp": (np.int32, ()),
}


def save(trace: Trace, path: str | Path) -> None:
    """Writes `trace` to `path`, replacing a file that is there.

    Raises:
        MemsimError: the file cannot be written.
    """
    header = np.frombuffer(json.dumps(_header(trace), default=int).encode("ascii"), np.uint8)
    columns = {name: getattr(trace, name).astype(dtype) for name, (dtype, _) in COLUMNS.items()}
    with writing(Path(path), "the trace") as file:
        np.savez_compressed(
            file,
            header=header,
            writers=trace.writers.astype(np.int32),
            executed=trace.executed.astype(np.int64),
            **columns,
        )


def load(path: str | Path) -> Trace:
    """Reads a trace that `save` wrote.

    Raises:
        MemsimError: no such file, not a trace, cut short or damaged, or of an unknown version.
    """
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        header = json.loads(stored.pop("header").tobytes())
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ValueError("no memsim header")
    except FileNotFoundError:
        raise MemsimError("no such file", file=str(path)) from None
    except OSError as error:
        raise MemsimError(f"cannot read it: {error.strerror or error}", file=str(path)) from error
    except Exception as error:  # numpy, zipfile and zlib raise many kinds on a file that is not theirs
        raise MemsimError(
            "this is not a whole memsim trace", file=str(path), hint="`--save-trace FILE` writes one"
        ) from error

    if header.get("schema") not in (1, SCHEMA):
        raise MemsimError(
            f"the trace has schema {header.get('schema')!r}; this memsim reads schema {SCHEMA}",
            file=str(path),
            hint="write it again with this version of memsim",
        )
    try:
        if header["schema"] == 1:
            stored["partner"] = _partner_of_schema_1(header, len(stored["site"]), str(path))
        return _trace(header, stored)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise MemsimError(f"the trace is damaged: {error}", file=str(path)) from error


def _partner_of_schema_1(header: dict[str, Any], rows: int, file: str) -> np.ndarray:
    """The column that schema 1 did not have.

    Raises:
        MemsimError: an access whose cost cannot be told without what schema 1 left out.
    """
    ops = {(site["space"], site["op"].partition("_")[0]) for site in header["sites"]}
    if ops & {("shared", "atomic"), ("shared", "reduction"), ("shared", "cp")}:
        raise MemsimError(
            "the trace has schema 1, which kept too little of cp.async and of atomics on shared memory",
            file=file,
            hint="write it again with this version of memsim",
        )
    return np.full((rows, WARP), -1, np.int64)


def _header(trace: Trace) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "kernel": trace.kernel,
        "launch": dataclasses.asdict(trace.launch),
        "blocks_replayed": trace.blocks_replayed,
        "sites": [dataclasses.asdict(site) for site in trace.sites],
        "arrays": trace.arrays,
        "sources": trace.sources,
        "notes": trace.notes,
        "unsure": trace.unsure,
        "origin": None if trace.origin is None else dataclasses.asdict(trace.origin),
        "listing": _packed(trace.listing),
    }


def _packed(listing: tuple[tuple[int, str, str, int], ...]) -> dict[str, list[Any]]:
    """A listing with each file's name once: a row's third entry is the name's place in `files`."""
    files = {file: number for number, file in enumerate(dict.fromkeys(file for _, _, file, _ in listing))}
    rows = [(address, text, files[file], line) for address, text, file, line in listing]
    return {"files": list(files), "rows": rows}


def _unpacked(packed: dict[str, list[Any]]) -> tuple[tuple[int, str, str, int], ...]:
    files = dict(enumerate(packed["files"]))
    return tuple(
        (int(address), str(text), files[file], int(line)) for address, text, file, line in packed["rows"]
    )


def _trace(header: dict[str, Any], columns: dict[str, np.ndarray]) -> Trace:
    """The trace, after a check that header and columns belong together."""
    launch = header["launch"]
    sites = tuple(AccessSite(**site) for site in header["sites"])
    rows = len(columns["site"])
    for name, (dtype, shape) in COLUMNS.items():
        if columns[name].dtype != dtype or columns[name].shape != (rows, *shape):
            raise ValueError(f"column {name} is {columns[name].dtype} {columns[name].shape}")
    if columns["writers"].dtype != np.int32 or columns["writers"].ndim != 1:
        raise ValueError("writers are not int32 in a row")
    listing = _unpacked(header.get("listing", {"files": [], "rows": []}))
    executed = columns.get("executed", np.zeros(0, np.int64))
    if executed.dtype != np.int64 or executed.shape not in ((0,), (len(listing),)):
        raise ValueError("executions are not int64, one for each instruction")
    if rows and not 0 <= columns["site"].min() <= columns["site"].max() < len(sites):
        raise ValueError("a row names a site that is not there")
    return Trace(
        kernel=header["kernel"],
        launch=Launch(tuple(launch["grid"]), tuple(launch["block"]), launch["shared_bytes"]),
        blocks_replayed=header["blocks_replayed"],
        sites=sites,
        arrays=tuple((name, space, first, size) for name, space, first, size in header["arrays"]),
        sources=header["sources"],
        notes=tuple(header["notes"]),
        writers=columns["writers"],
        unsure=tuple(header.get("unsure", ())),
        origin=None if header.get("origin") is None else Origin(**header["origin"]),
        listing=listing,
        executed=executed,
        **{name: columns[name] for name in COLUMNS},
    )
