"""The listing of a saved launch's cubin: with it a launch is counted where there is no disassembler.

It is bound to the cubin by a digest of both, so that a cubin which was compiled anew, or the listing of
another, is refused. A digest finds mistakes and not lies: whoever writes a `launch.json` can write that, too.
So a disassembler that is installed has the word, and where nothing is trusted there has to be one.
"""

from __future__ import annotations

import gzip
import zlib
from hashlib import sha256

from memsim.boundary import confinement
from memsim.captured.launch_document import ListingDocument
from memsim.errors import MemsimError
from memsim.sass import disassemble

FILE = "kernel.sass.gz"
#: The longest listing that is unpacked, in bytes per byte of the cubin; most have fewer bytes than three.
MOST_PER_BYTE = 256


def pack_listing(cubin: bytes, listing: str) -> tuple[ListingDocument, bytes]:
    """The record of a listing, and the content of its file."""
    content = gzip.compress(listing.encode(), mtime=0)
    return ListingDocument(file=FILE, sha256=_digest(cubin, content)), content


def unpack_listing(cubin: bytes, record: ListingDocument, content: bytes, launch: str) -> str | None:
    """The listing in the content of its file; None where a disassembler makes it. `launch`: of whose cubin.

    Raises:
        MemsimError: it is another cubin's, it is not trusted, or it cannot be unpacked.
    """
    if _digest(cubin, content) != record.sha256:
        raise MemsimError(
            f"{record.file} is not the listing of its cubin: one of them was changed",
            file=launch,
            hint='save the launch again; or remove "listing", and nvdisasm makes it',
        )
    if disassemble.is_installed():
        return None
    if confinement() is not None:
        raise MemsimError(
            "a listing is not trusted that others made, and there is no nvdisasm to make it",
            file=launch,
            hint=f"pip install {disassemble.WHEEL}",
        )
    unzip = zlib.decompressobj(wbits=31)  # gzip
    try:
        text = unzip.decompress(content, MOST_PER_BYTE * len(cubin)).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise MemsimError(f"cannot read {record.file}: {error}", file=launch) from None
    if not unzip.eof:
        raise MemsimError(f"{record.file} is truncated, or too long for its cubin", file=launch)
    return text


def check_replaceable(launch: str) -> None:
    """Check that a cubin saved without a listing can be disassembled.

    Raises:
        MemsimError: no disassembler is installed.
    """
    if not disassemble.is_installed():
        raise MemsimError(
            "it was saved without the listing of its cubin, and there is no nvdisasm to make it",
            file=launch,
            hint=f"pip install {disassemble.WHEEL} (Linux and Windows), or save it again where that is: "
            "memsim analyze launch.json --save-launch FOLDER",
        )


def _digest(cubin: bytes, content: bytes) -> str:
    return sha256(cubin + content).hexdigest()
