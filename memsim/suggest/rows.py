"""A row for each thread, moved in pieces: an edit of loops in which threads walk along rows.

`sum += in[row * n + k];` with a row for each thread moves 32 sectors for 32 elements. The edit holds a
piece of the row: `sum += in_row0(&in[row * n + k], n - k);` loads it, 32 bytes by two neighbouring threads
where the address is aligned and both rows have so many more, or more bytes by the threads of a warp side by
side: each sector once, of rows of every length and alignment. Elements that are stored are collected alike:
both ways are an object for each row, called for each element that is loaded, `put` for each that is stored,
and `close` behind the loop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from memsim.analysis import Analysis
from memsim.arch.units import WARP, WORD
from memsim.job import Job
from memsim.source.syntax import Node, outside
from memsim.source.values import initializers
from memsim.suggest.c_text import distance, names_in, substitute_variables
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.footprints import changes_of
from memsim.suggest.kernel_tree import wasting_files, with_pragmas
from memsim.suggest.row_accesses import OTHER_LOOPS, WIDEST, RowAccess, RowAccesses
from memsim.suggest.threads import Remapped, replay_edit

WIDTHS = (1, 2, 4, 8)  # bytes of an element
PREFIX = "row_of_thread"
CHUNKS = (64, 48, 32)  # bytes of a row in the tile, the best first
SHORT = 8  # of rows that are shorter than those


@dataclass(frozen=True, slots=True)
class RowText:
    """A way to move rows. name: in reports; text: the file of what is added before the kernel; opening: of an
    object, in which {array}, {number}, {warps} and {bytes} are replaced. staged: whether it takes shared
    memory.
    """

    name: str
    text: str
    opening: str
    staged: bool

    def chunk(self, rows: int, warps: int, room: int, chunks: Sequence[int]) -> int | None:
        """How many bytes of each row are held in `room` bytes of shared memory; None if these are too few."""
        of_byte = rows * warps * WARP
        # Two words behind each row of the tile, so that neighbouring rows are in other banks.
        fitting = (each for each in chunks if of_byte * (each + 2 * WORD) <= room)
        return next(fitting, None) if self.staged else 16


IN_PAIRS = RowText(
    "rows of threads moved 32 bytes at a time", "row_in_pairs", "row_along({array})", staged=False
)
BY_WARPS = RowText(
    "rows of threads moved by their warp side by side",
    "row_by_warps",
    "row_along<{bytes}, {warps}, {number}>({array})",
    staged=True,
)


def rows_of_threads(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edits, compiled and replayed, that save a quarter of the needless sectors or more."""
    ways = product((IN_PAIRS, BY_WARPS), wasting_files(before))
    tried = (_moved_by(text, job, before, file) for text, file in ways)
    return tuple({done.edit: done for done in tried if done is not None}.values())


def _moved_by(text: RowText, job: Job, before: Analysis, file: str) -> Remapped | None:
    tried: list[Edit] = []
    every, short = min(WIDTHS), (SHORT,)
    # Where narrow elements cost more than they save, the wide ones alone; where rows are short, pieces too.
    for least, chunks in ((every, CHUNKS), (WORD, CHUNKS), (every, short)):
        edit = _Rows(job, before, file, text, least, chunks).moved()
        if edit is None or edit in tried:
            continue
        tried.append(edit)
        done = replay_edit(text.name, job, before, edit)
        if done is not None and done.saves:
            return done
    return None


