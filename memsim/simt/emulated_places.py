"""Where the emulator has what a launch's arguments refer to: arrays, textures and tensor maps."""

from __future__ import annotations

from memsim.argument_types import TensorMap, Texture
from memsim.errors import MemsimError
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison
from memsim.state.tensors import tensor_of


class EmulatedPlaces:
    """Tells addresses in a launch's memory, and registers there what only handles or addresses name.

    Tensor copies refer to a map by its generic address: in the parameters, or in a table in global memory.
    Its bytes are opaque; the emulator identifies the map by its address.

    name: the parameter's whose argument is encoded.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory, self.name = memory, ""
        self._addresses = iter(memory.argument_addresses)

    def address(self) -> int:
        """Of the next array."""
        return next(self._addresses)

    def texture(self, texture: Texture) -> int:
        """Its handle."""
        return self.memory.bind(texture, self.name)

    def tensor_map(self, one: TensorMap, array: int, at: int) -> bytes:
        """Zeros; the tensor is known by the address of its map, or, if the map has no box, why it is unknown.

        Raises:
            MemsimError: an invalid tensor map.
        """
        try:
            known = tensor_of(one, array) if one.box else None
        except MemsimError as error:
            raise MemsimError(f"argument {self.name}: {error.message}", hint=error.hint) from None
        self.memory.tensors[at] = known or Poison(f"the tensor map {self.name} has no box", None)
        return bytes(one.nbytes)
