"""How data moves between global arrays, registers and shared arrays, as a graph with an edge for each access.

Caches are not part of it, nor data that stays in registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memsim.analysis import Analysis, SiteCounts

if TYPE_CHECKING:
    import networkx as nx


class FlowNode(NamedTuple):
    """A node: `space` is that of a row, or registers; `name` the array ("" if it is not known)."""

    space: str
    name: str


REGISTERS = FlowNode("registers", "registers")


def flow(analysis: Analysis) -> nx.MultiDiGraph[FlowNode]:
    """The flow of memory. Nodes: `FlowNode`s. An edge for each row of the analysis, its key the row's number.

    Edges have `bytes`: what the active lanes ask for, in all requests (None where that is not known);
    `requests`; `efficiency`: ideal sectors over sectors, or ideal wavefronts over wavefronts, 0 to 1 or None;
    `conflicts`: wavefronts that are bank conflicts, or None.
    A `cp.async` goes from a global array to a shared one; what else writes comes from the registers.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[FlowNode] = nx.MultiDiGraph()
    graph.add_node(REGISTERS)
    for number, (site, rows) in enumerate(zip(analysis.sites, analysis.requests_of_sites, strict=True)):
        source, target = _ends(analysis, site)
        lanes = np.count_nonzero(analysis.trace.active[rows], axis=1)
        asked = int(analysis.trace.count[rows] @ lanes) * site.width
        graph.add_edge(
            source,
            target,
            key=number,
            bytes=asked if site.unresolved is None else None,
            requests=site.requests,
            efficiency=_efficiency(site),
            conflicts=site.conflicts,
        )
    return graph


def _ends(analysis: Analysis, site: SiteCounts) -> tuple[FlowNode, FlowNode]:
    place = FlowNode(site.space, site.array)
    if site.operation.verb == "load":
        return place, REGISTERS
    if not site.operation.is_copy:
        return REGISTERS, place
    here = (site.file, site.line, site.op)
    others = (one for one in analysis.sites if (one.file, one.line, one.op) == here)
    other = next((one for one in others if one.space != site.space), None)
    far = REGISTERS if other is None else FlowNode(other.space, other.array)
    return (far, place) if site.space == "shared" else (place, far)


def _efficiency(site: SiteCounts) -> float | None:
    for ideal, spent in ((site.ideal_wavefronts, site.wavefronts), (site.ideal_sectors, site.sectors)):
        if ideal is not None and spent:
            return ideal / spent
    return None
