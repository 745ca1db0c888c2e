"""`analysis.plot`: the pictures of an analysis as matplotlib figures.

A notebook shows them; `figure.savefig` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memsim.analysis import Analysis, SiteCounts
from memsim.errors import MemsimError, shown
from memsim.pictures.worst_request import SharedRequest, take_apart
from memsim.views.analyze.costs import worst_site

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plots:
    """Pictures of one analysis. All of them raise a `MemsimError` where matplotlib is not installed."""

    analysis: Analysis

    def __call__(self) -> Figure:
        """The picture of what is worst: the heatmap of the banks, or without shared memory the worst request.

        Raises:
            MemsimError: nothing was counted, or matplotlib is not installed.
        """
        uses_banks = any(site.wavefronts is not None for site in self.analysis.sites)
        return self.heatmap() if uses_banks else self.lanes()

    def heatmap(self, compare: Analysis | None = None) -> Figure:
        """How each shared access site uses the banks; with `compare`, both side by side on one scale.

        Raises:
            MemsimError: none of the kernels touches shared memory, or `compare` is not an analysis.
        """
        if compare is not None and not isinstance(compare, Analysis):
            hint = "heatmap(other) takes the result of memsim.analyze"
            raise MemsimError(
                f"a heatmap can only be compared with an analysis, not with {shown(compare)}", hint=hint
            )
        from memsim.views.heatmap.figure import heatmap

        return heatmap([self.analysis] if compare is None else [self.analysis, compare])

    def lanes(self, site: int | SiteCounts | None = None) -> Figure:
        """The worst request of a site, lane by lane.

        `site`: one of `analysis.sites` or its index there, the worst if None.

        For shared memory the lanes by the banks and the conflict graph, for global memory the sectors.

        Raises:
            MemsimError: no such site, or it was not analyzed.
        """
        from memsim.views.explain.figure import lanes, sectors

        request = take_apart(self.analysis, worst_site(self.analysis) if site is None else site)
        kernel = self.analysis.trace.kernel
        if isinstance(request, SharedRequest):
            return lanes(kernel, request)
        return sectors(kernel, request)
