"""Reads a trace in another tool's format, and writes one as Accel-Sim's `.traceg`; compressed or not.

Only requests to shared and global memory are written, as machine instructions without registers. A trace has
each distinct request once; a repeated one is written repeatedly with the addresses, block and warp where it
was first seen.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsim.errors import MemsimError, NoSuchFile
from memsim.files import open_replacement
from memsim.launch import Launch, coordinates_of
from memsim.trace.foreign.accelsim import BASE_DELTA, BASE_STRIDE, AccelSimReader
from memsim.trace.foreign.nvbit import read_nvbit
from memsim.trace.record import Recorder
from memsim.trace.suffixes import NVBIT, WRITTEN, is_accelsim, plain_name, suffix_of
from memsim.trace.trace_data import AccessSite, TraceData

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
#: Characters of a line: a request takes under a thousand, a kernel's name some thousands.
LONGEST = 1 << 20


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end).

    Raises:
        MemsimError: it cannot be read, is damaged, or is not text.
    """
    number = 0
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
            while line := file.readline(LONGEST):
                number += 1
                if len(line) == LONGEST:
                    raise MemsimError(
                        f"this line has {LONGEST:,} characters or more", file=str(path), line=number
                    )
                yield number, line.rstrip("\r\n")
    except FileNotFoundError:
        raise NoSuchFile(str(path)) from None
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise MemsimError(f"the file is damaged or truncated: {error}", file=str(path)) from None
    except UnicodeDecodeError:
        raise MemsimError("this is not text", file=str(path), line=number + 1) from None
    except OSError as error:
        raise MemsimError(f"cannot read it: {error.strerror or error}", file=str(path)) from None


def read_foreign(
    path: Path, kernel: str | None = None, recorder: Callable[[], Recorder] = Recorder
) -> TraceData:
    """The trace in a file of Accel-Sim (`.traceg`) or of NVBit's mem_trace (`.txt`, `.log`, `.memtrace`).

    The file may be compressed (`.gz`, `.xz`).

    Args:
        kernel: which launch of an NVBit file, by the kernel's name or the launch's number; None if it has
            only one. An Accel-Sim file has one.
        recorder: creates the recorder of distinct requests.

    Raises:
        MemsimError: it cannot be read, has another format, or is damaged; with the line.
    """
    if suffix_of(path) in NVBIT:
        return read_nvbit(path, lambda: lines_of(path), kernel, recorder)
    if kernel is not None:
        raise MemsimError("an Accel-Sim trace has one kernel: do not choose one", file=str(path))
    lines = lines_of(path)
    first = list(islice(lines, 1))
    if first and first[0][1].startswith("kernel"):
        raise MemsimError(
            "this is a list of kernels", file=str(path), hint="pass one of the .traceg files in it"
        )
    return AccelSimReader(path, recorder).read(chain(first, lines))


#: The declared start of the windows of shared and local memory: multiples of 16 MiB, as on the chip.
SHARED_BASE, LOCAL_BASE = 0x00007F0000000000, 0x00007F0002000000
VERSION = 4

NAMES = {
    **{("shared", "load"): "LDS", ("shared", "store"): "STS"},
    **{("shared", "atomic"): "ATOMS.EXCH", ("shared", "reduction"): "ATOMS.ADD"},
    **{("shared", "atomic_inc"): "ATOMS.POPC.INC", ("shared", "atomic_cas"): "ATOMS.CAS"},
    **{("global", "load"): "LDG.E", ("global", "store"): "STG.E"},
    **{("global", "atomic"): "ATOMG.E.ADD", ("global", "reduction"): "RED.E.ADD"},
    **{("shared", "cp_async"): "LDGSTS.E", ("shared", "cp_async_cg"): "LDGSTS.E.BYPASS"},
}
BITS = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128"}
MATRICES = {"ldmatrix": "LDSM.16.M88", "stmatrix": "STSM.16.M88"}


def write_accelsim(trace: TraceData, path: str | Path) -> None:
    """Write `trace` to `path`, such as `kernel-1.traceg` or `kernel-1.traceg.xz`, replacing an existing file.

    Raises:
        MemsimError: not a name of an Accel-Sim trace, an unresolved access, or the file cannot be written.
    """
    path = Path(path)
    if not is_accelsim(path):
        hint = f"call it {plain_name(path).partition('.')[0]}{WRITTEN}, or .npz for memsim's own format"
        raise MemsimError("a trace is written in Accel-Sim's format", file=str(path), hint=hint)
    lost = next((site for site in trace.sites if site.unresolved is not None), None)
    if lost is not None:
        raise MemsimError(f"{lost.instruction} could not be analyzed, so the trace is incomplete")
    with open_replacement(path, "the trace") as file:
        packed = OPENERS[path.suffix](file, "wb") if path.suffix in OPENERS else file
        with TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
            text.writelines(line + "\n" for line in _lines(trace))


