"""The cost of a launch: a row for each source line and kind of access, totals, and a one-line verdict."""

from memsim.analysis.analysis import SCHEMA, Analysis, analyze_trace
from memsim.analysis.verdict import BADLY_COALESCED
from memsim.counts import InstructionCounts, Range, SiteCounts

__all__ = [
    "BADLY_COALESCED",
    "SCHEMA",
    "Analysis",
    "InstructionCounts",
    "Range",
    "SiteCounts",
    "analyze_trace",
]