class _Rows(RowAccesses):
    """A file, in which rows of elements of `least` bytes or more are moved."""

    def __init__(
        self, job: Job, before: Analysis, file: str, row: RowText, least: int, chunks: Sequence[int]
    ) -> None:
        super().__init__(job, before, file, least, max(WIDTHS) if row.staged else WIDEST)
        self.row, self.chunks = row, chunks
        self.warps = -(-job.launch.threads // WARP)

    def moved(self) -> Edit | None:
        """The kernel with all such accesses changed; None if there is none."""
        if PREFIX in self.text:
            return None
        groups: dict[tuple[int, str, str], list[RowAccess]] = defaultdict(list)
        functions = self.functions()
        for one in (each for function in functions for each in self.accesses(function)):
            groups[one.elements].append(one)
        room = self.before.arch.static_shared_bytes - self.before.trace.shared_end
        # Rows of a loop and those in it have tiles of their own; others take the same ones.
        outer = [_outermost(some[0].loop) if len(functions) == 1 else 0 for some in groups.values()]
        at_once, taken = Counter[int](), Counter[int]()
        for around, some in zip(outer, groups.values()):
            at_once[around] += 1 + _is_loaded(some)
        size = self.row.chunk(max(at_once.values(), default=0), self.warps, room, self.chunks)
        if size is None:
            return None
        found: list[Replacement] = []
        names: list[str] = ["blockDim.x"]
        loops: dict[int, tuple[Node, list[str], list[str]]] = {}
        for number, some in enumerate(groups.values()):
            one, name = some[0], f"{some[0].array.replace('.', '_')}_row{number}"
            changed = self._changed(some, name)
            if changed is None:
                continue
            found += changed
            names += names_in(one.index, one.left)
            _, opening, closing = loops.setdefault(one.loop.start_byte, (one.loop, [], []))
            for each in (name, f"{name}_in")[: 1 + _is_loaded(some)]:
                place = taken[outer[number]]
                row = self.row.opening.format(array=one.pointer, number=place, warps=self.warps, bytes=size)
                opening.append(f"auto {each} = {row};")
                taken[outer[number]] += 1
            if _stores(some):
                opening.append(f"auto {name}_end = {one.pointer};")
                closing.append(f"{name}.close({name}_end);")
        if not found:
            return None
        for loop, opening, closing in loops.values():
            start, end = with_pragmas(self.text, loop.start_byte), loop.end_byte
            lines = f"\n{self.indent(start)}".join(["{", *opening, ""])
            found += [Replacement(start, start, lines), Replacement(end, end, " ".join(["", *closing, "}"]))]
        changed_functions = [
            one for one in functions if any(one.start_byte <= at < one.end_byte for at in loops)
        ]
        found.append(self.added(self.row.text, changed_functions))
        if changed_functions != self.kernels:
            names += self.sizes
        return self.edit(found, names)

    def _changed(self, some: list[RowAccess], name: str) -> list[Replacement] | None:
        """The accesses to one element of an iteration, which is read and stored once."""
        one, stores = some[0], _stores(some)
        if one.is_record:
            return self._several(some, name)
        if stores and not _is_stored_once(stores):
            return None
        if not stores and (self.is_stored(one) or not any(each.always for each in some)):
            return None
        if len(some) == 1 and not stores:
            return [Replacement(*one.node.byte_range, f"{name}({one.address}, {one.left})")]
        found, loads = [], f"{name}_in" if stores else name
        along = ")" if one.step == "1" else f", {one.step} == 1)"
        for each in some:
            if each.value is None:
                behind = _is_behind(each, stores)
                if behind is None:
                    return None
                value = f"{name}.last" if behind else f"{name}_value"
                value = f"({each.address}, {value})" if each.moves else value
                found.append(Replacement(*each.node.byte_range, value))
                continue
            old = f"{name}_value {each.operator} (" if each.operator else ""
            put = f"{name}_end = {each.at} + 1, {name}.put({each.address}, {old}"
            found += [
                Replacement(each.node.start_byte, each.value.start_byte, put),
                Replacement(each.end, each.end, ")" * bool(old) + along),
            ]
        if stores and not _is_loaded(some):
            return found
        value = f"{loads}({{}}, {one.left})"
        return self._ahead(one, [f"const auto {name}_value = {value}"], found)

    def _several(self, some: list[RowAccess], name: str) -> list[Replacement] | None:
        """The accesses of each iteration to a record, which is as long as the row grows."""
        apart = [distance(some[0].index, one.index) for one in some]
        known = [each for each in apart if each is not None]
        length, low = int(some[0].step), min(known, default=0)
        places = [each - low for each in known]
        whole = len(known) == len(some) and sorted(set(places)) == list(range(length))
        if not whole or _stores(some) or self.is_stored(some[0]) or not all(one.always for one in some):
            return None
        if any(one.moves for one in some):
            return None
        first = some[places.index(0)]
        left = f"{length} * ({first.left})"
        lines = [
            f"const auto {name}_{place} = {name}({{}} + {place}, {left} - {place})" for place in range(length)
        ]
        found = [
            Replacement(*one.node.byte_range, f"{name}_{place}")
            for one, place in zip(some, places, strict=True)
        ]
        return self._ahead(first, lines, found)

    def _ahead(self, one: RowAccess, lines: list[str], found: list[Replacement]) -> list[Replacement] | None:
        """With lines, of the access's address, where the loop begins; None if it is another one there."""
        body = one.loop.child_by_field_name("body")
        if body is None:
            return None
        code = self.code[body.start_byte : one.node.start_byte]
        index = substitute_variables(one.index, initializers(self.tree.text(body)))
        if any(changes_of(each, code) for each in (one.array, *names_in(index))):
            return None
        address = f"{one.pointer.removesuffix(one.array)}&{one.array}[{index}]"
        first = " ".join(["", *(f"{line.format(address)};" for line in lines)])
        start, end = body.start_byte, body.end_byte
        if body.type == "compound_statement":
            return [Replacement(start + 1, start + 1, first), *found]
        return [Replacement(start, start, f"{{{first} "), *found, Replacement(end, end, " }")]


def _outermost(loop: Node) -> int:
    loops = (one for one in outside(loop) if one.type.endswith(("for_statement", *OTHER_LOOPS)))
    return min((one.start_byte for one in loops), default=loop.start_byte)


def _stores(some: list[RowAccess]) -> list[RowAccess]:
    return [each for each in some if each.value is not None]


def _is_stored_once(stores: list[RowAccess]) -> bool:
    """Whether each iteration makes one of these stores: always, or in each branch of an `if`."""
    branches = {each.branch for each in stores}
    both = len(stores) == 2 == len(branches) and None not in branches
    return stores[0].always if len(stores) == 1 else both and len({each[0] for each in branches if each}) == 1


def _is_behind(read: RowAccess, stores: list[RowAccess]) -> bool | None:
    """Whether an element is read after it was stored; None if that depends on a branch."""
    if any(store.node.start_byte < read.node.start_byte < store.end for store in stores):
        return False
    behind = {store.end < read.node.start_byte for store in stores}
    return None if len(behind) > 1 else True in behind


def _is_loaded(some: list[RowAccess]) -> bool:
    """Whether an element that is stored is read before."""
    stores = _stores(some)
    reads = (_is_behind(each, stores) is False for each in some if each.value is None)
    return bool(stores) and (any(store.operator for store in stores) or any(reads))
