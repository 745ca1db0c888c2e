"""Extracts the cubins from a file: a cubin, fat binary, object, library, executable or wheel.

Where they are is read from the fat binaries (`memsim.sass.fat_binary`), and only those that are wanted are
unpacked: plain ones here, compressed ones by NVIDIA's `cuobjdump`. Where that is not installed or refuses a
file (13.5 does not know cubins of CUDA 12.0), LZ4 is decompressed here, too. PTX in the file is ignored.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath

from memsim.compile.toolkit import find_tool
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of
from memsim.sass.cubin import chip_of_cubin
from memsim.sass.elf import MACHINE
from memsim.sass.fat_binary import MAGIC, PackedCubin, fat_binary_of, packed_cubins, unpack

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


def cubins_in(path: str | Path, wanted: Callable[[str], bool] = lambda chip: True) -> list[Found]:
    """(name, cubin, chip) of each cubin in a file that is for a wanted chip; names are the file's, or such as
    `lib.1.sm_90.cubin`.

    In a zip file or a wheel, names start with the member's: `package/lib.so: lib.1.sm_90.cubin`.

    Raises:
        MemsimError: no such file; no machine code in it; cuobjdump is needed and not installed.
    """
    return [found for found in _in_file(Path(path), wanted) if wanted(found[2])]


def chips_in(path: str | Path) -> list[str]:
    """The chips of the cubins in a file, each once. Those in a library are not unpacked.

    Raises:
        MemsimError: as `cubins_in`.
    """
    path, chips = Path(path), dict[str, None]()

    def unwanted(chip: str) -> bool:
        chips[chip] = None
        return False

    for _, _, chip in _in_file(path, unwanted):
        chips[chip] = None
    return list(chips)


def cubin_called(path: Path, name: str) -> bytes:
    """The cubin of a file that `cubins_in` gives this name; only it is unpacked.

    Raises:
        MemsimError: as `cubins_in`; or there is none.
    """
    try:
        with path.open("rb") as file:
            start = file.read(64)
        if start.startswith(CONTAINERS) and not _is_cubin(start):
            found = _extract(path, path, lambda chip: True, _number(name))
        else:
            found = _in_file(path, lambda chip: True)
    except OSError as error:
        raise _unopened(path, error) from None
    for called, content, _ in found:
        if called == name:
            return content
    raise MemsimError(f"there is no {name} in it any more", file=str(path), hint="it has changed; try again")


def _unopened(path: Path, error: OSError) -> MemsimError:
    return MemsimError(f"cannot read {path}: {error.strerror}")


def _in_file(path: Path, wanted: Callable[[str], bool]) -> list[Found]:
    """The cubins in a file, at least the wanted ones.

    Raises:
        MemsimError: as `cubins_in`.
    """
    seen: list[str] = []

    def noted(chip: str) -> bool:
        seen.append(chip)
        return wanted(chip)

    try:
        with path.open("rb") as file:
            start = file.read(64)
        if start.startswith(b"PK\x03\x04"):
            found = list(_in_zip(path, noted))
        elif _is_cubin(start):
            found = [_named(path.name, path.read_bytes(), path)]
        elif start.startswith(CONTAINERS):
            found = _extract(path, path, noted)
        else:
            found = []
    except OSError as error:
        raise _unopened(path, error) from None
    if not found and not seen:
        raise MemsimError("the file contains no machine code", file=str(path), hint=_advice(start))
    return found


def _advice(start: bytes) -> str:
    if start.startswith(CONTAINERS):
        return "it may contain only PTX: compile for a chip, as with nvcc -arch=sm_90"
    return "it is not a cubin, fat binary, object, library, executable or wheel"


def _is_cubin(start: bytes) -> bool:
    return start[:4] == b"\x7fELF" and int.from_bytes(start[18:20], "little") == MACHINE


def _named(name: str, cubin: bytes, path: Path) -> Found:
    return name, cubin, chip_of_cubin(cubin, str(path))


def _in_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[Found]:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = PurePosixPath(member.filename)
                is_library = ".so." in name.name  # libcublas.so.12
                if member.is_dir() or not (name.name.endswith(MEMBERS) or is_library):
                    continue
                yield from _in_member(archive, member, path, wanted)
    except (
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        EOFError,
        UnicodeError,
    ) as error:
        raise MemsimError(f"the zip file is damaged or encrypted: {error}", file=str(path)) from None


def _in_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, wanted: Callable[[str], bool]
) -> Iterator[Found]:
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
            for name, cubin, chip in _extract(copy, path, wanted):
                yield f"{member.filename}: {name}", cubin, chip


def _extract(
    container: Path, path: Path, wanted: Callable[[str], bool], only: int | None = None
) -> list[Found]:
    """The wanted cubins in `container`, which errors call `path`. only: the one of this number."""
    with container.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        packed, cut = packed_cubins(data)
        if cut:
            raise _unreadable(path, container, cut, find_tool("cuobjdump"), "it is cut off")
        if not packed:
            tool = find_tool("cuobjdump")
            cubins, log = _by_cuobjdump(tool, container) if tool else ([], "")
            if log and NOTHING not in log:
                raise _unreadable(path, container, 0, tool, log)
            return [_numbered(container, number, cubin, path) for number, cubin in enumerate(cubins, 1)]
        chosen = {
            number: one for number, one in enumerate(packed, 1) if only in (None, number) and wanted(one.chip)
        }
        contents = _unpacked(data, list(chosen.values()), container, path)
    return [_numbered(container, number, cubin, path) for number, cubin in zip(chosen, contents)]


def _numbered(container: Path, number: int, cubin: bytes, path: Path) -> Found:
    """A cubin, called as cuobjdump calls it."""
    chip = chip_of_cubin(cubin, str(path))
    return f"{container.stem}.{number}.{chip}.cubin", cubin, chip


def _unpacked(data: mmap, chosen: Sequence[PackedCubin], container: Path, path: Path) -> list[bytes]:
    """The contents of cubins, in their order; cuobjdump unpacks all that are compressed at once."""
    compressed = [one for one in chosen if one.is_compressed]
    tool = find_tool("cuobjdump") if compressed else None
    made, log = list[bytes](), ""
    if tool is not None:
        with tempfile.TemporaryDirectory() as scratch:
            alone = Path(scratch, f"{container.stem}.fatbin")
            alone.write_bytes(fat_binary_of(data, compressed))
            made, log = _by_cuobjdump(tool, alone)
    by_place = dict(zip((one.place for one in compressed), made)) if len(made) == len(compressed) else {}
    contents = [by_place.get(one.place) or unpack(data, one) for one in chosen]
    if None in contents:
        raise _unreadable(path, container, contents.count(None), tool, log)
    return [content for content in contents if content is not None]


def _unreadable(path: Path, container: Path, count: int, tool: Path | None, log: str) -> MemsimError:
    if tool is not None:
        log = log.replace(str(container.absolute()), str(path))
        return MemsimError("cuobjdump cannot read it", file=str(path), hint=log or None)
    return MemsimError(
        f"{count} cubins in it are compressed, and cuobjdump, which reads them, is not installed",
        file=str(path),
        hint=f"pip install {WHEEL} (Linux and Windows), or install the CUDA toolkit, or give a cubin",
    )


def _by_cuobjdump(tool: Path, container: Path) -> tuple[list[bytes], str]:
    """(cubins, the log if there are none)."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(tool), "-xelf", "all", str(container.absolute())]
        done = run_program(command, "cuobjdump", file=str(container), cwd=scratch)
        if done.returncode != 0:
            return [], text_of(done).strip()
        return [cubin.read_bytes() for cubin in sorted(Path(scratch).glob("*.cubin"), key=_place)], ""


def _place(cubin: Path) -> tuple[int, str]:
    return _number(cubin.name), cubin.name


def _number(name: str) -> int:
    """cuobjdump numbers its files: `libname.12.sm_90.cubin`."""
    numbers = [part for part in name.split(".") if part.isdecimal()]
    return int(numbers[-1]) if numbers else 0
