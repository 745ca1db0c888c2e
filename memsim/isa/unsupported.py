"""What refuses a form that is not executed."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind")


class Unsupported(Exception):
    """This form of an instruction is not supported."""


def require(condition: object) -> None:
    """What a supported form fulfils.

    Raises:
        Unsupported: it does not.
    """
    if not condition:
        raise Unsupported


def checked(operand: object, kind: type[Kind]) -> Kind:
    """An operand that is of this kind in a supported form.

    Raises:
        Unsupported: it is not.
    """
    if not isinstance(operand, kind):
        raise Unsupported
    return operand
