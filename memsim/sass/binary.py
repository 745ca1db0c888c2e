"""Extracts the cubins from a file: a cubin, fat binary, object, library, executable or wheel.

NVIDIA's `cuobjdump` does it; where it is not installed or refuses a file (13.5 does not know cubins of CUDA
12.0), `read_fatbins` does. A bare cubin needs neither. PTX in the file is ignored.

`read_fatbins` reads cubins that are stored plain or compressed by LZ4 (as in CUDA 12), in file order. Those
compressed by zstd (as in later releases), which Python's standard library cannot decompress, are only
counted. The layout is what NVIDIA's `fatbinary` writes: a header (magic, version, header size, size), then
entries, each a header (kind at 0, its own size at 4, stored size at 8, compressed size at 16, flags at 40,
uncompressed size at 56) and the image.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from memsim.compile.toolkit import find_tool
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of
from memsim.sass.cubin import read_cubin
from memsim.sass.elf import MACHINE

MAGIC = b"\x50\xed\x55\xba"
HEADER = 16
ENTRY = 64
CUBIN = 2  # kind of an entry
LZ4, ZSTD = 0x2000, 0x8000  # flags
MAX_CUBIN = 1 << 30


@dataclass(frozen=True, slots=True)
class Fatbins:
    """`unread`: cubins that are damaged or whose compression is not supported here."""

    cubins: tuple[bytes, ...]
    unread: int


def read_fatbins(data: bytes) -> Fatbins:
    """The cubins of all fat binaries found anywhere in `data`."""
    cubins: list[bytes] = []
    unread = 0
    start = data.find(MAGIC)
    while start >= 0:
        end = start + len(MAGIC)
        if start + HEADER <= len(data):
            version, header, size = struct.unpack_from("<HHQ", data, start + 4)
            place, stop = start + header, start + header + size
            if version == 1 and header >= HEADER and stop <= len(data):
                while place + ENTRY <= stop:
                    kind, _, own, stored = struct.unpack_from("<HHIQ", data, place)
                    if own < ENTRY or place + own + stored > stop:
                        unread += 1
                        break
                    if kind == CUBIN:
                        cubin = _image(data, place, own, stored)
                        cubins += [cubin] if cubin is not None else []
                        unread += cubin is None
                    place += own + stored
                end = max(end, place)
        start = data.find(MAGIC, end)
    return Fatbins(tuple(cubins), unread)


def _image(data: bytes, entry: int, own: int, stored: int) -> bytes | None:
    (compressed,) = struct.unpack_from("<I", data, entry + 16)
    (flags,) = struct.unpack_from("<Q", data, entry + 40)
    (size,) = struct.unpack_from("<Q", data, entry + 56)
    image = data[entry + own : entry + own + stored]
    if flags & ZSTD or size > MAX_CUBIN:
        return None
    return _unpack_lz4(image[:compressed], size) if flags & LZ4 else image


def _unpack_lz4(packed: bytes, size: int) -> bytes | None:
    """An LZ4 block (without a frame) of `size` bytes; None if it is damaged.

    The format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
    """
    out = bytearray()
    place = 0
    try:
        while place < len(packed):
            token = packed[place]
            literals, place = _length(packed, place + 1, token >> 4)
            out += packed[place : place + literals]
            place += literals
            if place >= len(packed):
                break
            back = packed[place] | packed[place + 1] << 8
            repeat, place = _length(packed, place + 2, token & 15)
            repeat += 4
            begin = len(out) - back
            if back == 0 or begin < 0 or len(out) + repeat > size:
                return None
            piece = out[begin : begin + repeat]
            out += (piece * (repeat // len(piece) + 1))[:repeat]
    except IndexError:
        return None
    return bytes(out) if len(out) == size else None


def _length(packed: bytes, place: int, value: int) -> tuple[int, int]:
    """(a length whose first four bits are `value`, the position after it)."""
    if value == 15:
        while True:
            more = packed[place]
            place += 1
            value += more
            if more != 255:
                break
    return value, place


# --- any file

WHEEL = "nvidia-cuda-cuobjdump"
NOTHING = "does not contain device code"  # cuobjdump about a file without cubins
# Files that cuobjdump reads, by their first bytes: fat binaries, ELF, archives, Windows executables.
CONTAINERS = (MAGIC, b"\x7fELF", b"!<arch>\n", b"MZ")
# Members of a zip file that may contain cubins.
MEMBERS = (".cubin", ".fatbin", ".o", ".obj", ".a", ".lib", ".so", ".pyd", ".dll", ".exe")
# What a member may unpack to: so many bytes, or so many times what it takes in the file.
MOST_UNPACKED = 1 << 26
MOST_RATIO = 64

Found = tuple[str, bytes, str]  # name, cubin, chip


def cubins_in(path: str | Path) -> list[Found]:
    """(name, cubin, chip) of each cubin in a file; names are the file's, or such as `lib.1.sm_90.cubin`.

    In a zip file or a wheel, names start with the member's: `package/lib.so: lib.1.sm_90.cubin`.

    Raises:
        MemsimError: no such file; no machine code in it; cuobjdump is needed and not installed.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(64)
        if start.startswith(b"PK\x03\x04"):
            found = list(_in_zip(path))
        elif _is_cubin(start):
            found = [_named(path.name, path.read_bytes(), path)]
        elif start.startswith(CONTAINERS):
            found = _extract(path, path)
        else:
            found = []
    except OSError as error:
        raise MemsimError(f"cannot read {path}: {error.strerror}") from None
    if not found:
        raise MemsimError("the file contains no machine code", file=str(path), hint=_advice(start))
    return found


