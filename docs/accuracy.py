"""The accuracy table: the model's counts beside a recording of hardware counters, by instruction."""

from __future__ import annotations

from studies.access_patterns import GLOBAL, LAUNCHES, SHARED, Recorded, global_errors, shared_errors


def accuracy_table() -> str:
    """A row for each instruction: the profiler's figures for each pattern, the counters of each launch."""
    lines = ["| instruction | patterns: figures equal | launches: counters equal |", "|---|---|---|"]
    errors = [(recorded, shared_errors(recorded)) for recorded in SHARED]
    errors += [(recorded, global_errors(recorded)) for recorded in GLOBAL]
    for recorded, unequal in errors:
        counters = {metric: count for metric, count in unequal.items() if metric.startswith("l1tex__")}
        figures = {metric: count for metric, count in unequal.items() if metric not in counters}
        readable = sum(int(recorded.source(column)[1].sum()) for column in figures)
        cells = _name(recorded), _equal(readable, figures), _equal(LAUNCHES[0] * len(counters), counters)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _name(recorded: Recorded) -> str:
    return f"{recorded.space} {recorded.op}, {recorded.width} B (`{recorded.name}`)"


def _equal(compared: int, unequal: dict[str, int]) -> str:
    return f"{compared - sum(unequal.values())} of {compared}" if compared else "-"
