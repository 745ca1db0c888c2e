"""Listings of machine code written by hand."""

from __future__ import annotations

from memsim.sass.listing import Listing, ListingLine


def listing(text: str) -> Listing:
    """A listing of instructions and labels; `{behind}` is the address behind the call that follows."""
    lines: list[ListingLine] = []
    labels = {"kernel": 0}
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":"):
            labels[line[:-1]] = 16 * len(lines)
            continue
        guard, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
        rest = rest.replace("{behind}", f"{16 * len(lines) + 32:#x}")
        lines.append(ListingLine(16 * len(lines), guard[1:] or None, rest, None))
    return Listing("kernel", tuple(lines), labels)
