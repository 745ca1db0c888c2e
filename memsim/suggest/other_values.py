"""An edit at other values of what it touches: constants of the source, macros of the command line, template
parameters, integer arguments, and the block.

At each value the kernel runs as it was and as edited, on the same arguments, in a launch in which it runs as
it was: extents of the block that equal the value change with it, or the grid or dynamic shared memory do.
Where it runs in none of these, nothing can be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from memsim.api.sanitizing import sanitize_job
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.launch import Launch, dim3
from memsim.sanitizer.hazards import BOUNDS, RACE
from memsim.source.kernels import template_arguments, template_constants
from memsim.source.values import DECLARED, DEFINE, declared_pairs, definition, value_of
from memsim.suggest.c_text import names_in
from memsim.suggest.caller_layout import packed_arguments, packed_results
from memsim.suggest.edit import Edit, Replacement, apply_replacements
from memsim.suggest.maps import XorSwizzle
from memsim.suggest.prove import Proof, integer_arguments, macros_of, results_of, source_of, with_text
from memsim.suggest.threads import Remapped

# Further values of a name at which an edit is judged; a constant with fewer is bound to those it has.
LEAST_JUDGED, MOST_JUDGED = 2, 3
BLOCKS = 2  # of a launch at another value
MOST_BLOCKS = 512  # of one in which blocks do each other's work

SAME, REFUSED = "the results are the same", "refused by its static_assert"


@dataclass(frozen=True, slots=True)
class OtherValue:
    """An edit at another value of a name.

    outcome: `SAME`, `REFUSED`, or what went wrong; "" if the kernel does not run there as it was.
    """

    name: str
    value: int
    outcome: str

    @property
    def is_wrong(self) -> bool:
        """Whether the edit computes something else there, or fails."""
        return self.outcome not in (SAME, REFUSED, "")


@dataclass(frozen=True, slots=True)
class Knob:
    """A name that an edit depends on, and its value now. kind: `define` (of the command line), `source`,
    `template`, `argument` or `block`.
    """

    name: str
    value: int
    kind: str

    @property
    def is_constant(self) -> bool:
        """Whether the compiler knows it, so that a `static_assert` can be about it."""
        return self.kind in ("define", "source", "template")


def knobs_of_edit(job: Job, edit: Edit) -> list[Knob]:
    """What an edit depends on, as far as its values can be changed; constants made of others are followed."""
    macros, template = macros_of(job), template_constants(edit.text, job.loaded.title)
    declared = {name: value.strip() for name, value in DEFINE.findall(edit.text)}
    for match in DECLARED.finditer(edit.text):
        declared.update(declared_pairs(match[1]))
    known = {"define": macros, "template": template, "argument": integer_arguments(job)}
    found: dict[str, Knob] = {}
    waiting = list(edit.names)
    for name in waiting:
        if name in found:
            continue
        kind = next((kind for kind, values in known.items() if name in values), "")
        if kind:
            found[name] = Knob(name, known[kind][name], kind)
        elif name.startswith("blockDim."):
            extent = job.launch.block["xyz".index(name[-1])]
            found |= {name: Knob(name, extent, "block")} if extent > 1 else {}
        elif name in declared:
            value = value_of(declared[name], {}) if not names_in(declared[name]) else None
            place = definition(edit.text, name)
            ours = place is not None and any(place[0] <= each.start < place[1] for each in edit.replacements)
            if value is not None and place is not None and not ours:
                found[name] = Knob(name, value, "source")
            waiting += [one for one in names_in(declared.pop(name)) if one not in waiting]
    return list(found.values())


def at_other_values(job: Job, taken: Proof | Remapped) -> Iterator[OtherValue]:
    """The edit at further values of each name that it touches."""
    for each in knobs_of_edit(job, taken.edit):
        judged = 0
        for value in _values(each.value):
            tried = OtherValue(each.name, value, _outcome(job, taken, each, value))
            yield tried
            judged += bool(tried.outcome)
            if judged == MOST_JUDGED:
                break


def _values(value: int) -> list[int]:
    """Further values, the likeliest first."""
    if value < 2:
        return [value + 1, value + 2, value + 4]
    half = value // 2 if value % 2 == 0 else value + 1
    return list(dict.fromkeys((2 * value, half, value + value // 2, 4 * value, max(value // 4, 1))))


def _outcome(job: Job, taken: Proof | Remapped, what: Knob, value: int) -> str:
    original, edited = (
        _with_value(job, taken.edit.file, text, what, value) for text in (taken.edit.text, taken.edit.new)
    )
    try:
        original = replace(original, kernel=original.loaded)  # once for all launches
        edited = replace(edited, args=packed_arguments(original.values, taken.asks))
    except MemsimError:
        return ""
    for launch in _launches(job.launch, what, value):
        if taken.edit.among_blocks:
            if launch.blocks > MOST_BLOCKS:
                launch = replace(launch, grid=dim3(tuple(min(extent, BLOCKS) for extent in launch.grid)))
            original, edited = replace(original, blocks=None), replace(edited, blocks=None)
        try:
            before = packed_results(results_of(replace(original, launch=launch)), taken.asks)
        except MemsimError:
            continue  # no launch of the kernel as it was
        outcome = _compared(before, replace(edited, launch=_launch_of(taken, launch)))
        ran = replace(original, launch=launch, blocks=taken.job.blocks)
        if outcome in (SAME, REFUSED) or _is_sound(ran, job):
            return outcome
    return ""


def _compared(before: Mapping[str, bytes], edited: Job) -> str:
    try:
        after = results_of(edited)
    except MemsimError as error:
        return REFUSED if "static assertion failed" in error.message else error.message
    wrong = [name for name, result in before.items() if after[name] != result]
    return f"{' and '.join(wrong)} came out different" if wrong else SAME


def _is_sound(job: Job, known: Job) -> bool:
    """Whether the kernel as it was is made for a launch: no access is out of bounds, and none races that does
    not in a known launch. Else its results say nothing.
    """
    try:
        return _errors(job) <= _errors(known)
    except MemsimError:
        return False


def _errors(job: Job) -> set[tuple[object, ...]]:
    found = sanitize_job(job, tools=(BOUNDS, RACE)).findings
    return {(one.tool, one.kind, one.array, one.places) for one in found}


def _with_value(job: Job, file: str, text: str, what: Knob, value: int) -> Job:
    """The job of a text of its source, at another value."""
    source = source_of(job)
    options, name, args = source.options, source.name, list(job.values)
    if what.kind == "define":
        old = re.compile(rf"-D\s*{what.name}=.*")
        options = tuple(old.sub(f"-D{what.name}={value}", option) for option in options)
    elif what.kind == "source":
        place = definition(text, what.name)
        text = text if place is None else apply_replacements(text, [Replacement(*place, str(value))])
    elif what.kind == "template":
        given = {**template_arguments(text, job.loaded.title), what.name: str(value)}
        name = f"{job.loaded.title.partition('<')[0]}<{', '.join(given.values())}>"
    elif what.kind == "argument":
        args[job.loaded.argument_names.index(what.name)] = value
    ours = replace(job, kernel=replace(source, options=options, name=name))
    changed = with_text(ours, file, text)
    return replace(changed, args=args, blocks=min(BLOCKS, job.blocks or BLOCKS))


def _launches(launch: Launch, what: Knob, value: int) -> Iterator[Launch]:
    """Launches in which a kernel may run at another value, the likeliest first."""
    old, block, bytes_now = max(what.value, 1), launch.block, launch.shared_bytes
    if what.kind == "block":
        axis = "xyz".index(what.name[-1])
        blocks = dict.fromkeys([(*block[:axis], value, *block[axis + 1 :])])
    else:
        times = {old: value, old * old: value * value} if old > 1 else {}
        equal = tuple(times.get(extent, extent) for extent in block)
        multiple = tuple(
            extent * value // old if old > 1 and extent % old == 0 else extent for extent in block
        )
        blocks = dict.fromkeys([equal, multiple, block])
    fewer = tuple(max(extent * old // value, 1) for extent in launch.grid) if old < value else launch.grid
    sizes = dict.fromkeys([bytes_now, bytes_now * value // old, bytes_now * value**2 // old**2])
    for shape, grid, size in product(blocks, dict.fromkeys([launch.grid, fewer, (1, 1, 1)]), sizes):
        with suppress(MemsimError):  # more threads than a block has
            yield replace(launch, block=dim3(shape), grid=dim3(grid), shared_bytes=size)


def _launch_of(taken: Proof | Remapped, launch: Launch) -> Launch:
    """The launch of the edited kernel, for a launch of the original."""
    if isinstance(taken, Remapped):
        return launch
    now, sizes = launch.shared_bytes, [launch.shared_bytes]
    for each in taken.proposals:  # views of the same dynamic array
        if each.more_dynamic:
            sizes.append(each.change.size(now))
        elif isinstance(each.change, XorSwizzle) and each.edit is not None and each.edit.brings_launch:
            sizes.append(-(-now // each.change.piece) * each.change.piece)
    return replace(launch, shared_bytes=max(sizes))


def edit_with_assertions(edit: Edit, tried: Sequence[OtherValue], names: Sequence[Knob]) -> Edit | None:
    """The edit with a `static_assert` for each constant of which another value makes it wrong, or that could
    be judged at fewer than `LEAST_JUDGED` others: that it has one of the values at which it is right. None if
    another value of what is no constant makes it wrong.
    """
    for each in names:
        of_name = [one for one in tried if one.name == each.name]
        wrong = any(one.is_wrong for one in of_name)
        if not wrong and sum(bool(one.outcome) for one in of_name) >= LEAST_JUDGED:
            continue
        if each.is_constant:
            right = sorted({each.value, *(one.value for one in of_name if one.outcome == SAME)})
            edit = edit.asserting(" || ".join(f"{each.name} == {value}" for value in right))
        elif wrong:
            return None
    return edit
