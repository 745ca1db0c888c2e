"""The code that a program loads: images of fat binaries, cubins and PTX, their kernels, and where variables
are.
"""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from memsim.api.loading import texts_beside
from memsim.arch import Arch
from memsim.arch.chip import chip_number
from memsim.compile.assemble import assemble_ptx, target_of
from memsim.compile.toolkit import find_tool
from memsim.driver.program_memory import ProgramMemory
from memsim.errors import MemsimError
from memsim.isa.program import OF_TILES, Dims
from memsim.kernel import Kernel
from memsim.names.demangle import demangle
from memsim.programs import run_program
from memsim.sass.binary import cubins_in
from memsim.sass.cubin import USER_CONSTANTS
from memsim.sass.fat_binary import MAGIC
from memsim.sass.machine_code import MachineModule, read_module
from memsim.store import Store, cache_folder

ELF = b"\x7fELF"
#: Of names: Numba encodes a version and its options in them, cuTile the types of its arguments.
ABI_TAGS = re.compile(r"(\[abi:\w*)+\]+|_Kt\d_\w+$")


class ProgramModule:
    """A module of a program.

    Raises:
        MemsimError: there is no code in it that the chip runs.
    """

    def __init__(self, image: bytes, memory: ProgramMemory, chip: Arch) -> None:
        self.memory = memory
        self.code = code_of_image(image, chip)
        self.machine: MachineModule = read_module(self.code)
        #: Addresses of global variables, and of the copies of constant ones that the program sees.
        self.variables: dict[str, tuple[int, int]] = {}
        self._place_variables()

    def kernel(self, name: str) -> Kernel | None:
        """The kernel of this name, with those of its sources that are found; None if there is none."""
        machine = self.machine.kernels.get(name)
        if machine is None:
            return None
        listing = self.machine.listing_of(name)
        lines = () if listing is None else listing.lines
        files = dict.fromkeys(line.source.file for line in lines if line.source is not None)
        plain = ABI_TAGS.sub("", shown := demangle(name))
        return Kernel(name, machine, texts_beside(None).of(files), called="" if plain == shown else plain)

    def block_of(self, kernel: Kernel, asked: Dims) -> Dims:
        """The block of a launch: kernels of tiles have their own."""
        return kernel.machine.image.required_threads or asked if OF_TILES in self.variables else asked

    def refuse_hidden_parameters(self, kernel: Kernel) -> None:
        """Raise if a kernel of tiles has parameters that the program does not give it.

        Raises:
            MemsimError: it has.
        """
        given = max((one.offset + one.size for one in kernel.parameters), default=0)
        if OF_TILES in self.variables and given < kernel.machine.image.parameter_size:
            raise MemsimError(
                f"{kernel.title} copies by TMA, with tensor maps that code for the host in its cubin makes",
                hint="give its loads and stores allow_tma=False, or choose --arch sm_80, which has no TMA",
            )

    def first_contents(self) -> Iterator[tuple[str, bytes]]:
        """The variables, with the contents that the code has for them."""
        cubin, bank = self.machine.cubin, self.constants_of_code
        for variable in cubin.variables:
            yield variable.name, variable.init or bytes(variable.size)
        for name, offset, size in cubin.constants:
            yield name, bank[offset : offset + size]

    def changed(self) -> list[str]:
        """The variables that hold something else by now; of those that hold pointers that is not known."""
        pointers = {one.name for one in self.machine.cubin.variables if one.pointers}
        return [
            name
            for name, content in self.first_contents()
            if name not in pointers and self.memory.view(*self.variables[name]).tobytes() != content
        ]

    def _place_variables(self) -> None:
        """Allocates all variables, as the driver does when it loads a module."""
        for name, content in self.first_contents():
            self.variables[name] = self.memory.allocate(len(content), name=name), len(content)
        self.write_first_contents()

    def write_first_contents(self) -> None:
        """All variables are as the code has them."""
        for name, content in self.first_contents():
            self._write(self.variables[name][0], content)
        places = {
            name: at for one in self.machine.cubin.kernels.values() for name, at in one.functions.items()
        }
        places |= {name: start for name, (start, _) in self.variables.items()}
        for variable in self.machine.cubin.variables:
            start, _ = self.variables[variable.name]
            for pointer in variable.pointers:
                if pointer.symbol in places:
                    value = places[pointer.symbol] + pointer.addend
                    self._write(start + pointer.offset, value.to_bytes(8, "little"))

    def _write(self, address: int, content: bytes) -> None:
        self.memory.view(address, len(content))[:] = bytearray(content)

    @cached_property
    def constants_of_code(self) -> bytes:
        """The bank of `__constant__` variables as the code has it."""
        banks = (image.constants.get(USER_CONSTANTS, b"") for image in self.machine.cubin.kernels.values())
        return max(banks, key=len, default=b"")

    def constants(self) -> dict[int, bytes]:
        """The bank of `__constant__` variables as the program has filled them."""
        if not self.machine.cubin.constants:
            return {}
        bank = bytearray(self.constants_of_code)
        for name, offset, size in self.machine.cubin.constants:
            bank[offset : offset + size] = self.memory.view(self.variables[name][0], size).tobytes()
        return {USER_CONSTANTS: bytes(bank)}

    def release(self) -> None:
        """Frees its variables."""
        for start, _ in self.variables.values():
            self.memory.release(start)