def _lines(trace: TraceData) -> Iterator[str]:
    launch = trace.launch
    yield f"-kernel name = {trace.kernel}"
    yield "-kernel id = 1"
    yield f"-grid dim = {_dim(launch.grid)}"
    yield f"-block dim = {_dim(launch.block)}"
    yield f"-shmem = {max(trace.launch.shared_bytes, trace.shared_end)}"
    yield "-nregs = 32"
    yield "-binary version = 90"
    yield "-cuda stream id = 0"
    yield f"-shmem base_addr = {SHARED_BASE:#018x}"
    yield f"-local mem base_addr = {LOCAL_BASE:#018x}"
    yield "-nvbit version = none"
    yield f"-accelsim tracer version = {VERSION}"
    yield "-enable lineinfo = 0"
    yield ""
    yield (
        "#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width "
        "[adrrescompress?] [mem_addresses]"
    )
    written = _written_sites(trace)
    rows = np.flatnonzero(np.isin(trace.site, list(written)))
    order = rows[np.lexsort((rows, trace.warp[rows], trace.block[rows]))]
    for block in np.unique(trace.block[order]).tolist():
        yield from ("", "#BEGIN_TB", "", f"thread block = {_block(block, launch)}")
        own = order[trace.block[order] == block]
        for warp in np.unique(trace.warp[own]).tolist():
            of_warp = own[trace.warp[own] == warp]
            pairs = [1 + trace.sites[trace.site[row]].op.startswith("cp_async") for row in of_warp.tolist()]
            yield from ("", f"warp = {warp}", f"insts = {int(trace.count[of_warp] @ np.array(pairs))}")
            for row in of_warp.tolist():
                lines = list(_instructions(trace, row, written[int(trace.site[row])]))
                for _ in range(int(trace.count[row])):
                    yield from lines
        yield from ("", "#END_TB")


def _written_sites(trace: TraceData) -> dict[int, int]:
    """The sites to write, with a pc for each; a copy is written from its shared side."""
    sites = [
        number
        for number, site in enumerate(trace.sites)
        if not (site.space == "global" and site.op.startswith("cp_async"))
    ]
    return {number: 16 * place for place, number in enumerate(sites)}


def _instructions(trace: TraceData, row: int, pc: int) -> Iterator[str]:
    site, active = trace.sites[trace.site[row]], trace.active[row]
    base = SHARED_BASE if site.space == "shared" else 0
    if site.op.startswith("cp_async"):
        reads = trace.partner[row] >= 0
        yield _instruction(pc, site, active, trace.addresses[row] + base)
        yield _instruction(pc, site, reads, trace.partner[row])
        return
    yield _instruction(pc, site, active, trace.addresses[row] + base)


def _instruction(pc: int, site: AccessSite, active: NDArray[np.bool_], addresses: NDArray[np.int64]) -> str:
    mask = int(active @ (1 << np.arange(len(active), dtype=np.int64)))
    start = f"{pc:04x} {mask:08x} 0 {_opcode(site, active)} 0 {site.width}"
    own = addresses[active]
    if not len(own):
        return f"{start} {BASE_STRIDE} 0x0 0"
    steps = np.diff(own)
    lanes = np.flatnonzero(active)
    side_by_side = int(lanes[-1] - lanes[0]) + 1 == len(lanes)
    if side_by_side and (steps == steps[:1]).all():
        return f"{start} {BASE_STRIDE} {int(own[0]):#x} {int(steps[0]) if len(steps) else 0}"
    return f"{start} {BASE_DELTA} {int(own[0]):#x} {' '.join(map(str, steps.tolist()))}".rstrip()


def _opcode(site: AccessSite, active: NDArray[np.bool_]) -> str:
    """The machine opcode of the access."""
    if site.op in MATRICES:
        count = -(-int(np.flatnonzero(active).max(initial=0) + 1) // 8)
        return MATRICES[site.op] + {1: "", 2: ".2"}.get(count, ".4")
    name = NAMES.get((site.space, site.op))
    if name is None:
        raise MemsimError(f"Accel-Sim has no instruction for a {site.space} {site.op}")
    return name + BITS[site.width]


def _dim(extents: tuple[int, int, int]) -> str:
    return f"({extents[0]},{extents[1]},{extents[2]})"


def _block(number: int, launch: Launch) -> str:
    return ",".join(map(str, coordinates_of(number, launch.grid)))
