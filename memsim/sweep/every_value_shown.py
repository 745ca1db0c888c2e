"""Whether a kernel is free of conflicts at every value, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, TextIO

from msgspec import Meta

from memsim.document import Document, Line, Texts, plain
from memsim.launch import Natural
from memsim.sweep.every_value import AtValue, EveryValue, Values
from memsim.views.labels import count, ranges
from memsim.views.screen import Column, Row, Screen

MOST_ROWS = 24  # of a table


def write(target: str, found: EveryValue, stream: TextIO) -> None:
    """Prints the answer on `stream`."""
    screen = Screen(stream)
    screen.say(f"{target}: {headline(found)}", "bold")
    wrong = [each for each in found.replayed if not each.is_free]
    if found.is_exact and not found.holds:
        screen.say()
        columns = (*map(Column, found.names), Column("ways", right=True), Column("why not"))
        screen.table(columns, [Row(_cells(each)) for each in found.replayed[:MOST_ROWS]])
        if len(found.replayed) > MOST_ROWS:
            screen.say(f"and {count(len(found.replayed) - MOST_ROWS, 'more row')}")
        return
    for line in _classes(found, wrong) if wrong else ():
        screen.say(line)
    if found.failed:
        first = found.failed[0]
        at = ", ".join(f"{name} = {value}" for name, value in zip(found.names, first.values))
        screen.say(
            f"At {count(len(found.failed), 'value')} it could not be analyzed, as at {at}: {first.error}"
        )
    if not found.is_exact:
        screen.say(_how(found))


def headline(found: EveryValue) -> str:
    """The answer in a line."""
    names = " and ".join(found.names)
    wrong = sum(not each.is_free for each in found.replayed)
    if wrong and found.is_exact:
        return f"not conflict-free at {wrong:,} of {count(found.asked, 'value')} of {names}"
    if wrong and found.period:
        return f"not conflict-free for every {names}: that depends on its residue modulo {found.period}"
    if wrong:
        return f"not conflict-free for every {names}, and not by residues"
    where = " at which it could be analyzed" if found.failed else ""
    if found.is_exact:
        return f"conflict-free at each of the {count(found.asked, 'value')} of {names}{where}, all replayed"
    of = f"{len(found.replayed):,} of {found.asked:,}"
    return f"conflict-free at every value of {names} that was replayed{where}, {of}"


class EveryValueDocument(Document, frozen=True, kw_only=True):
    """Whether a kernel is free of bank conflicts at every value of some names."""

    target: str
    answer: Line
    names: Annotated[Texts, Meta(description="whose values are tried; values below have this order")]
    asked: Annotated[Natural, Meta(description="combinations of values that were asked about")]
    holds: Annotated[bool, Meta(description="every replay was possible and is free of conflicts")]
    is_exact: Annotated[bool, Meta(description="all were replayed; false: the others are not proven")]
    period: Annotated[Natural, Meta(description="by how many values residues repeat; 0: not by residues")]
    replayed: tuple[AtValue, ...]
    contradicted: Annotated[
        tuple[AtValue, AtValue] | None, Meta(description="two values of one residue that differ")
    ]


def to_dict(target: str, found: EveryValue) -> dict[str, Any]:
    """The answer as plain values."""
    return plain(EveryValueDocument.of(found, target=target, answer=headline(found)))


def _place(found: EveryValue, each: AtValue) -> str:
    """`N = 64, BLOCK = 16`."""
    return ", ".join(f"{name} = {value}" for name, value in zip(found.names, each.values))


def _cells(each: AtValue) -> tuple[str, ...]:
    return (*map(str, each.values), "-" if each.ways is None else str(each.ways), each.error)


def _classes(found: EveryValue, wrong: list[AtValue]) -> Iterator[str]:
    """The residues with conflicts, by the ways of their worst access and the values of other names."""
    if found.contradicted is not None:
        one, two = (f"{_place(found, each)} ({each.ways}-way)" for each in found.contradicted)
        yield f"Of one residue, and different: {one} and {two}."
        return
    by_rest: dict[tuple[Values, int], set[int]] = defaultdict(set)
    place = found.ranges.index(True)
    for each in wrong:
        residue = found.residue(each.values)
        by_rest[(*residue[:place], *residue[place + 1 :]), each.ways or 0].add(residue[place])
    for (rest, ways), residues in sorted(by_rest.items()):
        others = [name for number, name in enumerate(found.names) if number != place]
        fixed = "".join(f", {name} = {value}" for name, value in zip(others, rest))
        yield f"  {found.names[place]} mod {found.period} = {ranges(sorted(residues))}{fixed}: {ways}-way"


def _how(found: EveryValue) -> str:
    if not found.period:
        return f"{len(found.replayed):,} of {found.asked:,} values were replayed; the others were not."
    return (
        f"Each residue modulo {found.period} was replayed, at {len(found.replayed):,} of {found.asked:,} "
        "values drawn at random, of which none differs from its residue. The others were not replayed."
    )
