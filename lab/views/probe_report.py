"""The report of a probe, whichever it is: a line that answers, a table, and what differs; text or records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from memsim.arch import ARCHS, SM_90
from memsim.version import __version__
from memsim.views.screen import Screen
from memsim.views.tables import Column, Row

SCHEMA = 1


@dataclass(frozen=True)
class ProbeReport:
    """headline: the line that answers. columns, rows: of the table. notes: the lines below it. holds: whether
    everything does. about, found: what the records tell of the recording, and of what was found.
    """

    headline: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Iterable[str]
    holds: bool
    about: dict[str, Any]
    found: dict[str, Any]

    def write(self, stream: TextIO) -> None:
        """As text."""
        screen = Screen(stream)
        screen.say(self.headline, "bold")
        screen.say()
        screen.table(self.columns, self.rows)
        screen.say()
        for note in self.notes:
            screen.say(note)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as `probe.schema.json` beside this file describes them."""
        about = {"schema": SCHEMA, "memsim": __version__, **self.about}
        return {**about, "verdict": self.headline, **self.found}


def answer(gpu: str, what: str, compared: int, fails: Sequence[str]) -> str:
    """`NVIDIA H200: the rules hold for 43 of 44 instructions, not for LDS`.

    what: the sentence, with places for two counts.
    """
    held = what.format(compared - len(fails), compared)
    return f"{gpu}: {held}" + (f", not for {', '.join(fails)}" if fails else "")


def finding(cells: Sequence[str], holds: bool) -> Row:
    """A row of the table, red if the rule does not hold; the last column says so."""
    return Row((*cells, "holds" if holds else "differs"), "" if holds else "red")


def about_an_unknown_chip(arch: str) -> Iterator[str]:
    """What a recording is good for if its chip, such as sm_87, is none that memsim has."""
    if arch not in ARCHS:
        yield (
            f"memsim has no chip {arch}: the recording is compared with the rules of {SM_90}, and changes no "
            f"analysis until memsim has it. There are {', '.join(ARCHS)}."
        )
