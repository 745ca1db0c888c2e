"""The first line of what a probe found."""

from __future__ import annotations

from collections.abc import Sequence


def answer(gpu: str, what: str, compared: int, fails: Sequence[str]) -> str:
    """`NVIDIA H200: the rules hold for 43 of 44 instructions, not for LDS`.

    what: the sentence, with places for two counts.
    """
    held = what.format(compared - len(fails), compared)
    return f"{gpu}: {held}" + (f", not for {', '.join(fails)}" if fails else "")
