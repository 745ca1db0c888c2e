"""Cubins out of containers, with cuobjdump and without."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import zipfile
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

import memsim
from memsim.api import machine_code_file
from memsim.api.loading import load
from memsim.api.machine_code_file import cubins_for
from memsim.compile.cuda_source import compile_cubin
from memsim.compile.toolkit import find_tool
from memsim.errors import MemsimError
from memsim.sass import binary, disassemble
from memsim.sass.binary import chips_in, cubins_in
from memsim.sass.fat_binary import LZ4, OF_ONE_CHIP, ZSTD, packed_cubins, unpack
from memsim.sass.machine_code import FEW_KERNELS, MachineModule
from memsim.targets.offers import listed_code

SOURCE = 'extern "C" __global__ void copy(float *x) { x[threadIdx.x] = x[threadIdx.x + 1]; }\n'

try:
    SM_80, SM_90 = (compile_cubin(SOURCE, arch=arch).cubin for arch in ("sm_80", "sm_90"))
except MemsimError as error:
    pytest.skip(error.message, allow_module_level=True)


def fatbin(*images: tuple[bytes, int, int], chips: tuple[int, ...] = ()) -> bytes:
    """A fat binary of (image, flags, uncompressed size), for these chips, or 90."""
    entries = b""
    for (image, flags, size), chip in zip(images, chips or repeat(90)):
        padded = image + bytes(-len(image) % 8)
        compressed = len(image) if flags else 0
        head = struct.pack(
            "<HHIQIIHHIQQQQ", 2, 0x101, 64, len(padded), compressed, 0, 7, 1, chip, 0, 0x11 | flags, 0, size
        )
        entries += head + padded
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, len(entries)) + entries


def plain(image: bytes) -> tuple[bytes, int, int]:
    return image, 0, 0


def literals(image: bytes) -> bytes:
    """An LZ4 block that repeats nothing."""
    more, rest = divmod(len(image) - 15, 255)
    return b"\xf0" + b"\xff" * more + bytes([rest]) + image


@pytest.fixture(params=["with", "without"])
def cuobjdump(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setattr(binary, "find_tool", lambda name: None)
    elif find_tool("cuobjdump") is None:
        pytest.skip("cuobjdump is not installed")


def test_a_bare_cubin_needs_no_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "find_tool", lambda name: None)
    (tmp_path / "kernel.bin").write_bytes(SM_90)
    assert cubins_in(tmp_path / "kernel.bin") == [("kernel.bin", SM_90, "sm_90")]


def test_a_fat_binary(tmp_path: Path, cuobjdump: None) -> None:
    (tmp_path / "two.fatbin").write_bytes(fatbin(plain(SM_80), plain(SM_90)))
    found = cubins_in(str(tmp_path / "two.fatbin"))
    assert [(name, chip) for name, _, chip in found] == [
        ("two.1.sm_80.cubin", "sm_80"),
        ("two.2.sm_90.cubin", "sm_90"),
    ]
    assert [cubin[: len(SM_80)] for _, cubin, _ in found[:1]] == [SM_80]


def test_a_wheel(tmp_path: Path, cuobjdump: None) -> None:
    wheel = tmp_path / "kernels.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("kernels/a.cubin", SM_90)
        archive.writestr("kernels/b.so.12", fatbin(plain(SM_80)))
        archive.writestr("kernels/text.so", "nothing")
        archive.writestr("kernels/readme.txt", SM_90)
    assert [(name, chip) for name, _, chip in cubins_in(wheel)] == [
        ("kernels/a.cubin", "sm_90"),
        ("kernels/b.so.12: b.so.1.sm_80.cubin", "sm_80"),
    ]


def unpacked(data: bytes) -> tuple[list[bytes | None], int]:
    """The cubins of fat binaries, None for one that cannot be read; and how many are cut off."""
    packed, cut = packed_cubins(data)
    return [unpack(data, one) for one in packed], cut


def test_a_fat_binary_within_something_else() -> None:
    container = b"junk \x50\xed\x55\xba junk" + fatbin(plain(SM_80)) + b"more" + fatbin(plain(SM_90))
    cubins, cut = unpacked(container)
    assert [cubin and cubin[:4] for cubin in cubins] == [b"\x7fELF"] * 2 and not cut


def test_lz4() -> None:
    repeated = bytes([0x35]) + b"abc" + struct.pack("<H", 3) + b"\x50" + b"12345"
    text = b"abc" + b"abcabcabc" + b"12345"
    images = [(literals(SM_80), LZ4, len(SM_80)), (repeated, LZ4, len(text))]
    assert unpacked(fatbin(*images)) == ([SM_80, text], 0)


def test_what_cannot_be_read_is_told() -> None:
    far = bytes([0x35]) + b"abc" + struct.pack("<H", 9) + b"\x50" + b"12345"
    for image in (
        (b"(\xb5/\xfd", ZSTD, 100),
        (far, LZ4, 17),
        (literals(SM_80)[:-9], LZ4, len(SM_80)),
        (b"\xff", LZ4, 9),
    ):
        assert unpacked(fatbin(plain(SM_90), image)) == ([SM_90, None], 0)
    for end in (20, 90, 1000):
        assert unpacked(fatbin(plain(SM_90))[:end])[0] == []


def test_a_compressed_file_without_cuobjdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "find_tool", lambda name: None)
    (tmp_path / "small.fatbin").write_bytes(fatbin((b"(\xb5/\xfd", ZSTD, 100)))
    with pytest.raises(MemsimError, match="1 cubins in it are compressed") as caught:
        cubins_in(tmp_path / "small.fatbin")
    assert caught.value.hint is not None and "pip install nvidia-cuda-cuobjdump" in caught.value.hint


def test_only_what_is_wanted_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for other chips may be damaged, or compressed as nothing here reads it."""
    monkeypatch.setattr(binary, "find_tool", lambda name: None)
    packed = (literals(SM_90), LZ4, len(SM_90))
    path = tmp_path / "some.fatbin"
    others = (b"(\xb5/\xfd", ZSTD, 100), (b"\xff", OF_ONE_CHIP | LZ4, 9)
    path.write_bytes(fatbin(others[0], packed, others[1], chips=(120, 90, 100)))
    assert chips_in(path) == ["sm_120", "sm_90", "sm_100a"]
    assert cubins_in(path, lambda chip: chip == "sm_90") == [("some.2.sm_90.cubin", SM_90, "sm_90")]
    assert cubins_for(path, None) == [("some.2.sm_90.cubin", SM_90)]
    assert cubins_in(path, lambda chip: chip == "sm_80") == []
    for chip in ("sm_120", "sm_100a"):
        with pytest.raises(MemsimError, match="1 cubins in it are compressed"):
            cubins_in(path, chip.__eq__)


