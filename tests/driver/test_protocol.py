"""What a program sends is not trusted, and neither side outlives the other's end."""

from __future__ import annotations

import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from memsim.arch import SM_90
from memsim.cli import main
from memsim.driver import native_build, program_memory
from memsim.driver.execute_launches import Launches
from memsim.driver.native_build import libraries
from memsim.driver.program_memory import MemoryKind, OutOfDeviceMemory, ProgramMemory
from memsim.driver.program_textures import QUESTION
from memsim.driver.protocol import ANSWER, HEAD, HELLO, LAUNCH, Client, device_attributes
from memsim.state.address_spaces import GLOBAL_BASE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="exec is for Linux")

(HELLO_OP, MODULE, UNLOAD, FUNCTION, VARIABLE, ALLOCATE, FREE, RANGE) = range(1, 9)
(LAUNCH_OP, OCCUPANCY, REFUSED, MEMORY, PRODUCT, TEXTURE, FORGET, VIRTUAL) = range(9, 17)
NOTHING_WRITTEN = (0,) * 8
OPERATIONS = (
    UNLOAD,
    FUNCTION,
    VARIABLE,
    ALLOCATE,
    FREE,
    RANGE,
    LAUNCH_OP,
    OCCUPANCY,
    TEXTURE,
    FORGET,
    VIRTUAL,
)
PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 a, .param .u32 n) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r1; ret;
}
"""


class Asking:
    """A program's end of the connection, and memsim's."""

    def __init__(self) -> None:
        self.end, theirs = socket.socketpair()
        self.said: list[str] = []
        self.memory = ProgramMemory(1 << 24)
        self.client = Client(theirs, self.memory, Launches(SM_90, self.said.append))
        socket.recv_fds(self.end, 1, 1)

    def ask(self, operation: int, data: bytes = b"", size: int | None = None) -> tuple[int, bytes] | None:
        """The result and the answer; None if memsim has closed the connection."""
        self.end.sendall(HEAD.pack(operation, len(data) if size is None else size) + data)
        if not self.client.serve():
            return None
        result, count = ANSWER.unpack(self.end.recv(ANSWER.size, socket.MSG_WAITALL))
        return result, self.end.recv(count, socket.MSG_WAITALL) if count else b""


@pytest.fixture
def asking() -> Iterator[Asking]:
    made = Asking()
    yield made
    made.end.close()
    made.client.close()


def test_hello_tells_the_device(asking: Asking) -> None:
    answer = asking.ask(HELLO_OP)
    assert answer is not None
    base, size, name, count, _ = HELLO.unpack_from(answer[1])
    pairs = dict(struct.iter_unpack("<Ii", answer[1][HELLO.size :]))
    assert (base, size, name.rstrip(b"\0"), count) == (
        GLOBAL_BASE,
        asking.memory.extent,
        b"memsim sm_90 (no GPU)",
        len(pairs),
    )
    assert pairs == device_attributes(SM_90) and (pairs[75], pairs[76], pairs[97]) == (9, 0, 232_448)


def test_a_module_of_ptx_is_launched(asking: Asking) -> None:
    """And a launch with other parameters than the kernel has is not."""
    module = asking.ask(MODULE, PTX.encode() + b"\0")
    assert module is not None and module[0] == 0
    found = asking.ask(FUNCTION, module[1] + b"store")
    assert found is not None and found[0] == 0
    number, parameters, size = struct.unpack_from("<3I", found[1])
    assert (parameters, size) == (2, 12)
    assert asking.ask(FUNCTION, module[1] + b"other") == (500, b"")
    place = asking.ask(ALLOCATE, struct.pack("<QII", 128, 0, 0))
    assert place is not None
    (address,) = struct.unpack("<Q", place[1])
    shape = (number, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0, *NOTHING_WRITTEN)
    assert asking.ask(LAUNCH_OP, LAUNCH.pack(*shape) + struct.pack("<QI", address, 7)) == (0, b"")
    assert (asking.memory.view(address, 128).view(np.uint32) == 7).all()
    assert asking.ask(LAUNCH_OP, LAUNCH.pack(*shape) + struct.pack("<QI", address + 4, 7)) == (700, b"")
    assert asking.ask(LAUNCH_OP, LAUNCH.pack(99, *shape[1:])) == (400, b"")
    assert asking.ask(LAUNCH_OP, LAUNCH.pack(*shape[:4], 2048, *shape[5:]) + bytes(12)) == (1, b"")
    assert asking.ask(LAUNCH_OP, LAUNCH.pack(*shape) + bytes(5)) is None
    assert "no question" in asking.said[-1]


def test_the_static_runtime_is_no_excuse_for_a_program_that_launches(asking: Asking) -> None:
    """Without a launch it is told how to build; with launches only if it fails, and then of a library."""
    launches = asking.client.launches
    assert launches.why_nothing(1) == ""
    assert asking.ask(REFUSED, b"cuGetExportTable") == (0, b"")
    assert launches.why_nothing(0).startswith("the program, or a library") and not asking.said
    module = asking.ask(MODULE, PTX.encode() + b"\0")
    assert module is not None
    found = asking.ask(FUNCTION, module[1] + b"store")
    place = asking.ask(ALLOCATE, struct.pack("<QII", 128, 0, 0))
    assert found is not None and place is not None
    shape = (*struct.unpack_from("<I", found[1]), 1, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0, *NOTHING_WRITTEN)
    assert asking.ask(LAUNCH_OP, LAUNCH.pack(*shape) + place[1][:8] + struct.pack("<I", 7)) == (0, b"")
    assert launches.why_nothing(0) == "" and launches.why_nothing(1).startswith("a library that the program")


def test_a_texture_is_what_lies_in_an_allocation(asking: Asking) -> None:
    """And damaged ones are refused or make sense; by seed."""
    place = asking.ask(ALLOCATE, struct.pack("<QII", 4096, 0, 0))
    assert place is not None
    (address,) = struct.unpack("<Q", place[1])
    good = [address, 256, 64, 16, 0, 32, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0.0, 0.0, 0.0, 0.0]
    made = asking.ask(TEXTURE, QUESTION.pack(*good))
    assert made is not None and made[0] == 0
    assert asking.ask(FORGET, made[1]) == (0, b"") and asking.ask(FORGET, made[1]) == (400, b"")
    chance = random.Random(29)
    accepted = 0
    for _ in range(300):
        bad: list[float] = list(good)
        for _ in range(chance.randrange(1, 4)):
            field = chance.randrange(1, 15)
            bad[field] = chance.choice((0, 1, 2, 4, 32, 1 << 20, (1 << 31) + 1, chance.randrange(1 << 32)))
        answer = asking.ask(TEXTURE, QUESTION.pack(*bad))
        assert answer is not None and answer[0] in (0, 1, 801)
        accepted += not answer[0]
    for made_texture in asking.memory.textures.objects.values():
        if not made_texture.is_surface:
            assert made_texture.over(asking.memory.bytes, as_documented=True).texels.nbytes <= 1 << 18
    assert 0 < accepted < 200
    assert asking.ask(TEXTURE, b"short") is None


@pytest.mark.parametrize(
    ("operation", "data", "size"),
    [
        (0, b"", None),
        (99, b"", None),
        (ALLOCATE, b"", 1 << 31 | 1),
        (FREE, b"123", None),
        (FUNCTION, b"1", None),
    ],
)
def test_what_is_no_question_ends_the_connection(
    asking: Asking, operation: int, data: bytes, size: int | None
) -> None:
    assert asking.ask(operation, data, size) is None
    assert len(asking.said) == 1 and "no question" in asking.said[0]


def test_a_program_that_ends_within_a_question_is_just_gone(asking: Asking) -> None:
    asking.end.sendall(HEAD.pack(ALLOCATE, 16) + b"half")
    asking.end.close()
    assert not asking.client.serve() and not asking.said


def test_damaged_questions_are_answered_or_refused(asking: Asking) -> None:
    """By seed; whatever comes, memsim goes on with the next program."""
    chance = random.Random(27)
    module = asking.ask(MODULE, PTX.encode())
    assert module is not None
    asking.ask(FUNCTION, module[1] + b"store")
    for _ in range(300):
        data = chance.randbytes(chance.choice((0, 3, 4, 8, 16, 16, 48, 60)))
        if chance.random() < 0.5:
            data = struct.pack("<I", chance.randrange(4)) + data
        told = len(asking.said)
        if asking.ask(chance.choice(OPERATIONS), data) is None:
            assert "no question" in asking.said[told]
    assert asking.ask(MEMORY) is not None


def test_virtual_memory_stays_apart_whatever_is_asked_for(asking: Asking) -> None:
    """By seed: allocations never overlap, and lie in ranges that were reserved, or outside of all."""
    chance, piece = random.Random(30), 2 << 20
    memory, done = asking.memory, dict.fromkeys(range(7), 0)
    for _ in range(2000):
        number = chance.randrange(7)
        at = GLOBAL_BASE + chance.randrange(60) * piece + (chance.random() < 0.1)
        size = chance.choice((1, 1, 2, 3)) * piece + (chance.random() < 0.1)
        known = [*asking.client.virtual.reserved.items()]
        if number == 1 and known:
            at, end = chance.choice(known)
            size = end - at
        answer = asking.ask(VIRTUAL, struct.pack("<3Q", number, at, size))
        assert answer is not None and answer[0] in (0, 1, 2)
        done[number] += not answer[0]
        buffers = memory.layout.buffers
        assert all(one.end <= other.start for one, other in pairwise(buffers))
        assert {one.start for one in buffers} == memory.mapped == set(memory.kinds)
        ranges = asking.client.virtual.reserved.items()
        assert all(any(start <= one.start and one.end <= end for start, end in ranges) for one in buffers)
        assert 0 <= memory.used <= memory.size and memory.layout.end - GLOBAL_BASE <= memory.extent
    assert min(done[number] for number in range(6)) > 5 and not done[6]


@pytest.mark.parametrize(
    "image", [b"", b"\x7fELF", b"\x50\xed\x55\xba" + bytes(20), b"not PTX", bytes(range(256))]
)
def test_a_damaged_image_is_refused(asking: Asking, image: bytes) -> None:
    answer = asking.ask(MODULE, image)
    assert answer is not None and answer[0] in (200, 209) and asking.said


def test_memory_is_reused_and_bounded() -> None:
    memory = ProgramMemory(1 << 20)
    first, second = memory.allocate(1000), memory.allocate(5, MemoryKind.MANAGED)
    assert second - first == 1536 and memory.kinds[second] is MemoryKind.MANAGED
    assert memory.find(first + 999) is not None and memory.find(first + 1000) is None
    assert memory.release(first) and not memory.release(first) and not memory.release(second + 1)
    assert memory.allocate(1001) == first
    with pytest.raises(OutOfDeviceMemory):
        memory.allocate(1 << 20)
    assert memory.used == 1536
    memory.close()


def test_pages_of_what_was_freed_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may be free; those of what was freed before go back to the system, and are zero."""
    monkeypatch.setattr(program_memory, "MOST_FREE", 1 << 20)
    memory = ProgramMemory(8 << 20)
    places = [memory.allocate(1 << 20) for _ in range(2)]
    for place in places:
        memory.view(place, 1 << 20)[:] = 7
    assert all(map(memory.release, places))
    assert [memory.view(place, 1 << 20).max() for place in places] == [0, 7]
    assert memory.allocate(1 << 20) == places[1] and memory.view(places[1], 1 << 20).min() == 7
    memory.close()


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No C compiler, no such option, no such program; nothing else is printed."""
    monkeypatch.setattr(native_build.shutil, "which", lambda name: None)
    assert main(["exec", "--", "true"]) == 2
    assert capsys.readouterr().err.startswith("error: memsim exec needs a C compiler")
    monkeypatch.setattr(native_build.sys, "platform", "darwin")
    assert main(["exec", "true"]) == 2
    assert "on Linux only" in capsys.readouterr().err
    assert main(["exec", "--analyse", "true"]) == 2
    assert "--analyse" in capsys.readouterr().err


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_a_program_is_told_that_memsim_has_ended(tmp_path: Path) -> None:
    """It gets an error, and does not wait for ever."""
    path = str(tmp_path / "driver")
    memory = ProgramMemory(1 << 24)

    def serve(door: socket.socket) -> None:
        connection, _ = door.accept()
        client = Client(connection, memory, Launches(SM_90, print))
        client.serve()  # hello
        connection.close()

    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        script = (
            "import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); print(cuda.cuInit(0));"
            "print(cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(4)))"
        )
        environment = {**os.environ, "MEMSIM_DRIVER": path, "LD_LIBRARY_PATH": str(libraries())}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.returncode) == (["0", "999"], 0)
    assert "has ended" in done.stderr
