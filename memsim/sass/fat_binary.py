"""The layout of fat binaries: which cubins are in one, for which chips, and where; each is unpacked alone.

It is what NVIDIA's `fatbinary` writes: a header (magic, version, header size, size), then entries, each a
header (kind at 0, its own size at 4, stored size at 8, compressed size at 16, chip at 28, flags at 40,
uncompressed size at 56) and the image. Images are stored plain, compressed by LZ4 (as in CUDA 12) or by zstd
(as in later releases), which Python's standard library cannot decompress.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from mmap import mmap

MAGIC = b"\x50\xed\x55\xba"
HEADER = 16
ENTRY = 64
CUBIN = 2  # kind of an entry
LZ4, ZSTD = 0x2000, 0x8000  # flags
OF_ONE_CHIP, OF_FAMILY = 0x100000, 0x200000  # flags: sm_90a, sm_100f
MAX_CUBIN = 1 << 30


@dataclass(frozen=True, slots=True)
class PackedCubin:
    """A cubin in a fat binary. chip: as its header says, `sm_90a`. place, size: of its entry and its header.
    is_compressed: it is not stored plain.
    """

    chip: str
    place: int
    size: int
    is_compressed: bool


def packed_cubins(data: bytes | mmap) -> tuple[list[PackedCubin], int]:
    """The cubins of all fat binaries found anywhere in `data`, and how many of these are cut off."""
    found: list[PackedCubin] = []
    cut = 0
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
                        cut += 1
                        break
                    if kind == CUBIN:
                        found.append(_packed(data, place, own + stored))
                    place += own + stored
                end = max(end, place)
        start = data.find(MAGIC, end)
    return found, cut


def _packed(data: bytes | mmap, entry: int, whole: int) -> PackedCubin:
    (number,) = struct.unpack_from("<I", data, entry + 28)
    (flags,) = struct.unpack_from("<Q", data, entry + 40)
    suffix = "a" if flags & OF_ONE_CHIP else "f" if flags & OF_FAMILY else ""
    return PackedCubin(f"sm_{number}{suffix}", entry, whole, bool(flags & (LZ4 | ZSTD)))


def fat_binary_of(data: bytes | mmap, cubins: Iterable[PackedCubin]) -> bytes:
    """A fat binary of these cubins alone."""
    entries = b"".join(data[one.place : one.place + one.size] for one in cubins)
    return struct.pack("<4sHHQ", MAGIC, 1, HEADER, len(entries)) + entries


def unpack(data: bytes | mmap, cubin: PackedCubin) -> bytes | None:
    """The content of a cubin; None if it is damaged, or compressed by zstd."""
    entry = cubin.place
    (own,) = struct.unpack_from("<I", data, entry + 4)
    (compressed,) = struct.unpack_from("<I", data, entry + 16)
    (flags,) = struct.unpack_from("<Q", data, entry + 40)
    (size,) = struct.unpack_from("<Q", data, entry + 56)
    image = data[entry + own : entry + cubin.size]
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
