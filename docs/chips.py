"""The table of chips in README.md and docs/chips.md: what each rule is worth on which."""

from __future__ import annotations

from collections.abc import Callable

from memsim.arch import ARCHS, ASSUMED, BY_CLOCK, MEASURED, PUBLISHED, Arch, get_arch
from memsim.arch.chip import Rule
from memsim.views.plain import table

#: How well rules are supported, the best first.
BASES = (MEASURED, BY_CLOCK, PUBLISHED, ASSUMED)
WORTH = ("measured", "by clock", "published", "assumed as on sm_90")


def _accesses(chip: Arch, basis: str) -> str:
    """`shared load 8, 16 B`."""
    widths: dict[str, set[int]] = {}
    for rule in chip.rules:
        if rule.basis == basis:
            op = rule.op.replace("_generic", " by generic addresses").replace(
                "_unmade", " without a lane there"
            )
            widths.setdefault(f"{rule.space} {op}", set()).update(rule.widths)
    return "; ".join(f"{name} {', '.join(map(str, sorted(held)))} B" for name, held in widths.items()) or "-"


def matrix() -> str:
    """Chips, and how many kinds of access are of which worth."""
    rows = []
    for chip in map(get_arch, ARCHS):
        counts = [sum(len(rule.widths) for rule in chip.rules if rule.basis == basis) for basis in BASES]
        rates = "as on sm_90: an estimate" if chip.rates == ASSUMED else chip.rates
        rows.append([f"`{chip.name}`", chip.chip, *map(str, counts), rates])
    return table(("`--arch`", "such as", *WORTH, "rates for bounds"), rows, "llrrrrl") + "\n"


def summary() -> str:
    """Chips whose rules are supported alike, a row for each kind."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for chip in map(get_arch, ARCHS):
        found = {rule.basis for rule in chip.rules}
        worth = tuple(said for basis, said in zip(BASES, WORTH, strict=True) if basis in found)
        rates = "estimate" if chip.rates == ASSUMED else chip.rates
        alike.setdefault((" or ".join(worth), rates), []).append(chip.name)
    rows = [[f"`{' '.join(names)}`", *kind] for kind, names in alike.items()]
    return table(("`--arch`", "rules", "bounds"), rows, "lll") + "\n"


def rules() -> str:
    """Which accesses those are."""
    rows = [[f"`{chip.name}`", *(_accesses(chip, basis) for basis in BASES)] for chip in map(get_arch, ARCHS)]
    return table(("`--arch`", *WORTH), rows, "lllll") + "\n"


def sources() -> str:
    """Where published rules are from."""
    found: dict[str, list[Rule]] = {}
    for chip in map(get_arch, ARCHS):
        for rule in chip.rules:
            if rule.basis == PUBLISHED:
                found.setdefault(rule.where, []).append(rule)
    rows = [
        f"- {', '.join(dict.fromkeys(f'{rule.space} {rule.op}' for rule in held))}: {where}."
        for where, held in found.items()
    ]
    return "\n".join([*rows, ""])


PARTS: dict[str, Callable[[], str]] = {
    "chips": matrix,
    "chips in short": summary,
    "rules of the chips": rules,
    "published rules": sources,
}
