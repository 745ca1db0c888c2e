"""Sizes that are the same on all supported chips; an `Arch` has them too.

Source: CUDA C++ Programming Guide, "Compute Capabilities"; each chip's recordings in traces/ agree.
"""

#: Lanes of a warp.
WARP = 32
#: Banks of shared memory.
BANKS = 32
#: Bytes of a bank's word.
WORD = 4
#: Bytes of a cache line; all banks together hold as many side by side.
LINE = 128
#: Bytes of a sector, of which a line has four.
SECTOR = 32