def test_files_without_machine_code(tmp_path: Path, cuobjdump: None) -> None:
    (tmp_path / "text.py").write_text("nothing")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    for path in (tmp_path / "text.py", tmp_path / "empty.zip", Path(sys.executable)):
        with pytest.raises(MemsimError, match="no machine code"):
            cubins_in(path)
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(MemsimError, match="cannot read"):
            cubins_in(path)
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(MemsimError, match="damaged or encrypted"):
        cubins_in(tmp_path / "broken.zip")


def test_a_zip_whose_names_are_no_text(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "names.zip", "w") as archive:
        archive.writestr("f\u00fcr.cubin", b"")
    whole = (tmp_path / "names.zip").read_bytes()
    (tmp_path / "names.zip").write_bytes(whole.replace("f\u00fcr".encode(), b"f\xeexr"))
    with pytest.raises(MemsimError, match=r"the zip file is damaged"):
        cubins_in(tmp_path / "names.zip")


@pytest.mark.parametrize("name", ["a.cubin", "a.so"])
def test_a_member_that_unpacks_to_much_more_is_left_packed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuobjdump: None
) -> None:
    content = SM_90 if name == "a.cubin" else fatbin(plain(SM_90))
    for padding in (1 << 10, 1 << 20):
        with zipfile.ZipFile(tmp_path / f"{padding}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content + bytes(padding))
            archive.writestr("b.so", bytes(1 << 20))  # nothing that would be unpacked
    monkeypatch.setattr(binary, "MOST_UNPACKED", 1 << 16)
    assert [chip for _, _, chip in cubins_in(tmp_path / f"{1 << 10}.zip")] == ["sm_90"]
    with pytest.raises(MemsimError, match=rf"{name} in it would unpack from [\d,]+ to [\d,]+ bytes"):
        cubins_in(tmp_path / f"{1 << 20}.zip")


def test_a_fat_binary_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "cut.fatbin").write_bytes(fatbin(plain(SM_90))[:500])
    with pytest.raises(MemsimError) as caught:
        cubins_in(tmp_path / "cut.fatbin")
    assert caught.value.file == str(tmp_path / "cut.fatbin")


