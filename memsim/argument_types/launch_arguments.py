"""The arguments of a launch: matched with the kernel's parameters, and as the bytes that these get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memsim.argument_types.argument import ArgumentPlaces, argument_of
from memsim.argument_types.parameter import Parameter
from memsim.errors import MemsimError


def arrays_of(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """(name, array) for every pointer, in order; the third part of a struct v is v.2, or has its own name.

    A table of pointers is followed by the arrays that it points to, v[0], v[1] and so on.
    """
    for name, argument in zip(names, arguments):
        yield from ((f"{name}{more}", array) for more, array in argument_of(argument).pointees())


def check_arguments(
    kernel: str, parameters: Sequence[Parameter], arguments: Sequence[Any], names: Sequence[str]
) -> None:
    """Raise a MemsimError unless number and types of the arguments match the parameters of `kernel`, its name
    in errors.
    """
    if not isinstance(arguments, Sequence):
        given = argument_of(arguments).in_errors()
        raise MemsimError(f"the arguments must be a list with one for each parameter, not {given}")
    wanted = ", ".join(f"{name}: {parameter.in_words()}" for name, parameter in zip(names, parameters))
    if len(arguments) != len(parameters):
        raise MemsimError(
            f"{kernel} takes {len(parameters)} arguments, but {len(arguments)} were given",
            hint=f"its parameters: {wanted}" if wanted else None,
        )
    for name, parameter, argument in zip(names, parameters, map(argument_of, arguments)):
        if not argument.fits(parameter, name):
            raise MemsimError(
                f"argument {name} of {kernel} must be {parameter.in_words()}, not {argument.in_errors()}",
                hint=argument.hint(parameter),
            )


def parameter_bytes(
    kernel: str, parameters: Sequence[Parameter], arguments: Sequence[Any], places: ArgumentPlaces
) -> list[bytes]:
    """The bytes of every parameter, as the driver gets them.

    kernel: its name in errors.

    Raises:
        MemsimError: arguments that do not match.
    """
    check_arguments(kernel, parameters, arguments, [f"arg{i}" for i in range(len(parameters))])
    given = zip(parameters, map(argument_of, arguments), strict=True)
    return [argument.encode(parameter, places, 0) for parameter, argument in given]
