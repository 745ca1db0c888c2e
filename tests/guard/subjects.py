"""Kernels made by hand, as the guard sees them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

from memsim.analysis import analyze_trace
from memsim.guard.baseline import Entry, entry_of
from memsim.guard.budget import parse_budget
from memsim.guard.evaluate import GuardedKernel, check
from memsim.guard.outcome import Checked
from memsim.guard.select import parse_selector
from memsim.trace.trace_data import AccessSite
from tests.traces import LANES, Request, make_trace, site

Access: TypeAlias = tuple[AccessSite, list[Request]]

STORE = site(line=2, op="store", instruction="st.shared.f32")
LOAD = site(line=3)
OUT = site(line=4, op="store", space="global", array="out", instruction="st.global.f32")

CLEAN, TWO_WAY, BROADCAST = LANES * 4, LANES * 8, LANES * 0
SCATTERED = LANES * 128


def subject(*accesses: Access, entry: Entry | None = None, **fields: Any) -> GuardedKernel:
    """A kernel with these accesses."""
    return GuardedKernel("k", analyze_trace(make_trace(*accesses, **fields)), entry)


def shared(
    addresses: Any = CLEAN, one: AccessSite = LOAD, count: int = 1
) -> tuple[AccessSite, list[Request]]:
    """A shared access that asks for these addresses `count` times."""
    return one, [Request(addresses, count)]


def out(addresses: Any = CLEAN, count: int = 1) -> Access:
    """A global store."""
    return OUT, [Request(addresses, count)]


def unresolved(one: AccessSite = LOAD, **fields: Any) -> Access:
    """An access whose addresses nobody knows."""
    return dataclasses.replace(one, unresolved="it depends on a call", **fields), []


def entry(*accesses: Access, **fields: Any) -> Entry:
    """What a baseline has of such a kernel."""
    return entry_of(subject(*accesses, **fields).analysis)


def checked(text: str, of: GuardedKernel, *accepted: str) -> Checked:
    """One budget on one kernel."""
    return check(parse_budget(text), of, [parse_selector(one) for one in accepted])