@pytest.mark.slow
def test_of_a_library_only_the_kernel_asked_for_is_disassembled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, disassembled = list[object](), disassemble.disassemble

    def noted(*cubin: Any, **how: Any) -> str:
        asked.append(how)
        return disassembled(*cubin, **how)

    monkeypatch.setattr(disassemble, "disassemble", noted)
    for many in (FEW_KERNELS, FEW_KERNELS + 1):
        text = "".join(SOURCE.replace("copy", f"copy{number}") for number in range(many))
        source = tmp_path / "copies.cu"
        source.write_text(text)
        (tmp_path / "copies.bin").write_bytes(compile_cubin(source).cubin)
        asked.clear()
        module = load(tmp_path / "copies.bin")
        assert len(module) == many and len(asked) == (many == FEW_KERNELS)
        kernel = module["copy3"]
        assert len(asked) == 1 and list(kernel.sources.values()) == [text]
        assert memsim.analyze(kernel, 1, 32, ["f32[64]"]).sites[0].requests == 1


def test_the_index_of_a_library_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuobjdump: None
) -> None:
    """Another time only the cubin of the kernel asked for is read; a library that changed is read anew."""
    texts = [
        "".join(SOURCE.replace("copy", f"{name}{number}") for number in range(FEW_KERNELS)) for name in "ab"
    ]
    first, second = (compile_cubin(text).cubin for text in texts)
    path = tmp_path / "library.so"
    path.write_bytes(fatbin((literals(first), LZ4, len(first)), (literals(second), LZ4, len(second))))
    read = list[str]()
    read_module = machine_code_file.read_module

    def noted(content: bytes, file: str) -> MachineModule:
        read.append(file)
        return read_module(content, file=file)

    monkeypatch.setattr(machine_code_file, "read_module", noted)
    listed, both = listed_code(str(path)), [f"library.{number}.sm_90.cubin" for number in (1, 2)]
    assert read == both and len(listed) == 2 * FEW_KERNELS and "a0(8 B)" in {one.about for one in listed}
    read.clear()
    assert listed_code(str(path)) == listed and read == []
    module = load(path)
    assert set(module) == {f"{name}{number}" for name in "ab" for number in range(FEW_KERNELS)}
    for _ in range(2):
        assert memsim.analyze(module["b7"], 1, 32, ["f32[64]"]).sites[0].requests == 1
    assert read == both[1:]
    path.write_bytes(fatbin(plain(second), plain(SM_90)))
    read.clear()
    assert "copy" in load(path) and "a0" not in load(path).kernels and read == both
    path.write_bytes(fatbin(plain(SM_90)))
    with pytest.raises(MemsimError, match=r"no library\.2\.sm_90\.cubin in it any more"):
        binary.cubin_called(path, both[1])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_an_object_of_nvcc(tmp_path: Path, cuobjdump: None) -> None:
    (tmp_path / "copy.cu").write_text(SOURCE)
    command = ["nvcc", "-arch=sm_90", "-c", "copy.cu", "-o", "copy.o"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    ((name, cubin, chip),) = cubins_in(tmp_path / "copy.o")
    assert (name, chip) == ("copy.1.sm_90.cubin", "sm_90")
    assert b".text.copy" in cubin
