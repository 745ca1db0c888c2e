"""A row for each thread, moved 16 bytes at a time: an edit of loops in which threads walk along rows.

`sum += in[row * n + k];` with a row for each thread moves 32 sectors for 32 elements. The edit holds 16
bytes of the row in registers: `sum += in_row0(&in[row * n + k], n - k);` loads them where the address is
aligned and the row has so many more, and one element otherwise: it holds for every length. Elements that are
stored are collected alike.

Such a loop counts a variable by one, the index grows by one with it (tried with numbers for all names in it),
every iteration makes the access, and no other access in the loop may concern the elements.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.arch.units import WORD
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source.expressions import evaluate, open_names
from memsim.source.values import changes, initializers
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import is_badly_coalesced
from memsim.suggest.kernel_tree import KernelTree, walk, with_pragmas
from memsim.suggest.prove import edit_job, replay_job, source_of
from memsim.suggest.threads import Remapped, total

if TYPE_CHECKING:
    from tree_sitter import Node

NAME = "rows of threads moved 16 bytes at a time"
PREFIX = "row_of_thread"
WIDTHS = (1, 2, 4, 8)  # bytes of an element
TEXT = """\
// A row along which a thread walks, 16 bytes at a time.
template <typename T>
struct row_of_thread {
    static const int LENGTH = 16 / sizeof(T);
    static_assert(16 % sizeof(T) == 0, "elements of 1, 2, 4, 8 or 16 bytes");
    union {
        uint4 all;
        T one[LENGTH];
    };
    int held;
    __device__ __forceinline__ row_of_thread(const T *) : all(make_uint4(0, 0, 0, 0)), held(0) {}
    __device__ __forceinline__ T shifted(T last) {
        const T first = one[0];
        if (sizeof(T) < 4) {
            const int bits = 8 * sizeof(T) % 32;
            all.x = __funnelshift_r(all.x, all.y, bits);
            all.y = __funnelshift_r(all.y, all.z, bits);
            all.z = __funnelshift_r(all.z, all.w, bits);
            all.w >>= bits;
        } else {
#pragma unroll
            for (int place = 1; place < LENGTH; ++place) one[place - 1] = one[place];
        }
        one[LENGTH - 1] = last;
        return first;
    }
    // The element at `at`, which is the one after the last, of a row that has `left` more from there.
    __device__ __forceinline__ T operator()(const T *at, long long left) {
        if (held == 0) {
            if (left < LENGTH || (unsigned long long)at % 16) return *at;
            all = *(const uint4 *)at;
            held = LENGTH;
        }
        --held;
        return shifted(one[0]);
    }
    // Stores a value at `at`, which is the place after the last.
    __device__ __forceinline__ void put(T *at, T value) {
        if (held == 0 && (unsigned long long)at % 16) {
            *at = value;
            return;
        }
        shifted(value);
        if (++held == LENGTH) {
            *(uint4 *)(at + 1 - LENGTH) = all;
            held = 0;
        }
    }
    // Stores what was collected before `end`.
    __device__ __forceinline__ void close(T *end) {
#pragma unroll
        for (int back = LENGTH; back > 0; --back)
            if (back <= held) end[-back] = one[LENGTH - back];
    }
};
template <typename T>
__device__ __forceinline__ row_of_thread<T> row_along(const T *row) { return row_of_thread<T>(row); }

"""
#: What may let others see, or change, elements while a thread holds them.
_SHARED_BY_OTHERS = re.compile(
    r"\b(?:return|continue|goto|asm|volatile|atomic\w+|__sync\w+|__threadfence\w*)\b"
)
_NOT_ALWAYS = (
    "if_statement",
    "conditional_expression",
    "while_statement",
    "do_statement",
    "lambda_expression",
    "switch_statement",
)


@dataclass(frozen=True, slots=True)
class _Access:
    """`array[index]` in a loop. value: what it is assigned, None for a load; left: how many elements the row
    has from there on, in C.
    """

    node: Node
    loop: Node
    array: str
    index: str
    value: Node | None
    left: str


def rows_of_threads(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The kernel with its rows moved 16 bytes at a time, compiled and replayed.

    If that saves a quarter of the needless sectors or more, and the bound is not higher.
    """
    if source_of(job) is None:
        return ()
    tried: list[Edit] = []
    for least in (min(WIDTHS), WORD):  # where narrow elements cost more than they save, the wide ones alone
        edit = _Rows(before, job.kernel.file, least).edit()
        if edit is None or edit in tried:
            continue
        tried.append(edit)
        changed = edit_job(job, edit, job.launch)
        try:
            done = Remapped(NAME, before, edit, changed, replay_job(changed))
        except MemsimError:
            continue  # a change that does not compile or run is not proposed
        saved = total(before, "sectors") - total(done.analysis, "sectors")
        enough = saved >= BADLY_COALESCED * sum(site.needless_sectors for site in before.sites)
        if enough and done.analysis.bound.cycles <= before.bound.cycles and done.helps:
            return (done,)
    return ()


