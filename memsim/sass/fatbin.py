"""Fat binaries: the container in which an executable, object or library carries cubins.

Reads cubins that are stored plain or compressed by LZ4 (as in CUDA 12), in file order. Cubins compressed by
zstd (as in later releases), which Python's standard library cannot decompress, are only counted; `cuobjdump`
reads them. PTX is ignored.

The layout is what NVIDIA's `fatbinary` writes: a header (magic, version, header size, size), then entries,
each a header (kind at 0, its own size at 4, stored size at 8, compressed size at 16, flags at 40,
uncompressed size at 56) and the image.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

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
