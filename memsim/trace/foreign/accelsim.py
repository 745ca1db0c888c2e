"""Reads Accel-Sim's kernel traces: `.traceg`, as written by its NVBit tracer, versions 1 to 5, with and
without line numbers.

Source of the format: Accel-Sim, util/tracer_nvbit/README.md and gpu-simulator/trace-parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from pathlib import Path
from typing import NoReturn

from memsim.errors import MemsimError
from memsim.launch import Launch
from memsim.names.demangle import demangle
from memsim.trace.foreign.collect import (
    ALL_DYNAMIC,
    Batch,
    BlocksSeen,
    Collector,
    Opcode,
    TracedInstruction,
    check_instruction,
    coordinates,
    made_from,
    read_opcode,
)
from memsim.trace.record import Recorder
from memsim.trace.trace_data import TraceData

DIM = re.compile(r"\((\d+),(\d+),(\d+)\)")
#: Encodings of addresses: all of them, base and stride, base and differences.
LIST_ALL, BASE_STRIDE, BASE_DELTA = "0", "1", "2"
#: Up to this version each line of an instruction starts with block and warp.
WITH_PLACES = 2
#: What is read of a header.
KEYS = ("kernel name", "grid dim", "block dim", "shmem", "shmem base_addr", "local mem base_addr",
        "accelsim tracer version", "enable lineinfo")  # fmt: skip

LACKS = ("names of arrays", "source lines")


class AccelSimReader:
    """Reads one kernel's trace."""

    def __init__(self, path: Path, recorder: Callable[[], Recorder] = Recorder) -> None:
        self.path = path
        self.header: dict[str, str] = {}
        self.recorder = recorder
        self.collector = Collector(recorder())
        self.instructions: dict[tuple[str, str, int], TracedInstruction | str] = {}
        self.number = 0
        self.block = self.warp = 0
        self.launch = Launch((1, 1, 1), (1, 1, 1))
        self.blocks = BlocksSeen(self.launch.grid)
        self.has_lines = False
        self.has_places = False

    def read(self, lines: Iterator[tuple[int, str]]) -> TraceData:
        """The trace of all lines.

        Raises:
            MemsimError: an invalid line, with its number.
        """
        try:
            return self.read_all(lines)
        except (IndexError, ValueError, OverflowError):
            self.fail("this is not a line of an Accel-Sim trace")
        except MemsimError as error:
            if error.file is None:
                error.file, error.line = str(self.path), self.number or None
            raise

    def read_all(self, lines: Iterator[tuple[int, str]]) -> TraceData:
        """As `read`, with Python's errors for missing, invalid or too large numbers."""
        inside = False
        for self.number, line in lines:
            if not line or line.isspace():
                continue
            if line[0] == "-" and not inside:
                key, _, value = line[1:].partition("=")
                if key.strip() in KEYS:
                    self.header[key.strip()] = value.strip()
            elif line[0] == "#":
                if line.startswith("#BEGIN_TB"):
                    if not inside:
                        self.begin()
                    inside = True
            elif not inside:
                self.fail("there is no #BEGIN_TB before this line")
            elif line.startswith("thread block"):
                self.block = self.blocks.add(*coordinates(line.partition("=")[2]))
            elif line.startswith("warp"):
                self.warp = self.checked_warp(line.partition("=")[2])
            elif not line.startswith("insts"):
                self.instruction(line.split())
        if not len(self.blocks):
            self.fail("there is no thread block in this file: is it an Accel-Sim trace?")
        return self.trace()

    def begin(self) -> None:
        """End of the header."""
        shmem = self.header.get("shmem", "0")
        shared = int(shmem) if re.fullmatch(r"\d{1,9}", shmem) else 0
        self.launch = Launch(self.dim("grid dim"), self.dim("block dim"), shared)
        self.blocks = BlocksSeen(self.launch.grid)
        version = self.header.get("accelsim tracer version", "3")
        self.has_places = version.isdecimal() and int(version) <= WITH_PLACES
        self.has_lines = self.header.get("enable lineinfo", "0") == "1"
        base = {name: self.header.get(f"{name} base_addr") for name in ("shmem", "local mem")}
        window, local = (None if text is None else int(text, 16) for text in base.values())
        # Tools without a real base write 0.
        self.collector = Collector(self.recorder(), window or None, local or None)

    def instruction(self, fields: list[str]) -> None:
        """One line: `PC mask dest_num [dests] opcode src_num [srcs] mem_width [mode addresses]`."""
        at = 4 if self.has_places else 0
        if self.has_places:
            x, y, z = map(int, fields[:3])
            self.block, self.warp = self.blocks.add(x, y, z), self.checked_warp(fields[3])
        line = int(fields[at]) if self.has_lines else 0
        at += self.has_lines
        pc, mask = fields[at], fields[at + 1]
        at += 3 + int(fields[at + 2])
        opcode = fields[at]
        at += 2 + int(fields[at + 1])
        if fields[at] == "0":
            return  # not a memory access
        found = self.found(pc, opcode, line)
        if isinstance(found, TracedInstruction):
            batch = self.collector.batch(found, self.block, self.warp)
            _add(batch, int(mask, 16), fields, at + 1)
        else:
            self.collector.uncounted[f"{found} request"] += 1

    def found(self, pc: str, text: str, line: int) -> TracedInstruction | str:
        """The memory instruction, or the name of one that is not counted; cached."""
        key = pc, text, line
        if key not in self.instructions:
            check_instruction(self.instructions, pc, text)
            opcode = read_opcode(text)
            place = f" (line {line})" if line else ""
            self.instructions[key] = (
                TracedInstruction(f"/*{pc}*/ {text}{place}", address=int(pc, 16), opcode=opcode)
                if isinstance(opcode, Opcode)
                else opcode or text.partition(".")[0]
            )
        return self.instructions[key]

    def trace(self) -> TraceData:
        """The resulting trace."""
        lacks: tuple[str, ...] = ("names of arrays", "source files") if self.has_lines else LACKS
        lacks = (*lacks, *(ALL_DYNAMIC if self.launch.shared_bytes else ()))
        name = demangle(self.header.get("kernel name", self.path.name))
        return self.collector.trace(
            name, self.launch, len(self.blocks), made_from("Accel-Sim trace", self.path, lacks)
        )

    def checked_warp(self, text: str) -> int:
        """The number of a warp of the block."""
        warp = int(text)
        if not 0 <= warp < self.launch.warps:
            self.fail(f"a block of {self.launch.threads} threads has no warp {warp}")
        return warp

    def dim(self, key: str) -> tuple[int, int, int]:
        """Extents in the header."""
        found = DIM.search(self.header.get(key, ""))
        if found is None:
            self.fail(f"the header has no -{key} = (x,y,z)")
        x, y, z = map(int, found.groups())
        return x, y, z

    def fail(self, message: str) -> NoReturn:
        """Raise an error for the current line."""
        raise MemsimError(message, file=str(self.path), line=self.number or None)


def _add(batch: Batch, mask: int, fields: list[str], at: int) -> None:
    """Add the request whose addresses start with the mode field."""
    lanes = mask.bit_count()
    if not lanes:
        batch.add_full(0, ())
        return
    mode, first = fields[at], int(fields[at + 1], 16)
    if mode == BASE_STRIDE:
        batch.add_steps(mask, first, int(fields[at + 2]))
    elif mode == BASE_DELTA:
        steps = map(int, fields[at + 2 : at + 1 + lanes])
        batch.add_full(mask, accumulate(chain((first,), steps)))
    elif mode == LIST_ALL:
        batch.add_full(mask, [int(text, 16) for text in fields[at + 1 : at + 1 + lanes]])
    else:
        raise ValueError(f"address mode {mode}")