class _Rows(KernelTree):
    """A kernel's source, in which such accesses are looked for, of elements of `least` bytes or more."""

    def __init__(self, before: Analysis, file: str, least: int) -> None:
        super().__init__(before, file)
        self.least = least

    def edit(self) -> Edit | None:
        """The kernel with all such accesses changed; None if there is none."""
        if self.definition is None or PREFIX in self.text:
            return None
        groups: dict[tuple[int, str, str], list[_Access]] = {}
        for one in self._accesses(self.definition):
            groups.setdefault((one.loop.start_byte, one.array, "".join(one.index.split())), []).append(one)
        found: list[Replacement] = []
        names: list[str] = ["blockDim.x"]
        loops: dict[int, tuple[Node, list[str], list[str]]] = {}
        for number, some in enumerate(groups.values()):
            one, name = some[0], f"{some[0].array}_row{number}"
            changed = self._changed(some, name)
            if changed is None:
                continue
            found += changed
            names += [each for each in names_in(one.index, one.left) if each not in names]
            _, opening, closing = loops.setdefault(one.loop.start_byte, (one.loop, [], []))
            opening.append(f"auto {name} = row_along({one.array});")
            if one.value is not None:
                opening.append(f"auto {name}_end = {one.array};")
                closing.append(f"{name}.close({name}_end);")
        if not found:
            return None
        for loop, opening, closing in loops.values():
            start, end = with_pragmas(self.text, loop.start_byte), loop.end_byte
            indent = re.match(r"[ \t]*", self.text[self.text.rfind("\n", 0, start) + 1 : start])
            lines = f"\n{indent[0] if indent else ''}".join(["{", *opening, ""])
            found += [Replacement(start, start, lines), Replacement(end, end, " ".join(["", *closing, "}"]))]
        head = self.head(self.definition)
        found.append(Replacement(head, head, TEXT))
        in_order = tuple(sorted(found, key=lambda each: (each.start, each.end)))
        inside = self.opening(self.definition)
        return Edit(self.file, self.text, in_order, names=tuple(names), declared=inside)

    def _accesses(self, definition: Node) -> Iterator[_Access]:
        """The accesses along rows, in lines that waste sectors."""
        bad = [site for site in self.before.sites if is_badly_coalesced(site) and site.file == self.file]
        others = set(self.not_of_global_memory(definition))
        for node in walk(definition):
            if node.type != "subscript_expression" or node.children[0].type != "identifier":
                continue
            if self.tree.text(node.children[0]) in others:
                continue
            first, last = (point[0] + 1 for point in (node.start_point, node.end_point))
            ops = {
                site.op
                for site in bad
                if first <= site.line <= last and self.least <= site.width <= max(WIDTHS)
            }
            made = self._access(node) if ops else None
            if made is not None and ("load" if made.value is None else "store") in ops:
                yield made

    def _access(self, node: Node) -> _Access | None:
        array, index = self.tree.text(node.children[0]), _index(self.tree.text(node))
        loop = node.parent
        while loop is not None and loop.type != "for_statement":
            short = loop.type == "binary_expression" and loop.children[1].type in ("&&", "||")
            if short or loop.type in (*_NOT_ALWAYS, "function_definition"):
                return None
            loop = loop.parent
        inside = None if loop is None else loop.child_by_field_name("body")
        if loop is None or inside is None or node.start_byte < inside.start_byte:
            return None
        counted, code = self._counted(loop), self.tree.text(inside)
        if counted is None or _SHARED_BY_OTHERS.search(code):
            return None
        variable, left = counted
        if changes(variable, code) or not _grows_by_one(index, variable, code):
            return None
        assigned = node.parent is not None and node.parent.type == "assignment_expression"
        is_target = assigned and node.parent is not None and node.parent.children[0] == node
        value = self._value(node) if is_target else None
        if (is_target and value is None) or not self._alone(inside, array, index, value is not None):
            return None
        return _Access(node, loop, array, index, value, left)

    def _counted(self, loop: Node) -> tuple[str, str] | None:
        """The variable that a loop counts by one, and how many iterations there are from its value on."""
        condition, update = (loop.child_by_field_name(name) for name in ("condition", "update"))
        if condition is None or update is None or condition.type != "binary_expression":
            return None
        step = re.fullmatch(r"\s*(?:\+\+\s*(\w+)|(\w+)\s*\+\+|(\w+)\s*\+=\s*1)\s*", self.tree.text(update))
        left, sign, right = condition.children
        if step is None or sign.type not in ("<", "<=", "!="):
            return None
        variable, end = step[1] or step[2] or step[3], self.tree.text(right)
        if self.tree.text(left) != variable or re.search(rf"\b{variable}\b|\(", end):
            return None
        return variable, f"(long long)({end}) - {variable}" + (" + 1" if sign.type == "<=" else "")

    def _value(self, node: Node) -> Node | None:
        """The value of a statement `array[index] = value;`."""
        parent = node.parent
        alone = (
            parent is not None and parent.parent is not None and parent.parent.type == "expression_statement"
        )
        return parent.children[2] if alone and parent is not None and parent.children[1].type == "=" else None

    def _alone(self, inside: Node, array: str, index: str, stored: bool) -> bool:
        """Whether nothing else in a loop may concern the elements: other uses of an array that is stored to,
        stores to one that is loaded from.
        """
        uses = [one for one in walk(inside) if one.type == "identifier" and self.tree.text(one) == array]
        if stored:
            return len(uses) == 1
        for use in uses:
            node = use.parent
            if node is None or node.type != "subscript_expression" or node.children[0] != use:
                return False
            around = node.parent
            changed = around is not None and around.type in ("assignment_expression", "update_expression")
            if (
                around is None
                or around.type == "pointer_expression"
                or (changed and around.children[0] == node)
            ):
                return False
        return bool(index)

    def _changed(self, some: list[_Access], name: str) -> list[Replacement] | None:
        """The accesses to one element of an iteration, which is read once."""
        one = some[0]
        address = f"&{one.array}[{one.index}]"
        start, end = one.node.start_byte, one.node.end_byte
        if one.value is not None:
            return [
                Replacement(
                    start, one.value.start_byte, f"{name}_end = {address} + 1, {name}.put({address}, "
                ),
                Replacement(one.value.end_byte, one.value.end_byte, ")"),
            ]
        if len(some) == 1:
            return [Replacement(start, end, f"{name}({address}, {one.left})")]
        inside = one.loop.child_by_field_name("body")
        if inside is None or inside.type != "compound_statement":
            return None
        if set(re.findall(r"\w+", one.index)) & set(initializers(self.tree.text(inside))):
            return None
        place = inside.start_byte + 1
        first = f" const auto {name}_value = {name}({address}, {one.left});"
        reads = [Replacement(each.node.start_byte, each.node.end_byte, f"{name}_value") for each in some]
        return [Replacement(place, place, first), *reads]


def _index(access: str) -> str:
    """`i + 1` of `a[i + 1]`."""
    return access[access.index("[") + 1 : access.rindex("]")].strip()


def _grows_by_one(index: str, variable: str, code: str) -> bool:
    """Whether an index grows by one with a variable of a loop, whatever the other names in it are."""
    if re.search(r"\+\+|--|(?<![=!<>])=(?!=)", index):
        return False
    inner = initializers(code)
    for _ in range(4):
        named = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*[.(\[])")
        index = named.sub(lambda one: f"({inner[one[0]]})" if one[0] in inner else one[0], index)
    index = re.sub(r"\b(\w+)\s*(?:\.|->)\s*(\w+)", r"\1_\2", index)
    names = open_names(index, {})
    if names is None or variable not in names or any(changes(name, code) for name in names):
        return False
    draw = random.Random(1)
    for _ in range(3):
        known = {name: draw.randrange(3, 500) for name in names}
        at, further = (evaluate(index, {**known, variable: known[variable] + step}) for step in (0, 1))
        if at is None or further is None or further - at != 1:
            return False
    return True
