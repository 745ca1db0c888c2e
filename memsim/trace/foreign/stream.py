"""Reads text files, compressed or not, line by line."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from memsim.errors import MemsimError

OPENERS: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".xz": lzma.open}
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
        raise MemsimError("no such file", file=str(path)) from None
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise MemsimError(f"the file is damaged or truncated: {error}", file=str(path)) from None
    except UnicodeDecodeError:
        raise MemsimError("this is not text", file=str(path), line=number + 1) from None
    except OSError as error:
        raise MemsimError(f"cannot read it: {error.strerror or error}", file=str(path)) from None
