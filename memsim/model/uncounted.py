"""In which counters requests may count whose cost is unknown, by their names in `Trace.uncounted`."""

from __future__ import annotations

from memsim.model.counters import Counter

#: Requests that are in none of the counters that are predicted.
ELSEWHERE = frozenset(("constant memory request", "bulk copy request"))
#: Calls of the driver's functions, whose code no file has. They leave the kernel's own arrays alone.
CALLS = frozenset(("printf call", "malloc call", "free call"))


def may_count_in(what: str, counter: Counter) -> bool:
    """Whether such a request may count there; one of an unknown kind may count anywhere."""
    if what in ELSEWHERE:
        return False
    if what == "texture request":
        return counter.space == "texture"
    if what == "local memory request":
        return counter.space == "local"
    if what in CALLS:  # generic atomics count in shared memory, too, if none of their lanes is there
        return counter.space in ("global", "local", "constant") or "_op_atom" in counter.metric
    return True
