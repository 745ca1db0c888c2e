"""Elements of threads one after another, or apart: an edit where each thread has several neighbouring ones.

`int row = (threadIdx.x & 15) << 3;`, with vectors of four at `row` and `row + 4`, moves halves of sectors,
and lanes meet in banks. The edit gives thread 0, 1, 2 ... vector 0, 1, 2 ..., and then the next of as many:
`(threadIdx.x & 15) * 4`, with `row` and `row + 64`. The threads together have the same elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.text import without_comments
from memsim.source.values import body_of, changes
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import is_the_same
from memsim.suggest.threads import Remapped, replay_edit

NAME = "elements of a thread apart, those of its neighbours side by side"
VECTOR = 4  # elements that one access may have
#: A variable made of a thread's number, and how many elements it is times, unless its uses say that.
_VARIABLE = re.compile(
    r"\b(?P<name>\w+)\s*=\s*(?P<number>\(?(?P<of>[\w.]+)\s*(?P<how>[&%])\s*(?P<threads>\w+|\([\w\s/]+\))\)?|"
    r"(?P<own>threadIdx\.[xy]))(?:\s*(?P<mark>\*|<<)\s*(?P<each>\w+))?\s*(?=[,;])"
)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\r?\n|[^\n])*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Blocked:
    """Elements of a thread from `first` on, a pattern: a variable, times how many unless `declared` has that,
    or another one that is made of it. each: how many, as text; threads: of how many threads.

    declared: where the variable gets its value, and what of it is the thread's number; None if uses have it.
    """

    first: str
    each: str
    threads: str
    declared: tuple[int, int, str] | None

    def edits(self, code: str, body: tuple[int, int]) -> Iterator[tuple[Replacement, ...]]:
        """The elements apart, one by one or in vectors of four; none if a thread has one only."""
        use = rf"{self.first}(?:\s*\+\s*(?P<more>\w+)\b(?!\s*[*/%(.\[]))?"
        places = list(re.compile(use).finditer(code, self.declared[1] if self.declared else body[0], body[1]))
        numbers = [found["more"] or "0" for found in places]
        known = self.each.isdigit() and all(number.isdigit() for number in numbers)
        if {*numbers} == {"0"} or (known and max(map(int, numbers)) >= int(self.each)):
            return
        for width in (gcd(int(self.each), *map(int, numbers)),) if known else (1, VECTOR):
            times = "" if width == 1 else f" * {width}"
            new = [Replacement(*self.declared[:2], self.declared[2] + times)] if self.declared else []
            for found, number in zip(places, numbers, strict=True):
                start = found["name"] + ("" if self.declared else times) if found["name"] else found["made"]
                start = found[0] if (self.declared or found["made"]) and number == "0" else start
                new.append(Replacement(*found.span(), start + self._more(number, width)))
            yield tuple(one for one in new if code[one.start : one.end] != one.new)

    def _more(self, number: str, width: int) -> str:
        """How far an element of a thread is from its first one."""
        if number.isdigit() and self.threads.isdigit():
            apart = int(number) // width * width * int(self.threads) + int(number) % width
            return f" + {apart}" if apart else ""
        if number.isdigit() and int(number) % width == 0:
            return f" + {number} * {self.threads}" if number != "0" else ""
        in_vectors = f" + {number} / {width} * {width} * {self.threads} + {number} % {width}"
        return f" + {number} * {self.threads}" if width == 1 else in_vectors


def striped_elements(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edit for each such variable that helps, compiled and replayed, and has the same results."""
    if not any(site.needless_sectors or site.conflicts for site in before.sites):
        return ()
    text = before.trace.sources.get(job.kernel.file, "")
    code = without_comments(text)
    body = body_of(code, before.trace.kernel)
    found = dict.fromkeys(
        Edit(job.kernel.file, text, new, names=tuple(names_in(one.threads, one.each)), declared=body[0])
        for one in _blocked(code, body)
        for new in one.edits(code, body)
    )
    tried = (replay_edit(NAME, job, before, edit) for edit in found)
    return tuple(one for one in tried if one is not None and one.helps and is_the_same(job, one.job))


def _blocked(code: str, body: tuple[int, int]) -> Iterator[_Blocked]:
    """The variables of a kernel's body that are set once, and that no macro uses by name."""
    for found in _VARIABLE.finditer(code, *body):
        name, threads = found["name"], found["threads"]
        word = rf"(?<![\w.])(?P<name>{name})\b(?!\s*\()"
        bodies = (one[0].partition(")")[2] for one in _DEFINED.finditer(code))
        if changes(name, code[slice(*body)]) != 1 or any(re.search(word, one) for one in bodies):
            continue
        if found["how"] == "&":
            if not threads.isdigit() or int(threads) & (int(threads) + 1):
                continue
            threads = str(int(threads) + 1)
        threads = threads or found["own"].replace("threadIdx", "blockDim")
        if found["each"]:
            each = str(1 << int(found["each"])) if found["mark"] == "<<" else found["each"]
            first = rf"{word}(?P<made>$.)?"
            yield _Blocked(first, each, threads, (found.start("number"), found.end("each"), found["number"]))
            continue
        times = re.compile(rf"{word}\s*\*\s*(?P<each>\w+)\b(?P<whole>\s*[;,])?")
        uses = list(times.finditer(code, found.end(), body[1]))
        named = re.findall(word, code[found.end() : body[1]])
        factors = {one["each"] for one in uses}
        if len(factors) == 1 and len(named) == len(uses):
            (each,) = factors
            made = "|".join(filter(None, (_made_of(code, one, body) for one in uses if one["whole"])))
            first = rf"(?:{word}\s*\*\s*{each}\b|(?<![\w.])(?P<made>{made or '$.'})\b)"
            yield _Blocked(first, each, threads, None)


def _made_of(code: str, use: re.Match[str], body: tuple[int, int]) -> str:
    """The variable that is a place and a thread's elements: `col = blockIdx.x * SIDE + tx * 4;`."""
    found = re.search(r"\b(\w+)\s*=\s*(?!=)(?:[^;,=]*\+\s*)?$", code[body[0] : use.start()])
    return found[1] if found is not None and changes(found[1], code[slice(*body)]) == 1 else ""