def code_of_image(image: bytes, chip: Arch) -> bytes:
    """The cubin of an image that the chip runs, assembled from its PTX if there is none; kept in the user's
    store, because a library's fat binary has code for many chips, compressed.

    Raises:
        MemsimError: there is neither.
    """
    if image.startswith(ELF):
        return image
    store, key = Store(cache_folder()), f"code of image for {chip.name} {sha256(image).hexdigest()}"
    kept = store.get(key)
    if kept is None:
        code = _code_of_image(image, chip)
        store.put(key, zlib.compress(code, 1))
        return code
    return zlib.decompress(kept)


def _code_of_image(image: bytes, chip: Arch) -> bytes:
    if not image.startswith(MAGIC):
        return _assembled(image.rstrip(b"\0").decode(errors="replace"), chip)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "program.fatbin")
        path.write_bytes(image)
        try:
            cubins = cubins_in(path)
        except MemsimError as error:
            if "no machine code" not in error.message:
                raise
            cubins = []
        fitting = [(chip_number(made_for), code) for _, code, made_for in cubins if chip.runs(made_for)]
        if fitting:
            return max(fitting, key=lambda one: one[0])[1]
        texts = _ptx_of(path, scratch)
    fitting_texts = [text for text in texts if (target := target_of(text)) and _assembles(target, chip)]
    if fitting_texts:
        return _assembled(max(fitting_texts, key=lambda text: chip_number(target_of(text) or "sm_0")), chip)
    there = sorted({made_for for _, _, made_for in cubins}) + [f"PTX of {target_of(text)}" for text in texts]
    raise MemsimError(
        f"the program has no code for {chip.name}, only {', '.join(there) or 'nothing that can be read'}",
        hint=f"build it with nvcc -arch={chip.name} (CMake: CMAKE_CUDA_ARCHITECTURES={chip.name[3:]})",
    )


def _ptx_of(path: Path, scratch: str) -> list[str]:
    tool = find_tool("cuobjdump")
    if tool is None:
        return []
    run_program([tool, "-xptx", "all", path], "cuobjdump", cwd=scratch)
    return [one.read_text(errors="replace") for one in sorted(Path(scratch).glob("*.ptx"))]


def _assembles(target: str, chip: Arch) -> bool:
    """Whether PTX may be assembled for a chip: not for an older one, nor `sm_90a`'s for others."""
    exact = target[-1:].isalpha()
    its, own = chip_number(target), chip_number(chip.name)
    return its == own if exact else its <= own


def _assembled(text: str, chip: Arch) -> bytes:
    """PTX assembled; for `sm_90a` where the text says so.

    Raises:
        MemsimError: it is no PTX, no assembler is installed, or it rejects the text.
    """
    target = target_of(text)
    if target is None:
        raise MemsimError("what the program loads is neither a fat binary, nor a cubin, nor PTX")
    return assemble_ptx(text, target if target[-1:].isalpha() else chip.name, "the program's PTX").cubin
