"""Removes host code: keeps what a compiler of device code needs of a source, with lines and columns
unchanged.

Blanked are host functions and variables, classes that only they use, and host-only headers. Kept is what
kernels reach by name: each kernel, the names in it, and whatever declares one of these for the device, in any
of the texts; also macros, `#pragma` and `#undef`. There is no preprocessing: both branches of an `#if` are
considered, and its lines are kept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from memsim.compile.source_items import WORD, Item, ItemReader
from memsim.source.syntax import Tree, blank, directives, macros, parse

_STRUCTURE = frozenset([b"if", b"ifdef", b"ifndef", b"elif", b"else", b"endif", b"define", b"undef"])
_ONCE = re.compile(rb"[ \t]*#[ \t]*pragma[ \t]+once\b")

#: An assertion by its file and line; EVERY one of them.
Assertion = tuple[str, int]
EVERY = ("", 0)


def set_aside(
    texts: Mapping[str, str], main: str, wanted: Iterable[str] = (), asserted: Assertion | None = None
) -> dict[str, str]:
    """The texts with host code blanked.

    Args:
        texts: a source and its headers, by path.
        main: the path of the source. Kernels of headers are kept if it has none or names them.
        wanted: further names that are needed, such as types in template arguments.
    """
    trees = {file: parse(text) for file, text in texts.items()}
    bodies = _macros(texts.values())
    items = [item for file, tree in trees.items() for item in ItemReader(file, tree, bodies).items()]
    if asserted is None:
        roots = _kernels(items, main, frozenset(WORD.findall(texts[main])))
    else:
        roots = [place for place, item in enumerate(items) if _is_root(item, asserted, trees)]
    kept = _needed(items, bodies, roots, wanted)
    return {
        file: _without(tree, [(place, item) for place, item in enumerate(items) if item.file == file], kept)
        for file, tree in trees.items()
    }


def _macros(texts: Iterable[str]) -> dict[str, str]:
    found: defaultdict[str, str] = defaultdict(str)
    for text in texts:
        for name, body in macros(text).items():
            found[name] += f" {body}"
    return dict(found)


def _kernels(items: Sequence[Item], main: str, named: frozenset[str]) -> list[int]:
    """The places of kernels, of their instances, and of what stays whoever names it."""
    own = any(item.kernel and item.file == main for item in items)
    kernels = {name for item in items if item.kernel for name in item.names}
    return [
        place
        for place, item in enumerate(items)
        if item.always
        or (item.instance and item.names & kernels)
        or (item.kernel and (item.file == main or not own or item.names & named))
    ]


def _is_root(item: Item, asserted: Assertion, trees: Mapping[str, Tree]) -> bool:
    """Is it the assertion, or what stays whoever names it, but for kernels?"""
    if not item.asserts:
        return item.always and not item.kernel
    content = trees[item.file].content
    first, last = (content[:at].count(b"\n") + 1 for at in (item.start, item.end))
    return asserted == EVERY or (asserted[0] == item.file and first <= asserted[1] <= last)


def _needed(
    items: Sequence[Item], macros: Mapping[str, str], roots: Sequence[int], wanted: Iterable[str]
) -> set[int]:
    """The indices in `items` of those that are kept."""
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        for name in item.names:
            by_name[name].append(place)
    kept = set(roots)
    seen: set[str] = set()
    waiting = [*wanted, *(word for place in roots for word in items[place].uses)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in macros:
            waiting += WORD.findall(macros[name])
        for place in by_name[name]:
            if place not in kept and items[place].device:
                kept.add(place)
                waiting += items[place].uses
    return kept


def _without(tree: Tree, items: Sequence[tuple[int, Item]], kept: set[int]) -> str:
    """The text of `tree` with items that are not in `kept`, and holes in those that are, blanked."""
    content = bytearray(tree.content)
    stays = [(item.start, item.end) for place, item in items if place in kept]
    for place, item in items:
        if place not in kept and any(start <= item.start and item.end <= end for start, end in stays):
            continue  # a call without a semicolon inside of kept code
        for start, end in item.holes if place in kept else [(item.start, item.end)]:
            content[start:end] = blank(tree.content[start:end])
    for start, end, name in directives(tree.content):
        if name in _STRUCTURE or _ONCE.match(tree.content, start):
            content[start:end] = tree.content[start:end]
    return content.decode("utf-8")