def _advice(start: bytes) -> str:
    if start.startswith(CONTAINERS):
        return "it may contain only PTX: compile for a chip, as with nvcc -arch=sm_90"
    return "it is not a cubin, fat binary, object, library, executable or wheel"


def _is_cubin(start: bytes) -> bool:
    return start[:4] == b"\x7fELF" and int.from_bytes(start[18:20], "little") == MACHINE


def _named(name: str, cubin: bytes, path: Path) -> Found:
    return name, cubin, read_cubin(cubin, str(path)).arch


def _in_zip(path: Path) -> Iterator[Found]:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = PurePosixPath(member.filename)
                is_library = ".so." in name.name  # libcublas.so.12
                if member.is_dir() or not (name.name.endswith(MEMBERS) or is_library):
                    continue
                yield from _in_member(archive, member, path)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise MemsimError(f"the zip file is damaged or encrypted: {error}", file=str(path)) from None


def _in_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> Iterator[Found]:
    with archive.open(member) as packed:
        start = packed.read(64)
    if not start.startswith(CONTAINERS):
        return
    if member.file_size > max(MOST_UNPACKED, MOST_RATIO * member.compress_size):
        grows = f"would unpack from {member.compress_size:,} to {member.file_size:,} bytes"
        raise MemsimError(
            f"{member.filename} in it {grows}",
            file=str(path),
            hint="no machine code packs so well; unpack it yourself",
        )
    if _is_cubin(start):
        yield _named(member.filename, archive.read(member), path)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch, PurePosixPath(member.filename).name)
            with archive.open(member) as packed, copy.open("wb") as file:
                shutil.copyfileobj(packed, file)
            for name, cubin, chip in _extract(copy, path):
                yield f"{member.filename}: {name}", cubin, chip


def _extract(container: Path, path: Path) -> list[Found]:
    """The cubins in `container`, which errors call `path`."""
    tool = find_tool("cuobjdump")
    cubins, log = _by_cuobjdump(tool, container, path) if tool else ([], "")
    if not cubins:
        found = read_fatbins(container.read_bytes())
        if found.unread or (log and NOTHING not in log and not found.cubins):
            raise _unreadable(path, container, found.unread, tool, log)
        for number, cubin in enumerate(found.cubins, 1):
            chip = read_cubin(cubin, str(path)).arch
            cubins.append((f"{container.stem}.{number}.{chip}.cubin", cubin, chip))
    return cubins


def _unreadable(path: Path, container: Path, count: int, tool: Path | None, log: str) -> MemsimError:
    if tool is not None:
        log = log.replace(str(container.absolute()), str(path))
        return MemsimError("cuobjdump cannot read it", file=str(path), hint=log or None)
    return MemsimError(
        f"{count} cubins in it are compressed, and cuobjdump, which reads them, is not installed",
        file=str(path),
        hint=f"pip install {WHEEL} (Linux and Windows), or install the CUDA toolkit, or give a cubin",
    )


def _by_cuobjdump(tool: Path, container: Path, path: Path) -> tuple[list[Found], str]:
    """(cubins, the log if there are none)."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(tool), "-xelf", "all", str(container.absolute())]
        done = run_program(command, "cuobjdump", file=str(path), cwd=scratch)
        if done.returncode != 0:
            return [], text_of(done).strip()
        cubins = sorted(Path(scratch).glob("*.cubin"), key=_number)
        return [_named(cubin.name, cubin.read_bytes(), path) for cubin in cubins], ""


def _number(cubin: Path) -> tuple[int, str]:
    """cuobjdump numbers its files: `libname.12.sm_90.cubin`."""
    numbers = [part for part in cubin.name.split(".") if part.isdecimal()]
    return (int(numbers[-1]) if numbers else 0), cubin.name
